"""How the read replica of a home is doing, for `status` and `doctor`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.setup import parts, terminal
from hermes_memory_pgvector.store.reach import NOTHING

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.store.pool import Pool
    from hermes_memory_pgvector.store.replica_state import ReplicaState

LOOK_SECONDS = 10.0
MOMENT_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What was found."""

    where: str
    problem: str = ""
    """Why it answers no question."""
    lag_seconds: float | None = None
    """How far it is behind; None if that cannot be told."""
    bytes_behind: float | None = None
    is_standby: bool = False
    """Whether it replays what its primary writes, as a physical replica does."""

    @property
    def is_used(self) -> bool:
        """Whether questions go there."""
        from hermes_memory_pgvector.store.replica_state import MAX_LAG_SECONDS

        return not self.problem and (self.lag_seconds or 0.0) <= MAX_LAG_SECONDS

    def __str__(self) -> str:
        if self.problem:
            return f"{self.where}: {self.problem}; the primary answers"
        if not self.is_standby:
            return f"{self.where}: this is the primary itself, so it takes no work off it"
        if self.lag_seconds is None:
            return f"{self.where}: answers; the service does not say how far it is behind"
        if not self.lag_seconds:
            return f"{self.where}: up to date"
        size = f", {terminal.size(round(self.bytes_behind))}" if self.bytes_behind else ""
        told = f"{self.where}: {terminal.seconds(self.lag_seconds)} behind{size}"
        return told if self.is_used else f"{told}; the primary answers until it has caught up"


def report(home: Path, settings: Settings) -> ReplicaReport | None:
    """Ask both servers how far they are; None without a replica."""
    from hermes_memory_pgvector.store.conninfo import brief
    from hermes_memory_pgvector.store.pool import Pool, check_conninfo
    from hermes_memory_pgvector.store.replica_state import NOT_KEPT_UP
    from hermes_memory_pgvector.store.servers import replica_of

    if not settings.has_replica:
        return None
    for given in (settings.dsn, settings.read_dsn):
        wrong = check_conninfo(given)
        if wrong is not None:
            return ReplicaReport("read_dsn", str(wrong))
    conninfo = replica_of(settings.dsn, settings.read_dsn)
    where = brief(conninfo)
    replica = Pool(
        lambda _: conninfo,
        maximum=1,
        connect_seconds=settings.connect_timeout,
        admit=parts.database_guard(home, settings).admit_replica,
    )
    try:
        with parts.open_pool(home, settings) as primary:
            known, found = _state(primary), _state(replica)
            if found.lag_seconds(known):
                # A transaction may just be on its way; how long it takes is not the age of the one before it.
                time.sleep(MOMENT_SECONDS)
                found = _state(replica)
    except MemoryPluginError as error:
        return ReplicaReport(where, str(error))
    finally:
        replica.close()
    if not found.is_kept_up(known):
        return ReplicaReport(where, NOT_KEPT_UP)
    behind = None if known.wal is None or found.wal is None else max(0.0, known.wal - found.wal)
    return ReplicaReport(where, "", found.lag_seconds(known), behind, found.is_standby)


def _state(pool: Pool) -> ReplicaState:
    from hermes_memory_pgvector.store.replica_state import PendingState

    with pool.reading(Deadline.after(LOOK_SECONDS), NOTHING) as connection:
        pending = PendingState(connection, "")
    return pending.receive()
