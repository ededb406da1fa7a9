"""Time that orders writes of one home across its processes, whatever happens to the wall clock.

The kernel's clock since boot is shared by all processes of a boot. The first process of a boot records how far it lies
from the wall clock; everyone of that home then derives the same ordering time from it, also after the wall clock was
stepped. Across homes the order of writes is as good as the hosts' time synchronisation.

This clock goes on while the machine sleeps. With one that stops, a laptop that slept for a night would order its writes
a night too early: its corrections would come before what they correct. Deadlines, breakers and the retention of drained
files use the clock that stops, so that nothing ends or is removed only because a lid was closed.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from hermes_memory_pgvector import files, machine
from hermes_memory_pgvector.values import Moment

LATEST_US = 32_503_680_000_000_000
"""The year 3000."""
READINGS = 5
# Where there is no such clock, the monotonic one counts sleep, too.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_CLOCK_NAME = "since boot"


class Clock:
    """Gives the moment of a write; never raises, never waits."""

    def __init__(self, offset_us: int) -> None:
        self._offset_us = offset_us

    @classmethod
    def of_home(cls, folder: Path) -> Clock:
        """The clock shared by all processes that use this folder."""
        path = folder / "clock.json"
        boot = boot_of_clock()
        known = _read(path)
        if known is not None and known[0] == boot:
            return cls(known[1])
        offset = _offset_now()
        if known is not None:
            # A new boot never orders before the last one, even when the wall clock went back in between.
            offset = max(offset, known[2] + 1 - _since_boot_us())
        try:
            offset = _publish(path, boot, offset)
        except OSError:
            # An unwritable folder costs only the agreement between processes; the journal reports the folder itself.
            return cls(offset)
        return cls(offset)

    def now(self) -> Moment:
        """The present moment."""
        return Moment(time.time_ns() // 1000, _since_boot_us() + self._offset_us)


def _since_boot_us() -> int:
    return time.clock_gettime_ns(_SINCE_BOOT) // 1000


def _offset_now() -> int:
    # A pause between the two readings makes the difference smaller, and the home would keep it until the next boot.
    return max(time.time_ns() // 1000 - _since_boot_us() for _ in range(READINGS))


def boot_of_clock() -> str:
    """What distinguishes this boot from others."""
    # Without one, the start of the clock, to the minute, distinguishes boots well enough.
    return machine.boot_id() or str(_offset_now() // 60_000_000)


def _read(path: Path) -> tuple[str, int, int] | None:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        # An offset of another clock is of no use, but time does not go back behind it.
        boot = str(raw["boot"]) if raw.get("clock") == _CLOCK_NAME else ""
        known = boot, int(raw["offset_us"]), int(raw["written_us"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    # An impossible time comes from a damaged file, and Postgres could not hold it.
    return known if all(0 < at < LATEST_US for at in (known[1] + _since_boot_us(), known[2])) else None


def _publish(path: Path, boot: str, offset: int) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    written = offset + _since_boot_us()
    text = json.dumps({"boot": boot, "clock": _CLOCK_NAME, "offset_us": offset, "written_us": written})
    files.replace(path, text.encode("utf-8"), is_durable=False, only_if=lambda: _agreed(path, boot) is None)
    # The last process to replace the file decides for all.
    agreed = _agreed(path, boot)
    return offset if agreed is None else agreed


def _agreed(path: Path, boot: str) -> int | None:
    known = _read(path)
    return known[1] if known is not None and known[0] == boot else None
