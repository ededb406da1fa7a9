"""Gets hermes what it needs to import this package: libraries in the home, the plugin folder, and nothing else.

hermes' own environment stays as it is: it belongs to its package manager, and the next update makes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_memory_pgvector import carried
from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.ops.setup.host_python import HostPython
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.operation import Note


def carry(home: Path, host: HostPython | None) -> Iterator[Note]:
    """Put the libraries into the home; ConfigError when they cannot be had.

    Without hermes, they are fetched only if this Python lacks some.
    """
    root = root_of(home)
    carried.activate(home)
    if host is None and carried.is_all_here():
        return
    version = carried.OWN_VERSION if host is None else host.version
    with progress.step("libraries") as step, progress.shown("libraries") as bar:
        outcome = carried.carry(root, version, bar.phase, pythons=() if host is None else (host.path,))
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
