"""Checks of the journal and of the processes that use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import JournalError
from hermes_memory_pgvector.ops import journals as journal_report
from hermes_memory_pgvector.ops.setup.checks.finding import Finding, ok, problem, warning
from hermes_memory_pgvector.runtime import refusals
from hermes_memory_pgvector.terminal import amounts

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.ops.setup.checks.database import Seen

LAG_SECONDS = 2.0
OLD_SECONDS = 300.0


def check(home: Path, settings: Settings, seen: Seen) -> Iterator[Finding]:
    """Whether writes are safe, what is waiting, was refused or rejected, and which processes report problems."""
    yield from _writable(home, settings)
    report = journal_report.report(home, seen.marks)
    if seen.marks is not None:
        records = amounts.count(report.records, "record")
        age = report.oldest_age_seconds
        if report.records and age > OLD_SECONDS:
            yield warning(
                "journal",
                f"{records} waiting, the oldest for {amounts.seconds(age)}",
                "hermes stores them the next time it runs; to do it now: hermes-pgvector up",
            )
        else:
            yield ok(
                "journal",
                f"{records} waiting" + (f", the oldest for {amounts.seconds(age)}" if report.records else ""),
            )
    elif report.records:
        yield ok("journal", f"{amounts.size(report.bytes_on_disk)} on disk, waiting for the database")
    if report.for_newer:
        text = f"{amounts.count(report.for_newer, 'journal')} with records of a newer version of this package"
        yield warning("journal", text, "they are kept; upgrade this installation and start hermes to store them")
    if report.sync_lag_seconds > LAG_SECONDS:
        yield warning("journal", f"the disk is {amounts.seconds(report.sync_lag_seconds)} behind")
    yield from _refused(report)
    if report.damaged:
        place = data_folder(home) / journal_report.FOLDER_NAME
        text = f"{amounts.count(report.damaged, 'damaged segment')} kept aside in {place}"
        yield warning("journal", text, "check the disk; remove the *.damaged files when you are done")
    if seen.dead_letters:
        text = f"{amounts.count(seen.dead_letters, 'record')} rejected by Postgres"
        yield warning("dead letters", text, "hermes-pgvector list rejected")
    yield from _processes(report)


def _refused(report: journal_report.JournalReport) -> Iterator[Finding]:
    if report.refused_waiting:
        text = f"{amounts.count(report.refused_waiting, 'refused write')} waiting: the journal is full, or its disk is"
        yield warning(
            "refused writes",
            text,
            "free some disk space or raise journal_max_mb; keep the processes running until then",
        )
    elif report.refused:
        yield ok("refused writes", f"{report.refused} refused, {report.refused_recovered} recovered since")
    if report.refused_lost:
        text = f"{amounts.count(report.refused_lost, 'refused write')} that found no room in memory"
        yield warning("refused writes", text, "raise journal_max_mb to leave room for the next outage")
    if report.left is not None:
        fix = refusals.command(report.left)
        yield warning("refused writes", refusals.sentence(report.left), f"hermes-pgvector {fix}" if fix else "")


def _writable(home: Path, settings: Settings) -> Iterator[Finding]:
    """Open the journal and close it again, which shows whether the folder and its locks work."""
    from hermes_memory_pgvector.journal import Journal

    folder = data_folder(home) / journal_report.FOLDER_NAME
    journal = Journal(folder, sync=settings.journal_sync, max_bytes=settings.journal_max_bytes)
    try:
        journal.open()
    except JournalError as error:
        yield problem("journal", f"{folder}: {error}", "nothing can be written: make the folder writable")
        return
    locks_work = journal.stats().locks_work
    journal.close(Deadline.after(5))
    if not locks_work:
        text = "file locks do not work here, so what dead processes leave in the journal waits"
        yield warning("journal", text, "move the hermes home to a local disk: what waits is delivered there")


def _processes(report: journal_report.JournalReport) -> Iterator[Finding]:
    went_back = "the database has gone back to an earlier state"
    again = f"{amounts.count(report.stored_again, 'record')} stored again from the journal"
    if report.gone:
        text = f"{went_back}: {amounts.count(report.gone, 'journal')} has lost records, {again}"
        yield warning("journal", text, "if it was restored from a dump and there is a newer one, restore that")
    elif report.stored_again:
        yield ok("journal", f"{went_back}: {again}, none is gone")
    troubled = [each for each in report.processes if each.open_breakers or each.backlog_problem or each.failed_hooks]
    for each in troubled:
        for breaker in each.open_breakers:
            since = f" since {amounts.seconds(_age(breaker.since))}" if breaker.since else ""
            yield warning(
                "processes", f"{each.command} {each.pid}: {breaker.name} is {breaker.state}{since}: {breaker.reason}"
            )
        if each.backlog_problem:
            yield warning("processes", f"{each.command} {each.pid}: {each.backlog_problem}")
        if each.failed_hooks:
            failed = f"{amounts.count(each.failed_hooks, 'hook call')} failed, so a write may be missing"
            yield warning("processes", f"{each.command} {each.pid}: {failed}; the latest: {each.latest_failure}")
    if not troubled:
        yield ok("processes", f"{len(report.processes)} running, all well" if report.processes else "none running")


def _age(since: float) -> float:
    import time

    return max(0.0, time.time() - since)
