"""What is waiting in the journals of a home, compared with what the database has stored."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.config.settings import MEBIBYTE
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.runtime import refusals, status_file
from hermes_memory_pgvector.terminal.amounts import count, seconds
from hermes_memory_pgvector.terminal.operation import Note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_memory_pgvector.journal import Record
    from hermes_memory_pgvector.runtime.refusals import LeftBehind
    from hermes_memory_pgvector.runtime.status_file import Snapshot

FOLDER_NAME = "journal"
UNNAMED = "a process that has just started"
ENDED = "ended"


@dataclass(frozen=True, slots=True)
class WriterDepth:
    """One process's journal."""

    writer: str
    process: str
    """Whose it is: a live process, or one that has ended."""
    records: int
    bytes: int
    oldest_age_seconds: float
    for_newer: bool = False
    """Whether its next record is of a newer version of this package."""


@dataclass(frozen=True, slots=True)
class JournalReport:
    """All journals of a home."""

    writers: tuple[WriterDepth, ...]
    damaged: int
    bytes_on_disk: int
    processes: tuple[Snapshot, ...]
    left: LeftBehind | None = None
    """Refused writes of processes that have ended."""

    @property
    def records(self) -> int:
        """How many records are waiting."""
        return sum(each.records for each in self.writers)

    @property
    def oldest_age_seconds(self) -> float:
        """How long the oldest record has been waiting."""
        return max((each.oldest_age_seconds for each in self.writers if each.records), default=0.0)

    @property
    def for_newer(self) -> int:
        """How many journals wait for a process of a newer version of this package."""
        return sum(each.for_newer for each in self.writers)

    @property
    def short_turns(self) -> int:
        """How many turns live processes have left out because they were too short."""
        return sum(each.short_turns for each in self.processes)

    @property
    def refused(self) -> int:
        """How many writes live processes refused because the journal could not take them."""
        return sum(each.refused_turns + each.refused_memories for each in self.processes)

    @property
    def refused_waiting(self) -> int:
        """How many of them are still to be recovered."""
        return sum(each.refused_waiting for each in self.processes)

    @property
    def refused_recovered(self) -> int:
        """How many of them were recovered."""
        return sum(each.refused_recovered for each in self.processes)

    @property
    def refused_lost(self) -> int:
        """How many did not fit in memory either."""
        return sum(each.refused_lost for each in self.processes)

    @property
    def stored_again(self) -> int:
        """How many records were stored again because the database went back to an earlier state."""
        return sum(each.writer_again for each in self.processes)

    @property
    def gone(self) -> int:
        """Of how many journals records were neither in the database nor in their files when it did."""
        return sum(each.writer_gone for each in self.processes)

    @property
    def sync_lag_seconds(self) -> float:
        """How far behind the disk is, at worst."""
        return max((each.sync_lag_seconds for each in self.processes), default=0.0)

    def totals(self) -> dict[str, Any]:
        """All journals together, for JSON output."""
        return {
            "waiting": self.records,
            "oldest_age_seconds": round(self.oldest_age_seconds, 3),
            "sync_lag_seconds": round(self.sync_lag_seconds, 3),
            "for_newer_version": self.for_newer,
            "short_turns": self.short_turns,
            "refused": self.refused,
            "refused_waiting": self.refused_waiting,
            "refused_recovered": self.refused_recovered,
            "refused_lost": self.refused_lost,
            "refused_left": 0 if self.left is None else self.left.count,
            "stored_again": self.stored_again,
            "gone": self.gone,
            "damaged": self.damaged,
            "bytes_on_disk": self.bytes_on_disk,
        }


def report(home: Path, marks: dict[str, int] | None) -> JournalReport:
    """The state of all journals; without watermarks (`marks` None) everything on disk counts as waiting."""
    from hermes_memory_pgvector.journal import Journal

    folder = data_folder(home)
    live = tuple(status_file.read_all(folder))
    left = refusals.left(folder)
    if not (folder / FOLDER_NAME).is_dir():
        return JournalReport((), 0, 0, live, left)
    journal = Journal(folder / FOLDER_NAME, max_bytes=MEBIBYTE)
    owners = {each.journal_writer: f"{each.command} {each.pid}" for each in live}
    found = []
    for writer in journal.writers():
        mark = (marks or {}).get(writer, 0)
        depth = journal.depth(writer, mark)
        owner = owners.get(writer, ENDED)
        newer = depth.records > 0 and _is_for_newer(journal.read(writer, mark, max_records=1, max_bytes=1))
        found.append(WriterDepth(writer, owner, depth.records, depth.bytes, depth.oldest_age_seconds, newer))
    stats = journal.stats()
    return JournalReport(tuple(found), stats.damaged_segments, stats.bytes_on_disk, live, left)


