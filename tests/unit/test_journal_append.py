"""The journal in one process: appending, reading, rotation, bounds, retention, damage."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import JournalError, JournalFull
from hermes_memory_pgvector.journal import FIRST_POSITION, Journal, Record, SyncMode, Urgency
from hermes_memory_pgvector.journal import segment as segment_module
from hermes_memory_pgvector.journal.frame import HEADER_BYTES, encode, seed_of
from testing.waiting import wait_until

MIB = 1024 * 1024


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "home" / "journal"


@pytest.fixture
def make(directory: Path) -> Iterator[Callable[..., Journal]]:
    made: list[Journal] = []

    def build(**options: object) -> Journal:
        settings: dict[str, object] = {"max_bytes": 64 * MIB, "sync": "process", **options}
        journal = Journal(directory, **settings)  # type: ignore[arg-type]
        journal.open()
        made.append(journal)
        return journal

    yield build
    for journal in made:
        journal.close(Deadline.after(5))


def drain(journal: Journal, writer: str, mark: int = 0, batch: int = 64) -> list[Record]:
    records: list[Record] = []
    while True:
        more = journal.read(writer, mark, max_records=batch, max_bytes=MIB)
        if not more:
            return records
        records += more
        assert mark <= more[0].start
        mark = more[-1].end


def payloads(records: list[Record]) -> list[bytes]:
    return [record.payload for record in records]


def marks(journal: Journal, writer: str) -> list[int]:
    """Where each record ends, after the position of the beginning: the mark after n records is the n-th."""
    return [0, *(record.end for record in drain(journal, writer))]


def segments(directory: Path, writer: str) -> list[Path]:
    return sorted(path for path in directory.glob(f"{writer}.*") if path.suffix[1:].isdigit())


def seal(journal: Journal, directory: Path) -> Path:
    """Have the present segment sealed and return it."""
    before = segments(directory, journal.writer)
    journal._appender.request_rotation()
    wait_until(lambda: len(segments(directory, journal.writer)) > len(before) and not journal._appender.wants_rotation)
    return before[-1]


def abandon(journal: Journal) -> None:
    """Leave the files as a process that was killed leaves them."""
    assert journal._lock is not None
    journal._lock.release()
    journal._lock = None
    journal._appender.finish()
    journal._helper.stop(Deadline.after(5))


class TestAppending:
    @pytest.mark.parametrize("size", [0, 1, 1024, 65_536 - HEADER_BYTES, 65_536, 300_000])
    @pytest.mark.parametrize("mode", ["process", "batch", "always"])
    def test_any_size_comes_back_in_every_mode(self, make: Callable[..., Journal], size: int, mode: SyncMode) -> None:
        journal = make(sync=mode)
        payload = os.urandom(size)
        journal.append(payload)
        (record,) = drain(journal, journal.writer)
        assert record == Record(journal.writer, FIRST_POSITION, journal.end, payload)

    def test_it_works_where_the_c_library_cannot_be_called(
        self, make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(segment_module, "gil_write", None)
        journal = make()
        journal.append(b"by os.write")
        assert [record.payload for record in drain(journal, journal.writer)] == [b"by os.write"]

    def test_the_directory_and_files_are_private(self, make: Callable[..., Journal], directory: Path) -> None:
        directory.mkdir(parents=True, mode=0o755)
        make().append(b"x")
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
        assert len(list(directory.iterdir())) == 2

    def test_threads_share_one_sequence(self, make: Callable[..., Journal]) -> None:
        journal = make(segment_bytes=20_000)
        seen: list[bytes] = []

        def work(name: int) -> None:
            for n in range(300):
                payload = b"%d-%d" % (name, n)
                journal.append(payload)
                seen.append(payload)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = payloads(drain(journal, journal.writer))
        assert sorted(found) == sorted(seen)
        assert len(seen) == 2400
        for name in range(8):
            own = [each for each in found if each.startswith(b"%d-" % name)]
            assert own == [b"%d-%d" % (name, n) for n in range(300)]

    def test_new_records_are_told_soon_and_by_another_thread(self, make: Callable[..., Journal]) -> None:
        journal = make(max_bytes=200)
        seen: list[tuple[int, str]] = []
        journal.on_append = lambda: seen.append((journal.appended, threading.current_thread().name))
        journal.append(b"a")
        with pytest.raises(JournalFull):
            journal.append(b"b" * 500)
        wait_until(lambda: bool(seen))
        assert seen == [(1, "hermes-pgvector-journal")]

    def test_a_journal_that_is_not_open_takes_nothing(self, directory: Path, make: Callable[..., Journal]) -> None:
        with pytest.raises(JournalError, match="not open"):
            Journal(directory, max_bytes=MIB).append(b"x")
        journal = make()
        journal.close(Deadline.after(5))
        with pytest.raises(JournalError, match="not open"):
            journal.append(b"x")

    def test_a_record_beyond_all_measure_is_refused(self, make: Callable[..., Journal]) -> None:
        with pytest.raises(JournalError, match="too large"):
            make(max_bytes=1 << 40).append(bytes(64 * MIB + 1))

    def test_a_signal_handler_that_appends_in_the_middle_of_an_append(self, make: Callable[..., Journal]) -> None:
        journal = make()
        nested: list[bytes] = []

        def append(*_: object) -> None:
            journal.append(b"nested")
            nested.append(b"nested")

        old = signal.signal(signal.SIGALRM, append)
        signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0003)
        try:
            outer = 0
            deadline = Deadline.after(10)
            while len(nested) < 300:
                deadline.check()
                journal.append(b"outer")
                outer += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        found = payloads(drain(journal, journal.writer))
        assert (found.count(b"nested"), found.count(b"outer")) == (len(nested), outer)
        assert journal.stats().damaged_segments == 0

    @pytest.mark.slow
    def test_an_exception_in_the_middle_of_an_append_costs_nobody_a_record(self, make: Callable[..., Journal]) -> None:
        class Interrupt(Exception):
            pass

        armed = False

        def interrupt(*_: object) -> None:
            if armed:
                raise Interrupt

        journal = make()
        kept: list[bytes] = []
        interrupts = n = 0
        deadline = Deadline.after(10)
        old = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0002)
        try:
            while interrupts < 200 and not deadline.is_over:
                n += 1
                payload = b"%d" % n
                try:
                    armed = True
                    journal.append(payload)
                    armed = False
                except (Interrupt, SystemError):
                    # Some releases of CPython make a SystemError of what a handler raises during a system call.
                    armed = False
                    interrupts += 1
                else:
                    kept.append(payload)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        assert interrupts >= 50
        found = payloads(drain(journal, journal.writer))
        assert len(found) == len(set(found))
        assert set(kept) <= set(found)
        assert [each for each in found if each in set(kept)] == kept


class TestRotation:
    def test_appends_go_on_past_the_limit_while_no_new_segment_can_be_made(
        self, make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch, directory: Path
    ) -> None:
        journal = make(segment_bytes=1000)

        def refuse(*_: object) -> None:
            raise OSError(28, "no space")

        with monkeypatch.context() as patch:
            patch.setattr(segment_module, "create_segment", refuse)
            for _ in range(50):
                journal.append(b"x" * 100)
            wait_until(lambda: "no new segment" in journal.stats().last_error)
            assert len(segments(directory, journal.writer)) == 1
        wait_until(lambda: len(segments(directory, journal.writer)) == 2)
        journal.append(b"after")
        assert len(drain(journal, journal.writer)) == 51

    def test_a_reader_beside_a_rotating_writer_never_meets_a_gap(self, make: Callable[..., Journal]) -> None:
        journal = make(segment_bytes=4000)
        total, seen, mark = 20_000, 0, 0

        def work() -> None:
            for n in range(total):
                journal.append(b"%d" % n)

        writer = threading.Thread(target=work)
        writer.start()
        deadline = Deadline.after(30)
        while seen < total:
            deadline.check()
            for record in journal.read(journal.writer, mark, max_records=100, max_bytes=MIB):
                assert record.payload == b"%d" % seen
                seen, mark = seen + 1, record.end
        writer.join()
        assert journal.stats().damaged_segments == 0


class TestReading:
    def test_batches_are_bounded_but_never_empty(self, make: Callable[..., Journal]) -> None:
        journal = make()
        for n, size in enumerate((10, 10, 10, 500, 10)):
            journal.append(b"%d" % n * size)
        after = marks(journal, journal.writer)

        def read(mark: int, count: int, size: int) -> list[bytes]:
            return [r.payload[:1] for r in journal.read(journal.writer, mark, max_records=count, max_bytes=size)]

        assert read(0, 2, MIB) == [b"0", b"1"]
        assert read(0, 100, 25) == [b"0", b"1"]
        assert read(after[3], 100, 25) == [b"3"]
        assert read(after[4], 100, MIB) == [b"4"]
        assert read(after[5], 100, MIB) == []
        assert read(after[5] + MIB, 100, MIB) == []

    def test_depth_counts_records_bytes_and_age(
        self, make: Callable[..., Journal], directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        journal = make()
        for n in range(10):
            journal.append(b"x" * 100)
            if n == 4:
                seal(journal, directory)
        each = 100 + HEADER_BYTES
        after = marks(journal, journal.writer)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 60)
        for upto in (0, 3, 5, 8):
            depth = journal.depth(journal.writer, after[upto])
            assert (depth.records, depth.bytes) == (10 - upto, (10 - upto) * each)
            assert 59 < depth.oldest_age_seconds < 75
        assert journal.depth(journal.writer, after[10]).records == 0
        assert journal.depth(journal.writer, after[10]).oldest_age_seconds == 0
        monkeypatch.setattr(time, "time", lambda: now - 3600)
        assert journal.depth(journal.writer, 0).oldest_age_seconds == 0


class TestBound:
    def test_turns_are_refused_before_memories(self, make: Callable[..., Journal]) -> None:
        journal = make(max_bytes=10_000)
        size = 1000 - HEADER_BYTES
        for _ in range(9):
            journal.append(b"x" * size)
        with pytest.raises(JournalFull, match="a turn was refused"):
            journal.append(b"x" * size, Urgency.TURN)
        journal.append(b"x" * size, Urgency.MEMORY)
        with pytest.raises(JournalFull, match="a memory was refused"):
            journal.append(b"", Urgency.MEMORY)
        assert journal.stats().waiting_bytes == 10_000

    def test_what_is_drained_makes_room_and_a_rewind_takes_it_back(self, make: Callable[..., Journal]) -> None:
        journal = make(max_bytes=10_000)
        for _ in range(9):
            journal.append(b"x" * (1000 - HEADER_BYTES))
        after = marks(journal, journal.writer)
        journal.retire(journal.writer, after[5])
        assert journal.stats().waiting_bytes == 4000
        journal.retire(journal.writer, after[7])
        assert journal.stats().waiting_bytes == 2000
        journal.retire(journal.writer, after[1])
        assert journal.stats().waiting_bytes == 8000
        journal.retire(journal.writer, after[9])
        assert journal.stats().waiting_bytes == 0
        journal.append(b"x")

    @pytest.mark.slow
    def test_other_writers_count_until_they_are_drained(self, make: Callable[..., Journal]) -> None:
        dead = make()
        for _ in range(9):
            dead.append(b"x" * 1000)
        abandon(dead)
        journal = make(max_bytes=10_000)
        wait_until(lambda: journal.stats().waiting_bytes > 9000)
        with pytest.raises(JournalFull):
            journal.append(b"turn")
        with journal.adopt(dead.writer) or pytest.fail("not adopted"):
            journal.retire(dead.writer, marks(journal, dead.writer)[9])
        wait_until(lambda: journal.stats().waiting_bytes == 0)
        journal.append(b"turn")


class TestRetention:
    def fill(self, journal: Journal, directory: Path, count: int = 3) -> None:
        for n in range(count * 10):
            journal.append(b"x" * 100)
            if n % 10 == 9:
                seal(journal, directory)

    def test_drained_segments_are_kept_for_a_time(self, make: Callable[..., Journal], directory: Path) -> None:
        journal = make(keep_seconds=3600.0)
        self.fill(journal, directory)
        journal.retire(journal.writer, journal.end)
        assert len(segments(directory, journal.writer)) == 4
        assert len(drain(journal, journal.writer)) == 30

    def test_the_oldest_go_when_too_many_bytes_are_kept(self, make: Callable[..., Journal], directory: Path) -> None:
        journal = make(keep_seconds=3600.0, keep_bytes=2 * 10 * (100 + HEADER_BYTES))
        self.fill(journal, directory, count=5)
        journal.retire(journal.writer, journal.end)
        # What the server has only just confirmed it may still lose.
        assert len(segments(directory, journal.writer)) == 6
        journal._retention._least_seconds = 0.0
        journal.retire(journal.writer, journal.end)
        names = [path.suffix for path in segments(directory, journal.writer)]
        assert names == [".00000004", ".00000005", ".00000006"]

    def test_a_fresh_scan_overrules_what_was_remembered(self, make: Callable[..., Journal], directory: Path) -> None:
        journal = make(keep_seconds=3600.0)
        self.fill(journal, directory, count=1)
        mark = journal.end
        journal.retire(journal.writer, mark)
        first = segments(directory, journal.writer)[0]
        first.chmod(0o600)
        with first.open("ab") as file:
            file.write(encode(seed_of(journal.writer), 0, b"late"))
        journal._retention._keep_seconds = 0.0
        journal.retire(journal.writer, mark)
        assert first.exists()

    def test_the_next_process_goes_on_counting(self, make: Callable[..., Journal], directory: Path) -> None:
        dead = make()
        dead.append(b"x")
        abandon(dead)
        journal = make(keep_seconds=900.0)
        with journal.adopt(dead.writer) or pytest.fail("not adopted"):
            journal.retire(dead.writer, marks(journal, dead.writer)[1])
        (path,) = segments(directory, dead.writer)
        assert stat.S_IMODE(path.stat().st_mode) == 0o400
        os.utime(path, (time.time() - 901, time.time() - 901))
        later = make(keep_seconds=900.0)
        with later.adopt(dead.writer) or pytest.fail("not adopted"):
            later.retire(dead.writer, marks(later, dead.writer)[1])
        assert not path.exists()
        assert not (directory / f"{dead.writer}.lock").exists()

    def test_a_clock_in_the_past_or_future_deletes_nothing_early(
        self, make: Callable[..., Journal], directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        journal = make(keep_seconds=900.0)
        self.fill(journal, directory, count=1)
        journal.retire(journal.writer, journal.end)
        now = time.time()
        for step in (+7200, -7200, +86_400 * 365):
            monkeypatch.setattr(time, "time", lambda step=step: now + step)
            journal.retire(journal.writer, journal.end)
            assert len(segments(directory, journal.writer)) == 2

    def test_a_watermark_that_went_back_makes_a_segment_waiting_again(
        self, make: Callable[..., Journal], directory: Path
    ) -> None:
        journal = make(keep_seconds=3600.0)
        self.fill(journal, directory, count=1)
        first = segments(directory, journal.writer)[0]
        after = marks(journal, journal.writer)
        journal.retire(journal.writer, after[10])
        assert stat.S_IMODE(first.stat().st_mode) == 0o400
        journal.retire(journal.writer, after[4])
        assert stat.S_IMODE(first.stat().st_mode) == 0o600
        assert len(drain(journal, journal.writer, after[4])) == 6

    def test_a_writer_that_is_not_adopted_is_not_touched(self, make: Callable[..., Journal], directory: Path) -> None:
        living = make()
        living.append(b"x")
        other = make(keep_seconds=0.0)
        other.retire(living.writer, living.end)
        assert len(segments(directory, living.writer)) == 1
        assert (directory / f"{living.writer}.lock").exists()

    def test_a_drained_active_segment_is_sealed_so_that_others_need_not_count_it(
        self, make: Callable[..., Journal], directory: Path
    ) -> None:
        journal = make(segment_bytes=16_000)
        for _ in range(12):
            journal.append(b"x" * 100)
        journal.retire(journal.writer, journal.end)
        wait_until(lambda: len(segments(directory, journal.writer)) == 2)


class TestAdoption:
    def test_a_copied_directory_is_readable_with_and_without_lock_files(
        self, make: Callable[..., Journal], directory: Path, tmp_path: Path
    ) -> None:
        living = make()
        for n in range(5):
            living.append(b"%d" % n)
        for name, pattern in (("with", None), ("without", "*.lock")):
            copy = tmp_path / name
            shutil.copytree(directory, copy, ignore=shutil.ignore_patterns(pattern) if pattern else None)
            journal = Journal(copy, max_bytes=MIB, sync="process")
            journal.open()
            with journal.adopt(living.writer) or pytest.fail("not adopted"):
                assert [record.payload for record in drain(journal, living.writer)] == [b"0", b"1", b"2", b"3", b"4"]
            journal.close(Deadline.after(5))

    @pytest.mark.parametrize("answer", [True, None], ids=["locks that do not exclude", "no locks"])
    def test_nothing_is_adopted_where_locks_do_not_exclude(
        self, make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch, answer: bool | None
    ) -> None:
        monkeypatch.setattr("hermes_memory_pgvector.journal.lock._try_exclusive", lambda fd: answer)
        dead, journal = make(), make()
        dead.append(b"x")
        abandon(dead)
        assert journal.stats().locks_work is False
        assert journal.adopt(dead.writer) is None

    def test_a_journal_that_was_never_used_leaves_nothing(self, make: Callable[..., Journal], directory: Path) -> None:
        make().close(Deadline.after(5))
        assert list(directory.iterdir()) == []

    def test_foreign_files_are_left_alone(self, make: Callable[..., Journal], directory: Path) -> None:
        journal = make()
        for name in ("notes.txt", f"{journal.writer}.00000002.bak", "x.lock", "0.00000001"):
            (directory / name).write_text("foreign")
        (directory / "00000000001-0000000000000001.00000001").symlink_to("/etc/hostname")
        assert journal.writers() == [journal.writer]
        assert (directory / "x.lock").exists()


class TestDamage:
    def damaged(self, directory: Path, journal: Journal, number: int, change: Callable[[bytes], bytes]) -> None:
        path = segments(directory, journal.writer)[number - 1]
        path.write_bytes(change(path.read_bytes()))

    def test_damage_in_a_dead_journal_is_passed_over_told_once_and_kept(
        self, make: Callable[..., Journal], directory: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        dead = make(segment_bytes=MIB)
        for n in range(10):
            dead.append(b"payload %d" % n)
        abandon(dead)
        self.damaged(directory, dead, 1, lambda data: data.replace(b"payload 4", b"pAyload 4"))
        journal = make(keep_seconds=0.0)
        with caplog.at_level(logging.WARNING), journal.adopt(dead.writer) or pytest.fail("not adopted"):
            for _ in range(2):
                found = payloads(drain(journal, dead.writer))
                assert found == [b"payload %d" % n for n in range(10) if n != 4]
            assert journal.stats().damaged_segments == 1
            journal.retire(dead.writer, marks(journal, dead.writer)[-1])
        assert len([r for r in caplog.records if "are no record" in r.getMessage()]) == 1
        assert [path.name for path in directory.glob(f"{dead.writer}*")] == [f"{dead.writer}.00000001.damaged"]
        assert journal.stats().damaged_segments == 1
        assert "payload" not in caplog.text

    def test_a_lost_segment_and_a_lost_tail_do_not_stop_the_rest(
        self, make: Callable[..., Journal], directory: Path
    ) -> None:
        dead = make()
        for n in range(40):
            dead.append(b"payload %02d" % n)
            if n % 10 == 9:
                seal(dead, directory)
        abandon(dead)
        segments(directory, dead.writer)[1].unlink()
        path = segments(directory, dead.writer)[1]
        path.write_bytes(path.read_bytes()[:-50])
        journal = make()
        with journal.adopt(dead.writer) or pytest.fail("not adopted"):
            found = [int(each.split()[1]) for each in payloads(drain(journal, dead.writer))]
        assert found == [*range(10), *range(20, 28), *range(30, 40)]

    def test_a_torn_tail_of_a_dead_writer_is_no_damage(self, make: Callable[..., Journal], directory: Path) -> None:
        dead = make()
        for n in range(3):
            dead.append(b"payload %d" % n)
        abandon(dead)
        torn = encode(seed_of(dead.writer), 0, b"never acknowledged")[:-5]
        self.damaged(directory, dead, 1, lambda data: data + torn)
        journal = make(keep_seconds=0.0)
        with journal.adopt(dead.writer) or pytest.fail("not adopted"):
            assert len(drain(journal, dead.writer)) == 3
            journal.retire(dead.writer, marks(journal, dead.writer)[3])
        assert journal.stats().damaged_segments == 0
        assert list(directory.glob(f"{dead.writer}*")) == []

    @pytest.mark.parametrize("is_moved", [False, True], ids=["removed", "moved away"])
    def test_where_the_files_are_gone_a_new_series_begins_and_says_so(
        self, make: Callable[..., Journal], directory: Path, caplog: pytest.LogCaptureFixture, is_moved: bool
    ) -> None:
        journal = make()
        journal.append(b"before")
        before = journal.writer
        elsewhere = directory.rename(directory.with_name("moved"))
        if not is_moved:
            shutil.rmtree(elsewhere)
        wait_until(
            lambda: journal.writer != before and directory.exists() and journal.writers() == [journal.writer],
            seconds=60,
        )
        journal.append(b"after")
        assert payloads(drain(journal, journal.writer)) == [b"after"]
        assert "files have been removed" in caplog.text
        assert elsewhere.joinpath(f"{before}.00000001").exists() is is_moved


def test_an_append_does_not_wait_for_whoever_looks_how_long_the_file_is(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = make()
    journal.append(b"first")
    looks, goes_on, fstat = threading.Event(), threading.Event(), os.fstat

    def slow(file: int) -> os.stat_result:
        if threading.current_thread() is reader:
            looks.set()
            goes_on.wait(30)
        return fstat(file)

    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(journal.end))
    monkeypatch.setattr(os, "fstat", slow)
    reader.start()
    assert looks.wait(30)
    hook = threading.Thread(target=journal.append, args=(b"second",))
    hook.start()
    hook.join(20)
    is_waiting = hook.is_alive()
    goes_on.set()
    reader.join(30)
    hook.join(30)
    assert not is_waiting
    assert found == [drain(journal, journal.writer)[-1].end], "the end is that of the newest record"
