"""What is known of a fleet: what its processes have told the database, and what this machine's homes say themselves.

The second part needs no database, so that there is something to see while it is away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.home import home_id, homes_of
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.setup import journal_report, parts

if TYPE_CHECKING:
    from hermes_memory_pgvector.setup.journal_report import JournalReport
    from hermes_memory_pgvector.store.fleet import Agent, Heard
    from hermes_memory_pgvector.store.overview import Contents

READ_SECONDS = 20.0
MANY = 10_000


@dataclass(frozen=True, slots=True)
class Told:
    """What the database knows."""

    at: datetime
    """What its clock says: that of another machine may be wrong."""
    processes: Sequence[Heard]
    past: Sequence[tuple[str, int, dict[str, float]]]
    """Home by home: processes whose rows are gone, how many, and what they have counted."""
    agents: Sequence[Agent]
    contents: Contents
    database_bytes: int
    vectors_pending: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class LocalHome:
    """A home on this machine."""

    id: str
    path: Path
    report: JournalReport


@dataclass(frozen=True, slots=True)
class FleetView:
    """All of it."""

    told: Told | None
    problem: MemoryPluginError | None
    """Why the database does not say anything."""
    homes: Sequence[LocalHome]
    """Those of this machine that use this database, or all while it is away."""


def look(home: Path, *, themes: int = 0, agents: int = 0, seconds: float = READ_SECONDS) -> FleetView:
    """Look at everything; `themes` and `agents` say how many of them are wanted by name."""
    local = [each for each in dict.fromkeys((home, *homes_of(home))) if data_folder(each).is_dir()]
    told: Told | None = None
    marks: dict[str, int] | None = None
    problem: MemoryPluginError | None = None
    try:
        told, marks = _read(home, local, themes=themes, agents=agents, deadline=Deadline.after(seconds))
    except MemoryPluginError as error:
        problem = error
    return FleetView(
        told, problem, [LocalHome(home_id(each), each, journal_report.report(each, marks)) for each in local]
    )


def _read(
    home: Path, local: Sequence[Path], *, themes: int, agents: int, deadline: Deadline
) -> tuple[Told, dict[str, int]]:
    from hermes_memory_pgvector.store import dead_letters, fleet, overview, schema, vectors, watermarks

    writers = [writer for each in local for writer in journal_report.writers(each)]
    with (
        parts.open_pool(home, load(home).settings) as pool,
        pool.transaction(deadline) as connection,
    ):
        schema.verify(connection)
        told = Told(
            at=fleet.now(connection),
            processes=fleet.processes(connection),
            past=[(home_id, count, dict(counters)) for home_id, count, counters in fleet.past(connection)],
            agents=fleet.agents(connection, None, agents) if agents else (),
            contents=overview.contents(connection, max(1, themes)),
            database_bytes=overview.server_facts(connection).database_bytes,
            vectors_pending=vectors.count(connection)[0],
            dead_letters=len(dead_letters.newest(connection, MANY)),
        )
        return told, watermarks.read(connection, writers)