def oddities(report: JournalReport) -> Iterator[Note]:
    """What hardly ever happens to a journal, and what helps."""
    if report.short_turns:
        told = f"{count(report.short_turns, 'turn')} too short to be stored, since the processes started"
        yield Note("note", f"{told}: turn_min_chars and turn_rule decide")
    if report.for_newer:
        text = f"{count(report.for_newer, 'journal')} with records of a newer version of this package"
        yield Note("warning", text, "they are kept; upgrade this installation and start hermes to store them")
    if report.refused:
        told = f"{count(report.refused, 'write')} refused, for the journal or its disk was full"
        away = {each.name.rpartition("to ")[2] for shot in report.processes for each in shot.open_breakers}
        told += "".join(f", as it waits for {name}" for name in sorted(away) if name.startswith("bucket "))
        done = f"{report.refused_recovered} recovered, {report.refused_waiting} waiting, {report.refused_lost} lost"
        hint = "free some disk space or raise journal_max_mb; keep the processes running until then"
        settled = not report.refused_waiting and not report.refused_lost
        yield Note("note" if settled else "warning", f"{told}: {done}", "" if settled else hint)
    if report.left is not None:
        fix = refusals.command(report.left)
        yield Note("warning", refusals.sentence(report.left), f"hermes-pgvector {fix}" if fix else "")
    if report.stored_again or report.gone:
        again = f"{count(report.stored_again, 'record')} stored again from the journal"
        lost = f", {count(report.gone, 'journal')} has lost records" if report.gone else ""
        text = f"the database has gone back to an earlier state: {again}{lost}"
        hint = "if it was restored from a dump and there is a newer one, restore that" if report.gone else ""
        yield Note("warning" if report.gone else "note", text, hint)
    if report.damaged:
        text = f"{count(report.damaged, 'damaged segment')} of the journal kept aside"
        yield Note("warning", text, "check the disk; remove the *.damaged files when you are done")


def troubles(shot: Snapshot) -> Iterator[str]:
    """What a process complains of."""
    for breaker in shot.open_breakers:
        since = f" since {seconds(max(0.0, time.time() - breaker.since))}" if breaker.since else ""
        yield f"{breaker.name}: {breaker.reason} ({breaker.state}{since})"
    if shot.backlog_problem:
        yield shot.backlog_problem
    if shot.failed_hooks:
        yield f"{count(shot.failed_hooks, 'hook call')} failed, so a write may be missing: {shot.latest_failure}"


def _is_for_newer(records: Sequence[Record]) -> bool:
    from hermes_memory_pgvector.journal import codec

    try:
        for record in records:
            codec.decode(record.payload)
    except codec.NewerRecord:
        return True
    except ValueError:
        # The writer turns it into a dead letter.
        return False
    return False


def writers(home: Path) -> list[str]:
    """The names of all journals."""
    from hermes_memory_pgvector.journal import Journal

    place = folder_of(home)
    return Journal(place, max_bytes=MEBIBYTE).writers() if place.is_dir() else []


def living(home: Path) -> list[str]:
    """The journals of a home whose processes live."""
    from hermes_memory_pgvector.journal.lock import WriterLock
    from hermes_memory_pgvector.journal.segment import list_directory

    folder = folder_of(home)
    found = []
    for writer in sorted(list_directory(folder).locks) if folder.is_dir() else ():
        lock = WriterLock.take(folder, writer, create=False)
        if lock is not None:
            lock.release()
        elif (folder / f"{writer}.lock").exists():
            found.append(writer)
    return found


def users_of(home: Path) -> list[str]:
    """Which processes use a home's memory now, by name and number.

    One that has just started has not said who it is yet, but holds the lock of its journal from its first write on.
    """
    named = [f"{each.command} {each.pid}" for each in status_file.read_all(data_folder(home))]
    return named or [UNNAMED] * bool(living(home))


def folder_of(home: Path) -> Path:
    """Where the journals of a home are."""
    return data_folder(home) / FOLDER_NAME
