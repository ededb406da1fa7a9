"""All checks in order, as `doctor` and `up` run them, and what they add up to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.ops import journals as journal_report
from hermes_memory_pgvector.ops.setup.checks import database, journal
from hermes_memory_pgvector.ops.setup.checks import home as check_home
from hermes_memory_pgvector.ops.setup.checks.finding import AREAS, Finding
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal.sink import Part, Styled


def examine(home: Path, areas: Collection[str] = AREAS) -> Iterator[Finding]:
    """All checks of these areas; an earlier one may explain what a later one finds."""
    parsed = load(home)
    seen = database.Seen()
    if "home" in areas:
        yield from check_home.check(home, parsed)
    if "embedder" in areas:
        yield from database.check_embedder(home, parsed.settings, seen)
    if "database" in areas:
        yield from database.check(home, parsed.settings, journal_report.writers(home), seen)
    if "journal" in areas:
        yield from journal.check(home, parsed.settings, seen)


def exit_code(findings: Sequence[Finding], *, is_strict: bool = False) -> int:
    """The exit code for these findings; strictly, a warning is a problem."""
    if any(each.is_unreachable for each in findings):
        return 2
    levels = ("problem", "warning") if is_strict else ("problem",)
    return 1 if any(each.level in levels for each in findings) else 0


def tell(finding: Finding, *, within_up: bool = False) -> None:
    """Print one finding, with its hint below it; `up` does not advise to run `up`."""
    hint = "" if within_up and finding.hint.endswith("hermes-pgvector up") else finding.hint
    name: Part = Styled(f"{finding.name:<13} ", "faint") if finding.level == "ok" else f"{finding.name:<13} "
    terminal.bullet(finding.level, [name, terminal.one_line(finding.text)], hint, indent=17)


def summary(findings: Sequence[Finding]) -> str:
    """All findings in one sentence."""
    problems = sum(each.level == "problem" for each in findings)
    warnings = sum(each.level == "warning" for each in findings)
    if not problems and not warnings:
        return f"All {len(findings)} checks passed."
    parts = [terminal.count(number, noun) for number, noun in ((problems, "problem"), (warnings, "warning")) if number]
    return f"{' and '.join(parts)} in {len(findings)} checks."
