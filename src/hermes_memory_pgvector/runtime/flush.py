"""Empties this process's journal when a command asks for it: what it forgets must not wait in a file.

The request is an empty file named like the journal's. It goes once all that was appended before is stored, and the
files it stood in are gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, file_number
from hermes_memory_pgvector.writer.writer import Writer

LOOK_SECONDS = 2.0
AGAIN_SECONDS = 0.25
STEP_SECONDS = 5.0


def request_path(directory: Path, writer: str) -> Path:
    """Where a process is asked to empty its journal."""
    return directory / f"{writer}.flush"


@dataclass
class EmptyJournal:
    """The task that looks for a request."""

    journal: Journal
    writer: Writer

    def run(self) -> float:
        """Do what is asked, if anything is."""
        request = request_path(self.journal.directory, self.journal.writer)
        if not request.exists():
            return LOOK_SECONDS
        end = self.journal.end
        sealed_below = self.journal.seal(Deadline.after(STEP_SECONDS))
        if end and (sealed_below <= file_number(end) or not self.writer.flush(Deadline.after(STEP_SECONDS))):
            return AGAIN_SECONDS
        self.journal.retire(self.journal.writer, self.writer.mark, at_once=True)
        request.unlink(missing_ok=True)
        return LOOK_SECONDS
