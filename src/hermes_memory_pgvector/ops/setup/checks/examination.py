"""All checks in order, as `doctor` and `up` run them, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.ops import journals as journal_report
from hermes_memory_pgvector.ops.setup.checks import database, journal
from hermes_memory_pgvector.ops.setup.checks import home as check_home
from hermes_memory_pgvector.ops.setup.checks.finding import Finding
from hermes_memory_pgvector.terminal.amounts import count
from hermes_memory_pgvector.terminal.operation import Note

NAME_WIDTH = 14


def examine(home: Path) -> Iterator[Finding]:
    """All checks; an earlier one may explain what a later one finds."""
    parsed = load(home)
    seen = database.Seen()
    yield from check_home.check(home, parsed)
    yield from database.check_embedder(home, parsed.settings, seen)
    yield from database.check(home, parsed.settings, journal_report.writers(home), seen)
    yield from journal.check(home, parsed.settings, seen)


def exit_code(findings: Sequence[Finding]) -> int:
    """The exit code for these findings."""
    if any(each.is_unreachable for each in findings):
        return 2
    return int(any(each.level == "problem" for each in findings))


def notes(findings: Iterable[Finding], *, within_up: bool = False) -> list[Note]:
    """The findings as lines, each with what helps; `up` does not advise to run `up`."""
    return [
        Note(
            each.level, f"{each.name:<{NAME_WIDTH}} {each.text}",
            "" if within_up and each.hint.endswith("hermes-pgvector up") else each.hint,
        )
        for each in findings
    ]  # fmt: skip


def summary(findings: Sequence[Finding]) -> str:
    """All findings in one sentence."""
    problems = sum(each.level == "problem" for each in findings)
    warnings = sum(each.level == "warning" for each in findings)
    if not problems and not warnings:
        return f"All {len(findings)} checks passed."
    parts = [count(number, noun) for number, noun in ((problems, "problem"), (warnings, "warning")) if number]
    return f"{' and '.join(parts)} in {len(findings)} checks."
