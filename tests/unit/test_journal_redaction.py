"""Items go out of journal files: numbers, places and lengths of records stay, whoever reads or is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal import Journal, Urgency, codec, redaction
from hermes_memory_pgvector.journal.frame import Frame
from hermes_memory_pgvector.journal.redaction import redact_folder, redact_payload
from hermes_memory_pgvector.journal.segment import list_directory, walk_file
from hermes_memory_pgvector.values import AddMemory, AddTurn, Moment, RecordDelegation, UndoTurns, WriteItem

WHEN = Moment(1_760_000_000_000_000, 1_760_000_000_000_001)
SECRET = "quokka"


def turn(content: str, number: int = 1) -> AddTurn:
    return AddTurn("theme", "session", "user", content, number, WHEN, True, metadata={"author": {"name": "Ä"}})


def without_secret(items: Sequence[WriteItem]) -> list[WriteItem | None]:
    return [None if SECRET in str(item) else item for item in items]


def blank(data: bytes) -> bytes:
    return data.replace(SECRET.encode(), b" " * len(SECRET))


def payloads(journal: Journal, writer: str) -> dict[int, list[WriteItem]]:
    found: dict[int, list[WriteItem]] = {}
    after = 0
    while more := journal.read(writer, after, max_records=7, max_bytes=1 << 20):
        for record in more:
            found[len(found) + 1] = codec.decode(record.payload)
        after = more[-1].end
    return found


def test_an_item_becomes_one_that_does_nothing_and_the_record_keeps_its_length() -> None:
    items: list[WriteItem] = [
        turn("ä first"),
        turn(f"the {SECRET}"),
        AddMemory("theme", "memory", f"{SECRET} entry", WHEN, "home"),
        RecordDelegation("theme", "session", "child", f"{SECRET} task", "result", WHEN),
        turn("last ü"),
    ]
    payload = codec.encode(items)
    new = redact_payload(payload, items, without_secret(items))
    assert len(new) == len(payload)
    assert SECRET.encode() not in new
    found = codec.decode(new)
    assert [found[0], found[4]] == [items[0], items[4]]
    assert all(isinstance(each, UndoTurns) and each.turns == () for each in found[1:4])


def test_a_record_that_would_grow_is_refused() -> None:
    items: list[WriteItem] = [turn("x")]
    longer: list[WriteItem | None] = [turn("x" * 1000)]
    with pytest.raises(JournalError):
        redact_payload(codec.encode(items), items, longer)


def test_files_of_an_ended_process_and_damaged_ones_are_cleaned(tmp_path: Path) -> None:
    journal = Journal(tmp_path, max_bytes=1 << 24, segment_bytes=2000)
    journal.open()
    for number in range(40):
        journal.append(codec.encode([turn(f"{SECRET} {number}" if number % 3 == 0 else f"plain {number}")]))
    writer = journal.writer
    journal.close(Deadline.after(5))
    (last,) = list_directory(tmp_path).of(writer)[-1:]
    with last.path.open("ab") as file:
        file.write(b"\xf5\xc1\xfe\xc0 torn " + SECRET.encode())
    aside = tmp_path / f"{writer}.00000099.damaged"
    aside.write_bytes(b"junk " + SECRET.encode() + b" junk")
    drained = list_directory(tmp_path).of(writer)[0]
    os.utime(drained.path, (1000, 2000))
    drained.path.chmod(0o400)
    sizes = [(each.path.name, each.size) for each in list_directory(tmp_path).of(writer)]
    (tmp_path / ".redacted-left").write_bytes(b"of a process that was killed")

    counted = redact_folder(tmp_path, without_secret, blank, sealed_below={}, execute=False)
    assert counted.items == 16
    done = redact_folder(tmp_path, without_secret, blank, sealed_below={})
    assert (done.items, done.left, done.untouched) == (16, {}, 0)
    assert [(each.path.name, each.size) for each in list_directory(tmp_path).of(writer)] == sizes
    assert list_directory(tmp_path).of(writer)[0].is_drained
    assert drained.path.stat().st_mtime == 2000
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.iterdir())
    assert not (tmp_path / ".redacted-left").exists()
    reader = Journal(tmp_path, max_bytes=1 << 24)
    found = payloads(reader, writer)
    assert sorted(found) == list(range(1, 41))
    kept = [item.content for items in found.values() for item in items if isinstance(item, AddTurn)]
    assert kept == [f"plain {number}" for number in range(40) if number % 3]
    assert redact_folder(tmp_path, without_secret, blank, sealed_below={}).items == 0


def test_a_running_process_goes_on_appending_and_reading_where_it_was(tmp_path: Path) -> None:
    journal = Journal(tmp_path, max_bytes=1 << 26, segment_bytes=4000)
    journal.open()
    stop = threading.Event()
    appended: list[str] = []

    def append() -> None:
        while not stop.wait(0.001):
            text = f"{SECRET if len(appended) % 4 == 0 else 'plain'} {len(appended)}"
            journal.append(codec.encode([turn(text)]), Urgency.TURN)
            appended.append(text)

    thread = threading.Thread(target=append)
    thread.start()
    try:
        seen: list[str] = []
        after = 0
        for _ in range(12):
            redact_folder(tmp_path, without_secret, blank, sealed_below={})
            for record in journal.read(journal.writer, after, max_records=50, max_bytes=1 << 20):
                assert record.start >= after
                after = record.end
                seen += [item.content for item in codec.decode(record.payload) if isinstance(item, AddTurn)]
    finally:
        stop.set()
        thread.join()
    sealed = journal.seal(Deadline.after(10))
    done = redact_folder(tmp_path, without_secret, blank, sealed_below={journal.writer: sealed})
    assert done.left == {}
    found = payloads(journal, journal.writer)
    assert sorted(found) == list(range(1, len(appended) + 1))
    kept = [item.content for items in found.values() for item in items if isinstance(item, AddTurn)]
    assert kept == [text for text in appended if SECRET not in text]
    assert [text for text in seen if SECRET not in text] == kept[: len([t for t in seen if SECRET not in t])]
    journal.append(codec.encode([turn("after")]))
    assert journal.stats().damaged_segments == 0
    journal.close(Deadline.after(5))


def test_what_a_running_process_writes_to_is_left_to_it_and_counted(tmp_path: Path) -> None:
    journal = Journal(tmp_path, max_bytes=1 << 24)
    journal.open()
    journal.append(codec.encode([turn(SECRET)]))
    done = redact_folder(tmp_path, without_secret, blank, sealed_below={})
    assert (done.items, done.left) == (0, {journal.writer: 1})
    journal.close(Deadline.after(5))


KILLED = """
import os, sys
from pathlib import Path
from hermes_memory_pgvector.journal import redaction
from hermes_memory_pgvector.journal.redaction import redact_folder
calls = 0
def dying(name):
    real = getattr(os, name)
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == int(sys.argv[2]):
            os.kill(os.getpid(), 9)
        return real(*args, **kwargs)
    setattr(os, name, call)
