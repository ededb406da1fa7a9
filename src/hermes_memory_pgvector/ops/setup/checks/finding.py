"""What a check finds: its name, a level, a sentence, and a hint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    name: str
    level: Level
    text: str
    hint: str = ""
    """The command or setting that fixes it."""
    is_unreachable: bool = False
    """The database or the embedding endpoint does not answer."""


def ok(name: str, text: str) -> Finding:
    """All is well."""
    return Finding(name, "ok", text)


def warning(name: str, text: str, hint: str = "") -> Finding:
    """It works, but could be better."""
    return Finding(name, "warning", text, hint)


def problem(name: str, text: str, hint: str = "", *, unreachable: bool = False) -> Finding:
    """It does not work."""
    return Finding(name, "problem", text, hint, unreachable)
