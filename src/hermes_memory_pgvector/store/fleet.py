"""Who works with this memory: processes that tell that they live, what those before them have counted, and agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import statement

MOST = 1e18
"""No process counts further."""
ENDED_SECONDS = 24 * 3600.0
SILENT_SECONDS = 7 * 24 * 3600.0
"""So long the rows of processes stay that have ended, and of those that were not heard of any more."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that works for a home."""

    id: str
    home_id: str
    host: str
    home: str
    pid: int
    command: str
    """The program's name, without its arguments."""
    kind: str
    """Where people write to it: cli, api_server, telegram …; empty when nobody has yet."""
    version: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What was last heard of a process."""

    process: Process
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None
    is_stale: bool
    """Whether it should have been heard of again by now: it was killed, or cannot reach the database."""
    state: Mapping[str, Any]
    counters: Mapping[str, float]

    @property
    def is_live(self) -> bool:
        """Whether it is at work, as far as anybody knows."""
        return self.ended_at is None and not self.is_stale


@dataclass(frozen=True, slots=True)
class AgentWork:
    """What an agent has done since it was last noted."""

    theme: str
    kind: str
    sessions: int = 0
    turns: int = 0
    memories: int = 0
    recalls: int = 0


@dataclass(frozen=True, slots=True)
class Agent:
    """A theme, as a home works for it; host, kind and version are those of the last time."""

    theme: str
    home_id: str
    host: str
    kind: str
    version: str
    first_seen: datetime
    last_seen: datetime
    sessions: int
    turns: int
    memories: int
    recalls: int


def beat(
    connection: Connection,
    process: Process,
    *,
    age: float,
    silent_seconds: float,
    state: Mapping[str, Any],
    counters: Mapping[str, float],
    is_ended: bool = False,
) -> None:
    """Say that a process lives, or that it ends; it is heard of again within so many seconds."""
    connection.execute(
        statement("fleet/beat"),
        {
            "id": process.id,
            "home_id": process.home_id,
            "host": process.host,
            "home": process.home,
            "pid": process.pid,
            "command": process.command,
            "kind": process.kind,
            "version": process.version,
            "age": age,
            "silent_seconds": silent_seconds,
            "is_ended": is_ended,
            "state": json.dumps(state),
            "counters": json.dumps(counters),
        },
    )


def note_agents(connection: Connection, process: Process, work: Sequence[AgentWork]) -> None:
    """Add to the registry what agents have done."""
    if not work:
        return
    connection.execute(
        statement("fleet/note_agents"),
        {
            "home_id": process.home_id,
            "host": process.host,
            "version": process.version,
            "themes": [each.theme for each in work],
            "kinds": [each.kind for each in work],
            "sessions": [each.sessions for each in work],
            "turns": [each.turns for each in work],
            "memories": [each.memories for each in work],
            "recalls": [each.recalls for each in work],
        },
    )


def expire(
    connection: Connection, *, ended_seconds: float = ENDED_SECONDS, silent_seconds: float = SILENT_SECONDS
) -> int:
    """Add up what processes have counted that are long gone, and delete their rows; returns how many homes had some."""
    row: Any = connection.execute(statement("fleet/is_alone")).fetchone()
    if not row[0]:
        return 0
    values = {"ended_seconds": ended_seconds, "silent_seconds": silent_seconds}
    return connection.execute(statement("fleet/expire"), values).rowcount


def now(connection: Connection) -> datetime:
    """What the database's clock says."""
    row: Any = connection.execute(statement("fleet/now")).fetchone()
    told: datetime = row[0]
    return told


def processes(connection: Connection) -> list[Heard]:
    """All processes that were heard of lately, those at work first."""
    rows: list[Any] = connection.execute(statement("fleet/processes")).fetchall()
    return [
        Heard(Process(*row[:8]), started, seen, ended, is_stale, _state(state), _counters(counters))
        for row in rows
        for started, seen, ended, is_stale, state, counters in [row[8:]]
    ]


def past(connection: Connection) -> list[tuple[str, int, Mapping[str, float]]]:
    """Home by home: how many processes were there whose rows are gone, and what they have counted."""
    rows: list[Any] = connection.execute(statement("fleet/past")).fetchall()
    return [(home_id, int(count), _counters(counters)) for home_id, count, counters in rows]


def agents(connection: Connection, theme: str | None, limit: int) -> list[Agent]:
    """The agents of one theme or of all, those at work last first."""
    rows: list[Any] = connection.execute(statement("fleet/agents"), {"theme": theme, "limit": limit}).fetchall()
    return [Agent(*row) for row in rows]


def _counters(raw: Mapping[str, Any]) -> dict[str, float]:
    """Counters that can be added up, whoever wrote them."""
    return {name: float(min(max(value, 0), MOST)) for name, value in raw.items() if isinstance(value, int | float)}


def _state(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A state with numbers where numbers belong, and words where words do."""
    trouble = raw.get("trouble")
    numbers = {name: value for name, value in raw.items() if isinstance(value, int | float)}
    told = trouble.items() if isinstance(trouble, Mapping) else ()
    return {**_counters(numbers), "trouble": {str(name): str(reason) for name, reason in told}}
