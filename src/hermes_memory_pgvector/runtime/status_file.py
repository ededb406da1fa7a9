"""Each process of a home keeps one small status file, which `status` and `doctor` read.

A file counts only while its process lives; readers remove the files of dead processes. Containers that share a home
have their own pids, so a pid counts only within its namespace; a process of another namespace is taken to be alive if
its file is recent. The files hold numbers, states and reasons, and nothing that was stored.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import files
from hermes_memory_pgvector.breaker import BreakerStatus
from hermes_memory_pgvector.machine import IS_LINUX, start_of

FOLDER_NAME = "processes"
MAX_BYTES = 256 * 1024
RECENT_SECONDS = 60.0
"""A few times the longest pause between two writes of a file."""


@dataclass(frozen=True, slots=True)
class BreakerState:
    """One breaker of a process."""

    name: str
    state: str
    reason: str
    since: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How one process is doing."""

    pid: int
    started: str
    """The kernel's start time of the process: another process with the same pid has another one."""
    command: str
    """The program's name, without its arguments."""
    updated: float
    breakers: tuple[BreakerState, ...] = ()
    writer_stored: int = 0
    writer_waiting: int = 0
    writer_dead: int = 0
    writer_again: int = 0
    """Records stored again because the database went back to an earlier state."""
    writer_gone: int = 0
    """Records lost when it did."""
    backlog_embedded: int = 0
    backlog_problem: str = ""
    short_turns: int = 0
    """Turns that were too short to be stored."""
    refused_turns: int = 0
    refused_memories: int = 0
    refused_waiting: int = 0
    """How many refused writes are still to be recovered."""
    refused_recovered: int = 0
    refused_lost: int = 0
    failed_hooks: int = 0
    """How many hook calls failed."""
    latest_failure: str = ""
    journal_writer: str = ""
    sync_lag_seconds: float = 0.0
    namespace: str = ""
    """The pid's namespace; empty where the system does not say."""

    @property
    def open_breakers(self) -> tuple[BreakerState, ...]:
        """The breakers that are not closed: what does not work."""
        return tuple(breaker for breaker in self.breakers if breaker.state != "closed")


def snapshot(breakers: Sequence[BreakerStatus], **figures: Any) -> Snapshot:
    """A snapshot of this process, now; `figures` are the fields of Snapshot that the caller knows."""
    return Snapshot(
        pid=os.getpid(),
        started=start_of(os.getpid()),
        command=command(),
        updated=time.time(),
        breakers=tuple(BreakerState(each.name, each.state, each.reason, each.since) for each in breakers),
        namespace=_namespace(),
        **figures,
    )


def publish(folder: Path, shot: Snapshot) -> bool:
    """Write this process's file atomically; False when that fails, which costs no memories.

    `folder` is the plugin's data folder of the home.
    """
    target = folder / FOLDER_NAME
    text = json.dumps(dataclasses.asdict(shot), ensure_ascii=False)
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not durable: after a power cut the process is gone, too.
        return files.replace(_path(folder, shot.pid, shot.namespace), text.encode("utf-8"), is_durable=False)
    except OSError:
        return False


def read_all(folder: Path) -> list[Snapshot]:
    """The snapshots of live processes, the longest running first; removes the files of dead ones."""
    found = []
    for path in sorted((folder / FOLDER_NAME).glob("*.json")):
        shot = _read(path)
        if shot is not None and _is_alive(shot):
            found.append(shot)
        else:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return sorted(found, key=lambda shot: (len(shot.started), shot.started, shot.pid))


def withdraw(folder: Path) -> None:
    """Remove this process's file, if there is one."""
    with contextlib.suppress(OSError):
        _path(folder, os.getpid(), _namespace()).unlink(missing_ok=True)


def _path(folder: Path, pid: int, namespace: str) -> Path:
    return folder / FOLDER_NAME / f"{pid}{'-' if namespace else ''}{namespace}.json"


def _read(path: Path) -> Snapshot | None:
    try:
        with path.open("rb") as file:
            raw = json.loads(file.read(MAX_BYTES))
        if not isinstance(raw, Mapping):
            return None
        known = {field.name for field in dataclasses.fields(Snapshot)}
        values = {name: value for name, value in raw.items() if name in known}
        values["breakers"] = tuple(
            BreakerState(str(each["name"]), str(each["state"]), str(each["reason"]), each["since"])
            for each in raw.get("breakers", ())
        )
        shot = Snapshot(**values)
        is_own = path == _path(path.parent.parent, shot.pid, shot.namespace)
        return shot if is_own and isinstance(shot.pid, int) and isinstance(shot.started, str) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _is_alive(shot: Snapshot) -> bool:
    if shot.namespace != _namespace():
        return time.time() - shot.updated < RECENT_SECONDS
    try:
        os.kill(shot.pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        # It exists and belongs to someone else.
        pass
    return start_of(shot.pid) == shot.started


def _namespace() -> str:
    """The namespace of our pids; empty where the system does not say."""
    try:
        return "".join(filter(str.isdigit, str(Path("/proc", "self", "ns", "pid").readlink()))) if IS_LINUX else ""
    except OSError:
        return ""


@functools.cache
def command() -> str:
    """The program's name, without its arguments."""
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    return name if name not in ("", "-", "-c", "-m") else Path(sys.executable).name
