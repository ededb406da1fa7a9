"""Questions go to a read replica as long as it has everything it must have, and to the primary otherwise.

The primary is asked first how far it is, which costs it next to nothing; the replica says in the transaction of the
search how far it is itself. A replica answers only when it has seen every change that operators have made (what is
forgotten, quarantined, muted, edited, no longer granted), everything this process has written to the themes asked
about, and what others have written up to half a minute ago. In every other case, and when it fails or is slow, the
primary answers within what is left of the budget. A replica that is lost is tried again in the background, never at the
cost of a question.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseError, MemoryPluginError
from hermes_memory_pgvector.recall.recall import Answer, Recall
from hermes_memory_pgvector.store.current_model import CurrentModel
from hermes_memory_pgvector.store.own_writes import OwnWrites
from hermes_memory_pgvector.store.pool import Connection, Pool
from hermes_memory_pgvector.store.reach import NOTHING, Reach
from hermes_memory_pgvector.store.replica_state import MAX_LAG_SECONDS, NOT_KEPT_UP, PendingState, ReplicaState
from hermes_memory_pgvector.values import Question, Scope

REPLICA_SHARE = 0.5
"""The part of the time left that the replica may use; the rest is the primary's."""
PROBE_SECONDS = 3.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""How long questions leave out a replica that has not yet got what they need; longer each time."""
PASSING_STATES = frozenset({"40001", "40P01", "57014"})
"""A question that replay has ended, or that took too long: the next one may well be answered."""


class NotFromReplica(MemoryPluginError):
    """The replica cannot answer this question."""


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """How the replica is doing."""

    answered: int = 0
    """Questions it has answered."""
    behind: int = 0
    """Questions that went to the primary because it had not got everything yet."""
    lag_seconds: float | None = None
    """How far it was behind when it was last asked."""


class ReplicaRecall:
    """Recall from a replica where that is right, from the primary otherwise; thread-safe."""

    def __init__(
        self,
        primary: Recall,
        *,
        primary_pool: Pool,
        pool: Pool,
        own_writes: OwnWrites,
        home_id: str,
        breaker: Breaker,
    ) -> None:
        self._primary = primary
        self._primary_pool = primary_pool
        self._pool = pool
        self._own_writes = own_writes
        self._home_id = home_id
        self.breaker = breaker
        self._models = CurrentModel()
        """As the replica names them: what it has not heard of yet is no news for whoever writes."""
        self._pause = SHORTEST_PAUSE
        self._not_before = 0.0
        self._answered = 0
        self._behind = 0
        self._lag: float | None = None
        self._far_since: float | None = None
        """Since when it seems to be too far behind."""

    def status(self) -> ReplicaStatus:
        """A snapshot for status and doctor."""
        return ReplicaStatus(self._answered, self._behind, self._lag)

    def search_together(self, questions: Sequence[Question], deadline: Deadline) -> list[Answer]:
        """As Recall.search_together, whoever answers; errors are the primary's."""
        with self._primary.timed():
            return self._search_together(questions, deadline)

    def _search_together(self, questions: Sequence[Question], deadline: Deadline) -> list[Answer]:
        if self.breaker.is_open or time.monotonic() < self._not_before:
            return self._primary.answer(questions, self._primary.prepare(questions[0], deadline), deadline)
        # Its word comes first: whatever it knows by now, the replica has to have seen.
        known = self._ask_primary(deadline)
        own = self._own_writes.needed(_themes(questions))
        ready = self._primary.prepare(questions[0], deadline)

        @contextmanager
        def reading(until: Deadline, reach: Reach) -> Iterator[Connection]:
            with self._checked(known, own, until, reach) as connection:
                yield connection

        replica = self._primary.reading_from(reading, self._models)
        try:
            answers = replica.answer(questions, ready, deadline.earlier(deadline.remaining() * REPLICA_SHARE))
        except NotFromReplica:
            return self._primary.answer(questions, ready, deadline)
        self._answered += 1
        self._pause, self._not_before = SHORTEST_PAUSE, 0.0
        return answers

    def probe(self) -> None:
        """Try a replica that was lost; it is used again once it answers and is not far behind."""
        if not self.breaker.is_open or not self.breaker.allows():
            return
        deadline = Deadline.after(PROBE_SECONDS)
        try:
            known = self._ask_primary(deadline)
        except MemoryPluginError:
            # Nobody can tell how far it is behind.
            self.breaker.released()
            return
        try:
            with self._checked(known, {}, deadline, NOTHING):
                pass
        except NotFromReplica:
            self.breaker.released()
        else:
            self.breaker.succeeded()

    def _ask_primary(self, deadline: Deadline) -> ReplicaState:
        with self._primary_pool.reading(deadline, NOTHING) as connection:
            pending = PendingState(connection, self._home_id)
        return pending.receive()

    @contextmanager
    def _checked(
        self, known: ReplicaState, own: Mapping[str, int], deadline: Deadline, reach: Reach
    ) -> Iterator[Connection]:
        """A connection to the replica; NotFromReplica when what was read there must not be used."""
        try:
            with self._pool.reading(deadline, reach) as connection:
                # Before the search, in the same transaction: a replica only ever moves on.
                pending = PendingState(connection, self._home_id, list(own))
                yield connection
            state = pending.receive()
        except MemoryPluginError as error:
            if not (isinstance(error, DatabaseError) and error.sqlstate in PASSING_STATES):
                self.breaker.failed(str(error))
            raise NotFromReplica from error
        if not state.is_kept_up(known):
            self.breaker.failed(NOT_KEPT_UP)
            raise NotFromReplica
        now = time.monotonic()
        self._lag = state.lag_seconds(known)
        is_far = self._lag is not None and self._lag > MAX_LAG_SECONDS
        if is_far:
            # Where nobody had written for a while, the last transaction is old although the replica keeps up.
            self._far_since = self._far_since or now
            if now - self._far_since > MAX_LAG_SECONDS:
                self.breaker.failed(f"it is {self._lag:.0f} s behind its primary")
        else:
            self._far_since = None
        if is_far or not state.has_seen(known, own):
            self._behind += 1
            self._not_before = now + self._pause
            self._pause = min(LONGEST_PAUSE, 2 * self._pause)
            raise NotFromReplica


def _themes(questions: Sequence[Question]) -> list[str] | None:
    """What questions are about; None for everything."""
    return None if any(each.scope is Scope.ALL for each in questions) else [each.theme for each in questions]
