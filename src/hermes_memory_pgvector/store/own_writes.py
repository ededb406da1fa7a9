"""What this process has written lately, by theme: a replica that has not got it yet must not answer questions on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping

KEPT_SECONDS = 900.0
"""No replica in use is that far behind."""
Touched = dict[str, dict[str, int]]
"""By theme: how far each journal is that has brought something for it."""


class OwnWrites:
    """How far each journal has to have arrived for a theme to be up to date; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_theme: dict[str, dict[str, tuple[int, float]]] = {}
        self._looked_at = time.monotonic()

    def note(self, touched: Mapping[str, Mapping[str, int]]) -> None:
        """This has been committed just now."""
        now = time.monotonic()
        with self._lock:
            for theme, marks in touched.items():
                known = self._by_theme.setdefault(theme, {})
                for writer, seq in marks.items():
                    known[writer] = (max(seq, known.get(writer, (0, now))[0]), now)
            if now - self._looked_at > KEPT_SECONDS:
                self._looked_at = now
                self._by_theme = {
                    theme: kept for theme, marks in self._by_theme.items() if (kept := _recent(marks, now))
                }

    def needed(self, themes: Collection[str] | None) -> dict[str, int]:
        """How far journals have to have arrived for questions about these themes; None stands for all of them."""
        now = time.monotonic()
        found: dict[str, int] = {}
        with self._lock:
            for theme in self._by_theme if themes is None else themes:
                for writer, (seq, _) in _recent(self._by_theme.get(theme, {}), now).items():
                    found[writer] = max(seq, found.get(writer, 0))
        return found


def _recent(marks: Mapping[str, tuple[int, float]], now: float) -> dict[str, tuple[int, float]]:
    return {writer: mark for writer, mark in marks.items() if now - mark[1] <= KEPT_SECONDS}
