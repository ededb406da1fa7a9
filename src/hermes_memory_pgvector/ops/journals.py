"""What is waiting in the journals of a home, compared with what the database has stored."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.config.settings import MEBIBYTE
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.journal import Journal, Record, codec
from hermes_memory_pgvector.journal.lock import told
from hermes_memory_pgvector.journal.segment import list_directory
from hermes_memory_pgvector.runtime import processes, refusals
from hermes_memory_pgvector.runtime.refusals import LeftBehind
from hermes_memory_pgvector.terminal.amounts import count, seconds
from hermes_memory_pgvector.terminal.operation import Note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hermes_memory_pgvector.runtime.processes import ProcessStatus

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
    processes: tuple[ProcessStatus, ...]
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

    def of_processes(self, name: str) -> int:
        """What the live processes have counted together."""
        return sum(getattr(each, name) for each in self.processes)

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
            "short_turns": self.of_processes("short_turns"),
            "refused": self.of_processes("refused_turns") + self.of_processes("refused_memories"),
            "refused_waiting": self.of_processes("refused_waiting"),
            "refused_recovered": self.of_processes("refused_recovered"),
            "refused_lost": self.of_processes("refused_lost"),
            "refused_left": 0 if self.left is None else self.left.count,
            "stored_again": self.of_processes("writer_again"),
            "gone": self.of_processes("writer_gone"),
            "damaged": self.damaged,
            "bytes_on_disk": self.bytes_on_disk,
        }


def report(home: Path, marks: Sequence[Mapping[str, int]] | None) -> JournalReport:
    """The state of all journals; without their marks in each bucket, everything on disk counts as waiting."""
    folder = folder_of(home)
    left = refusals.left(data_folder(home))
    if not folder.is_dir():
        return JournalReport((), 0, 0, (), left)
    live = tuple(processes.read_all(folder))
    journal = Journal(folder, max_bytes=MEBIBYTE)
    owners = {each.journal_writer: each.name for each in live}
    found = []
    for writer in journal.writers():
        told = [each.get(writer, 0) for each in marks or [{}]]
        mark = min(told)
        depth = journal.depth(writer, mark, waits=partial(_waits, told))
        owner = owners.get(writer, ENDED)
        newer = depth.records > 0 and _is_for_newer(journal.read(writer, mark, max_records=1, max_bytes=1))
        found.append(WriterDepth(writer, owner, depth.records, depth.bytes, depth.oldest_age_seconds, newer))
    stats = journal.stats()
    return JournalReport(tuple(found), stats.damaged_segments, stats.bytes_on_disk, live, left)


def oddities(report: JournalReport) -> Iterator[Note]:
    """What hardly ever happens to a journal, and what helps."""
    told = report.totals()
    if told["short_turns"]:
        text = f"{count(told['short_turns'], 'turn')} too short to be stored, since the processes started"
        yield Note("note", f"{text}: turn_min_chars and turn_rule decide")
    if report.for_newer:
        text = f"{count(report.for_newer, 'journal')} with records of a newer version of this package"
        yield Note("warning", text, "they are kept; upgrade this installation and start hermes to store them")
    if told["refused"]:
        waiting, lost = told["refused_waiting"], told["refused_lost"]
        text = f"{count(told['refused'], 'write')} refused, for the journal or its disk was full"
        away = {each.name.rpartition("to ")[2] for process in report.processes for each in process.open_breakers}
        text += "".join(f", as it waits for {name}" for name in sorted(away) if name.startswith("bucket "))
        done = f"{told['refused_recovered']} recovered, {waiting} waiting, {lost} lost"
        hint = "free some disk space or raise journal_max_mb; keep the processes running until then"
        yield Note("warning" if waiting or lost else "note", f"{text}: {done}", hint if waiting or lost else "")
    if report.left is not None:
        fix = refusals.command(report.left)
        yield Note("warning", refusals.sentence(report.left), f"hermes-pgvector {fix}" if fix else "")
    if told["stored_again"] or told["gone"]:
        again = f"{count(told['stored_again'], 'record')} stored again from the journal"
        gone = f", {count(told['gone'], 'journal')} has lost records" if told["gone"] else ""
        hint = "if it was restored from a dump and there is a newer one, restore that" if gone else ""
        text = f"the database has gone back to an earlier state: {again}{gone}"
        yield Note("warning" if gone else "note", text, hint)
    if report.damaged:
        text = f"{count(report.damaged, 'damaged segment')} of the journal kept aside"
        yield Note("warning", text, "check the disk; remove the *.damaged files when you are done")


def troubles(shot: ProcessStatus) -> Iterator[str]:
    """What a process complains of."""
    for breaker in shot.open_breakers:
        since = f" since {seconds(max(0.0, time.time() - breaker.since))}" if breaker.since else ""
        yield f"{breaker.name}: {breaker.reason} ({breaker.state}{since})"
    if shot.backlog_problem:
        yield shot.backlog_problem
    if shot.failed_hooks:
        yield f"{count(shot.failed_hooks, 'hook call')} failed, so a write may be missing: {shot.latest_failure}"


def _waits(marks: Sequence[int], start: int, payload: bytes) -> bool:
    """Whether a record waits for one of the buckets with these marks: those its themes' names are dealt to.

    The writer counts it there, too, wherever the rows of a renamed theme lie.
    """
    from hermes_memory_pgvector.postgres.buckets import bucket_of

    if len(marks) == 1:
        return True
    try:
        concerned = {bucket_of(item.theme, len(marks)) for item in codec.decode(payload)}
    except ValueError:
        concerned = set()
    return any(marks[bucket] <= start for bucket in concerned or {0})


def _is_for_newer(records: Sequence[Record]) -> bool:
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
    place = folder_of(home)
    return Journal(place, max_bytes=MEBIBYTE).writers() if place.is_dir() else []


def living(home: Path) -> list[str]:
    """The journals of a home whose processes live."""
    folder = folder_of(home)
    locks = sorted(list_directory(folder).locks) if folder.is_dir() else ()
    return [writer for writer in locks if told(folder, writer) is not None]


def users_of(home: Path) -> list[str]:
    """Which processes use a home's memory now, by name and number.

    One that has just started has not said who it is yet, but holds the lock of its journal from its first write on.
    """
    named = [each.name for each in processes.read_all(folder_of(home))]
    return named or [UNNAMED] * bool(living(home))


def folder_of(home: Path) -> Path:
    """Where the journals of a home are."""
    return data_folder(home) / FOLDER_NAME
