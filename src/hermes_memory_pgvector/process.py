"""Which process a pid means: a pid is used again after a process ends, and counts only within its namespace."""

from __future__ import annotations

from pathlib import Path


def start_of(pid: int | str) -> str:
    """The kernel's start time of a process; empty when there is no such process or the system does not tell."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
