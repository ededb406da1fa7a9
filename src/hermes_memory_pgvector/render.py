"""Hits as the text a model reads: short, deterministic, one line each, and unable to break out of its fence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from hermes_memory_pgvector.model import Hit, Kind

LINE_CHARS = 320
HEADING = "Relevant memories:"
TURNS_HEADING = "From earlier conversations:"
_FENCE = re.compile(r"<(\s*/?\s*memory-context)", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


def prefetch_block(hits: Iterable[Hit], max_chars: int) -> tuple[str, list[Hit]]:
    """The block for one turn within its budget, and the hits that found room in it."""
    lines: list[str] = []
    placed: list[Hit] = []
    used = 0
    heading = ""
    for hit in hits:
        wanted = HEADING if hit.kind is Kind.MEMORY else TURNS_HEADING
        line = _line(hit)
        cost = len(line) + 1 + (len(wanted) + 1 if wanted != heading else 0)
        if used + cost > max_chars:
            continue
        if wanted != heading:
            lines.append(wanted)
            heading = wanted
        lines.append(line)
        placed.append(hit)
        used += cost
    return "\n".join(lines), placed


def harmless(text: str) -> str:
    """Text that cannot close or open the host's memory fence."""
    return _FENCE.sub(r"‹\1", text)


def shortened(text: str, max_chars: int) -> str:
    """One line of at most so many characters, cut between words."""
    line = _SPACE.sub(" ", text).strip()
    if len(line) <= max_chars:
        return line
    cut = line[: max_chars - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > max_chars // 2 else cut) + "…"


def iso(moment: datetime) -> str:
    """A time as the tools give it."""
    return moment.isoformat(timespec="seconds")


def _line(hit: Hit) -> str:
    text = harmless(shortened(hit.content, LINE_CHARS))
    if hit.kind is Kind.MEMORY:
        return f"- {text}" if hit.target != "user" else f"- (user) {text}"
    return f"- {hit.ts:%Y-%m-%d} {hit.role}: {text}"
