"""Watermarks that went back, as after a restore or a failover: counted by journal, and told together."""

from __future__ import annotations

import logging
from dataclasses import dataclass

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Setback:
    """How many records of a journal the database no longer has, and how many of them are still on disk."""

    missing: int
    on_disk: int


class Setbacks:
    """For one thread."""

    def __init__(self) -> None:
        self.again = 0
        """Records that were stored again, since this process started."""
        self.gone = 0
        """Records that were on disk no more."""
        self._untold: dict[str, Setback] = {}
        self._counted_upto: dict[str, int] = {}
        """Up to which record of a journal it is counted what is missing."""

    @property
    def are_new(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._untold)

    def went_back(self, writer: str, *, mark: int, known: int, on_disk: int) -> None:
        """The watermark of a journal is behind one that was known."""
        self._counted_upto[writer] = max(known, self._counted_upto.get(writer, 0))
        self._add(writer, known - mark, on_disk)

    def no_longer_kept(self, writer: str, first: int, last: int) -> None:
        """Records that the database wants again are not on disk; of those not counted yet nobody knew."""
        unknown = last - max(first - 1, self._counted_upto.get(writer, 0))
        if unknown > 0:
            self._add(writer, unknown, 0)

    def tell(self) -> None:
        """Log what is new."""
        if not self._untold:
            return
        missing = sum(each.missing for each in self._untold.values())
        on_disk = sum(each.on_disk for each in self._untold.values())
        self._untold = {}
        self.again += on_disk
        self.gone += missing - on_disk
        logger.warning(
            "the database has gone back, as after a restore: of %d records it no longer has, "
            "%d are stored again from the journal, and %d are gone",
            missing,
            on_disk,
            missing - on_disk,
        )

    def _add(self, writer: str, missing: int, on_disk: int) -> None:
        before = self._untold.get(writer, Setback(0, 0))
        self._untold[writer] = Setback(before.missing + missing, before.on_disk + on_disk)
