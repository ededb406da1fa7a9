"""Small files that other programs rewrite, read whole or not at all.

A program that rewrites a file in place empties it first, so whoever reads at that moment finds nothing, or half of it.
A look that saw the file change under it is not believed, and neither is one at something that is not a plain file.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024

Signature = tuple[int, int, int, int, int]
"""What changes whenever a file does: device, inode, size, and the times of its content and of itself."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Look:
    """A file at one moment."""

    signature: Signature | None
    """None when there is no such file."""
    data: bytes
    problem: str
    """Why it cannot be read; empty when it can."""
    is_steady: bool
    """Whether nobody changed it meanwhile."""
    age: float
    """Seconds since it was last changed; negative when the clock has been set back since."""


def signature(path: Path) -> Signature | None:
    """The signature of a file as it is now."""
    try:
        return _signature(path.stat())
    except OSError:
        return None


def look(path: Path) -> Look:
    """Read a file; never raises and never waits for a pipe."""
    try:
        handle = os.open(path, _FLAGS)
    except FileNotFoundError:
        return Look(None, b"", "", True, 0.0)
    except OSError as error:
        return Look(signature(path), b"", f"cannot be read ({type(error).__name__})", True, _age(path))
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return Look(_signature(before), b"", "is not a plain file", True, time.time() - before.st_ctime)
        data = _read(handle)
        after = os.fstat(handle)
    except OSError as error:
        return Look(signature(path), b"", f"cannot be read ({type(error).__name__})", True, _age(path))
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        return Look(_signature(after), b"", f"is larger than {MAX_BYTES >> 20} MB", True, time.time() - after.st_ctime)
    seen = _signature(after)
    is_steady = _signature(before) == seen == signature(path) and len(data) == after.st_size
    return Look(seen, data, "", is_steady, time.time() - after.st_ctime)


def _read(handle: int) -> bytes:
    parts, total = [], 0
    while total <= MAX_BYTES and (part := os.read(handle, 1 << 20)):
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def _signature(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_ctime
    except OSError:
        return 0.0
