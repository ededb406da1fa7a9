"""What live processes tell of themselves; dead ones are forgotten."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.journal.lock import new_writer_id
from hermes_memory_pgvector.runtime import processes

CHILD = """
import sys, pathlib
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.runtime import processes
journal = Journal(pathlib.Path(sys.argv[1]), max_bytes=1_000_000)
journal.open()
journal.append(b"x")
journal.tell(processes.text_of_now([], writer_stored=5))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path, max_bytes=1_000_000)
    journal.open()
    yield journal
    journal.close(Deadline.after(5))


def child(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def test_a_process_reads_what_it_told(journal: Journal) -> None:
    broken = Breaker("database writes", threshold=1)
    broken.failed("Postgres cannot be reached")
    told = [broken.status(), Breaker("reads").status()]
    for waiting in (100_000, 3):
        journal.tell(processes.text_of_now(told, writer_waiting=waiting, sync_lag_seconds=0.5))
    (found,) = processes.read_all(journal.directory)
    assert (found.pid, found.journal_writer, found.writer_waiting) == (os.getpid(), journal.writer, 3)
    assert list(found.breakers) == told


def test_what_is_told_is_private_and_without_the_arguments_of_the_program(tmp_path: Path) -> None:
    started = child(tmp_path, "--password=hidden")
    (path,) = tmp_path.glob("*.lock")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "hidden" not in path.read_text(encoding="utf-8")
    started.communicate("")


def test_a_dead_process_is_forgotten(tmp_path: Path) -> None:
    started = child(tmp_path)
    (seen,) = processes.read_all(tmp_path)
    assert (seen.pid, seen.writer_stored) == (started.pid, 5)
    started.kill()
    started.communicate()
    assert processes.read_all(tmp_path) == []


def test_two_who_look_at_once_do_not_take_each_other_for_a_dead_process(tmp_path: Path) -> None:
    """`told` looks with a shared lock: what one reader holds tells the other nothing."""
    file = tmp_path / f"{new_writer_id()}.lock"
    file.write_bytes(processes.text_of_now([]))
    looks = (
        "import sys, pathlib, time; from hermes_memory_pgvector.runtime.processes import read_all\n"
        "end = time.time() + 0.5\nwhile time.time() < end:\n    assert not read_all(pathlib.Path(sys.argv[1]))"
    )
    readers = [subprocess.Popen([sys.executable, "-c", looks, str(tmp_path)]) for _ in range(2)]
    assert [each.wait(30) for each in readers] == [0, 0]


def test_whoever_adopts_a_journal_is_not_taken_for_the_dead_process(tmp_path: Path, journal: Journal) -> None:
    started = child(tmp_path)
    (writer,) = (each.journal_writer for each in processes.read_all(tmp_path))
    started.kill()
    started.communicate()
    adoption = journal.adopt(writer)
    assert adoption is not None
    with adoption:
        assert processes.read_all(tmp_path) == []


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{", '{"pid": 1}', '{"breakers": [1]}', '{"pid": 1, "breakers": 3}']
)
def test_rubbish_is_ignored(journal: Journal, text: str) -> None:
    journal.tell(text.encode())
    assert processes.read_all(journal.directory) == []


def test_a_field_of_a_newer_version_is_passed_over(journal: Journal) -> None:
    told = json.loads(processes.text_of_now([]))
    journal.tell(json.dumps({**told, "mood": "fine"}).encode())
    assert [each.pid for each in processes.read_all(journal.directory)] == [os.getpid()]


def test_a_home_without_processes_has_none(tmp_path: Path) -> None:
    assert processes.read_all(tmp_path / "nowhere") == []


def test_a_journal_that_is_closed_tells_nothing(journal: Journal) -> None:
    journal.tell(processes.text_of_now([]))
    journal.close(Deadline.after(5))
    journal.tell(processes.text_of_now([]))
    assert processes.read_all(journal.directory) == []
