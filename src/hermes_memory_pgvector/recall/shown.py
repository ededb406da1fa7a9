"""Which hits each session has been shown: bounded, in memory, shared by all providers of the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from hermes_memory_pgvector.values import Hit, Session

MAX_SESSIONS = 2000
MAX_HITS = 1000

_HitKey = tuple[str, int]


class ShownHits:
    """What a session's context already holds, so that prefetch does not repeat it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[str, str], OrderedDict[_HitKey, None]] = OrderedDict()

    def new(self, session: Session, hits: Iterable[Hit]) -> list[Hit]:
        """The hits that a session has not been shown yet."""
        with self._lock:
            shown = self._sessions.get(_key(session), ())
            return [hit for hit in hits if _hit_key(hit) not in shown]

    def add(self, session: Session, hits: Iterable[Hit]) -> None:
        """Note that the session has been shown these hits."""
        hits = list(hits)
        if not hits:
            return
        with self._lock:
            shown = self._sessions.setdefault(_key(session), OrderedDict())
            self._sessions.move_to_end(_key(session))
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
            for hit in hits:
                shown[_hit_key(hit)] = None
                shown.move_to_end(_hit_key(hit))
            while len(shown) > MAX_HITS:
                shown.popitem(last=False)

    def clear(self, session: Session) -> None:
        """Forget what the session was shown: its context was cut and may no longer contain it."""
        with self._lock:
            self._sessions.pop(_key(session), None)


def _key(session: Session) -> tuple[str, str]:
    return session.theme, session.session_id


def _hit_key(hit: Hit) -> _HitKey:
    return hit.kind.value, hit.id
