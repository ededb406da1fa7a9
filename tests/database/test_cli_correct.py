"""add, edit, undo and mute: dry runs change nothing, and what is done is audited and can be undone."""

from __future__ import annotations

import fcntl
import itertools
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.mirror import edit_file
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.correct.undo import undo
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.store import memories, mirror_files
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.store.search import Meaning, search
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.values import (
    AddMemory,
    Kind,
    MemoryOperation,
    Moment,
    Origin,
    Question,
    RemoveMemory,
    ReplaceMemory,
    Scope,
)
from testing.agent import AgentHome
from testing.command import Commands, Finished, with_password
from testing.postgres import DIM, MODEL, Database
from testing.stored import Stored
from testing.unchanged import nothing_changes
from testing.waiting import wait_until


def minute(number: int) -> Moment:
    at = (1_772_000_000 + 60 * number) * 1_000_000
    return Moment(at, at)


ELSEWHERE = "0" * 16
OPERATIONS: list[MemoryOperation] = [
    AddMemory("market", "memory", "Prices rise in spring", minute(1), "home-b"),
    ReplaceMemory("market", "memory", "Prices fall in spring", "Prices rise", minute(2), "home-b"),
    AddMemory("market", "memory", "Stands elsewhere", minute(3), ELSEWHERE, Origin.FILE),
    AddMemory("market", "user", "Likes tea", minute(4), ELSEWHERE, Origin.FILE),
    RemoveMemory("market", "user", "Likes tea", minute(5), ELSEWHERE),
]


@pytest.fixture
def stored(database: Database) -> Stored:
    with psycopg.connect(database.owner_dsn) as owner:
        for number, operation in enumerate(OPERATIONS, start=1):
            memories.store(owner, [Placed(operation, "writer", number, 0)])
        file = mirror_files.ComparedFile([mirror_files.digest_of("Stands elsewhere")], 0)
        mirror_files.write_file(owner, ELSEWHERE, "memory", file, datetime.now(UTC))
        owner.execute("DELETE FROM pending_vectors")
    return Stored(database.owner_dsn)


@pytest.fixture
def commands(database: Database, stored: Stored, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_model=MODEL, embed_url="http://127.0.0.1:9/", ttl_days="history=0")
    return made


def contents(stored: Stored) -> list[str]:
    return [content for _, content in stored.memories("market")]


def audited(stored: Stored) -> list[tuple[str, str, str]]:
    return [(a, t, s) for a, t, s in stored.rows("SELECT action, theme, subject FROM audit_log ORDER BY id")]


def dry_then_done(commands: Commands, stored: Stored, *arguments: str, code: int = 0) -> Finished:
    """A dry run that changes nothing and says how to go on, and then the real one."""
    with nothing_changes(stored):
        dry = commands.call(*arguments)
        assert dry.code == code, dry
        assert commands.call(*arguments, "--json").json["executed"] is False
    if not code:
        assert "dry run" in dry.out
        assert "--execute" in dry.out
    done = commands.call(*arguments, "--execute", "--json")
    assert done.code == code, done
    return done


def file_of(commands: Commands, stored: Stored, *entries: str) -> Path:
    """MEMORY.md with these entries, which the home holds."""
    path = commands.home / "memories" / "MEMORY.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n§\n".join(entries), encoding="utf-8")
    home = home_id(commands.home)
    with psycopg.connect(stored.dsn) as owner:
        for number, entry in enumerate(entries):
            added = AddMemory("market", "memory", entry, minute(10 + number), home, Origin.FILE)
            memories.store(owner, [Placed(added, "file", number, 0)])
    return path


def newest_event(commands: Commands) -> Any:
    done = commands.call("list", "events", "--json")
    assert done.code == 0, done
    return done.json["rows"][0]


def named(stored: Stored, content: str) -> str:
    ((name,),) = stored.rows("SELECT 'm' || id FROM memory_entries WHERE content = %s", content)
    return str(name)


