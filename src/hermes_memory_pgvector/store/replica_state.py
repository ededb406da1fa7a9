"""How far a server is, and whether a replica is far enough to answer in its primary's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import statement

MAX_LAG_SECONDS = 30.0
"""A replica that is further behind answers nothing: what others have written or taken back since would be missing."""
NOT_KEPT_UP = "it is neither a standby nor the primary, so nobody keeps it up to date"


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """How far a server is."""

    changes: int
    """How many changes of operators it has seen: what is forgotten, quarantined, edited or no longer granted."""
    mirrored: datetime | None
    """When the files of the home were last compared."""
    arrived: Mapping[str, int]
    """How far the journals asked about have arrived."""
    is_standby: bool
    wal: float | None
    """Its place in the write-ahead log, in bytes; None where the service does not say."""
    replay_age: float | None
    """On a standby: seconds since the last transaction it has replayed was committed."""
    running_since: datetime | None = None
    """Tells one server from another."""

    def is_kept_up(self, primary: ReplicaState) -> bool:
        """Whether it replays what the primary writes, or is the primary itself.

        A copy of the database, or a standby that was promoted while the primary lives on, knows nothing of what is new.
        """
        return self.is_standby or self.running_since == primary.running_since

    def lag_seconds(self, primary: ReplicaState) -> float | None:
        """How far this replica is behind its primary, which was asked before it; None if that cannot be told."""
        if not self.is_standby:
            return 0.0
        if self.wal is None or primary.wal is None:
            return None
        return 0.0 if self.wal >= primary.wal else max(0.0, self.replay_age or 0.0)

    def has_seen(self, primary: ReplicaState, own: Mapping[str, int]) -> bool:
        """Whether nothing is missing that must not be: changes of operators, and what this home has written itself."""
        is_mirrored = primary.mirrored is None or (self.mirrored is not None and self.mirrored >= primary.mirrored)
        has_arrived = all(self.arrived.get(writer, 0) >= seq for writer, seq in own.items())
        return self.changes >= primary.changes and is_mirrored and has_arrived


class PendingState:
    """The question how far a server is, on its way."""

    def __init__(self, connection: Connection, home_id: str, writers: Sequence[str] = ()) -> None:
        self._writers = list(writers)
        values = {"home_id": home_id, "writers": self._writers}
        self._cursor = connection.execute(statement("replica/state"), values)

    def receive(self) -> ReplicaState:
        """The answer."""
        with self._cursor as cursor:
            row: Any = cursor.fetchone()
        changes, mirrored, seqs, is_standby, wal, replay_age, since = row
        arrived = {writer: int(seq) for writer, seq in zip(self._writers, seqs, strict=True) if seq is not None}
        return ReplicaState(int(changes or 0), mirrored, arrived, bool(is_standby), wal, replay_age, since)
