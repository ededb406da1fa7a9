"""The Python that runs `hermes`: where it is, and whether it can import this package.

hermes usually lives in an environment of its own (a venv, pipx, a uv tool). Only that one decides whether agents have
this memory: it imports the plugin folder, with what the home carries (`carried`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_memory_pgvector import carried, files
from hermes_memory_pgvector.config.home import private_folder, root_of
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, data_folder
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.operation import Note

PROBE_SECONDS = 60.0
OPTION = "--hermes-python"
CHOICE_NAME = "hermes-python"
BY_HOST = "which hermes itself names"

# Importing the provider by way of the plugin folder is what hermes does; whoever lacks a module is told its name.
PROBE = """
import importlib.machinery, importlib.util, json, sys
from pathlib import Path
# A script finds what lies beside it.
beside = importlib.machinery.PathFinder.find_spec("hermes_cli", sys.argv[1:2])
has_host = importlib.util.find_spec("hermes_cli") is not None or beside is not None
told = {"host": has_host, "lacks": [], "python": sys.version_info[:2]}
folder = Path(sys.argv[2])
sys.path.insert(0, str(folder / "lib"))
try:
    from hermes_memory_pgvector import carried
    carried.activate(carried.home_of(folder))
    told["lacks"] = carried.lacking()
    if has_host:
        from hermes_memory_pgvector.provider import PgvectorMemoryProvider
except ImportError as error:
    told["lacks"].append(error.name or "hermes_memory_pgvector")
print()
print(json.dumps(told))
"""


@dataclass(frozen=True, slots=True)
class HostPython:
    """The interpreter that runs `hermes`."""

    path: Path
    how: str
    """How we know, in words."""
    has_host: bool = True
    lacks: tuple[str, ...] = ()
    """Modules it needs and cannot import, even with what the home carries."""
    version: carried.Version = carried.OWN_VERSION
    named: Path | None = None
    """The interpreter that hermes itself says it runs on, where it can say that."""

    @property
    def sees_package(self) -> bool:
        """Whether hermes can use this memory."""
        return self.has_host and not self.lacks


def find(home: Path, given: Path | None = None) -> HostPython | None:
    """The interpreter that runs hermes for this user; None when hermes-agent is not installed."""
    if given is not None:
        found = _examine(home, _chosen(given), f"given with {OPTION}")
        if not found.has_host:
            raise ConfigError(f"{found.path} does not run hermes: hermes-agent is not installed there")
        return found
    named = _named_by_host()
    for path, how in _candidates(home, named):
        found = replace(_examine(home, path, how), named=named)
        if found.has_host:
            return found
    return None


def examine(home: Path, host: HostPython) -> HostPython:
    """The same interpreter as it is now."""
    return replace(_examine(home, host.path, host.how), named=host.named)


def remember(home: Path, host: HostPython) -> None:
    """Keep the operator's choice, so that `doctor` looks at the same interpreter."""
    files.replace(private_folder(home) / CHOICE_NAME, f"{host.path}\n".encode("utf-8", "surrogateescape"))


def carry(home: Path, host: HostPython | None) -> Iterator[Note]:
    """Put the libraries into the home; ConfigError when they cannot be had.

    hermes' own environment stays as it is: the next update makes it anew. Without hermes, libraries are fetched only
    if this Python lacks some.
    """
    carried.activate(home)
    if host is None and carried.is_all_here():
        return
    version = carried.OWN_VERSION if host is None else host.version
    with progress.shown("libraries") as step:
        outcome = carried.carry(root_of(home), version, step.phase, pythons=() if host is None else (host.path,))
        carried.activate(home)
        step.said.append(f"for Python {version[0]}.{version[1]}, in the home")
    if outcome.is_new:
        yield step.note
    if outcome.problem:
        yield Note("note", outcome.problem)


def shortcoming(host: HostPython) -> str:
    """What keeps hermes from using this package, as a clause."""
    if "hermes_memory_pgvector" in host.lacks:
        return f"hermes runs on {host.path} ({host.how}), and the plugin folder is not in place"
    return f"hermes runs on {host.path} ({host.how}), which cannot import {', '.join(host.lacks)}"