def test_add_puts_a_fact_in_at_once_and_writes_no_file(commands: Commands, stored: Stored) -> None:
    path = file_of(commands, stored, "Stands here")
    before = path.read_bytes()
    told = commands.call("add", "The lathe part is SKF-6203", "--theme", "workshop")
    name = named(stored, "The lathe part is SKF-6203")
    assert (told.code, told.out.strip()) == (0, f"✓ {name} stored in workshop")
    asked = commands.call("add", "Likes tea", "--theme", "Workshop", "--target", "user", "--json").json
    assert (asked["agent_identity"], asked["target"], asked["id"]) == ("workshop", "user", named(stored, "Likes tea"))
    assert sorted(stored.memories("workshop")) == [("memory", "The lathe part is SKF-6203"), ("user", "Likes tea")]
    assert stored.rows("SELECT DISTINCT homes::text, origin FROM memory_entries WHERE agent_identity = 'workshop'") == [
        ("{}", "operator")
    ]
    assert path.read_bytes() == before
    # A long path is broken where the line ends.
    held = "".join(commands.call("show", named(stored, "Stands here")).out.split())
    assert f"heldby{commands.home}(byfile)" in held, "a home of this installation is named by its path"
    elsewhere = " ".join(commands.call("show", named(stored, "Stands elsewhere")).out.split())
    assert f"held by home {ELSEWHERE[:8]} (by file)" in elsewhere
    found = commands.call("recall", "which part does the lathe need", "--theme", "workshop").out
    assert "SKF-6203" in found
    newest = newest_event(commands)
    assert newest["by"] == "add"
    assert commands.call("undo", newest["id"], "--execute").code == 0
    assert stored.memories("workshop") == [("memory", "The lathe part is SKF-6203")]
    assert commands.call("add", "one\n§\ntwo", "--theme", "workshop").code == 1
    assert commands.run("add", " ", "--theme", "workshop").code == 2


def test_what_is_added_while_the_database_is_away_waits_in_the_journal(commands: Commands, stored: Stored) -> None:
    away = {"HERMES_PGVECTOR_DSN": "postgresql://nobody@127.0.0.1:9/away"}
    told = commands.call("add", "The lathe part is SKF-6203", "--theme", "workshop", variables=away)
    assert (told.code, "it waits in the journal" in told.out) == (0, True)
    assert stored.memories("workshop") == []
    with parts.open_engine(commands.home) as engine:
        engine.start()
        wait_until(lambda: stored.memories("workshop") == [("memory", "The lathe part is SKF-6203")])


def test_edit_changes_the_file_and_nothing_else_in_it(commands: Commands, stored: Stored) -> None:
    path = file_of(commands, stored, "Wifi is hummingbird", "Launch is 14 March", "Two\nlines  ")
    path.write_bytes(path.read_bytes().replace(b"Wifi", b"\xef\xbb\xbfWifi") + b"\r\n\n")
    before = path.read_bytes()
    name = named(stored, "Launch is 14 March")
    words = ("edit", name, "--text", "Launch is 21 March")
    told = commands.call(*words)
    assert "MEMORY.md line 3" in told.out
    assert str(path) in "".join(told.out.split())
    assert told.out.index("- ") < told.out.index("+ ")
    done = dry_then_done(commands, stored, *words).json
    assert (done["remove"], done["restore"]) == (["Launch is 14 March"], ["Launch is 21 March"])
    assert {row["place"] for row in done["samples"]} == {f"{path}, line 3"}
    assert path.read_bytes() == before.replace(b"Launch is 14 March", b"Launch is 21 March")
    assert named(stored, "Launch is 21 March") == name
    assert audited(stored) == [("edit", "market", name)]
    newest = newest_event(commands)
    assert (newest["action"], newest["by"]) == ("replace", "edit")
    assert commands.call("undo", newest["id"], "--execute").code == 0
    assert path.read_bytes() == before
    assert named(stored, "Launch is 14 March") == name


