"""`doctor`: check everything, show what needs attention, and say how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.ops.setup import checks
from hermes_memory_pgvector.ops.setup.checks import Finding
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.amounts import count
from hermes_memory_pgvector.terminal.fields import aside
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, Raw

NAME_WIDTH: Final = 14


@dataclass(frozen=True, slots=True)
class Examined(Facts):
    """All checks, and what they add up to."""

    home: str
    exit_code: int
    checks: tuple[Finding, ...]
    notes: tuple[Note, ...] = aside(())


@dataclass(frozen=True, slots=True)
class Probed(Raw):
    """The checks for systemd, Nagios or a probe: one line for each that fails, silence while all is well."""

    home: str
    exit_code: int
    checks: tuple[Finding, ...]

    def as_text(self) -> str:
        """What is wrong, and what to do."""
        failed = [each for each in self.checks if each.level == "problem"]
        return "".join(f"{each.name}: {each.text}{f' ({each.hint})' if each.hint else ''}\n" for each in failed)


def doctor(memory: Memory, *, all: bool, check: bool) -> Facts:
    """Run all checks: 1 for a problem, 2 when an endpoint does not answer."""
    with progress.shown("checking"):
        findings = tuple(checks.examine(memory.home))
    code = exit_code(findings)
    if check:
        return Probed(str(memory.home), code, findings)
    shown = [each for each in findings if all or each.level != "ok"]
    more = "" if all or len(shown) == len(findings) else " --all shows them."
    last = Note("ok" if not code else "problem", summary(findings) + more)
    return Examined(str(memory.home), code, findings, (*notes(shown), last))


def exit_code(findings: Sequence[Finding]) -> int:
    """The exit code for these findings."""
    if any(each.is_unreachable for each in findings):
        return 2
    return int(any(each.level == "problem" for each in findings))


def notes(findings: Iterable[Finding]) -> list[Note]:
    """The findings as lines, each with what helps."""
    return [Note(each.level, f"{each.name:<{NAME_WIDTH}} {each.text}", each.hint) for each in findings]


def summary(findings: Sequence[Finding]) -> str:
    """All findings in one sentence."""
    problems = sum(each.level == "problem" for each in findings)
    warnings = sum(each.level == "warning" for each in findings)
    if not problems and not warnings:
        return f"All {len(findings)} checks passed."
    parts = [count(number, noun) for number, noun in ((problems, "problem"), (warnings, "warning")) if number]
    return f"{' and '.join(parts)} in {len(findings)} checks."


DOCTOR: Final = Operation(
    "doctor",
    "check everything and say how to mend what is wrong",
    (
        Option("--all", "show also what is well", is_flag=True),
        Option("--check", "one line for each failed check and nothing else; see the exit code", is_flag=True),
    ),
    doctor,
    (
        ("doctor", "what needs attention"),
        ("doctor --check", "for systemd, Nagios or a probe: silent while all is well"),
    ),
    group="set up",
)  # fmt: skip
