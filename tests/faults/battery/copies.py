"""The fault of a copied home: somebody copies the home while it is in use, and the copy delivers the same journals.

The copy has everything the original has: the journals of living processes, torn wherever the copying met them, their
locks, and the file that says who the home is. Whatever the two deliver, each record is stored once; and the copy must
not take itself for the original.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.runtime.engine import Engine

DELIVER_SECONDS = 6.0


def copy_and_deliver(home: Path, settings: Mapping[str, Any], seconds: float = DELIVER_SECONDS) -> int:
    """Copy a home in use, let the copy deliver for a while beside the original, and throw it away.

    Returns how many journals the copy had; raises when it claims to be the original.
    """
    copy = home.with_name(f"{home.name}-copy-{time.monotonic_ns()}")
    # Files that end while they are copied are missing in the copy, as with any copy of something in use.
    subprocess.run(["cp", "-a", str(home), str(copy)], check=False, stderr=subprocess.DEVNULL)
    try:
        if home_id(copy) == home_id(home):
            raise RuntimeError("a copied home goes by the name of its original")
        engine = Engine(copy, load(copy, settings).settings)
        engine.start()
        journals = len(engine.journal.writers()) - 1
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            engine.writer.wake()
            time.sleep(0.1)
        engine.close(Deadline.after(5))
        return journals
    finally:
        shutil.rmtree(copy, ignore_errors=True)
