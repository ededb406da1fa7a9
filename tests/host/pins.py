"""Whether what a hermes-agent pins and what this package needs can be had together, as wheels: `make test-pins`.

HOST names the pyproject.toml of a checkout. Pins that cannot be had by themselves, of an extra or for a version of
Python, are said and no fault of ours.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_memory_pgvector import carried
from testing.environments import uv

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MISFIT = "DOES NOT FIT"
QUARANTINE = timedelta(days=14)
"""The host takes no release that is younger."""


def main(arguments: Sequence[str]) -> int:
    """Resolve for every Python, the core alone and with each extra; 1 when ours do not fit."""
    if len(arguments) != 1:
        print("HOST= names the pyproject.toml of a hermes-agent", file=sys.stderr)
        return 2
    document = tomllib.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    project, overrides = document["project"], document.get("tool", {}).get("uv", {}).get("override-dependencies", [])
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    ours = [*carried.NEEDED, *carried.MODEL, next(each for each in own["dev"] if each.startswith("mcp"))]
    print(f"hermes-agent {project.get('version', '')} with {', '.join(ours)}")
    misfits = 0
    extras = project.get("optional-dependencies", {})
    everything = {"the core with all extras": [each for listed in extras.values() for each in listed]}
    for python in PYTHONS:
        said = []
        for sets in (everything, {"the core": [], **extras}):
            found = {
                name: _judged(python, [*project["dependencies"], *more], project["name"], ours, overrides)
                for name, more in sets.items()
            }
            said = [f"{name} {verdict}" for name, verdict in found.items() if verdict]
            if not said:
                said = [f"{', '.join(sets)}: fits"]
                break
            if sets is not everything:
                misfits += sum(MISFIT in each for each in said)
        print(f"Python {python}: " + "\n  ".join(said), flush=True)
    return int(misfits > 0)


def _judged(python: str, theirs: Sequence[str], host: str, ours: Sequence[str], overrides: Sequence[str]) -> str:
    """What is wrong with a set of the host's pins; nothing when ours go with it."""
    # What comes from a URL is no wheel of the index; the host names itself in its extras.
    pinned = [each for each in theirs if not re.match(rf"{host}|.* @ ", each)]
    told = _objection(python, [*pinned, *ours], overrides)
    if not told:
        return ""
    return "cannot be had as wheels by itself" if _objection(python, pinned, overrides) else f"{MISFIT}\n{told}"


def _objection(python: str, requirements: Sequence[str], overrides: Sequence[str]) -> str:
    """Why requirements cannot be had together; empty when they can."""
    until = (datetime.now(UTC) - QUARANTINE).isoformat(timespec="seconds")
    words = ["pip", "compile", "--quiet", "--no-header", "--only-binary", ":all:", "--python-version", python]
    with tempfile.TemporaryDirectory() as folder:
        wanted, instead = Path(folder, "wanted.in"), Path(folder, "overrides.in")
        wanted.write_text("\n".join(requirements), encoding="utf-8")
        instead.write_text("\n".join(overrides), encoding="utf-8")
        done = subprocess.run(
            [uv(), *words, "--exclude-newer", until, "--override", instead, wanted],
            capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
    return done.stderr.strip() if done.returncode else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
