"""The journal across processes: kill -9, fork, many writers in one directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal

MIB = 1024 * 1024

WRITER = """
import os, sys
from pathlib import Path
from hermes_memory_pgvector.journal import Journal
journal = Journal(Path(sys.argv[1]), max_bytes=1 << 30, segment_bytes=int(sys.argv[2]))
journal.open()
os.write(1, f"{journal.writer}\\n".encode())
limit = int(sys.argv[3])
while journal.appended < limit:
    # The acknowledgement is a system call of its own: what the parent has read was returned before.
    journal.append(b"record %d of " % (journal.appended + 1) + journal.writer.encode() + b"." * 400)
    os.write(1, f"{journal.appended}\\n".encode())
if len(sys.argv) > 4:
    os._exit(0)
"""


def start_writer(directory: Path, limit: int, segment_bytes: int = 20_000, *more: str) -> subprocess.Popen[str]:
    arguments = [str(directory), str(segment_bytes), str(limit), *more]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True)


def drain(journal: Journal, writer: str) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    after = 0
    while True:
        records = journal.read(writer, after, max_records=500, max_bytes=MIB)
        if not records:
            return found
        found.update(enumerate((record.payload for record in records), start=len(found) + 1))
        after = records[-1].end


@pytest.mark.slow
def test_eight_processes_share_one_directory(tmp_path: Path) -> None:
    """Half of them are killed; the rest are drained by whoever lives, while they write."""
    children = [start_writer(tmp_path, limit=300, segment_bytes=8000) for _ in range(8)]
    journal = Journal(tmp_path, max_bytes=1 << 30)
    journal.open()
    acknowledged: dict[str, int] = {}
    for n, child in enumerate(children):
        assert child.stdout is not None
        writer = child.stdout.readline().strip()
        if n % 2:
            for _ in range(50):
                child.stdout.readline()
            child.kill()
        rest = child.stdout.read().split()
        child.wait(30)
        child.stdout.close()
        acknowledged[writer] = int(rest[-1]) if rest else 51
    assert len(acknowledged) == 8
    assert set(journal.writers()) == {journal.writer, *acknowledged}
    for writer, last_seq in acknowledged.items():
        with journal.adopt(writer) or pytest.fail("not adopted"):
            found = drain(journal, writer)
            assert sorted(found) == list(range(1, len(found) + 1))
            assert len(found) >= last_seq or len(found) >= 50
            assert all(writer.encode() in payload for payload in found.values())
            assert journal.depth(writer, 0).records == len(found)
    journal.close(Deadline.after(5))


def test_a_living_process_cannot_be_adopted_until_it_is_killed(tmp_path: Path) -> None:
    child = start_writer(tmp_path, limit=1_000_000)
    assert child.stdout is not None
    writer = child.stdout.readline().strip()
    child.stdout.readline()
    journal = Journal(tmp_path, max_bytes=1 << 30)
    journal.open()
    assert journal.adopt(writer) is None
    child.kill()
    child.wait(10)
    child.stdout.close()
    adoption = journal.adopt(writer)
    assert adoption is not None
    adoption.release()
    journal.close(Deadline.after(5))


FORK = """
import json, os, sys, threading, time, warnings
from pathlib import Path
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal
warnings.simplefilter("ignore", DeprecationWarning)
directory = Path(sys.argv[1])
journal = Journal(directory, max_bytes=1 << 30, segment_bytes=8000)
dead = Journal(directory, max_bytes=1 << 30)
dead.open(); dead.append(b"dead"); dead_id = dead.writer
dead._lock.release(); dead._lock = None; dead._appender.finish()
journal.open()
adoption = journal.adopt(dead_id)
parent_id = journal.writer
stop = threading.Event()
def work():
    while not stop.is_set():
        journal.append(b"parent" + b"." * 100)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
