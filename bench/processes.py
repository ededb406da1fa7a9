"""What another process costs, as Linux counts it."""

from __future__ import annotations

import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, to the nanosecond and with its threads that are gone: the clock of a pid."""
    return time.clock_gettime((~pid << 3) | 2)


def resident_mb(pid: int) -> float:
    """The memory of a process, in MB."""
    (line,) = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