def test_edit_is_refused_with_path_and_line_when_the_file_has_changed(
    commands: Commands, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(commands, stored, "Wifi is hummingbird", "Launch is 14 March")
    name = named(stored, "Launch is 14 March")
    real = edit_file.edited

    def meanwhile(edits: Any) -> Any:
        path.write_text("Wifi is hummingbird\n§\nLaunch is 28 March", encoding="utf-8")
        return real(edits)

    monkeypatch.setattr(edit_file, "edited", meanwhile)
    with nothing_changes(stored):
        done = commands.call("edit", name, "--text", "Launch is 21 March", "--execute")
    assert (done.code, f"{path}, line 3: the file has changed meanwhile" in done.err) == (1, True)
    assert path.read_text(encoding="utf-8").endswith("Launch is 28 March")


def test_no_file_is_changed_while_the_database_takes_no_writes(
    commands: Commands, stored: Stored, database: Database
) -> None:
    path = file_of(commands, stored, "Wifi is hummingbird", "Launch is 14 March")
    name, before = named(stored, "Launch is 14 March"), path.read_bytes()
    ((event,),) = stored.rows("SELECT 'e' || id FROM memory_operations WHERE content = 'Launch is 14 March'")
    words = ("edit", name, "--text", "Launch is 21 March", "--execute")
    setting = f"ALTER DATABASE {database.name}"
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(f"{setting} SET default_transaction_read_only = on".encode())
    for refused in (words, ("undo", event, "--execute")):
        assert commands.call(*refused).code != 0
    assert path.read_bytes() == before
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("SET default_transaction_read_only = off")
        owner.execute(f"{setting} RESET default_transaction_read_only".encode())
    assert commands.call(*words).code == 0
    assert (named(stored, "Launch is 21 March"), audited(stored)) == (name, [("edit", "market", name)])


def test_no_file_is_changed_while_the_journal_takes_no_records(commands: Commands, stored: Stored) -> None:
    path = file_of(commands, stored, "Wifi is hummingbird", "Launch is 14 March")
    before = path.read_bytes()
    journal = commands.home / "pgvector" / "journal"
    journal.write_text("in the way")
    with nothing_changes(stored):
        done = commands.call("edit", named(stored, "Launch is 14 March"), "--text", "Launch is 21 March", "--execute")
    assert (done.code, "the journal cannot be opened" in done.err, path.read_bytes() == before) == (1, True, True)


def test_what_was_changed_is_no_failure_when_the_audit_log_refuses_it(commands: Commands, stored: Stored) -> None:
    """The database refuses at the end of the transaction, when the file and the journal have the change."""
    path = file_of(commands, stored, "Wifi is hummingbird", "Launch is 14 March")
    name = named(stored, "Launch is 14 March")
    with psycopg.connect(stored.dsn) as owner:
        owner.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';"
            "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON audit_log DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    done = commands.call("edit", name, "--text", "Launch is 21 March", "--execute", "--json")
    assert (done.code, done.json["executed"]) == (0, True)
    warned = [each["text"] for each in done.json["notes"] if each["mark"] == "warning"]
    assert [each.startswith("changed in MEMORY.md, but the audit log has no row of it") for each in warned] == [True]
    assert path.read_text(encoding="utf-8").endswith("Launch is 21 March")
    assert named(stored, "Launch is 21 March") == name
    assert audited(stored) == []


def test_edit_of_a_memory_that_stands_in_no_file_goes_through_the_journal(commands: Commands, stored: Stored) -> None:
    name = named(stored, "Prices fall in spring")
    assert dry_then_done(commands, stored, "edit", name, "--text", "Prices are stable").json["executed"]
    assert named(stored, "Prices are stable") == name
    assert stored.rows("SELECT count(*) FROM pending_vectors") == [(1,)]
    with nothing_changes(stored):
        assert "nothing to change" in commands.call("edit", name, "--text", "Prices are stable", "--execute").out
        assert commands.call("edit", name, "--text", "one\n§\ntwo", "--execute").code == 1
        assert commands.run("edit", name, "--text", "", "--execute").code == 2
        done = commands.call("edit", named(stored, "Stands elsewhere"), "--text", "Other words", "--execute")
        assert (done.code, f"it stands in MEMORY.md of home {ELSEWHERE[:8]}" in done.out) == (3, True)


def test_a_home_that_nobody_has_heard_of_for_a_month_is_in_nobodys_way(commands: Commands, stored: Stored) -> None:
    words = ("edit", named(stored, "Stands elsewhere"), "--text", "Other words", "--execute")
    with psycopg.connect(stored.dsn) as owner:
        owner.execute("UPDATE memory_files SET compared_at = now() - interval '31 days'")
        owner.execute(
            "INSERT INTO processes (id, home_id, host, pid, command, version, started_at, seen_at, expected_at, status)"
            " VALUES ('x', %s, '', 1, '', '', now(), now(), now(), '{}')",
            (ELSEWHERE,),
        )
    assert commands.call(*words).code == 3
    with psycopg.connect(stored.dsn) as owner:
        owner.execute("UPDATE processes SET seen_at = now() - interval '31 days'")
    assert commands.call(*words).code == 0
    assert "Other words" in contents(stored)


def test_undo_of_a_replace_brings_the_former_words_back_and_can_be_undone(commands: Commands, stored: Stored) -> None:
    done = dry_then_done(commands, stored, "undo", "e2").json
    assert (done["remove"], done["restore"]) == (["Prices fall in spring"], ["Prices rise in spring"])
    assert "Prices rise in spring" in contents(stored)
    assert "Prices fall in spring" not in contents(stored)
    assert audited(stored) == [("undo", "market", "event e2")]
    assert stored.rows("SELECT kind FROM pending_vectors") == [("memory",)]
    newest = newest_event(commands)
    assert (newest["action"], newest["by"], newest["metadata"]["undoes"]) == ("replace", "undo", 2)
    assert commands.call("undo", newest["id"], "--execute").code == 0
    assert "Prices fall in spring" in contents(stored)


def test_undo_takes_what_an_event_wrote_out_of_the_file(commands: Commands, stored: Stored) -> None:
    path = file_of(commands, stored, "Wifi is hummingbird", "Launch is 14 March")
    ((event,),) = stored.rows("SELECT 'e' || id FROM memory_operations WHERE content = 'Launch is 14 March'")
    dry_then_done(commands, stored, "undo", event)
    assert path.read_text(encoding="utf-8") == "Wifi is hummingbird"
    assert "Launch is 14 March" not in contents(stored)


def test_undo_of_a_remove_puts_the_memory_back_and_says_that_no_file_has_it(commands: Commands, stored: Stored) -> None:
    with nothing_changes(stored):
        assert "Likes tea" in commands.call("undo", "e5").out
    done = commands.call("undo", "e5", "--execute")
    assert "stands in no file" in done.out
    assert "Likes tea" in contents(stored)
    assert "changed nothing that is still so" in commands.call("undo", "e5").err


def test_undo_does_nothing_where_a_file_elsewhere_would_bring_it_back(commands: Commands, stored: Stored) -> None:
    done = commands.call("undo", "e3", "--execute")
    assert done.code == 3
    assert f"it stands in MEMORY.md of home {ELSEWHERE[:8]}" in done.out
    assert "Stands elsewhere" in contents(stored)
    assert audited(stored) == []


def test_undo_to_a_time_shows_the_difference_and_then_makes_it(commands: Commands, stored: Stored) -> None:
    path = file_of(commands, stored, "Wifi is hummingbird", "Launch is 14 March")
    commands.call("edit", named(stored, "Launch is 14 March"), "--text", "Launch is 21 March", "--execute")
    commands.call("add", "Put in later", "--theme", "market")
    at = ("undo", "--to", f"{minute_at(30):%Y-%m-%dT%H:%M:%S}", "--theme", "market")
    done = dry_then_done(commands, stored, *at).json
    assert (sorted(done["remove"]), done["restore"]) == (["Launch is 21 March", "Put in later"], ["Launch is 14 March"])
    assert path.read_text(encoding="utf-8") == "Wifi is hummingbird\n§\nLaunch is 14 March"
    assert sorted(contents(stored)) == [
        "Launch is 14 March", "Prices fall in spring", "Stands elsewhere", "Wifi is hummingbird",
    ]  # fmt: skip
    long_ago = ("undo", "--to", f"{minute_at(1):%Y-%m-%dT%H:%M:%S}", "--theme", "market", "--execute")
    done = commands.call(*long_ago)
    assert (done.code, "elsewhere: run this there" in done.out) == (3, True)
    assert sorted(contents(stored)) == ["Prices rise in spring", "Stands elsewhere"]
    assert path.read_text(encoding="utf-8") == ""
    assert commands.call("undo", "--to", "2999-01-01", "--theme", "market").code == 1
    assert commands.run("undo", "--to", "2h").code == 2
    assert commands.run("undo").code == 2


def test_undo_to_a_time_changes_both_files_or_none_and_counts_rewordings(
    commands: Commands, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(commands, stored, "Wifi is hummingbird", "Launch is 14 March")
    user = path.with_name("USER.md")
    user.write_text("Drinks cocoa", encoding="utf-8")
    with psycopg.connect(stored.dsn) as owner:
        added = AddMemory("market", "user", "Drinks cocoa", minute(12), home_id(commands.home), Origin.FILE)
        memories.store(owner, [Placed(added, "user file", 1, 0)])
    for before, after in (("Launch is 14 March", "Launch is 21 March"), ("Drinks cocoa", "Drinks coffee")):
        assert commands.call("edit", named(stored, before), "--text", after, "--execute").code == 0
    at = ("undo", "--to", f"{minute_at(30):%Y-%m-%dT%H:%M:%S}", "--theme", "market")
    assert "2 memories" in commands.call(*at).out
    monkeypatch.setattr(edit_file, "LOCK_SECONDS", 0.1)
    with user.with_name("USER.md.lock").open("w") as lock, nothing_changes(stored):
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = commands.call(*at, "--execute")
    assert (done.code, "nothing was done" in done.err) == (1, True)
    assert (path.read_text(encoding="utf-8")[-8:], user.read_text(encoding="utf-8")) == ("21 March", "Drinks coffee")
    done = commands.call(*at, "--execute", "--json")
    assert (done.code, done.json["counts"]) == (0, {"memories": 2})
    assert (path.read_text(encoding="utf-8")[-8:], user.read_text(encoding="utf-8")) == ("14 March", "Drinks cocoa")


def test_undo_of_an_event_that_changed_nothing_says_why(commands: Commands, stored: Stored) -> None:
    for _ in range(2):
        assert commands.call("add", "Put in twice", "--theme", "market").code == 0
    done = commands.call("undo", newest_event(commands)["id"], "--execute")
    assert (done.code, "what it wrote was there already" in done.err) == (1, True)
    assert "Put in twice" in contents(stored)


def minute_at(number: int) -> datetime:
    return datetime.fromtimestamp(minute(number).wall_us / 1_000_000, UTC)


def test_a_turn_is_not_edited(commands: Commands, stored: Stored) -> None:
    insert = """INSERT INTO conversations (agent_identity, id, session_id, role, content)
        VALUES ('market', 77, 's', 'user', 'My card is 1234') RETURNING id"""
    assert stored.rows(insert) == [(77,)]
    with nothing_changes(stored):
        done = commands.call("edit", "t77", "--text", "My card is hidden", "--execute")
    assert (done.code, "`mute` hides it, `forget` erases it" in done.err) == (1, True)


def test_mute_keeps_rows_out_of_every_search_and_its_undo_brings_them_back(
    commands: Commands, stored: Stored, database: Database
) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, id, session_id, role, content)"
            " SELECT 'market', n, 's', 'user', 'the harbour number ' || n FROM generate_series(900, 904) AS n;"
            " INSERT INTO memory_entries (agent_identity, id, target, content)"
            " SELECT 'market', n, 'memory', 'the harbour number ' || n FROM generate_series(900, 904) AS n;"
            " INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)"
            f" SELECT agent_identity, id, ts, id, array_fill(0.125, ARRAY[{DIM}])::halfvec FROM conversations;"
            " INSERT INTO memory_vectors_1 (agent_identity, id, ts, target, embedding)"
            f" SELECT agent_identity, id, now(), target, array_fill(0.125, ARRAY[{DIM}])::halfvec FROM memory_entries"
            " WHERE id >= 900"
        )

    def found() -> list[set[int]]:
        """What every way of searching finds: by meaning and words, by words alone, here and everywhere."""
        hits = []
        with psycopg.connect(database.runtime_dsn) as connection:
            model = current_model(connection)
            assert model is not None
            for meaning in (Meaning(model, [0.125] * DIM), None):
                for kind, scope in itertools.product(Kind, (Scope.CURRENT, Scope.ALL)):
                    question = Question("harbour", kind, "market", scope, limit=20)
                    rows = search(connection, question, meaning, read_wording(question))
                    hits.append({hit.id for hit in rows if hit.id >= 900})
        return hits

    everything = set(range(900, 905))
    assert found() == [everything] * 8
    done = dry_then_done(commands, stored, "mute", "m901", "t901").json
    assert ([row["id"] for row in done["samples"]], done["rule"]) == (["m901", "t901"], 1)
    assert found() == [everything - {901}] * 8
    assert "(6 memories, 4 turns searched" in " ".join(commands.call("recall", "zzz", "--theme", "market").out.split())
    with nothing_changes(stored):
        assert "nothing to hide" in commands.call("mute", "m901").out
        assert commands.call("mute", "m901", "--execute", "--json").json["unchanged"] == ["m901"]
        assert commands.call("backfill", "--json", variables={"HERMES_PGVECTOR_EMBED_URL": "http://127.0.0.1:9"}).code
    neighbours = stored.rows("SELECT count(*) FROM turn_vectors_1 WHERE id = 901")
    assert neighbours == [(0,)]
    dry_then_done(commands, stored, "mute", "--undo", "1")
    assert stored.rows("SELECT kind, id FROM pending_vectors ORDER BY kind, id") == [
        ("memory", 901), ("turn", 901), ("turn", 902), ("turn", 903),
    ]  # fmt: skip
    by_words = found()[4:]
    assert by_words == [everything] * 4
    assert [row[0] for row in audited(stored)] == ["mute", "mute undo"]


