"""The journal when the disk fails it: full, too large a file, failing syncs, files that do not let go."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal import Journal, SyncMode
from hermes_memory_pgvector.journal import segment as segment_module
from hermes_memory_pgvector.journal.segment import list_directory
from testing.waiting import wait_until

MIB = 1024 * 1024


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Journal]]:
    made: list[Journal] = []

    def build(sync: SyncMode = "process", segment_bytes: int = 4 * MIB) -> Journal:
        journal = Journal(tmp_path / "journal", max_bytes=64 * MIB, sync=sync, segment_bytes=segment_bytes)
        journal.open()
        made.append(journal)
        return journal

    yield build
    for journal in made:
        journal.close(Deadline.after(5))


def append_when_ready(journal: Journal, payload: bytes) -> None:
    """Append as soon as the helper has made a new segment."""
    wait_until(lambda: not journal._appender.wants_rotation)
    journal.append(payload)


def payloads(journal: Journal) -> list[bytes]:
    found: list[bytes] = []
    after = 0
    while True:
        more = journal.read(journal.writer, after, max_records=100, max_bytes=MIB)
        if not more:
            return found
        found += [record.payload for record in more]
        after = more[-1].end


def run(script: str, *arguments: str, seconds: float = 60.0) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


TOO_LARGE = """
import json, resource, sys, threading, time
from pathlib import Path
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.journal.segment import list_directory
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
journal = Journal(Path(sys.argv[1]), max_bytes=1 << 20)
journal.open()
acknowledged, errors, patience = [], [], Deadline.after(20)
while len(acknowledged) < 40:
    patience.check()
    try:
        journal.append(b"x" * 300)
        acknowledged.append(journal.appended)
    except JournalError as error:
        errors.append(str(error))
        threading.Event().wait(0.002)
failed = 0
try:
    journal.append(b"y" * 10_000)
except JournalError:
    failed = 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
while True:
    patience.check()
    try:
        journal.append(b"y" * 10_000)
        acknowledged.append(journal.appended)
        break
    except JournalError:
        threading.Event().wait(0.002)
seqs, after = [], 0
while batch := journal.read(journal.writer, after, max_records=100, max_bytes=1 << 20):
    seqs += range(len(seqs) + 1, len(seqs) + 1 + len(batch))
    after = batch[-1].end
stats = journal.stats()
print(json.dumps({"acknowledged": acknowledged, "read": seqs, "failed": failed, "errors": errors,
                  "segments": len(list_directory(Path(sys.argv[1])).segments),
                  "damaged": stats.damaged_segments}))
"""


def test_a_limit_on_file_size_moves_on_to_a_new_segment(tmp_path: Path) -> None:
    answer = run(TOO_LARGE, str(tmp_path / "journal"))
    assert answer["acknowledged"] == answer["read"] == list(range(1, 42))
    assert answer["failed"] == 1
    assert any("EFBIG" in str(error) for error in list(answer["errors"]))  # type: ignore[call-overload]
    assert answer["damaged"] == 0
    assert int(str(answer["segments"])) >= 3


def test_a_short_write_is_completed_when_the_rest_fits(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = make()
    with monkeypatch.context() as patch:
        patch.setattr(segment_module, "gil_write", lambda fd, data, size: os.write(fd, data[: size // 2]))
        journal.append(b"in two parts")
    journal.append(b"whole")
    assert payloads(journal) == [b"in two parts", b"whole"]


def test_a_short_write_that_cannot_be_completed_is_taken_back(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    journal = make()
    journal.append(b"before")
    real = os.write

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(segment_module, "gil_write", lambda fd, data, size: real(fd, data[: size // 2]))
        patch.setattr(os, "write", full)
        with pytest.raises(JournalError, match="ENOSPC"):
            journal.append(b"torn")
    journal.append(b"after")
    assert payloads(journal) == [b"before", b"after"]
    assert len(list((tmp_path / "journal").iterdir())) == 2


def test_a_file_that_cannot_be_truncated_is_sealed(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    journal = make()
    journal.append(b"before")
    real = os.write

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(segment_module, "gil_write", lambda fd, data, size: real(fd, data[: size // 2]))
        patch.setattr(os, "write", fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(JournalError, match="EIO"):
            journal.append(b"torn")
    append_when_ready(journal, b"after")
    assert payloads(journal) == [b"before", b"after"]
    assert len(list_directory(tmp_path / "journal").segments) == 2


def test_a_write_that_failed_and_yet_landed_takes_no_other_record(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = make()
    real = os.write

    def liar(fd: int, data: bytes, size: int) -> int:
        real(fd, data)
        return -1

    with monkeypatch.context() as patch:
        patch.setattr(segment_module, "gil_write", liar)
        patch.setattr("ctypes.get_errno", lambda: errno.EIO)
        with pytest.raises(JournalError, match="EIO"):
            journal.append(b"unacknowledged")
    append_when_ready(journal, b"acknowledged")
    assert payloads(journal) == [b"unacknowledged", b"acknowledged"]


def test_an_interrupted_write_is_made_again(make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch) -> None:
    journal = make()
    answers = iter([-1, -1])
    real = segment_module.gil_write
    assert real is not None
    monkeypatch.setattr(segment_module, "gil_write", lambda fd, data, size: next(answers, 0) or real(fd, data, size))
    monkeypatch.setattr("ctypes.get_errno", lambda: errno.EINTR)
    journal.append(b"third time")
    assert payloads(journal) == [b"third time"]


def test_a_bad_descriptor_breaks_the_segment_and_not_the_journal(make: Callable[..., Journal]) -> None:
    """The real thing: the kernel refuses the write."""
    journal = make()
    journal.append(b"before")
    active = journal._appender._active
    assert active is not None
    read_only = os.open(active.path, os.O_RDONLY)
    os.dup2(read_only, active.fd)
    os.close(read_only)
    with pytest.raises(JournalError, match="EBADF"):
        journal.append(b"refused")
    append_when_ready(journal, b"after")
    assert payloads(journal) == [b"before", b"after"]


class FailingSync:
    """Fails for the files it has seen first, as a kernel that has lost pages of one file."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.inode: int | None = None

    def __call__(self, fd: int) -> None:
        inode = os.fstat(fd).st_ino
        self.inode = self.inode or inode
        self.calls.append(inode)
        if inode == self.inode:
            raise OSError(errno.EIO, "lost")


