"""Runs what matters most in every hermes-agent we claim to work with: `make test-hosts`.

Each published version gets an environment of its own, with nothing of ours in it: the homes carry what is needed.
HOSTS names more environments, separated by blanks: of a checkout, say, installed with `pip install --editable`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".hosts"
PUBLISHED = (
    "0.13.0", "0.14.0", "0.15.0", "0.15.1", "0.15.2", "0.16.0", "0.17.0", "0.18.0", "0.18.1", "0.18.2", "0.19.0",
)  # fmt: skip
BESIDE = ("aiohttp>=3.11,<4",)
"""What a gateway's API server needs of the host's extras."""
PROFILES_FROM = (0, 19)
"""Before, a gateway served one profile, or answered with an error of its own when it was to serve several."""
SINCE = {"undo": (0, 16), "batch": (0, 18), "picture": (0, 15, 1)}
"""Words in the names of tests, and the first version that can do what they name: 0.17 has batches, but does not report
what they take out, so the rows follow when the file changes next; before 0.15.1 no transcript comes with a turn, and a
picture is described in two ways."""
CHECKS = {
    "chat": ("tests/host/test_one_shot.py",),
    "gateway": ("tests/host/test_gateway.py",),
    "sessions": ("tests/host/test_session_boundaries.py",),
    "profiles": (
        "tests/host/test_gateway_life.py::test_profiles_behind_one_gateway_keep_their_own_files",
        "tests/host/test_profiles_of_a_gateway.py",
    ),
}


@dataclass(frozen=True, slots=True)
class Host:
    """An environment with a hermes-agent."""

    name: str
    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"


def main() -> int:
    """Make the environments, run the checks in each, print a table; 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="*", help="published versions (default: all)")
    given = parser.parse_args().versions
    named = [Path(each).expanduser().absolute() for each in os.environ.get("HOSTS", "").split()]
    versions = given or ([] if named else list(PUBLISHED))
    hosts = [*map(_published, versions), *(Host(_version_of(each) or each.name, each) for each in named)]
    rows = [(host.name, {check: _run(host, check) for check in CHECKS}) for host in hosts]
    print(f"\n{'hermes-agent':<14}" + "".join(f"{check:<16}" for check in CHECKS))
    for name, results in rows:
        print(f"{name:<14}" + "".join(f"{said:<16}" for said, _ in results.values()))
    return 0 if rows and all(is_fine for _, results in rows for _, is_fine in results.values()) else 1


def _published(version: str) -> Host:
    """The environment of a version from the index, made on first use."""
    folder = ENVIRONMENTS / version
    if _version_of(folder) != version:
        print(f"installing hermes-agent {version}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        wanted = (f"hermes-agent=={version}", *BESIDE)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted], check=True)
    return Host(version, folder)


def _version_of(folder: Path) -> str:
    python = folder / "bin" / "python"
    if not python.exists():
        return ""
    asked = "from importlib import metadata; print(metadata.version('hermes-agent'))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _run(host: Host, check: str) -> tuple[str, bool]:
    version = numbers(_version_of(host.folder))
    if check == "profiles" and version < PROFILES_FROM:
        return "-", True
    print(f"{host.name}: {check}", flush=True)
    left_out = " and ".join(f"not {word}" for word, since in SINCE.items() if version < since)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--tb=short", "-k", left_out, *CHECKS[check]],
        env={**os.environ, "HERMES_HOST_BIN": str(host.bin)}, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stdout[-6000:])
    said = done.stdout.strip().rpartition("\n")[2].partition(" in ")[0]
    return said.replace(" passed", " ok").replace(" deselected", " left"), done.returncode == 0


def numbers(version: str) -> tuple[int, ...]:
    """What a version begins with: that of a checkout may go on with more than numbers."""
    found = re.match(r"\d+(?:\.\d+){0,2}", version)
    return tuple(int(each) for each in found[0].split(".")) if found else ()


if __name__ == "__main__":
    sys.exit(main())