def test_taking_a_rule_back_says_before_it_does_what_another_rule_keeps_hidden(
    commands: Commands, stored: Stored, database: Database
) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, id, session_id, role, content)"
            " SELECT 'market', n, CASE n WHEN 902 THEN 'other' ELSE 's' END, 'user', 'number ' || n"
            " FROM generate_series(900, 902) AS n"
        )
    commands.call("mute", "--session", "s", "--execute")
    commands.call("mute", "--session", "s", "--theme", "market", "--execute")
    for options in ([], ["--execute"]):
        with nothing_changes(stored) if not options else nullcontext():
            done = commands.call("mute", "--undo", "1", *options, "--json").json
        assert (done["counts"], done["executed"]) == ({"memories": 0, "turns": 0}, bool(options))
        assert any("2 of them" in note["text"] for note in done["notes"])
    assert dry_then_done(commands, stored, "mute", "--undo", "2").json["counts"]["turns"] == 2


def test_a_hidden_memory_stays_hidden_when_its_words_change(commands: Commands, stored: Stored) -> None:
    ((name,),) = stored.rows("SELECT 'm' || id FROM memory_entries WHERE content LIKE 'Prices%%'")
    commands.call("mute", name, "--execute")
    commands.call("edit", name, "--text", "Prices are secret", "--execute")
    assert stored.rows(
        "SELECT content, lexemes::text, hidden_by IS NULL FROM memory_entries WHERE 'm' || id = %s", name
    ) == [("Prices are secret", "", False)]