def _chosen(given: Path) -> Path:
    """The interpreter that an operator names: by itself, by its environment's folder, or by the `hermes` it runs."""
    path = given.expanduser().absolute()
    if path.is_dir():
        path = path / "bin" / "python"
    elif path.is_file() and "python" not in path.name:
        path = _interpreter(path) or path
    if not (path.is_file() and os.access(path, os.X_OK) and "python" in path.name):
        raise ConfigError(f"{given} is not a Python, an environment's folder or the `hermes` command")
    return path


def _command() -> str | None:
    """The `hermes` of the PATH, or the one that its installers put where a new shell finds it."""
    usual = os.path.expanduser("~/.local/bin")  # noqa: PTH111 - Path.home() raises for a user without a home
    return shutil.which("hermes") or shutil.which("hermes", path=usual)


def _named_by_host() -> Path | None:
    """What hermes answers when it is asked how it is run; a command that is a Python script is run by its Python."""
    command = _command()
    if command is None or b"python" in files.look(Path(command)).data[:200].partition(b"\n")[0]:
        return None
    words = _answered([command, "--print-runtime-command"])
    return Path(words[0]) if words and Path(words[0]).is_absolute() and Path(words[0]).is_file() else None


def _answered(words: Sequence[str]) -> list[str]:
    """The command that hermes prints as JSON; nothing where it does not know the option."""
    try:
        done = subprocess.run(  # noqa: S603 - the host's own command
            words, capture_output=True, timeout=PROBE_SECONDS, check=False, cwd="/", stdin=subprocess.DEVNULL
        )
        told = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return []
    return told if isinstance(told, list) and all(isinstance(each, str) for each in told) else []


def _candidates(home: Path, named: Path | None) -> Iterator[tuple[Path, str]]:
    """Where hermes may live, the likeliest first."""
    if named is not None:
        yield named, BY_HOST
    kept = files.look(data_folder(home) / CHOICE_NAME).data.decode("utf-8", "surrogateescape").strip()
    if kept and Path(kept).exists():
        yield Path(kept), f"given with {OPTION} before"
    command = _command()
    path = _interpreter(Path(command)) if command else None
    if path is not None:
        yield path, f"the Python of {command}"
    yield Path(sys.executable), "this Python"


def _examine(home: Path, path: Path, how: str) -> HostPython:
    command = _command()
    beside = Path(command).resolve().parent if command and _interpreter(Path(command)) == path else ""
    words = [str(path), "-c", PROBE, str(beside), str(home / "plugins" / PROVIDER_NAME)]
    if command and how == BY_HOST:
        # Only its own command puts its libraries on the path; `timeit` runs any code, and is everywhere.
        asked = f"import sys; sys.argv = {['-', *words[3:]]!r}\n{PROBE}"
        options = ("-n", "1", "-r", "1", "-s", f"exec({asked!r}, {{}})", "pass")
        words = _answered([command, "--print-runtime-command", "--module", "timeit", "--", *options]) or words
    try:
        # In the root folder: modules that lie in the working directory must not count.
        done = subprocess.run(  # noqa: S603 - the interpreter that runs hermes
            words, capture_output=True, timeout=PROBE_SECONDS, check=False, cwd="/", stdin=subprocess.DEVNULL
        )
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        told = json.loads(next(line for line in reversed(lines) if line.startswith("{")))
        version = told["python"][0], told["python"][1]
        return HostPython(path, how, bool(told["host"]), tuple(told["lacks"]), version)
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, IndexError, StopIteration):
        return HostPython(path, how, has_host=False)


def _interpreter(script: Path) -> Path | None:
    """Follow the first line, or the `exec` line of a shell wrapper, to a Python."""
    try:
        with script.open("rb") as stream:
            head = stream.read(4096).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    words = head.partition("\n")[0].removeprefix("#!").split()
    if not head.startswith("#!") or not words:
        return None
    if Path(words[0]).name == "env" and words[-1].startswith("python"):
        found = shutil.which(words[-1])
        return Path(found) if found else None
    if "python" in Path(words[0]).name:
        return Path(words[0])
    wrapped = re.search(r"^\s*(?:'''exec'|exec)\s+[\"']?([^\"'\n]+?)[\"']?\s+\"?\$", head, re.MULTILINE)
    if wrapped is None:
        return None
    target = Path(wrapped[1])
    return target if "python" in target.name else _interpreter(target)
