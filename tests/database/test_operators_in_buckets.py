"""What an operator does to themes reaches each of them, in whichever bucket it lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import psycopg
import pytest
from database.test_forget import CANARY, OTHER, Home
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.ops.setup import demonstration
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.runtime.sweep import sweep_once
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.schema.moving import Mark, differences, move, open_side
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.store import hidden
from hermes_memory_pgvector.store.expiry import Rules
from hermes_memory_pgvector.store.hidden import Key
from hermes_memory_pgvector.terminal.operation import Note
from hermes_memory_pgvector.values import BENCH_THEME, Kind
from testing.command import Commands
from testing.postgres import Database
from testing.stored import Stored

BUCKETS = 4
THEMES = [next(each for each in map("t{}".format, count()) if bucket_of(each, BUCKETS) == n) for n in range(BUCKETS)]
"""One of each bucket."""


@pytest.fixture
def home(tmp_path: Path, four_buckets: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """One whose agents have said something in each bucket."""
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    made = Home(tmp_path, four_buckets)
    for theme in THEMES:
        agent = made.provider(theme, f"of {theme}")
        agent.sync_turn(f"{CANARY} called about {theme}", OTHER, session_id=f"of {theme}")
        agent.on_memory_write("add", "memory", f"{CANARY} likes {theme}", metadata={})
    made.settle()
    made.close()
    assert [made.stored.count(f"hermes_0{bucket}.conversations") for bucket in range(BUCKETS)] == [2] * BUCKETS
    yield made
    made.close()


def test_what_is_forgotten_goes_from_every_bucket_and_stays_out(home: Home, tmp_path: Path) -> None:
    assert home.commands.call("export", "--output", str(tmp_path / "old.jsonl")).code == 0
    dry = home.commands.call("forget", "--match", CANARY, "--json")
    assert dry.code == 0, dry
    assert (dry.json["counts"]["turns"], dry.json["counts"]["memories"]) == (BUCKETS, BUCKETS)
    done = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert done.code == 0, done
    assert home.hits() == []
    assert home.commands.call("forget", "--verify", str(done.json["receipt"]), "--match", CANARY).code == 0
    again = home.commands.call("import", str(tmp_path / "old.jsonl"), "--execute", "--json")
    assert again.json["left_out"] == {"that were forgotten here": 2 * BUCKETS}
    assert [len(home.stored.turns(theme)) for theme in THEMES] == [1] * BUCKETS


def test_what_is_imported_arrives_in_the_buckets_of_its_themes_once(home: Home, tmp_path: Path) -> None:
    assert home.commands.call("export", "--output", str(tmp_path / "old.jsonl")).code == 0
    renamed = (tmp_path / "old.jsonl").read_text(encoding="utf-8")
    for theme, other in zip(THEMES, reversed(THEMES), strict=True):
        renamed = renamed.replace(f'"theme":"{theme}"', f'"theme":"@{other}"')
    (tmp_path / "new.jsonl").write_text(renamed.replace('"@', '"'), encoding="utf-8")
    for expected in (3 * BUCKETS, 0):
        done = home.commands.call("import", str(tmp_path / "new.jsonl"), "--execute", "--json")
        assert (done.code, done.json["counts"]["rows"]) == (0, expected), done
    assert [home.stored.count(f"hermes_0{bucket}.conversations") for bucket in range(BUCKETS)] == [4] * BUCKETS


def test_rows_are_hidden_in_every_bucket_and_come_back_by_one_number(home: Home) -> None:
    hidden = "SELECT count(*) FROM hermes_rows WHERE hidden_by IS NOT NULL"
    done = home.commands.call("mute", "--since", "1h", "--execute", "--json")
    assert (done.code, done.json["counts"]) == (0, {"memories": BUCKETS, "turns": 2 * BUCKETS}), done
    assert home.stored.rows(hidden) == [(3 * BUCKETS,)]
    back = home.commands.call("mute", "--undo", str(done.json["rule"]), "--execute", "--json")
    assert (back.code, back.json["counts"]) == (0, {"memories": BUCKETS, "turns": 2 * BUCKETS}), back
    assert home.stored.rows(hidden) == [(0,)]
    ids = [name for (name,) in home.stored.rows("SELECT 'm' || id FROM memory_entries ORDER BY id")]
    done = home.commands.call("mute", *ids[:2], "--execute", "--json")
    assert home.stored.rows(hidden) == [(2,)]
    assert home.commands.call("mute", "--undo", ids[0], "--execute").code == 0
    assert home.stored.rows(hidden) == [(1,)]


def test_a_theme_that_gets_another_name_stays_where_it_lies(home: Home) -> None:
    old, elsewhere = THEMES[:2]
    new = next(each for each in map("n{}".format, count()) if bucket_of(each, BUCKETS) == 3)
    refused = home.commands.call("theme", "merge", old, elsewhere, "--execute")
    assert (refused.code, "themes of one bucket" in " ".join(refused.err.split())) == (1, True), refused
    assert home.commands.call("theme", "rename", old, new, "--execute").code == 0
    home.provider(old, "late").sync_turn("Said under the former name", "And answered under it", session_id="late")
    home.provider(new, "later").sync_turn("Said under the new name", "And answered under that", session_id="later")
    home.settle()
    home.close()
    assert {content for _, _, content in home.stored.turns(new)} >= {
        f"{CANARY} called about {old}", "Said under the former name", "Said under the new name",
    }  # fmt: skip
    assert home.stored.count("hermes_00.conversations") == 6
    assert home.commands.call("forget", "--theme", new, "--execute").code == 0
    assert home.stored.count("hermes_00.conversations") == 0


def test_a_theme_gets_no_name_that_is_in_use_in_another_bucket(home: Home) -> None:
    """What goes by it would be stored there, and found by nobody."""
    old, taken = THEMES[:2]
    other = next(each for each in map("n{}".format, count()) if bucket_of(each, BUCKETS) == 1)
    assert home.commands.call("theme", "rename", taken, other, "--execute").code == 0
    assert home.commands.call("forget", "--theme", other, "--execute").code == 0
    refused = home.commands.call("theme", "rename", old, other, "--execute")
    assert (refused.code, "was in use before" in " ".join(refused.err.split())) == (1, True), refused


def test_rows_are_hidden_where_they_lie_now_whatever_is_remembered(home: Home) -> None:
    pool = Pool(lambda _: home.database.runtime_dsn, maximum=1, connect_seconds=5)
    with pool.transaction(Deadline.after(30)) as connection:
        buckets.layout(connection)
    new = next(each for each in map("n{}".format, count()) if bucket_of(each, BUCKETS) == 3)
    assert home.commands.call("theme", "rename", THEMES[0], new, "--execute").code == 0
    ((number,),) = home.stored.rows("SELECT max(id) FROM hermes_00.conversations")
    with pool.transaction(Deadline.after(30)) as connection:
        hidden.mute(connection, "page", "", "home", None, [Key(Kind.TURN, new, number)])
    pool.close()
    assert home.stored.rows("SELECT id FROM hermes_rows WHERE hidden_by IS NOT NULL") == [(number,)]


def test_a_home_that_is_alone_in_a_bucket_is_not_alone(home: Home) -> None:
    """What nobody knows the home of is not for it to delete."""
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("UPDATE hermes_00.conversations SET home_id = NULL, ts = now() - interval '9 days'")
        owner.execute("INSERT INTO hermes_01.journal_writers (writer, home_id) VALUES ('w', 'another')")
    ((own,),) = home.stored.rows("SELECT DISTINCT home_id FROM hermes_00.journal_writers")
    rules = Rules(turns=datetime.now(UTC) - timedelta(days=1)).of_home(own, {THEMES[0]})
    pool = Pool(lambda _: home.database.runtime_dsn, maximum=1, connect_seconds=5)
    assert not (sweep_once(pool, rules, own) or Counter()).total()
    home.stored.rows("DELETE FROM hermes_01.journal_writers WHERE home_id = 'another' RETURNING 1")
    assert (sweep_once(pool, rules, own) or Counter()).total() == len(home.stored.turns(THEMES[0])) + 2
    pool.close()


def test_memories_are_added_changed_and_put_back_and_secrets_are_masked(home: Home) -> None:
    token = "glpat-" + "aB3dE5fG7hJ9kL1mN3pQ"
    for bucket, theme in enumerate(THEMES):
        added = home.commands.call("add", "The lathe needs new bearings", "--theme", theme, "--json")
        assert added.code == 0, added
        name = added.json["id"]
        assert home.commands.call("edit", name, "--text", "The lathe has new bearings", "--execute").code == 0
        assert ("memory", "The lathe has new bearings") in home.stored.memories(theme)
        assert home.commands.call("undo", "--to", "1h", "--theme", theme).code in (0, 1)
        ((event,),) = home.stored.rows(f"SELECT max(id) FROM hermes_0{bucket}.memory_operations")
        assert home.commands.call("undo", f"e{event}", "--execute").code == 0
        assert ("memory", "The lathe needs new bearings") in home.stored.memories(theme)
        with psycopg.connect(home.database.owner_dsn) as owner:
            owner.execute(f"UPDATE hermes_0{bucket}.conversations SET content = 'It is {token}' WHERE role = 'user'")
    done = home.commands.call("forget", "--secrets", "--execute", "--json")
    assert (done.code, done.json["counts"]) == (0, {"turns": BUCKETS}), done
    assert token not in home.stored.everything()


def test_everything_moves_bucket_by_bucket(home: Home, database: Database) -> None:
    """To a database of one bucket, which gets as many, under other names where its schema has another one."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA elsewhere")
    there = make_conninfo(database.owner_dsn, options="-csearch_path=elsewhere")
    migrate.apply(there, runtime_role=RUNTIME_ROLE, model=NewModel("another", 3, 0.0, 1.0))
    with open_side(home.stored.dsn) as source, open_side(there) as target:
        before = source.sums()
        source.shut("elsewhere")
        rows = move(source, target, lambda _: None, lambda _: None)
        assert (rows["memory_entries"], rows["conversations"]) == (BUCKETS, 2 * BUCKETS)
        assert differences(before, target.sums()) == []
        assert target.mark() == Mark(source.mark().id, None)  # type: ignore[union-attr]
        source.reopen()
    moved = Stored(there)
    assert [moved.count(f"elsewhere_0{bucket}.conversations") for bucket in range(BUCKETS)] == [2] * BUCKETS
    numbers = "SELECT nextval('{}.conversations_id_seq')"
    for bucket in range(BUCKETS):
        assert moved.rows(numbers.format(f"elsewhere_0{bucket}")) == home.stored.rows(
            numbers.format(f"hermes_0{bucket}")
        )
    migrate.apply(there, runtime_role=RUNTIME_ROLE)