def test_a_hidden_memory_stays_hidden_when_a_change_comes_late_or_another_home_keeps_the_old_words(
    stored: Stored, database: Database
) -> None:
    shared = [AddMemory("market", "memory", "Fish is cheap", minute(10 + n), home) for n, home in enumerate("ab")]
    changes = [
        ReplaceMemory("market", "memory", "Fish is dear", "Fish is cheap", minute(20), "a"),
        # It comes after a later operation, so everything is made anew.
        ReplaceMemory("market", "memory", "Prices stay in spring", "Prices fall", minute(6), "home-b"),
    ]
    with psycopg.connect(database.owner_dsn) as owner:
        memories.store(owner, [Placed(each, "other", n, 0) for n, each in enumerate(shared)])
        owner.execute("UPDATE memory_entries SET hidden_by = 1 WHERE content ~ '^(Fish|Prices)'")
        for number, operation in enumerate(changes, start=10):
            memories.store(owner, [Placed(operation, "other", number, 0)])
    assert stored.rows(
        "SELECT content, hidden_by IS NULL, lexemes = '' FROM memory_entries WHERE target = 'memory' ORDER BY content"
    ) == [
        ("Fish is cheap", False, True),
        ("Fish is dear", False, True),
        ("Prices stay in spring", False, True),
        ("Stands elsewhere", True, False),
    ]