for name in ("fsync", "fchmod", "utime", "rename", "replace"):
    dying(name)
redact_folder(Path(sys.argv[1]), lambda items: [None if "quokka" in str(item) else item for item in items],
              lambda data: data, sealed_below={})
"""


@pytest.mark.slow
def test_whoever_is_killed_in_between_leaves_every_record(tmp_path: Path) -> None:
    journal = Journal(tmp_path, max_bytes=1 << 24, segment_bytes=1500)
    journal.open()
    for number in range(12):
        journal.append(codec.encode([turn(f"{SECRET} {number}"), turn(f"plain {number}", 2)]))
    writer = journal.writer
    journal.close(Deadline.after(5))
    deaths = 0
    for step in (1, 2, 3, 4, 5, 6):
        done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(step)], check=False)
        deaths += done.returncode == -signal.SIGKILL
        found = payloads(Journal(tmp_path, max_bytes=1 << 24), writer)
        assert sorted(found) == list(range(1, 13))
        plain = [item.content for items in found.values() for item in items[1:] if isinstance(item, AddTurn)]
        assert plain == [f"plain {number}" for number in range(12)]
    assert deaths >= 4
    redact_folder(tmp_path, without_secret, blank, sealed_below={})
    frames = [each for file in list_directory(tmp_path).of(writer) for each in walk_file(file.path, writer)]
    assert all(isinstance(each, Frame) for each in frames)
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.iterdir())
    assert {path.name[:10] for path in tmp_path.iterdir() if path.name.startswith(".")} == {redaction.LOCK_NAME[:10]}
