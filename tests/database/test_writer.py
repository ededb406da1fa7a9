"""The writer: every record arrives once, bad ones are kept aside, nothing stops the rest."""

from __future__ import annotations

import logging
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, codec
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.values import AddMemory, AddTurn, Moment, WriteItem
from hermes_memory_pgvector.writer import writer
from hermes_memory_pgvector.writer.writer import Writer
from testing.no_undo import no_undo
from testing.postgres import Database
from testing.stored import Stored
from testing.waiting import wait_until

MIB = 1024 * 1024
START = 1_700_000_000_000_000


def turn(number: int, content: str | None = None, **more: Any) -> AddTurn:
    when = Moment(START + number, START + number)
    return AddTurn("theme", "session", "user", content or f"turn {number}", 1, when, True, **more)


class CountedPool(Pool):
    """A pool that knows how often it was asked for a connection."""

    uses = 0

    def _take(self, deadline: Deadline) -> Any:
        self.uses += 1
        return super()._take(deadline)


class Rig:
    """A journal, a pool and a writer, without the rest of the engine."""

    def __init__(
        self, folder: Path, dsn: str, *, batch: int = 64, keep_bytes: int = 64 * MIB, keep_seconds: float = 900.0
    ) -> None:
        self.journal = Journal(
            folder, max_bytes=64 * MIB, segment_bytes=64 * 1024, keep_bytes=keep_bytes, keep_seconds=keep_seconds
        )
        self.pool = CountedPool(lambda _: dsn, maximum=2, connect_seconds=3)
        with patch.object(Settings, "batch_records", batch):
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

    def append(self, *items: WriteItem) -> None:
        self.journal.append(codec.encode(list(items)))

    def flush(self, seconds: float = 30) -> None:
        self.writer.start()
        wait_until(lambda: self.writer.flush(Deadline.after(1)), seconds=seconds)

    def close(self) -> None:
        self.writer.stop(Deadline.after(10))
        self.journal.close(Deadline.after(5))
        self.pool.close()


@pytest.fixture
def make(tmp_path: Path, database: Database) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def rig(folder: str = "journal", **more: Any) -> Rig:
        made.append(Rig(tmp_path / folder, database.runtime_dsn, **more))
        return made[-1]

    yield rig
    for each in made:
        each.close()


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database.owner_dsn)


def leave_journal(folder: Path, *items: WriteItem) -> None:
    """What a process leaves that ends before anything has arrived."""
    journal = Journal(folder, max_bytes=64 * MIB)
    journal.open()
    journal.append(codec.encode(list(items)))
    journal.close(Deadline.after(5))


def numbers(stored: Stored) -> list[int]:
    return sorted(int(text.split()[1]) for _, _, text in stored.turns("theme"))


@pytest.mark.parametrize("batch", [1, 7, 256])
def test_every_record_arrives_once_whatever_the_batch(make: Callable[..., Rig], stored: Stored, batch: int) -> None:
    rig = make(batch=batch)
    for number in range(500):
        rig.append(turn(number))
    rig.flush()
    assert numbers(stored) == list(range(500))
    assert stored.rows("SELECT position FROM journal_writers") == [(rig.journal.end,)]


LONG_SESSION = codec.encode([turn(1)]).replace(
    b'"session_id":"session"', b'"session_id":"' + random.Random(1).randbytes(9000).hex().encode() + b'"'
)
POISON: dict[str, bytes] = {
    "not json": b"\xff\xfe garbage",
    "another program's": b'{"hello": "world"}',
    "a later version": b'{"v": 99, "items": []}',
    "an unknown kind": b'{"v":1,"items":[{"k":"dance","t":"theme","w":[1,1]}]}',
    "deeply nested": b'{"v":1,"items":' + b"[" * 100_000,
    "a time beyond the calendar": codec.encode([turn(1)]).replace(str(START + 1).encode(), b"9" * 25),
    "a negative ordinal": codec.encode([turn(1)]).replace(b'"ordinal":1', b'"ordinal":-7'),
    "an unknown role": codec.encode([turn(1)]).replace(b'"role":"user"', b'"role":"king"'),
    "words that are missing": codec.encode([turn(1)]).replace(b'"content":"turn 1",', b""),
    "words that nothing names": codec.encode([turn(1)]) + b"more",
    "a number too long to read": codec.encode([turn(1)]).replace(b'"ordinal":1', b'"ordinal":' + b"1" * 5000),
    "a NUL in its words": codec.encode([turn(1)]).replace(b"turn 1", b"turn\\u00001"),
    "a lone surrogate": codec.encode([turn(1)]).replace(b"turn 1", b"tu\xed\xa0\x801"),
    "metadata that is not JSON": codec.encode([turn(1, metadata={"a": 1})]).replace(b'"a":1', b'"a":NaN'),
    "a session too long to be indexed": LONG_SESSION,
}  # fmt: skip


