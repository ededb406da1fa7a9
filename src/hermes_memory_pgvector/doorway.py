"""What the plugin folder calls: the provider and the commands, or a stand-in where a library is missing.

The stand-in needs the standard library and the host alone. With it the host lists the memory and offers to set it up,
instead of not knowing of it: `hermes memory setup pgvector` and `hermes pgvector up` fetch what is missing.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import carried
from hermes_memory_pgvector.errors import ConfigError

try:
    from agent.memory_provider import MemoryProvider
except ImportError:
    # The host's admission check loads the folder in a Python without the host.
    MemoryProvider = object

COMMAND = "hermes pgvector up"


class AbsentMemory(MemoryProvider):  # type: ignore[misc]
    """The memory without a library it needs: never available, and says why."""

    def __init__(self, home: Path, missing: str) -> None:
        self._home = home
        self._missing = missing

    @property
    def name(self) -> str:
        """The provider's name."""
        return "pgvector"

    def is_available(self) -> bool:
        """Never."""
        return False

    def unavailable_reason(self) -> str:
        """What is missing, and the command that fetches it."""
        return f"the library {self._missing} is missing; run: {COMMAND}"

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Nothing to prepare."""

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """No tools."""
        return []

    def post_setup(self, hermes_home: str, config: Any = None) -> None:
        """Fetch what is missing, then go on as the memory itself."""
        if _fetch(Path(hermes_home)):
            from hermes_memory_pgvector.provider import PgvectorMemoryProvider

            PgvectorMemoryProvider().post_setup(hermes_home, config)


def provider(plugin_folder: Path) -> MemoryProvider:
    """A fresh provider, or the stand-in, which is said in the log."""
    home = carried.home_of(plugin_folder)
    carried.activate(home)
    try:
        from hermes_memory_pgvector.provider import PgvectorMemoryProvider

        return PgvectorMemoryProvider()
    except ImportError as error:
        absent = AbsentMemory(home, error.name or str(error))
        logging.getLogger("hermes_memory_pgvector").warning(
            "The pgvector memory is off: %s", absent.unavailable_reason()
        )
        return absent


def configure(plugin_folder: Path, parser: argparse.ArgumentParser) -> None:
    """Add our commands to the parser that the host made, or take any words where a library is missing."""
    carried.activate(carried.home_of(plugin_folder))
    if carried.lacking():
        parser.add_argument("words", nargs=argparse.REMAINDER, help="`up` fetches the libraries that are missing")
        return
    from hermes_memory_pgvector import command_line

    command_line.configure(parser)


def dispatch(plugin_folder: Path, args: argparse.Namespace) -> int:
    """Run the chosen command; where a library is missing, `up` fetches it first and everything else says so."""
    words: list[str] | None = getattr(args, "words", None)
    if words is None:
        from hermes_memory_pgvector import command_line

        return command_line.dispatch(args)
    if words[:1] != ["up"]:
        sys.stderr.write(f"hermes pgvector: libraries are missing; run: {COMMAND}\n")
        return 1
    if not _fetch(carried.home_of(plugin_folder)):
        return 1
    from hermes_memory_pgvector import command

    sys.argv = ["hermes-pgvector", *words]
    return command.main()


def _fetch(home: Path) -> bool:
    """Put the libraries into the home and on the path; False after a sentence that says why not."""
    root = home.parent.parent if home.parent.name == "profiles" else home
    sys.stderr.write("Fetching the libraries of the pgvector memory. This takes about half a minute.\n")
    try:
        carried.carry(root, carried.OWN_VERSION, lambda _: None)
    except ConfigError as error:
        sys.stderr.write(f"hermes pgvector: {error}\n")
        return False
    carried.activate(home)
    return True
