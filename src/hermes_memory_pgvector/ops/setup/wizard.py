"""The questions of `hermes memory setup pgvector`: the database and the embedder; then it does what `up` does."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_memory_pgvector.config.settings import DECLARATIONS, shown
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.ops import new_settings, password
from hermes_memory_pgvector.ops.memory import memory_of
from hermes_memory_pgvector.ops.setup.up import UP
from hermes_memory_pgvector.terminal import ask, render, sink
from hermes_memory_pgvector.terminal.operation import Note

EMBEDDED, NONE = "embedded", "none"
INTERRUPTED = 130
ENDPOINT_QUESTIONS = ("embed_model", "embed_api_key_env")
"""Asked only when there is an endpoint."""


def run(home: Path) -> None:
    """Ask, write what changed, and set up the memory.

    The host would show a traceback for whatever ends this early, so it ends the program with a sentence.
    """
    try:
        sink.write()
        sink.write("pgvector memory: press Enter to keep the value in [brackets].")
        _ask(home, "dsn", EMBEDDED)
        if _ask(home, "embed_url", NONE):
            for name in ENDPOINT_QUESTIONS:
                _ask(home, name, NONE)
        render.show(UP.run(memory_of(home), **{each.key: each.read({}) for each in UP.options}), as_json=False)
    except KeyboardInterrupt:
        sink.write()
        sys.stderr.write("interrupted; what you answered before is kept\n")
        sys.exit(INTERRUPTED)
    except MemoryPluginError as error:
        render.complain(str(error))
        sys.exit(1)
    except OSError as error:
        render.complain(f"{error.filename or home}: {(error.strerror or type(error).__name__).lower()}")
        sys.exit(1)


def _ask(home: Path, name: str, nothing: str) -> str:
    """Ask for one setting and write it if it can work; returns the value in force."""
    settings = load(home).settings
    current = str((shown(settings, name) if getattr(settings, name) else "") or nothing)
    answer = ask.ask(f"  {DECLARATIONS[name].help}\n ", current)
    if answer != current:
        try:
            _save(home, name, "" if answer == nothing else answer)
        except MemoryPluginError as error:
            render.tell(Note("problem", str(error), "it stays as it was; to change it: hermes-pgvector config set"))
    return str(getattr(load(home).settings, name) or "")


def _save(home: Path, name: str, value: str) -> None:
    if name != "dsn":
        changed = bool(new_settings.save(home, {name: value}))
    elif value:
        new_settings.check(home, {name: value})
        changed = new_settings.save_dsn(home, password.complete(value))
    else:
        changed = new_settings.unset_dsn(home)
    if changed:
        render.tell(Note("ok", f"written: {name}"))