BATCHES = [
    pytest.param(poison, batch, id=f"{name}-{batch}", marks=[pytest.mark.large] if batch == 1 and place > 1 else [])
    for place, (name, poison) in enumerate(POISON.items())
    for batch in (1, 64)
]


@pytest.mark.parametrize(("poison", "batch"), BATCHES)
def test_a_bad_record_is_kept_aside_and_its_neighbours_arrive(
    make: Callable[..., Rig], stored: Stored, poison: bytes, batch: int, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make(batch=batch)
    for number in range(10, 20):
        rig.append(turn(number))
    place = rig.journal.end
    rig.journal.append(poison)
    for number in range(20, 30):
        rig.append(turn(number))
    with caplog.at_level(logging.WARNING):
        rig.flush()
    assert [number for number in numbers(stored) if number >= 10] == list(range(10, 30))
    letters = stored.rows("SELECT position, payload, reason FROM dead_letters")
    if letters:
        ((position, payload, reason),) = letters
        assert (position, rig.writer.dead) == (place, 1)
        assert payload
        assert reason
        assert "kept as a dead letter" in caplog.text
    else:
        assert len(numbers(stored)) == 21, "neither stored nor kept"


NEWER = {name: POISON[name] for name in ("a later version", "an unknown kind")}


@pytest.mark.parametrize("newer", list(NEWER.values()), ids=list(NEWER))
@pytest.mark.parametrize("others", [0, 3])
def test_a_journal_with_a_newer_versions_record_is_left_to_that_version(
    make: Callable[..., Rig], stored: Stored, newer: bytes, others: int, caplog: pytest.LogCaptureFixture
) -> None:
    """What precedes the record is stored, what follows waits with it; every other journal goes on."""
    dead = make()
    dead.append(turn(1))
    dead.journal.append(newer)
    dead.append(turn(2))
    dead.close()
    for number in range(10, 10 + others):
        other = make()
        other.append(turn(number))
        other.close()
    rig = make()
    rig.append(turn(3))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            rig.writer._visited_at = rig.writer._checked_at = 0.0
            while rig.writer.run_once() == 0.0:
                pass
    assert numbers(stored) == [1, 3, *range(10, 10 + others)]
    assert stored.count("dead_letters") == 0
    assert rig.writer.for_newer
    assert caplog.text.count("newer version") == 1
    theirs = dead.journal.writer
    _, second, third = rig.journal.read(theirs, 0, max_records=9, max_bytes=MIB)
    assert stored.rows("SELECT position FROM journal_writers WHERE writer = %s", theirs) == [(second.start,)]
    # A process of the newer version comes, which can take the journal and knows the record.
    with rig.journal.adopt(theirs) or pytest.fail("the journal cannot be adopted"):
        stored.rows("UPDATE journal_writers SET position = %s WHERE writer = %s RETURNING 1", third.start, theirs)
    rig.writer._checked_at = rig.writer._visited_at = 0.0
    rig.writer.run_once()
    rig.writer._visited_at = 0.0
    rig.writer.run_once()
    assert numbers(stored) == [1, 2, 3, *range(10, 10 + others)]


def test_a_bad_item_takes_no_neighbour_of_its_own_record(make: Callable[..., Rig], stored: Stored) -> None:
    rig = make()
    payload = codec.encode([turn(1), turn(2), turn(3)])
    rig.journal.append(payload.replace(b"turn 2", b"turn\\u00002"))
    rig.flush()
    assert numbers(stored) == [1, 3]
    ((kept,),) = stored.rows("SELECT payload FROM dead_letters")
    (item,) = codec.decode(bytes(kept))
    assert isinstance(item, AddTurn)
    assert item.content == "turn\x002"


def test_many_bad_records_cost_no_good_one(make: Callable[..., Rig], stored: Stored) -> None:
    rig = make()
    for number in range(200):
        rig.append(turn(number, "bad\x00" if number % 3 == 0 else None))
    rig.flush(60)
    assert numbers(stored) == [number for number in range(200) if number % 3]
    assert stored.count("dead_letters") == 67


def test_the_log_and_the_dead_letters_reason_hold_no_content(
    make: Callable[..., Rig], stored: Stored, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make()
    with caplog.at_level(logging.DEBUG):
        rig.append(turn(1, "very secret words \x00"))
        rig.journal.append(b'{"v":1,"items":[{"k":"very secret words that are not a kind","t":"x","w":[1,1]}]}')
        rig.flush()
    assert "very secret words" not in caplog.text
    assert not any("secret words" in reason for (reason,) in stored.rows("SELECT reason FROM dead_letters"))


def test_an_outage_is_over_only_once_something_was_stored(
    make: Callable[..., Rig], stored: Stored, database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where reading works and writing does not, what ended processes have left does not arrive, and nobody says so."""
    leave_journal(tmp_path / "journal", turn(1))
    rig = make()
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    rig.writer.start()
    wait_until(lambda: rig.writer.breaker.status().failures >= 3)
    assert [each.getMessage() for each in caplog.records if "again" in each.getMessage()] == []
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("SET default_transaction_read_only = off")
        owner.execute(f"ALTER DATABASE {database.name} RESET default_transaction_read_only")
    rig.pool.reap(0)
    wait_until(lambda: numbers(stored) == [1] and not rig.writer.breaker.is_open, seconds=30)
    told = [each.getMessage() for each in caplog.records if "Postgres takes writes again" in each.getMessage()]
    assert len(told) == 1
    assert told[0].endswith("1 waiting records were stored")


def test_an_outage_with_nothing_left_to_store_claims_no_write(
    make: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    rig = make()
    rig.writer.breaker.failed("Postgres cannot be reached", hold_seconds=0)
    rig.writer.run_once()
    assert not rig.writer.breaker.is_open
    told = [each.getMessage() for each in caplog.records]
    assert "waits for Postgres any more" in told[-1]
    assert not any("takes writes again" in each for each in told)


def test_journals_that_have_arrived_are_not_asked_for_again_and_again(make: Callable[..., Rig], stored: Stored) -> None:
    for first in range(0, 30, 3):
        dead = make()
        for number in range(first, first + 3):
            dead.append(turn(number))
        dead.close()
    rig = make()
    while rig.writer.run_once() == 0.0:
        pass
    assert numbers(stored) == list(range(30))
    before = rig.pool.uses
    rig.writer._visited_at = 0.0
    rig.writer.run_once()
    assert rig.pool.uses - before <= 1


def test_one_bad_record_among_many_dead_journals_costs_no_good_one(
    make: Callable[..., Rig], stored: Stored, tmp_path: Path
) -> None:
    for number in range(70):
        leave_journal(tmp_path / "journal", turn(number, "bad\x00" if number in (3, 66) else None))
    rig = make()
    while rig.writer.run_once() == 0.0:
        pass
    assert numbers(stored) == [number for number in range(70) if number not in (3, 66)]
    assert stored.count("dead_letters") == 2


def look_again(rig: Rig) -> None:
    """What a writer does that is not running now: look at all journals and all marks, and store what it finds."""
    rig.writer._visited_at = rig.writer._checked_at = 0.0
    while rig.writer.run_once() == 0.0:
        pass


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_journal_whose_copy_was_drained_and_removed_elsewhere_goes_on(
    make: Callable[..., Rig], stored: Stored, tmp_path: Path, is_alive: bool
) -> None:
    original = make()
    original.append(turn(0))
    original.flush()
    original.append(turn(1))
    shutil.copytree(tmp_path / "journal", tmp_path / "copied")
    copy = make("copied", keep_seconds=0.0)
    copy.append(turn(100))
    copy.flush()
    wait_until(lambda: copy.journal.writers() == [copy.journal.writer])
    original.append(turn(2))
    if is_alive:
        original.flush()
        original.append(turn(3))
        original.flush()
        last = original
        last.writer.stop(Deadline.after(10))
    else:
        original.writer.stop(Deadline.after(10))
        original.append(turn(3))
        original.journal.close(Deadline.after(5))
        last = make()
    look_again(last)
    assert numbers(stored) == [0, 1, 2, 3, 100]


def test_a_mark_outlives_its_journal_and_a_restored_copy_is_not_stored_again(
    make: Callable[..., Rig], stored: Stored, tmp_path: Path
) -> None:
    folder = tmp_path / "journal"
    for number in range(5):
        leave_journal(folder, turn(number))
    backup = {path.name: path.read_bytes() for path in folder.iterdir()}
    rig = make()
    rig.journal._retention._keep_seconds = 0.0
    for _ in range(2):
        look_again(rig)
    assert numbers(stored) == list(range(5))
    assert rig.journal.writers() == [rig.journal.writer]
    stored.rows("DELETE FROM conversations RETURNING 1")
    for name, content in backup.items():
        (folder / name).write_bytes(content)
    assert len(rig.journal.writers()) == 6
    later = make()
    for _ in range(2):
        look_again(later)
    assert numbers(stored) == [], "a restored journal was stored a second time"


def test_a_watermark_stays_as_long_as_its_journal(make: Callable[..., Rig], stored: Stored, tmp_path: Path) -> None:
    for number in range(5):
        leave_journal(tmp_path / "journal", turn(number))
    rig = make()
    for _ in range(3):
        rig.writer._visited_at = rig.writer._checked_at = 0.0
        rig.writer.run_once()
    assert len(rig.journal.writers()) == 6
    assert stored.count("journal_writers") == 5


def test_a_batch_that_took_too_long_is_halved_until_it_arrives(
    make: Callable[..., Rig], stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row takes the server a while: no deadline lets all of them in together."""
    monkeypatch.setattr(writer, "BATCH_SECONDS", 0.6)
    slow = (
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END'"
    )
    with psycopg.connect(stored.dsn, autocommit=True) as owner:
        owner.execute(slow.encode())
        owner.execute("CREATE TRIGGER dawdle BEFORE INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION dawdle()")
    rig = make(batch=256)
    for number in range(64):
        rig.append(turn(number))
    rig.flush(60)
    assert numbers(stored) == list(range(64))


def test_a_server_that_has_lost_commits_gets_them_again(make: Callable[..., Rig], stored: Stored) -> None:
    """An asynchronous standby takes over: rows and watermark of the last seconds are gone together."""
    dead = make()
    lost = []
    for number in range(50):
        lost += [dead.journal.end] if number == 20 else []
        dead.append(turn(number))
    dead.flush()
    dead.close()
    rig = make()
    for number in range(50, 100):
        lost += [rig.journal.end] if number == 70 else []
        rig.append(turn(number))
    rig.flush()
    wait_until(lambda: len(rig.writer._finished) == 1)
    _lose(stored, 20, dead.journal.writer, lost[0])
    _lose(stored, 70, rig.journal.writer, lost[1])
    rig.writer._checked_at = 0.0
    rig.writer.wake()
    wait_until(lambda: len(numbers(stored)) == 100)
    assert numbers(stored) == list(range(100))
    rig.append(turn(100))
    rig.flush()
    assert numbers(stored) == list(range(101))


def test_what_a_server_loses_right_after_the_commit_is_still_there_when_room_is_short(
    make: Callable[..., Rig], stored: Stored
) -> None:
    dead = make()
    lost = 0
    for number in range(50):
        lost = dead.journal.end if number == 20 else lost
        dead.append(turn(number))
    dead.close()
    rig = make(keep_bytes=0)
    while rig.writer.run_once() == 0.0:
        pass
    assert numbers(stored) == list(range(50))
    _lose(stored, 20, dead.journal.writer, lost)
    rig.close()
    # Whoever comes next has no memory of what had arrived.
    later = make(keep_bytes=0)
    while later.writer.run_once() == 0.0:
        pass
    assert numbers(stored) == list(range(50))


def test_a_lost_watermark_alone_doubles_nothing(make: Callable[..., Rig], stored: Stored) -> None:
    rig = make()
    for number in range(50):
        rig.append(turn(number), AddMemory("theme", "memory", f"fact {number}", Moment(START, START + number), "home"))
    rig.flush()
    stored.rows("DELETE FROM journal_writers RETURNING 1")
    rig.writer._checked_at = 0.0
    rig.append(turn(50))
    rig.flush()
    assert numbers(stored) == list(range(51))
    assert stored.count("memory_entries") == 50
    assert stored.count("memory_operations") == 50


def test_two_writers_on_one_journal_store_it_once(make: Callable[..., Rig], stored: Stored) -> None:
    """A copied folder, or a lock that does not exclude: the watermark's row is the mutex."""
    rig = make(batch=5)
    for number in range(300):
        rig.append(turn(number))
    with patch.object(Settings, "batch_records", 7):
        second = Writer(rig.journal, rig.pool, Settings(), home_id="home", undone=no_undo(), on_stored=lambda: None)
    second.start()
    rig.flush()
    wait_until(lambda: second.flush(Deadline.after(1)))
    second.stop(Deadline.after(5))
    assert numbers(stored) == list(range(300))


def test_an_idle_writer_lets_its_connection_go(
    make: Callable[..., Rig], stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RECHECK_SECONDS", 0.05)
    monkeypatch.setattr(writer, "WATCHED_SECONDS", 0.2)
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.05)
    rig = make()
    rig.append(turn(1))
    rig.flush()
    wait_until(lambda: stored.connections() == 1)
    wait_until(lambda: time.monotonic() - rig.writer._arrived_at > 0.3)
    rig.pool.reap(idle_seconds=0)
    looked_at = rig.writer._checked_at
    wait_until(lambda: rig.writer._checked_at > looked_at)
    assert stored.connections() == 0


def _lose(stored: Stored, first: int, writer: str, mark: int) -> None:
    with psycopg.connect(stored.dsn) as connection:
        gone = "strpos(content, 'turn ') = 1 AND substr(content, 6)::integer BETWEEN %s AND %s"
        connection.execute(f"DELETE FROM conversations WHERE {gone}".encode(), (first, first - first % 50 + 49))
        connection.execute("UPDATE journal_writers SET position = %s WHERE writer = %s", (mark, writer))
