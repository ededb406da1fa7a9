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
    for python in PYTHONS:
        fitting, absent = 0, []
        for name, more in {"core": [], **project.get("optional-dependencies", {})}.items():
            # What comes from a URL is no wheel of the index; the host names itself in its extras.
            pinned = [
                each for each in (*project["dependencies"], *more) if not re.match(rf"{project['name']}|.* @ ", each)
            ]
            told = _objection(python, [*pinned, *ours], overrides)
            if not told:
                fitting += 1
            elif _objection(python, pinned, overrides):
                absent.append(name)
            else:
                misfits += 1
                print(f"Python {python}, {name} DOES NOT FIT:\n{told}")
        said = f"; these pins cannot be had as wheels by themselves: {', '.join(absent)}" if absent else ""
        print(f"Python {python}: core and extras that fit: {fitting}{said}", flush=True)
    return int(misfits > 0)


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
