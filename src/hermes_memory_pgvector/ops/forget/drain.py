"""Before anything is forgotten, what waits becomes rows, and the files that it waited in go.

Processes that live are asked by a file beside their journal, which they remove once everything is stored and they go on
in a new file. What ended processes have left is stored from here. What does neither is named.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal.segment import list_directory
from hermes_memory_pgvector.ops import journals, parts
from hermes_memory_pgvector.runtime import processes
from hermes_memory_pgvector.runtime.flush import request_path
from hermes_memory_pgvector.store import watermarks
from hermes_memory_pgvector.terminal.amounts import count
from hermes_memory_pgvector.terminal.operation import Note

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection

ANSWER_SECONDS: Final = 15.0
LOOK_SECONDS: Final = 0.05


def drain(homes: Sequence[Path]) -> list[Note]:
    """Store what waits in the journals of these homes, and remove their files; what stays, in words."""
    folders = {home: folder for home in homes if (folder := journals.folder_of(home)).is_dir()}
    asked: set[Path] = set()
    for_newer: set[str] = set()
    deadline = Deadline.after(ANSWER_SECONDS)
    with ExitStack() as opened:
        engine_of = cache(lambda home: opened.enter_context(parts.open_engine(home)))
        is_done = False
        while not is_done and not deadline.is_over:
            if asked:
                time.sleep(LOOK_SECONDS)
            is_done = True
            for home, folder in folders.items():
                living = set(journals.living(home))
                requests = {request_path(folder, writer) for writer in living}
                for request in requests - asked:
                    request.touch(mode=0o600)
                asked |= requests
                left = set(list_directory(folder).writers) - living - for_newer
                if left:
                    # A living process may be at one of them at this moment.
                    for_newer |= engine_of(home).writer.empty(left)
                is_done = is_done and not left and not any(request.exists() for request in requests)
    silent = {request for request in asked if request.exists()}
    for request in silent:
        request.unlink(missing_ok=True)
    return [note for home, folder in folders.items() for note in _left(home, folder, silent)]


def waiting(connection: Connection, homes: Sequence[Path]) -> int:
    """How many records wait in the journals of these homes."""
    marks = {home: watermarks.everywhere(connection, journals.writers(home)) for home in homes}
    return sum(journals.report(home, told).records for home, told in marks.items())


def _left(home: Path, folder: Path, silent: Collection[Path]) -> Iterator[Note]:
    named = {each.journal_writer: each.name for each in processes.read_all(folder)}
    listing, living = list_directory(folder), set(journals.living(home))
    for writer in sorted(request.stem for request in silent if request.parent == folder and request.stem in living):
        whose = named.get(writer, "a process")
        yield Note("warning", f"{whose} of {home} has not emptied its journal", "end it, and forget again")
    for writer in sorted(listing.writers - living):
        yield Note(
            "warning", f"the journal {writer} of {home} waits for a newer version of this package",
            "start a process of that version, and forget again",
        )  # fmt: skip
    if listing.damaged:
        yield Note(
            "warning",
            f"{count(listing.damaged, 'damaged journal file')} in {folder} may hold it",
            "look at them, and delete them",
        )
