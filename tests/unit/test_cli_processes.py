"""What live processes tell of themselves; dead ones are forgotten."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.runtime import status_file

CHILD = """
import sys, pathlib
from hermes_memory_pgvector.runtime import status_file
status_file.publish(pathlib.Path(sys.argv[1]), status_file.snapshot([], writer_stored=5, journal_writer="w"))
print("ready", flush=True)
sys.stdin.read()
"""


def broken() -> Breaker:
    breaker = Breaker("database writes", threshold=1)
    breaker.failed("Postgres cannot be reached")
    return breaker


def test_a_process_reads_what_it_published(tmp_path: Path) -> None:
    shot = status_file.snapshot([broken().status(), Breaker("reads").status()], writer_waiting=3, sync_lag_seconds=0.5)
    status_file.publish(tmp_path, shot)
    assert status_file.read_all(tmp_path) == [shot]
    assert shot.pid == os.getpid()
    assert [each.name for each in shot.open_breakers] == ["database writes"]
    assert shot.open_breakers[0].reason == "Postgres cannot be reached"


def test_the_file_is_private_and_replaced_in_one_step(tmp_path: Path) -> None:
    for stored in range(3):
        status_file.publish(tmp_path, status_file.snapshot([], writer_stored=stored))
    (path,) = (tmp_path / "processes").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert status_file.read_all(tmp_path)[0].writer_stored == 2


def test_no_arguments_of_the_program_are_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), "--password=hidden"], input="", text=True, capture_output=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "ready\n"
    (path,) = (tmp_path / "processes").iterdir()
    assert "hidden" not in path.read_text(encoding="utf-8")


def test_a_dead_process_is_forgotten(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    (seen,) = status_file.read_all(tmp_path)
    assert (seen.pid, seen.writer_stored) == (child.pid, 5)
    child.kill()
    child.communicate()
    assert status_file.read_all(tmp_path) == []
    assert list((tmp_path / "processes").iterdir()) == []


def test_a_reused_pid_is_not_taken_for_the_process(tmp_path: Path) -> None:
    shot = dataclasses.replace(status_file.snapshot([]), started="1")
    status_file.publish(tmp_path, shot)
    assert status_file.read_all(tmp_path) == []


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{", '{"pid": 1}', '{"pid": "x", "started": 3}', "[" * 100_000, '{"breakers": [1]}']
)
def test_rubbish_is_ignored(tmp_path: Path, text: str) -> None:
    status_file.publish(tmp_path, status_file.snapshot([]))
    (tmp_path / "processes" / "12.json").write_text(text, encoding="utf-8")
    assert [each.pid for each in status_file.read_all(tmp_path)] == [os.getpid()]


def test_a_field_of_a_newer_version_is_passed_over(tmp_path: Path) -> None:
    status_file.publish(tmp_path, status_file.snapshot([]))
    (path,) = (tmp_path / "processes").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "mood": "fine"}), encoding="utf-8")
    assert len(status_file.read_all(tmp_path)) == 1


def test_withdrawing_twice_is_no_error(tmp_path: Path) -> None:
    status_file.publish(tmp_path, status_file.snapshot([]))
    status_file.withdraw(tmp_path)
    status_file.withdraw(tmp_path)
    assert status_file.read_all(tmp_path) == []


def test_a_home_without_processes_has_none(tmp_path: Path) -> None:
    assert status_file.read_all(tmp_path / "nowhere") == []


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert status_file.publish(tmp_path / "file", status_file.snapshot([])) is False
    assert status_file.publish(tmp_path, status_file.snapshot([])) is True
