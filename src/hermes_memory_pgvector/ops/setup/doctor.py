"""`doctor`: check everything, show what needs attention, and say how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.ops.setup.checks import examination
from hermes_memory_pgvector.ops.setup.checks.finding import Finding
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, Raw, aside


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
    with progress.waiting("checking"):
        findings = tuple(examination.examine(memory.home))
    code = examination.exit_code(findings)
    if check:
        return Probed(str(memory.home), code, findings)
    shown = [each for each in findings if all or each.level != "ok"]
    more = "" if all or len(shown) == len(findings) else " --all shows them."
    last = Note("ok" if not code else "problem", examination.summary(findings) + more)
    return Examined(str(memory.home), code, findings, (*examination.notes(shown), last))


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
