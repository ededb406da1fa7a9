"""What holds forgotten text and is not ours to erase: the host's files, and what lies beyond this machine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hermes_memory_pgvector.capture import host_store
from hermes_memory_pgvector.capture.host_store import HostStoreUnreadable
from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES, read
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.runtime import status_file
from hermes_memory_pgvector.store import receipts
from hermes_memory_pgvector.store.selection import Selection

READ_SECONDS = 2.0
BEYOND = (
    "backups and dumps made before: they age out with their own retention; after restoring one, forget again",
    "the server's write-ahead log and its archive: replaced as the server goes on, and by the archive's retention",
    "replicas: they follow as they replay; a delayed or broken one does not",
    "dead row versions in the server's files: gone after VACUUM, their pages after VACUUM FULL",
    "the server's own log, if it logs statements with their values",
    "agents that are running: what is in their context stays there until their session ends",
)
"""What nobody can verify from here, and how it ages out."""


@dataclass(frozen=True, slots=True)
class Line:
    """Where a file of the host holds forgotten text."""

    path: Path
    line: int
    characters: int


def standing(
    homes: Sequence[Path], settings: Settings, selections: Sequence[Selection], texts: Collection[str]
) -> Iterator[Line]:
    """The entries of MEMORY.md and USER.md that hold forgotten text, by the line each begins at."""
    for home in homes:
        for name in FILE_NAMES.values():
            path = home / "memories" / name
            entries = read(path, settings.memory_max_chars) or []
            with suppress(OSError):
                whole = path.read_text(encoding="utf-8-sig", errors="replace")
                for entry in entries:
                    if entry in texts or any(selection.tells(entry) for selection in selections):
                        at = whole.find(entry.partition("\n")[0])
                        yield Line(path, whole.count("\n", 0, max(0, at)) + 1, len(entry))


def host_messages(homes: Sequence[Path], selections: Sequence[Selection]) -> int:
    """How many messages of the host's session stores hold what is looked for, or belong to the session named."""
    total = 0
    for home in homes:
        path = home / host_store.FILE_NAME
        if not path.is_file():
            continue
        with suppress(HostStoreUnreadable), host_store.reading(path, wait_seconds=READ_SECONDS) as store:
            for selection in selections:
                if selection.session_id is not None and selection.match is None:
                    total += store.count_messages(selection.session_id, ())
                elif selection.match is not None:
                    total += store.count_messages(selection.session_id, selection.needles or ())
    return total


def unreached(connection: Connection, folders: Sequence[Path]) -> list[str]:
    """What could not be reached from here, for the receipt."""
    here = {home_id(folder.parent) for folder in folders}
    told = [
        f"home {name}{_heard(at)}: its processes take it out of its journal when they next run, and what still waits"
        " there and was said before is not stored; its MEMORY.md and its host's sessions are for its owner to look at"
        for name, at in receipts.homes(connection)
        if name not in here
    ]
    return [*older((), folders), *told, *BEYOND]


def older(delivered: Sequence[tuple[str, datetime]], folders: Sequence[Path]) -> list[str]:
    """Processes of versions that do not ask whether something was forgotten, and would store it again."""
    told = [
        f"an older version of this package stored something for home {name or '(unknown)'}{_heard(at)}: it does not"
        " know what is forgotten, and brings it back if it has it; upgrade it, start its processes anew, forget again"
        for name, at in delivered
    ]
    running = [each for folder in folders for each in status_file.read_all(folder) if not each.knows_forgotten]
    return told + [
        f"{each.command} {each.pid} is a process of an older version, which does not know what is forgotten: "
        "start it anew, forget again"
        for each in running
    ]


def _heard(at: datetime | None) -> str:
    return "" if at is None else f" (last heard of {at:%Y-%m-%d %H:%M} UTC)"
