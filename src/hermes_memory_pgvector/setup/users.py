"""Which processes use a home's memory now."""

from __future__ import annotations

from pathlib import Path

from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.setup.journal_report import FOLDER_NAME

UNNAMED = "a process that has just started"


def users_of(home: Path) -> list[str]:
    """The processes by name and number.

    One that has just started has not said who it is yet, but holds the lock of its journal from its first write on.
    """
    from hermes_memory_pgvector.engine import status_file
    from hermes_memory_pgvector.journal.lock import WriterLock
    from hermes_memory_pgvector.journal.segment import list_directory

    named = [f"{each.command} {each.pid}" for each in status_file.read_all(data_folder(home))]
    journal = data_folder(home) / FOLDER_NAME
    if named or not journal.is_dir():
        return named
    for writer in sorted(list_directory(journal).locks):
        lock = WriterLock.take(journal, writer, create=False)
        if lock is None:
            if (journal / f"{writer}.lock").exists():
                return [UNNAMED]
        else:
            lock.release()
    return []
