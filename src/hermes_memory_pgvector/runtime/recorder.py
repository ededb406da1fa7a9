"""Write items into the journal; what the journal refuses waits, and is recovered in its order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.journal import Journal, Urgency, codec
from hermes_memory_pgvector.runtime.refusals import Refusals
from hermes_memory_pgvector.values import WriteItem

logger = logging.getLogger(__name__)


class Recorder:
    """The hooks' way into the journal; shared by the engines that follow each other on a home."""

    def __init__(self, journal: Journal, refusals: Refusals) -> None:
        self.warn_user: Callable[[str], None] | None = None
        """How to reach the user when writes are refused."""
        self._journal = journal
        self._refusals = refusals

    def open(self) -> None:
        """Make ready to take records; needs no thread, and may be called again."""
        self._journal.open()

    def record(self, items: Sequence[WriteItem], urgency: Urgency) -> bool:
        """Append items; never raises: a refusal is noted. True when items wait behind refused ones."""
        if self._refusals.holds_back(urgency):
            self._refusals.add(items, urgency, is_refusal=False)
            return True
        portions = codec.portions(items)
        for number, portion in enumerate(portions):
            try:
                self._append(portion, urgency)
            except (JournalError, OSError) as error:
                # From the first portion that is refused on, they wait together.
                self.refuse([item for later in portions[number:] for item in later], urgency, error)
                break
        return False

    def append(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        """Append items, or raise JournalError: for a caller that can be told, so that nothing has to wait."""
        try:
            for portion in codec.portions(items):
                self._append(portion, urgency)
        except OSError as error:
            raise JournalError(f"the journal cannot be written ({reason_of(error)})") from None

    def refuse(self, items: Sequence[WriteItem], urgency: Urgency, error: Exception) -> None:
        """Keep items that the journal did not take, and say so when it is the first refusal for a while."""
        if not self._refusals.add(items, urgency):
            return
        text = f"memory writes are being refused ({reason_of(error)}); they wait while this process lives"
        logger.error("%s", text)
        if self.warn_user is not None:
            self.warn_user(text)

    def recover(self) -> int:
        """Append what was refused; return how many memory operations were among it."""
        return self._refusals.recover(self._append)

    def recover_if_room(self) -> int:
        """The same, unless the journal is crowded."""
        return self.recover() if self._refusals.waits and not self._journal.is_crowded else 0

    def _append(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        self._journal.append(codec.encode(items), urgency)


def reason_of(error: Exception) -> str:
    """Why the journal refuses, without paths or content."""
    return str(error) if isinstance(error, JournalError) else type(error).__name__
