#!/usr/bin/env python3
"""From a fresh clone to a working provider, or to a finished test run, with nothing but Python 3.11 to 3.14.

python3 start.py              make .venv, install the package into it, run `hermes-pgvector up`
python3 start.py test         make .venv, install what the tests need, run every test
python3 start.py COMMAND …    any other hermes-pgvector command, from the same environment

Options go to `up`: python3 start.py --dsn postgresql://ada@db.example.com/hermes
The environment is .venv in this folder; hermes' own stays as it is.
What the commands are: python3 start.py help
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
MARK = VENV / ".made-by-start"
OLDEST, NEWEST = (3, 11), (3, 14)
INTERRUPTED = 130
STAGES = ("Collecting", "Downloading", "Building", "Preparing", "Installing", "Using cached")


class Failed(Exception):
    """Something the user has to put right; the text says what."""


def install(extra: str) -> None:
    """Install the package with one of its extras, unless what it needs is as it was when that was last done."""
    import tomllib

    mark = VENV / f".installed-{extra}"
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = json.dumps([declared["build-system"], declared["project"]])
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    print("Installing into .venv here. The first time this takes about half a minute.", flush=True)
    make_environment()
    pip = [str(BIN / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]
    run_pip([*pip, "-e", f"{ROOT}[{extra}]"])
    mark.write_text(wanted, encoding="utf-8")


def make_environment() -> None:
    """Make .venv with a pip that works; one that was left half-made here is made anew, anybody else's is left alone."""
    if has_pip():
        return
    if not os.access(ROOT, os.W_OK):
        raise Failed(f"{ROOT} is not yours to write, so .venv cannot be made there; clone it into a folder of your own")
    if VENV.is_symlink() or VENV.exists():
        if VENV.is_symlink() or not (MARK.exists() or any(VENV.glob(".installed-*"))):
            raise Failed(
                f"{VENV} has no working pip, and start.py did not make it, so it is left as it is.\n"
                "Put pip into it (uv pip install pip, or python -m ensurepip), or move it away; then run this again"
            )
        shutil.rmtree(VENV)
    VENV.mkdir()
    MARK.touch()
    made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False)
    if made.returncode == 0 and has_pip():
        return
    shutil.rmtree(VENV, ignore_errors=True)
    if made.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
        # Ctrl-C reached the child first.
        raise KeyboardInterrupt
    said = (made.stdout + made.stderr).strip()
    if "ensurepip" in said:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise Failed(f"This Python cannot make virtual environments. On Debian or Ubuntu: sudo apt install {package}")
    raise Failed(f"{VENV} could not be made: {said.splitlines()[-1] if said else f'exit code {made.returncode}'}")


def has_pip() -> bool:
    """Whether .venv is there and complete."""
    try:
        probe = [str(BIN / "python"), "-c", "import pip"]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run_pip(command: list[str]) -> None:
    """Run pip and show what it is doing; its last words are the reason when it fails."""
    started, said = time.monotonic(), [""]
    width = shutil.get_terminal_size().columns - 1
    is_terminal = sys.stdout.isatty()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"
    )
    with process:
        try:
            for line in process.stdout or ():
                said.append(line.strip() or said[-1])
                if is_terminal and said[-1].startswith(STAGES):
                    print(f"\r\x1b[K  {time.monotonic() - started:3.0f} s  {said[-1]}"[:width], end="", flush=True)
        except BaseException:
            process.terminate()
            raise
        finally:
            print("\r\x1b[K" if is_terminal else "", end="", flush=True)
    code = process.returncode
    if code:
        errors = [line[len("error: ") :] for line in said if line.lower().startswith("error: ")] or said[-1:]
        hint = "Is this machine online? " if any("No matching distribution" in line for line in errors) else ""
        raise Failed(
            f"pip could not install the package: {errors[-1]}\n{hint}To see all it says: {shlex.join(command)}"
        )
    print(f"Installed in {time.monotonic() - started:.0f} s.", flush=True)


def main(arguments: list[str]) -> int:
    """Install what is needed, then hand over."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        print(f"Python {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]} is needed, this is {sys.version.split()[0]}")
        return 2
    if arguments[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    is_test = arguments[:1] == ["test"]
    try:
        install("dev" if is_test else "embedded")
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or ROOT}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; run it again to go on.", file=sys.stderr)
        return INTERRUPTED
    if is_test:
        # Most tests wait for a server, a process or a clock, so there are more workers than processors.
        workers = str(min(8, 3 * (os.cpu_count() or 1)))
        whole = ["-n", workers, "--dist", "loadfile", "--no-loadscope-reorder", "--randomly-seed=1"]
        command = [str(BIN / "python"), "-m", "pytest", "-q", *(arguments[1:] or whole)]
    else:
        is_command = arguments and not arguments[0].startswith("-")
        command = [str(BIN / "hermes-pgvector"), *(arguments if is_command else ["up", *arguments])]
    return hand_over(command, ROOT if is_test else None)


def hand_over(command: list[str], folder: Path | None) -> int:
    """Run the command to its end; Ctrl-C reaches it too, and it says what there is to say."""
    # What the program tells its user to run next works from here, too.
    own = {} if folder else {"HERMES_PGVECTOR_COMMAND": f"python3 {shlex.quote(sys.argv[0])}"}
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **own})
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
