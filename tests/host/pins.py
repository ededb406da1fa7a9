"""Whether what a hermes-agent pins and what this package needs can be had together, as wheels: `make test-pins`.

HOST names the pyproject.toml of a checkout. Where its pins cannot be had by themselves for a version of Python, or
with one of its extras, that is said and is no fault of ours.
"""

from __future__ import annotations

import os
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
QUARANTINE = timedelta(days=14)
"""The host takes no release that is younger."""


def main(arguments: Sequence[str]) -> int:
    """Resolve for every Python, with and without the host's extras; 1 when ours do not fit."""
    if len(arguments) != 1:
        print("HOST= names the pyproject.toml of a hermes-agent", file=sys.stderr)
        return 2
    document = tomllib.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    project, overrides = document["project"], document.get("tool", {}).get("uv", {}).get("override-dependencies", [])
    extras = project.get("optional-dependencies", {})
    sets = {
        "core": project["dependencies"],
        "all extras": [*project["dependencies"], *(each for listed in extras.values() for each in listed)],
    }
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    mcp = next(each for each in own["dev"] if each.startswith("mcp"))
    ours = [*carried.NEEDED, *carried.MODEL, mcp]
    fits = True
    print(f"hermes-agent {project.get('version', '')} with {', '.join(ours)}")
    for python in PYTHONS:
        for name, theirs in sets.items():
            # What comes from a URL is no wheel of the index; the host names itself in its extras.
            pinned = [each for each in theirs if "@" not in each and not each.startswith(project["name"])]
            told = _objection(python, [*pinned, *ours], overrides)
            alone = _objection(python, pinned, overrides) if told else ""
            fits = fits and (not told or bool(alone))
            said = "fits" if not told else "the host's pins alone do not resolve" if alone else "DOES NOT FIT"
            print(f"Python {python}, {name}: {said}" + (f"\n{alone or told}" if told else ""), flush=True)
    return int(not fits)


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
