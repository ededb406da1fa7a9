#!/usr/bin/env python3
"""From a fresh clone to a working provider, or to a finished test run, with nothing but Python 3.11 to 3.13.

python3 start.py              make .venv, install the package into it, run `hermes-pgvector up`
python3 start.py test         make .venv, install what the tests need, run every test
python3 start.py COMMAND …    any other hermes-pgvector command, from the same environment
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
OLDEST, NEWEST = (3, 11), (3, 13)


def install(extra: str) -> None:
    """Install the package with one of its extras, unless what it needs is as it was when that was last done."""
    import tomllib

    mark = VENV / f".installed-{extra}"
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = json.dumps([declared["build-system"], declared["project"]])
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    print(f"installing into {VENV} …", flush=True)
    if not (BIN / "python").exists() and not (BIN / "python.exe").exists():
        venv.create(VENV, with_pip=True)
    pip = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-e", f"{ROOT}[{extra}]"], check=True)
    mark.write_text(wanted, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Install what is needed, then hand over."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        print(f"Python {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]} is needed, this is {sys.version.split()[0]}")
        return 2
    if arguments[:1] == ["test"]:
        install("dev")
        # Most tests wait for a server, a process or a clock: two at a time take little more than half as long.
        whole = ["-n", "2", "--dist", "loadfile"] if not arguments[1:] else []
        command = [str(BIN / "python"), "-m", "pytest", "-q", *whole, *arguments[1:]]
    else:
        install("embedded")
        command = [str(BIN / "hermes-pgvector"), *(arguments or ["up"])]
    # What the program tells its user to run next works from here, too.
    environment = {**os.environ, "HERMES_PGVECTOR_COMMAND": f"python3 {Path(sys.argv[0])}"}
    is_test = arguments[:1] == ["test"]
    return subprocess.run(command, cwd=ROOT if is_test else None, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
