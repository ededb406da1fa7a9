"""Themes dealt to several buckets: each a schema with the same tables, all on one server."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseError, DatabaseUnavailable
from hermes_memory_pgvector.journal import Journal, codec
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.postgres.errors import concerns_everyone
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from hermes_memory_pgvector.store import overview
from hermes_memory_pgvector.values import AddTurn, Kind, Moment, Question, Scope
from hermes_memory_pgvector.writer.writer import Writer
from testing.cases import examples
from testing.command import Commands
from testing.no_undo import no_undo
from testing.postgres import Database, new_database
from testing.waiting import wait_until

COUNT = 4


@pytest.fixture
def pool(four_buckets: Database) -> Iterator[Pool]:
    opened = Pool(lambda _: four_buckets.runtime_dsn, maximum=2, connect_seconds=5)
    yield opened
    opened.close()


def test_where_a_theme_lies_never_changes() -> None:
    """Rows are stored by it, in databases that last longer than any version of this package."""
    assert [bucket_of(theme, 16) for theme in ("hermes", "dm-0123456789abcdef", "größe")] == [15, 11, 7]
    assert bucket_of("hermes", 4) == 3
    assert {bucket_of(f"theme-{number}", 16) for number in range(200)} == set(range(16))


def test_one_bucket_is_the_schema_that_is_there(migrated_template: Database, postgres_server: ConnectionInfo) -> None:
    with new_database(postgres_server, template=migrated_template.name) as database:
        _has_one_bucket(database)


def _has_one_bucket(database: Database) -> None:
    pool = Pool(lambda _: database.runtime_dsn, maximum=1, connect_seconds=5)
    deadline = Deadline.after(30)
    assert pool.buckets(deadline) == 1
    with pool.transaction(deadline, theme="hermes") as connection:
        before = connection.execute("SHOW search_path").fetchone()
    with pool.transaction(deadline) as connection:
        assert connection.execute("SHOW search_path").fetchone() == before
        assert list(buckets.within(connection)) == [0]
    pool.close()


def test_each_bucket_has_the_tables_of_themes_and_ids_of_its_own(pool: Pool) -> None:
    deadline = Deadline.after(30)
    numbers: list[int] = []
    for bucket in range(pool.buckets(deadline)):
        with pool.transaction(deadline, bucket=bucket) as connection:
            for _ in range(3):
                row: Any = connection.execute(
                    "INSERT INTO conversations (agent_identity, session_id, role, content)"
                    " VALUES (%s, 's', 'user', 'words') RETURNING id, tableoid::regclass::text",
                    (f"theme-{bucket}",),
                ).fetchone()
                numbers.append(int(row[0]))
                assert row[0] % COUNT == (bucket + 1) % COUNT
    assert len(set(numbers)) == 3 * COUNT
    with pool.transaction(deadline) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT id) FROM conversations").fetchone() == (12, 12)
        assert connection.execute(
            "SELECT value FROM hermes_metrics WHERE name = 'hermes_pgvector_turns'"
        ).fetchone() == (12.0,)


def test_a_theme_leads_to_its_bucket(pool: Pool) -> None:
    deadline = Deadline.after(30)
    for theme in ("hermes", "coder", "writer"):
        with pool.transaction(deadline, theme=theme) as connection:
            row = connection.execute("SELECT current_schema()").fetchone()
            assert row == (f"hermes_{bucket_of(theme, COUNT):02}",)


def test_a_bucket_that_is_away_is_named(four_buckets: Database, pool: Pool) -> None:
    with psycopg.connect(four_buckets.owner_dsn, autocommit=True) as owner:
        owner.execute(f"REVOKE USAGE ON SCHEMA hermes_03 FROM {RUNTIME_ROLE}")
    deadline = Deadline.after(30)
    found = buckets.each(
        pool, deadline, lambda connection: connection.execute("SELECT count(*) FROM hidden").fetchone()
    )
    assert found.found == {0: (0,), 1: (0,), 2: (0,)}
    assert found.shortfall.startswith("1 of 4 buckets did not answer: 3 (")
    with pytest.raises(DatabaseDenied, match="bucket 3 is away"), pool.transaction(deadline, theme="hermes"):
        pass


@pytest.mark.parametrize("encoding", ["LATIN1", pytest.param("SQL_ASCII", marks=pytest.mark.large)])
def test_a_theme_leads_to_its_bucket_whatever_the_role_is_set_to(
    four_buckets: Database, pool: Pool, encoding: str
) -> None:
    with psycopg.connect(four_buckets.owner_dsn, autocommit=True) as owner:
        owner.execute("INSERT INTO theme_places (theme, bucket) VALUES ('мост', 2)")
        owner.execute(f"ALTER ROLE {RUNTIME_ROLE} IN DATABASE {four_buckets.name} SET client_encoding = {encoding}")
    with pool.transaction(Deadline.after(30), theme="мост") as connection:
        assert connection.execute("SELECT current_schema()").fetchone() == ("hermes_02",)


def test_a_question_to_all_buckets_keeps_its_limits_on_a_new_connection(pool: Pool) -> None:
    with pool.reading(Deadline.after(30)) as connection:
        buckets.enter(connection, 2)
        row: Any = connection.execute("SELECT current_schema(), current_setting('statement_timeout')").fetchone()
    assert row[0] == "hermes_02"
    assert row[1] != "0"


def test_migrate_again_keeps_the_buckets(four_buckets: Database) -> None:
    outcome = migrate.apply(four_buckets.owner_dsn, runtime_role=RUNTIME_ROLE)
    assert outcome.applied == []
    with psycopg.connect(four_buckets.runtime_dsn) as connection:
        assert connection.execute("SELECT count(*) FROM hermes_rows").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM conversations_embedded").fetchone() == (0,)


# Writing.

START = 1_700_000_000_000_000
THEMES = ("hermes", "coder", "theme-0", "theme-1", "theme-2", "theme-3", "theme-5")
"""In all four buckets."""
PAIRS = tuple(zip(THEMES[::2], (*THEMES[1::2], THEMES[0]), strict=True))


def turn(number: int, theme: str) -> AddTurn:
    when = Moment(START + number, START + number)
    return AddTurn(theme, "session", "user", f"{theme} says {number}", 1, when, True)


class Rig:
    """A journal and a writer on four buckets, and its owner."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.dsn = database.owner_dsn
        self.journal = Journal(folder, max_bytes=64 * 2**20, segment_bytes=64 * 1024)
        self.pool = Pool(lambda _: database.runtime_dsn, maximum=2, connect_seconds=3)
        with patch.object(Settings, "batch_records", 16):
            self.writer = Writer(
                self.journal, self.pool, Settings(), home_id="home", undone=no_undo(), on_stored=lambda: None
            )
        self.journal.on_append = self.writer.nudge
        self.journal.open()

    def say(self, numbers: range) -> None:
        """Each theme says each of these numbers; a record is of two themes."""
        for number in numbers:
            for one, other in PAIRS:
                self.journal.append(codec.encode([turn(number, one), turn(number, other)]))

    def owner(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def stored(self) -> dict[str, list[str]]:
        """What each theme has, in the order of its arrival."""
        rows = self.owner("SELECT agent_identity, content FROM conversations ORDER BY id")
        return {theme: [text for name, text in rows if name == theme] for theme in {name for name, _ in rows}}

    def close(self) -> None:
        self.writer.stop(Deadline.after(10))
        self.journal.close(Deadline.after(5))
        self.pool.close()


@pytest.fixture
def rig(tmp_path: Path, four_buckets: Database) -> Iterator[Rig]:
    made = Rig(tmp_path / "journal", four_buckets)
    yield made
    made.close()


def said(numbers: range, *themes: str) -> dict[str, list[str]]:
    return {theme: [f"{theme} says {number}" for number in numbers] for theme in themes or THEMES}


def in_bucket(bucket: int) -> set[str]:
    return {theme for theme in THEMES if bucket_of(theme, COUNT) == bucket}


def test_each_record_arrives_once_in_the_bucket_of_its_theme(rig: Rig) -> None:
    rig.say(range(50))
    rig.writer.start()
    wait_until(lambda: rig.writer.flush(Deadline.after(1)))
    # One theme is in two records of each number, and is stored once all the same.
    assert rig.stored() == said(range(50))
    for bucket in range(COUNT):
        assert in_bucket(bucket)
        rows = rig.owner(f"SELECT DISTINCT agent_identity FROM hermes_{bucket:02}.conversations")
        assert {theme for (theme,) in rows} == in_bucket(bucket)


def test_a_bucket_that_is_away_holds_back_its_own_themes_alone(
    rig: Rig, tmp_path: Path, four_buckets: Database, caplog: pytest.LogCaptureFixture
) -> None:
    rig.say(range(5))
    rig.writer.start()
    wait_until(lambda: rig.writer.flush(Deadline.after(1)))
    rig.owner(f"REVOKE USAGE ON SCHEMA hermes_03 FROM {RUNTIME_ROLE}")
    rig.say(range(5, 40))
    gone = in_bucket(3)
    others = set(THEMES) - gone
    wait_until(lambda: all(len(rig.stored()[theme]) == 40 for theme in others))
    assert rig.stored() == said(range(40), *others) | said(range(5), *gone)
    wait_until(lambda: rig.writer.away_now == [3])
    assert not rig.writer.breaker.is_open
    assert not rig.writer.has_delivered
    assert "database writes to bucket 3" in caplog.text
    # Another process finds the journal, and has no more luck; what it says itself is stored.
    rig.close()
    later = Rig(tmp_path / "journal", four_buckets)
    later.say(range(40, 45))
    later.writer.start()
    wait_until(lambda: all(len(later.stored()[theme]) == 45 for theme in others))
    assert later.stored() == said(range(45), *others) | said(range(5), *gone)
    later.owner(f"GRANT USAGE ON SCHEMA hermes_03 TO {RUNTIME_ROLE}")
    wait_until(lambda: all(len(each) == 45 for each in later.stored().values()))
    assert {theme: sorted(each) for theme, each in later.stored().items()} == {
        theme: sorted(each) for theme, each in said(range(45)).items()
    }
    later.close()


def test_what_a_bucket_has_lost_it_gets_again(rig: Rig) -> None:
    rig.say(range(20))
    rig.writer.start()
    wait_until(lambda: rig.writer.flush(Deadline.after(1)))
    rig.owner("TRUNCATE hermes_02.conversations CASCADE")
    rig.owner("UPDATE hermes_02.journal_writers SET position = 0")
    rig.writer._checked_at = 0.0
    rig.writer.wake()
    wait_until(lambda: rig.stored() == said(range(20)))


def test_an_agent_that_slept_while_its_themes_were_dealt_stores_all_of_it(
    tmp_path: Path, migrated_template: Database, postgres_server: ConnectionInfo
) -> None:
    """Its connections are closed by then, so that no question of it ever fails."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        rig = Rig(tmp_path / "journal", database)
        rig.say(range(5))
        rig.writer.start()
        wait_until(lambda: rig.writer.flush(Deadline.after(1)))

        def has_slept() -> bool:
            rig.pool.reap(0.0)
            return not rig.owner(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

        wait_until(lambda: rig.writer._checked_at > 0)
        wait_until(has_slept)
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT)
        rig.say(range(5, 50))
        wait_until(lambda: rig.writer.flush(Deadline.after(1)))
        assert {theme: sorted(each) for theme, each in rig.stored().items()} == {
            theme: sorted(each) for theme, each in said(range(50)).items()
        }
        assert not rig.writer.breaker.is_open
        rig.close()


def test_whoever_remembers_one_bucket_learns_of_several_by_failing_once(
    migrated_template: Database, postgres_server: ConnectionInfo
) -> None:
    with new_database(postgres_server, template=migrated_template.name) as database:
        pool = Pool(lambda _: database.runtime_dsn, maximum=1, connect_seconds=5)
        with pool.transaction(Deadline.after(30), theme="hermes"):
            pass
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, buckets=COUNT)
        insert = "INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', 'words')"
        with pytest.raises(DatabaseError), pool.transaction(Deadline.after(30), theme="hermes") as connection:
            connection.execute(insert)
        with pool.transaction(Deadline.after(30), theme="hermes") as connection:
            assert connection.execute("SELECT current_schema()").fetchone() == ("hermes_03",)
        pool.close()


# Reading.


def test_a_question_over_all_themes_asks_every_bucket_and_names_those_that_do_not_answer(rig: Rig) -> None:
    for place, theme in enumerate(THEMES):
        when = Moment(START + place, START + place)
        words = f"{'zebra ' * (1 + place)}was seen from the terrace"
        rig.journal.append(codec.encode([AddTurn(theme, f"s-{theme}", "user", words, 1, when, True)]))
    rig.writer.start()
    wait_until(lambda: rig.writer.flush(Deadline.after(1)))
    recall = Recall(rig.pool.reading, None, Settings(), pool=rig.pool)
    asked = Question("zebra on the terrace", Kind.TURN, "hermes", Scope.ALL, limit=20, wants_neighbours=True)
    found = recall.search(asked, Deadline.after(20))
    assert {hit.theme for hit in found.hits} == set(THEMES)
    assert found.degraded is not None
    assert "buckets" not in found.degraded
    assert [hit.rank for hit in found.hits] == sorted((hit.rank for hit in found.hits), reverse=True)
    own = replace(asked, scope=Scope.CURRENT)
    assert [hit.theme for hit in recall.search(own, Deadline.after(20)).hits] == ["hermes"]
    rig.owner(f"REVOKE USAGE ON SCHEMA hermes_02 FROM {RUNTIME_ROLE}")
    rig.pool.reap(0.0)
    found = recall.search(asked, Deadline.after(20))
    assert {hit.theme for hit in found.hits} == set(THEMES) - in_bucket(2)
    assert "1 of 4 buckets did not answer: 2 (" in (found.degraded or "")
    # What one theme's bucket does not answer is no reason to leave the others alone.
    with pytest.raises(DatabaseDenied) as refused:
        recall.search(replace(own, theme="coder"), Deadline.after(20))
    assert not concerns_everyone(refused.value)
    assert recall.search(own, Deadline.after(20)).hits


# Operating.


def test_status_and_doctor_name_a_bucket_that_is_away_and_count_what_waits_for_it(
    tmp_path: Path, four_buckets: Database
) -> None:
    commands = Commands(tmp_path)
    commands.configure(dsn=four_buckets.runtime_dsn, bulk_sync_on_init=False)
    rig = Rig(commands.home / "pgvector" / "journal", four_buckets)
    rig.say(range(5))
    rig.writer.start()
    wait_until(lambda: rig.writer.flush(Deadline.after(1)))
    shown = commands.call("status", "--json").json
    assert shown["journal"]["waiting"] == 0
    assert shown["stored"]["turns"] == 5 * len(THEMES)
    rig.owner(f"REVOKE USAGE ON SCHEMA hermes_03 FROM {RUNTIME_ROLE}")
    rig.say(range(5, 8))
    others = set(THEMES) - in_bucket(3)
    wait_until(lambda: all(len(rig.stored()[theme]) == 8 for theme in others))
    for name in ("status", "doctor"):
        assert "of 4 buckets, these do not answer: 3 (hermes_03)" in " ".join(commands.call(name).everything.split())
    for_it = sum(bool({one, other} & in_bucket(3)) for one, other in PAIRS)
    rig.owner(f"GRANT USAGE ON SCHEMA hermes_03 TO {RUNTIME_ROLE}")
    rig.close()
    waiting = commands.call("status", "--json").json["journal"]["waiting"]
    assert waiting in (0, 3 * for_it), "the writer may have come first"


def test_status_names_a_bucket_whose_tables_do_not_answer_where_the_views_fail_for_it(
    tmp_path: Path, four_buckets: Database, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise DatabaseUnavailable("connection to the remote node failed")

    commands = Commands(tmp_path)
    commands.configure(dsn=four_buckets.runtime_dsn, bulk_sync_on_init=False)
    rig.owner("ALTER TABLE hermes_03.journal_writers RENAME TO gone")
    monkeypatch.setattr(overview, "contents", fails)
    done = commands.call("status")
    said = " ".join(done.everything.split())
    assert "of 4 buckets, these do not answer: 3 (hermes_03)" in said
    assert "connection to the remote node failed" in said
    assert done.code == 2


def test_what_waits_for_a_renamed_theme_is_counted_as_the_writer_delivers_it(
    tmp_path: Path, four_buckets: Database
) -> None:
    commands = Commands(tmp_path)
    commands.configure(dsn=four_buckets.runtime_dsn, bulk_sync_on_init=False)
    rig = Rig(commands.home / "pgvector" / "journal", four_buckets)
    for theme in in_bucket(3):
        rig.owner(f"INSERT INTO theme_places (theme, bucket) VALUES ('{theme}', 1)")
    rig.owner(f"REVOKE USAGE ON SCHEMA hermes_03 FROM {RUNTIME_ROLE}")
    rig.say(range(3))
    rig.writer.start()
    wait_until(lambda: all(len(rig.stored().get(theme, [])) == 3 for theme in set(THEMES) - in_bucket(3)))
    rig.close()
    for_it = sum(bool({one, other} & in_bucket(3)) for one, other in PAIRS)
    assert commands.call("status", "--json").json["journal"]["waiting"] == 3 * for_it


def test_a_rejected_record_is_found_and_dropped_in_its_bucket(tmp_path: Path, rig: Rig, four_buckets: Database) -> None:
    rig.journal.append(b'{"v":1,"items":[{"k":"dance","t":"theme","w":[1,1]}]}')
    rig.say(range(2))
    rig.writer.start()
    wait_until(lambda: rig.writer.flush(Deadline.after(1)))
    assert rig.stored() == said(range(2))
    ((number,),) = rig.owner("SELECT id FROM dead_letters")
    commands = Commands(tmp_path)
    commands.configure(dsn=four_buckets.runtime_dsn)
    assert f"d{number}" in commands.call("list", "rejected").everything
    assert commands.call("journal", "drop", f"d{number}", "--execute").code == 0
    assert rig.owner("SELECT id FROM dead_letters") == []


def test_a_writer_that_is_killed_again_and_again_loses_nothing_and_stores_nothing_twice(
    tmp_path: Path, four_buckets: Database
) -> None:
    """`make test-full` kills ten times as often."""
    folder, last, chance = tmp_path / "journal", 0, random.Random(7)
    for _ in range(examples(5)):
        program = [sys.executable, "-c", SAYS, str(folder), four_buckets.runtime_dsn, str(last)]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "started\n"
            goal = last + chance.randrange(1, 120)
            while last < goal:
                last = int(child.stdout.readline())
            child.kill()
            # What was said between the last line read and the end was acknowledged, too.
            last = max([last, *(int(line) for line in child.stdout.read().split("\n")[:-1])])
    rig = Rig(folder, four_buckets)
    rig.writer.start()
    enough = {theme: {f"{theme} says {number}" for number in range(last + 1)} for theme in THEMES}
    wait_until(lambda: all(set(rig.stored().get(theme, [])) >= each for theme, each in enough.items()), seconds=600)
    for theme, each in rig.stored().items():
        assert len(each) == len(set(each))
        assert len(each) <= last + 1 + examples(5), f"only what was under way at a kill may be there besides: {theme}"
    rig.close()


SAYS = """
import sys
from itertools import count
from pathlib import Path
from tests.database.test_buckets import Rig
from testing.postgres import Database
folder, dsn, last = sys.argv[1:]
rig = Rig(Path(folder), Database(dsn, dsn, ""))
rig.writer.start()
print("started", flush=True)
for number in count(int(last)):
    rig.say(range(number, number + 1))
    print(number, flush=True)
"""
