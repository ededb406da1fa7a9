"""What a command that changes stored memory would do, or has done: counts, a few samples, and how to go on.

DryRun("forget", [("memories", 3), ("turns", 12)], samples, execute="hermes-pgvector forget … --execute").tell()
DryRun(…, executed=True).tell()                  the same in the past tense, without the samples
DryRun(…).document()                             for --json: {"action", "executed", "counts", "samples"}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes_memory_pgvector.cli import entries
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal.sink import Styled

MOST_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the rows concerned."""

    head: str
    """Its id, date, theme: what tells it from the others."""
    content: str
    data: dict[str, Any] = field(default_factory=dict)
    """The row for --json."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """A change, before or after it was made."""

    action: str
    """As a verb: forget, prune, rename."""
    counts: Sequence[tuple[str, int]]
    """What it concerns: a plural noun and how many."""
    samples: Sequence[Sample] = ()
    execute: str = ""
    """The command that really does it."""
    executed: bool = False
    done: str = ""
    """The verb in the past tense, where it is not action + "ed"."""

    def tell(self) -> None:
        """Print it for people."""
        total = sum(number for _, number in self.counts)
        what = ", ".join(terminal.count(number, _singular(noun), noun) for noun, number in self.counts if number)
        if not total:
            terminal.bullet("ok", f"nothing to {self.action}")
            return
        if self.executed:
            terminal.bullet("ok", f"{self.done or self.action + 'ed'}: {what}")
            return
        terminal.bullet("warning", ["dry run, nothing is changed: would ", self.action, " ", Styled(what, "strong")])
        for sample in self.samples[:MOST_SAMPLES]:
            entries.tell([Styled(terminal.one_line(sample.head), "faint")], sample.content)
        if total > len(self.samples[:MOST_SAMPLES]) and self.samples:
            terminal.say(f"  and {terminal.number(total - len(self.samples[:MOST_SAMPLES]))} more")
        if self.execute:
            terminal.bullet("note", "to do it", self.execute)

    def document(self) -> dict[str, Any]:
        """The same for --json."""
        return {
            "action": self.action,
            "executed": self.executed,
            "counts": dict(self.counts),
            "samples": [sample.data for sample in self.samples[:MOST_SAMPLES]],
        }


def _singular(noun: str) -> str:
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-1] if noun.endswith("s") else noun