def test_a_time_before_the_history_is_not_restored(commands: Commands, stored: Stored) -> None:
    with nothing_changes(stored):
        done = commands.call("undo", "--theme", "market", "--to", "2026-02-24", "--execute")
        assert (done.code, "history of market begins at 2026-02-25" in done.err) == (1, True)
        commands.call("config", "set", "ttl_days", "history=1")
        done = commands.call("undo", "--theme", "market", "--to", "2026-02-25T06:14:30", "--execute")
        assert (done.code, "is kept for 1 days" in done.err) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("undo", "e999"),
        ("undo", "e1", "--theme", "makret"),
        ("mute", "m999"),
        ("edit", "m999", "--text", "x"),
        ("undo", "--theme", "makret", "--to", "1h"),
    ],
)
def test_what_is_not_there_is_said_so_and_nothing_changes(
    commands: Commands, stored: Stored, arguments: tuple[str, ...]
) -> None:
    with nothing_changes(stored):
        done = commands.call(*arguments, "--execute")
    assert done.code == 1
    assert "there is no" in done.err


def test_what_a_mirrored_home_gets_back_stays_when_its_file_is_written_again(agent_home: AgentHome) -> None:
    agent_home.write_memories("Roses need sun")
    agent = agent_home.provider(None)
    agent.on_memory_write("add", "memory", "The gate is seven", {})
    agent.on_memory_write("replace", "memory", "The gate is nine", {"old_text": "seven"})
    agent_home.settle()
    stored = agent_home.stored
    ((event,),) = stored.rows("SELECT id FROM memory_operations WHERE action = 'replace'")
    engine = agent_home.engine
    wait_until(lambda: stored.rows("SELECT count(*) FROM memory_files WHERE digests <> '{}'") == [(1,)])
    memory = Memory(agent_home.path, lambda: nullcontext(engine.pool), lambda: nullcontext(engine))
    assert undo(memory, event=RecordName("e", int(event)), to=None, theme=None, execute=True).executed
    agent_home.write_memories("Roses need sun", "Another line")
    agent_home.mirror()
    contents = {content for (content,) in stored.rows("SELECT content FROM memory_entries")}
    assert contents == {"Roses need sun", "Another line", "The gate is seven"}
