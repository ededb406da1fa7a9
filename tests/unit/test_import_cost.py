"""Whoever loads the memory waits for its import: what only commands need is not imported with it."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import hermes_memory_pgvector.provider
print(*(name for name in sys.modules))
"""
PACKAGE = "hermes_memory_pgvector"
ROOMS_OF_COMMANDS = {"carried", "command_line", "mcp", "ops", "schema", "tour", "web"}
FOR_COMMANDS = {"server.server", "server.dump", "server.accounts", "store.browse", "store.overview"}
LIBRARIES_OF_COMMANDS = {"ruamel", "tokenizers", "http.server", "argparse"}
ALSO_OF_THE_PROVIDER = {"ops", "ops.parts"}
EMBEDDERS = {"embedding.local", "embedding.remote", "embedding.http"}
"""An engine loads the one that its settings ask for."""
MOST_MODULES = 140


def test_importing_the_provider_brings_nothing_that_only_commands_need() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    ours = {name.removeprefix(f"{PACKAGE}.") for name in loaded if name.startswith(f"{PACKAGE}.")}
    assert {name for name in ours if name.partition(".")[0] in ROOMS_OF_COMMANDS} - ALSO_OF_THE_PROVIDER == set()
    assert ours & (FOR_COMMANDS | EMBEDDERS) == set()
    assert loaded & LIBRARIES_OF_COMMANDS == set()
    assert "runtime.engine" in ours
    assert len(ours) <= MOST_MODULES
