"""Gets hermes what it needs to import this package: libraries in the home, the plugin folder, and nothing else.

hermes' own environment stays as it is: it belongs to its package manager, and the next update makes it anew.
"""

from __future__ import annotations

import time
from pathlib import Path

from hermes_memory_pgvector import carried
from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.ops.setup import host_python, plugin_folder
from hermes_memory_pgvector.ops.setup.host_python import HostPython
from hermes_memory_pgvector.terminal import lines as terminal


def carry(home: Path, host: HostPython | None, *, quiet: bool) -> None:
    """Put the libraries into the home; ConfigError when they cannot be had.

    Without hermes, they are fetched only if this Python lacks some.
    """
    root = root_of(home)
    carried.activate(home)
    if host is not None or not carried.is_all_here():
        version = carried.OWN_VERSION if host is None else host.version
        started = time.perf_counter()
        with terminal.progress("libraries", quiet=quiet) as bar:
            outcome = carried.carry(root, version, bar.phase, pythons=() if host is None else (host.path,))
        carried.activate(home)
        if outcome.is_new and not quiet:
            took = terminal.seconds(time.perf_counter() - started)
            terminal.bullet("ok", f"libraries for Python {version[0]}.{version[1]}, in the home ({took})")
        if outcome.problem and not quiet:
            terminal.bullet("note", outcome.problem)


def connect(home: Path, host: HostPython, *, quiet: bool) -> HostPython:
    """Put the plugin folder into the home; the interpreter as it is afterwards."""
    with terminal.step("plugin folder", quiet=quiet) as said:
        said.append(plugin_folder.install(home).change)
    return host_python.examine(home, host)


def shortcoming(host: HostPython) -> str:
    """What keeps hermes from using this package, as a clause."""
    if "hermes_memory_pgvector" in host.lacks:
        return f"hermes runs on {host.path} ({host.how}), and the plugin folder is not in place"
    return f"hermes runs on {host.path} ({host.how}), which cannot import {', '.join(host.lacks)}"