def read_all(reader, writer):
    found, after = [], 0
    while batch := reader.read(writer, after, max_records=500, max_bytes=1 << 20):
        found += [[number, record.payload[:6].decode()] for number, record in enumerate(batch, start=len(found) + 1)]
        after = batch[-1].end
    return found
def descriptors():
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass
    return [path for path in found if str(directory) in path]
children = []
for n in range(8):
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        inherited = [path for path in descriptors() if path.endswith(".lock")]
        silent = n % 4 == 3
        numbers = [] if silent else [journal.append(b"child" + b"." * 100) or journal.appended for _ in range(200)]
        # What was the parent's to release is not the child's, even where its descriptor has become another file.
        adoption.release()
        witness = Journal(directory, max_bytes=1 << 30)
        witness.open()
        exposed = witness.adopt(journal.writer) is not None
        witness.close(Deadline.after(5))
        answer = {"exposed": exposed, "writer": journal.writer, "numbers": numbers, "inherited": inherited,
                  "adopts_parent": journal.adopt(parent_id) is not None,
                  "adopts_dead": journal.adopt(dead_id) is not None,
                  "read": [entry[1] for entry in read_all(journal, journal.writer)],
                  "helper": journal._helper.is_running}
        os.write(write_end, json.dumps(answer).encode())
        os.close(write_end)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        children.append(json.loads(pipe.read()))
    os.waitpid(pid, 0)
stop.set()
for thread in threads: thread.join()
adoption.release()
adoption = journal.adopt(dead_id)
released = adoption is not None
result = {"parent": parent_id, "still": journal.writer, "children": children, "released": released,
          "read": read_all(journal, parent_id), "last": journal.appended, "from_children": []}
for child in children:
    if child["numbers"]:
        with journal.adopt(child["writer"]):
            result["from_children"].append([entry[0] for entry in read_all(journal, child["writer"])])
journal.close(Deadline.after(5))
print(json.dumps(result))
"""


@pytest.mark.slow
def test_a_forked_child_is_someone_else_and_the_parent_keeps_its_lock(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["still"] == result["parent"]
    assert result["read"] == [[seq, "parent"] for seq in range(1, result["last"] + 1)]
    assert result["released"]
    writers = {child["writer"] for child in result["children"]}
    assert len(writers) == 8
    assert result["parent"] not in writers
    for n, child in enumerate(result["children"]):
        is_silent = n % 4 == 3
        assert child["inherited"] == []
        assert not child["exposed"]
        assert not child["adopts_parent"]
        assert not child["adopts_dead"]
        assert child["numbers"] == ([] if is_silent else list(range(1, 201)))
        assert child["read"] == ([] if is_silent else ["child."] * 200)
        assert child["helper"] is not is_silent
        assert bool(list(tmp_path.glob(f"{child['writer']}*"))) is not is_silent
    assert result["from_children"] == [list(range(1, 201))] * 6


def test_a_child_that_outlives_its_parent_does_not_hold_the_parents_lock(tmp_path: Path) -> None:
    script = """
import os, sys, time, warnings
from pathlib import Path
from hermes_memory_pgvector.journal import Journal
warnings.simplefilter("ignore", DeprecationWarning)
journal = Journal(Path(sys.argv[1]), max_bytes=1 << 20)
journal.open()
journal.append(b"x")
os.write(1, journal.writer.encode() + b"\\n")
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
os._exit(0)
"""
    gate, hold = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=gate, stdout=subprocess.PIPE, text=True
    ) as parent:
        os.close(gate)
        assert parent.stdout is not None
        writer = parent.stdout.readline().strip()
        assert parent.wait(10) == 0
        journal = Journal(tmp_path, max_bytes=MIB)
        journal.open()
        deadline = Deadline.after(10)
        # The child lives until the pipe is closed; its copy of the lock goes as soon as it runs.
        while (adoption := journal.adopt(writer)) is None:
            deadline.check()
            threading.Event().wait(0.005)
        adoption.release()
        os.close(hold)
    journal.close(Deadline.after(5))