def test_a_backup_of_several_buckets_comes_back_in_as_many(
    home: Home, empty_database: Database, tmp_path: Path
) -> None:
    here, there = Commands(tmp_path / "here"), Commands(tmp_path / "there")
    for commands, dsn in ((here, home.stored.dsn), (there, empty_database.owner_dsn)):
        commands.folder.mkdir()
        commands.configure(dsn=dsn)
    assert here.call("migrate").code == 0
    file = here.folder / "memory.tar"
    done = here.call("backup", "create", str(file))
    assert (done.code, "every table has the same rows" in " ".join(done.out.split())) == (0, True), done
    assert here.call("backup", "verify", str(file)).code == 0
    assert there.call("backup", "restore", str(file), "--execute").code == 0
    stored = Stored(empty_database.owner_dsn)
    assert [stored.count(f"hermes_0{bucket}.conversations") for bucket in range(BUCKETS)] == [2] * BUCKETS
    assert CANARY in there.call("recall", f"{CANARY} likes {THEMES[2]}", "--theme", THEMES[2]).out


def test_up_shows_its_test_memory_and_leaves_nothing_of_it(home: Home) -> None:
    assert "grandmother" in run_to_its_end(demonstration.show(home.path))
    assert home.stored.turns(BENCH_THEME) == []


def run_to_its_end(shown: Generator[Note, None, str]) -> str:
    """What it says last of all."""
    while True:
        try:
            next(shown)
        except StopIteration as end:
            return str(end.value)
