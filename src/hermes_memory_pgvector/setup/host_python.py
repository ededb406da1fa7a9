"""The Python that runs `hermes`, which must be able to import this package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROBE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class HostPython:
    """The interpreter that runs `hermes`, and whether it can import this package."""

    path: Path
    sees_package: bool


def find() -> HostPython | None:
    """The interpreter behind `hermes` on the PATH; None when there is no such command or we cannot tell."""
    command = shutil.which("hermes")
    path = _interpreter(Path(command)) if command else None
    if path is None:
        return None
    if path.parent == Path(sys.executable).parent:
        return HostPython(path, sees_package=True)
    probe = [str(path), "-c", "import hermes_memory_pgvector, psycopg"]
    try:
        done = subprocess.run(probe, capture_output=True, timeout=PROBE_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return HostPython(path, sees_package=False)
    return HostPython(path, sees_package=done.returncode == 0)


def _interpreter(script: Path, depth: int = 0) -> Path | None:
    """Follow the first line, or the `exec` line of a shell wrapper, to a Python."""
    try:
        with script.open("rb") as stream:
            head = stream.read(4096).decode("utf-8", "replace")
    except OSError:
        return None
    first = head.partition("\n")[0]
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words:
        return None
    if Path(words[0]).name == "env" and len(words) > 1 and words[-1].startswith("python"):
        found = shutil.which(words[-1])
        return Path(found) if found else None
    if "python" in Path(words[0]).name:
        return Path(words[0])
    wrapped = re.search(r"^\s*(?:'''exec'|exec)\s+[\"']?([^\"'\n]+?)[\"']?\s+\"?\$", head, re.MULTILINE)
    if wrapped is None or depth:
        return None
    target = Path(wrapped[1])
    return target if "python" in target.name else _interpreter(target, depth + 1)