def test_a_failed_sync_is_told_and_never_tried_again_on_the_same_file(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = FailingSync()
    journal = make(sync="batch")

    def fail_while_records_come_in(fd: int) -> None:
        if not failing.calls:
            journal.append(b"meanwhile")
        failing(fd)

    monkeypatch.setattr(segment_module, "sync_file", fail_while_records_come_in)
    journal.append(b"one")
    # Not the file in the directory counts, but that records go to it.
    wait_until(lambda: journal._appender.active_number == 2)
    journal.append(b"two")
    wait_until(lambda: len(failing.calls) == 2)
    wait_until(lambda: journal.sync_lag_seconds == 0)
    assert failing.calls.count(failing.inode or 0) == 1
    assert journal.stats().last_error == "sync failed (OSError, errno 5)"
    assert payloads(journal) == [b"one", b"meanwhile", b"two"]


def test_always_does_not_acknowledge_what_the_disk_did_not_take(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = FailingSync()
    monkeypatch.setattr(segment_module, "sync_file", failing)
    journal = make(sync="always")
    with pytest.raises(JournalError, match="could not sync"):
        journal.append(b"doubtful")
    append_when_ready(journal, b"certain")
    assert payloads(journal) == [b"doubtful", b"certain"]
    assert len(failing.calls) == 2


@pytest.mark.parametrize(("mode", "expected"), [("process", 0), ("batch", 1), ("always", 5)])
def test_how_often_each_mode_syncs(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch, mode: SyncMode, expected: int
) -> None:
    calls: list[int] = []
    threads: set[str] = set()

    def count(fd: int) -> None:
        calls.append(fd)
        threads.add(threading.current_thread().name)

    monkeypatch.setattr(segment_module, "sync_file", count)
    journal = make(sync=mode)
    for _ in range(5):
        journal.append(b"x")
    wait_until(lambda: not journal._appender.is_dirty and journal.sync_lag_seconds == 0)
    assert expected <= len(calls) <= max(expected, 0 if mode == "process" else 5)
    if mode == "batch":
        assert threads == {"hermes-pgvector-journal"}


def test_an_append_after_a_long_sleep_is_synced(make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()
    journal = make(sync="batch")
    wait_until(lambda: journal._appender.is_asleep)
    monkeypatch.setattr(segment_module, "sync_file", lambda fd: synced.set())
    journal.append(b"x")
    assert synced.wait(2)
    wait_until(lambda: journal.sync_lag_seconds == 0)


def test_sync_lag_grows_while_the_disk_is_slow(make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow(fd: int) -> None:
        entered.set()
        go_on.wait(10)

    monkeypatch.setattr(segment_module, "sync_file", slow)
    journal = make(sync="batch")
    journal.append(b"x")
    assert entered.wait(5)
    wait_until(lambda: journal.sync_lag_seconds > 0.05)
    journal.append(b"not held up")
    go_on.set()
    wait_until(lambda: journal.sync_lag_seconds == 0)


def test_close_syncs_what_is_left_and_keeps_to_its_deadline(
    make: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(segment_module, "sync_file", calls.append)
    journal = make(sync="batch")
    journal.append(b"x")
    journal.close(Deadline.after(5))
    assert calls
    go_on = threading.Event()
    monkeypatch.setattr(segment_module, "sync_file", lambda fd: go_on.wait(10))
    stuck = make(sync="batch")
    stuck.append(b"x")
    deadline = Deadline.after(0.2)
    stuck.close(deadline)
    assert deadline.is_over
    assert Deadline.after(0).at - deadline.at < 2
    with pytest.raises(JournalError, match="still being closed"):
        stuck.open()
    go_on.set()
    wait_until(lambda: stuck._lock is None)


def test_a_directory_that_cannot_be_made_is_told_and_opening_can_be_tried_again(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    journal = Journal(tmp_path / "home" / "journal", max_bytes=MIB)
    with pytest.raises(JournalError, match="cannot be opened"):
        journal.open()
    (tmp_path / "home").unlink()
    journal.open()
    journal.append(b"x")
    journal.close(Deadline.after(5))


def test_a_failed_first_segment_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, max_bytes=MIB)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(segment_module, "create_segment", refuse)
        with pytest.raises(JournalError, match="errno 28"):
            journal.open()
    assert list(tmp_path.iterdir()) == []
