"""The database is restored from an older dump while homes run: what the journal has is stored again, the rest told."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, codec
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.server.binaries import find_binaries
from hermes_memory_pgvector.values import AddTurn, Moment
from hermes_memory_pgvector.writer.writer import Writer
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.no_undo import no_undo
from testing.postgres import Database
from testing.stored import Stored
from testing.waiting import wait_until

MIB = 1024 * 1024
START = 1_700_000_000_000_000


class Home:
    """A journal and its writer, with files that hold few records and are kept for as long as the test says."""

    def __init__(self, folder: Path, dsn: str, keep_seconds: float) -> None:
        self.journal = Journal(
            folder, max_bytes=64 * MIB, segment_bytes=4096, keep_seconds=keep_seconds, least_seconds=keep_seconds
        )
        self.pool = Pool(lambda _: dsn, maximum=2, connect_seconds=3)
        with patch.object(Settings, "batch_records", 16):
            self.writer = Writer(
                self.journal,
                self.pool,
                Settings(conversation_embed_policy="all"),
                home_id="home",
                undone=no_undo(),
                on_stored=lambda: None,
            )
        self.journal.on_append = self.writer.nudge
        self.journal.open()
        self.writer.start()

    def say(self, *numbers: int) -> None:
        """Append turns, each with enough words that a file holds ten of them, and wait until they have arrived."""
        for number in numbers:
            when = Moment(START + number, START + number)
            text = f"turn {number} " + "word " * 60
            self.journal.append(codec.encode([AddTurn("theme", "session", "user", text, 1, when, True)]))
        wait_until(lambda: self.writer.flush(Deadline.after(1)))

    def look(self) -> None:
        """What the writer does by itself every half minute."""
        self.writer._checked_at = 0.0
        self.writer.wake()
        wait_until(lambda: self.writer._checked_at > 0.0)

    def close(self) -> None:
        self.writer.stop(Deadline.after(10))
        self.journal.close(Deadline.after(5))
        self.pool.close()


class Dump:
    """A dump of the database as it is now, that can be put in its place."""

    def __init__(self, database: Database, path: Path) -> None:
        self._dsn, self._path = database.owner_dsn, path
        self._run("pg_dump", "--format=custom", f"--file={path}", f"--dbname={self._dsn}")

    def restore(self) -> None:
        self._run(
            "pg_restore", "--clean", "--if-exists", "--single-transaction", f"--dbname={self._dsn}", str(self._path)
        )

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([find_binaries().program(program), *arguments], check=True, timeout=120)


@pytest.fixture
def home(tmp_path: Path, database: Database) -> Iterator[Callable[..., Home]]:
    made: list[Home] = []

    def new(keep_seconds: float = 900.0) -> Home:
        made.append(Home(tmp_path / "journal", database.runtime_dsn, keep_seconds))
        return made[-1]

    yield new
    for each in made:
        each.close()


def numbers(database: Database) -> list[int]:
    return sorted(int(text.split()[1]) for _, _, text in Stored(database.owner_dsn).turns("theme"))


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "gone back" in record.getMessage()]


def test_what_the_journal_still_has_is_stored_again(
    home: Callable[..., Home], database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = home()
    one.say(*range(30))
    yesterday = Dump(database, tmp_path / "yesterday.dump")
    one.say(*range(30, 80))
    with caplog.at_level(logging.WARNING):
        yesterday.restore()
        one.look()
        wait_until(lambda: len(numbers(database)) == 80)
    assert numbers(database) == list(range(80))
    (sentence,) = told(caplog)
    assert "50 are stored again" in sentence
    assert "gone," not in sentence.partition("again")[2]
    assert (one.writer.progress.again, len(one.writer.progress.gone)) == (50, 0)


@pytest.mark.parametrize("speaks_on", [False, True])
def test_what_is_nowhere_any_more_is_counted_and_told_once(
    home: Callable[..., Home], database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, speaks_on: bool
) -> None:
    one = home(keep_seconds=0.0)
    one.say(*range(30))
    yesterday = Dump(database, tmp_path / "yesterday.dump")
    one.say(*range(30, 80))
    one.look()
    with caplog.at_level(logging.WARNING):
        yesterday.restore()
        if speaks_on:
            one.say(80)
        one.look()
        one.say(81)
        one.look()
    kept = [number for number in numbers(database) if 30 <= number < 80]
    assert len(kept) < 50
    assert numbers(database) == [*range(30), *kept, *([80] if speaks_on else []), 81]
    (sentence,) = told(caplog)
    assert f"{len(kept)} are stored again" in sentence
    assert "kept no longer are gone" in sentence
    assert (one.writer.progress.again, len(one.writer.progress.gone)) == (len(kept), 1)
    # The writer is at rest again.
    assert one.writer.progress.waiting == 0
    assert one.writer.run_once() > 0


def test_a_journal_of_which_nothing_is_left_does_not_keep_the_writer_busy(
    home: Callable[..., Home], database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = home(keep_seconds=0.0)
    yesterday = Dump(database, tmp_path / "yesterday.dump")
    one.say(*range(20))
    one.journal._appender.request_rotation()
    one.look()

    def is_empty() -> bool:
        one.look()
        return one.journal.depth(one.journal.writer, 0).records == 0

    wait_until(is_empty)
    with caplog.at_level(logging.WARNING):
        yesterday.restore()
        one.look()
        wait_until(lambda: told(caplog))
    assert (one.writer.progress.again, len(one.writer.progress.gone)) == (0, 1)

    def has_nothing_to_do() -> bool:
        one.look()
        return one.writer.progress.waiting == 0

    wait_until(has_nothing_to_do)
    assert one.writer.run_once() > 0
    one.say(20)
    assert numbers(database) == [20]


@pytest.mark.parametrize("keep_seconds", [900.0, 0.0], ids=["kept", "no longer kept"])
def test_agents_that_were_stopped_for_the_restore_tell_it_when_they_start(
    home: Callable[..., Home], database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, keep_seconds: float
) -> None:
    """No process remembers how far the database was, and the journal is not to blame for what was stored once."""
    one = home(keep_seconds)
    one.say(*range(30))
    yesterday = Dump(database, tmp_path / "yesterday.dump")
    one.say(*range(30, 80))
    one.journal._appender.request_rotation()
    one.look()
    # What comes last is kept in either case: where nothing is left, nobody can know that there was something.
    one.journal._retention._keep_seconds = one.journal._retention._least_seconds = 900.0
    one.say(80)
    one.close()
    yesterday.restore()
    with caplog.at_level(logging.WARNING):
        two = home(keep_seconds)
        wait_until(lambda: 80 in numbers(database) and told(caplog))
    arrived = [number for number in numbers(database) if 30 <= number < 80]
    assert numbers(database) == [*range(30), *arrived, 80]
    assert (len(arrived) == 50) == (keep_seconds > 0)
    (sentence,) = told(caplog)
    assert ("kept no longer are gone" in sentence) == (len(arrived) < 50)
    status = two.writer.progress
    # Of the file that was in use until the end nobody knew whether it had arrived.
    assert len(arrived) <= status.again <= len(arrived) + 1
    assert bool(status.gone) == (len(arrived) < 50)


def test_doctor_tells_what_a_running_home_has_lost(database: Database, tmp_path: Path) -> None:
    """Through the engine and the commands, as an operator would learn of it."""
    home = AgentHome.create(tmp_path / "hermes", database)
    commands = Commands(tmp_path)
    commands.configure(dsn=with_password(database.runtime_dsn)[0])
    try:
        agent = home.provider("marketing")
        yesterday = Dump(database, tmp_path / "yesterday.dump")
        agent.sync_turn("where is the spare key", "behind the clock")
        home.settle()
        # As if a quarter of an hour had passed.
        home.engine.journal._retention._keep_seconds = home.engine.journal._retention._least_seconds = 0.0
        home.engine.journal._appender.request_rotation()

        def is_retired() -> bool:
            home.engine.writer._checked_at = 0.0
            home.engine.writer.wake()
            return home.engine.journal.depth(home.engine.journal.writer, 0).records == 0

        wait_until(is_retired)
        yesterday.restore()
        agent.sync_turn("and where is the ladder", "in the cellar")
        home.settle()
        wait_until(lambda: len(home.engine.writer.progress.gone))
        home.engine.status.publish()
        told = commands.run("doctor", "--json").json["checks"]
        shown = commands.call("status").out
    finally:
        home.close()
    texts = [check["text"] for check in told if check["name"] == "journal" and check["level"] == "warning"]
    assert any("1 journal has lost records" in text for text in texts), texts
    assert "0 records stored again from the journal, 1 journal has lost records" in " ".join(shown.split())
    assert [content for _, _, content in home.stored.turns("marketing")] == ["and where is the ladder", "in the cellar"]
