"""Questions to whoever sits at the terminal; where nobody does, the answer is no, or the default."""

from __future__ import annotations

import getpass
import sys

from hermes_memory_pgvector.terminal import sink


def can_ask() -> bool:
    """Whether somebody sits at a terminal and reads what we ask."""
    return sink.is_terminal(sys.stdin) and sink.is_terminal(sys.stdout)


def confirm(question: str, *, default: bool = False, yes: bool = False) -> bool:
    """Ask yes or no. `yes` answers for scripts; where nobody can answer, and at the end of the input, it is no."""
    if yes or not can_ask():
        return yes
    line = _asked(f"{question} {'[Y/n]' if default else '[y/N]'}")
    answer = line.strip().lower()
    return answer in ("y", "yes") if answer else default and bool(line)


def ask(question: str, default: str = "") -> str:
    """The trimmed answer to a question; the default for Enter and at the end of the input."""
    return _asked(f"{question} [{default}]" if default else question).strip() or default


def ask_secret(question: str) -> str:
    """An answer that does not show while it is typed; empty at the end of the input."""
    try:
        return getpass.getpass(f"{question} ")
    except EOFError:
        sink.write()
        return ""


def _asked(question: str) -> str:
    """The line that was typed, with its end; empty at the end of the input."""
    sink.write(f"{question} ", end="")
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        sink.write()
    return line
