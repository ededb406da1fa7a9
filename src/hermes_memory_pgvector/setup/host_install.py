"""Installs this package into the environment that hermes runs in."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector import distribution
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import host_python, terminal
from hermes_memory_pgvector.setup.host_python import HostPython

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings

# Lines of pip, pipx and uv that say how far they are.
_STAGES = ("Collecting", "Downloading", "Processing", "Preparing", "Building", "Installing", "Using cached", "Prepared")


_PIP_PROBE = """
import importlib.util, os, sys, sysconfig
print("pip" if importlib.util.find_spec("pip") is not None else "")
mark = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
print("managed" if sys.prefix == sys.base_prefix and os.path.exists(mark) else "")
"""
_STAGE_END = re.compile(r" \(|: ")
STAGE_CHARS = 44


def offer(settings: Settings, host: HostPython, *, may_install: bool, quiet: bool) -> HostPython:
    """Have hermes import this very package: at once when allowed, after one question on a terminal, or not at all.

    Returns the interpreter as it is afterwards; when it still lacks something, the caller says what to run.
    """
    if host.sees_package and host.is_current:
        return host
    words = command(host)
    if not quiet:
        terminal.bullet("note", f"hermes runs on {host.path} ({host.how}), which {shortcoming(host)}", typed(words))
        may_install = terminal.confirm("   Install it there now?", default=True, yes=may_install)
    if not may_install:
        return host
    started = time.perf_counter()
    with terminal.progress("installing for hermes", quiet=quiet) as bar:
        run(words, bar.phase if bar.is_watched else _keep_quiet)
    found = host_python.examine(host, settings)
    if not found.sees_package:
        raise ConfigError(f"{host.path} still cannot import {', '.join(found.lacks)}")
    if not quiet:
        took = terminal.seconds(time.perf_counter() - started)
        terminal.bullet("ok", f"package installed for hermes, into {host.path.parent.parent} ({took})")
    return found


def _keep_quiet(_: str) -> None:
    pass


def shortcoming(host: HostPython) -> str:
    """What keeps hermes from using this very package, as the end of a sentence."""
    if not host.lacks:
        return "has another version of this package"
    if "hermes_memory_pgvector" in host.lacks:
        return "does not have this package yet"
    return f"cannot import {', '.join(host.lacks)}"


def command(host: HostPython) -> list[str]:
    """The command that installs this package for hermes, with the tool that manages its environment."""
    wanted = distribution.requirement()
    if "pipx" in host.path.parts and (pipx := _program("pipx")):
        # pipx keeps a list of what was injected, so the package is still there after an upgrade of hermes.
        return [pipx, "inject", "--force", host.path.parent.parent.name, wanted]
    has_pip, consent = _pip_of(host.path)
    if has_pip:
        return [str(host.path), "-m", "pip", "install", *consent, wanted]
    if uv := _program("uv"):
        # uv would take a wheel that it built from an earlier state of the same folder.
        again = f"--reinstall-package={distribution.NAME}"
        return [uv, "pip", "install", f"--python={host.path}", *consent, again, wanted]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", f"--python={host.path}", "install", *consent, wanted]
    return [str(host.path), "-m", "pip", "install", *consent, wanted]


def removal_command(host: HostPython) -> list[str]:
    """The command that takes this package out of hermes's environment again."""
    if "pipx" in host.path.parts and (pipx := _program("pipx")):
        return [pipx, "uninject", host.path.parent.parent.name, distribution.NAME]
    has_pip, consent = _pip_of(host.path)
    if not has_pip and (uv := _program("uv")):
        return [uv, "pip", "uninstall", f"--python={host.path}", *consent, distribution.NAME]
    return [str(host.path), "-m", "pip", "uninstall", *consent, distribution.NAME]


def run(words: list[str], report: Callable[[str], None]) -> None:
    """Run the command and report its stages; ConfigError has its last words when it fails."""
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off", "NO_COLOR": "1"}
    try:
        process = subprocess.Popen(  # noqa: S603 - pip, pipx or uv
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
            encoding="utf-8", errors="replace", env={**os.environ, **quiet},
        )  # fmt: skip
    except OSError as error:
        raise ConfigError(f"{words[0]} cannot be run ({error.strerror})") from None
    said: list[str] = []
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                text = line.strip()
                if text:
                    said.append(text)
                if text.startswith(_STAGES):
                    report(_STAGE_END.split(text)[0][:STAGE_CHARS])
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        errors = [each[len("error: ") :] for each in said if each.lower().startswith("error: ")] or said[-1:]
        reason = errors[-1] if errors else f"exit code {process.returncode}"
        raise ConfigError(f"it could not be installed there: {reason}")


def typed(words: list[str]) -> str:
    """A command as one types it."""
    return shlex.join(words)


def _pip_of(python: Path) -> tuple[bool, tuple[str, ...]]:
    """Whether a Python has pip, and the options without which it installs nothing.

    A Python of the operating system refuses, and whoever runs hermes on it has consented to that for hermes already.
    """
    try:
        done = subprocess.run([python, "-c", _PIP_PROBE], capture_output=True, check=False, cwd="/")  # noqa: S603
    except OSError:
        return False, ()
    told = done.stdout.split()
    return b"pip" in told, ("--break-system-packages",) if b"managed" in told else ()


def _program(name: str) -> str | None:
    """A program on the PATH, or where its installer puts it."""
    return shutil.which(name) or shutil.which(name, path=os.path.expanduser("~/.local/bin"))  # noqa: PTH111
