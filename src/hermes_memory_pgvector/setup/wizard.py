"""The questions of `hermes memory setup pgvector`. Enter, or no input at all, keeps the current value."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import DECLARATIONS, Settings, shown
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError, SchemaError
from hermes_memory_pgvector.setup import database, new_settings, parts, terminal

NO = ("n", "no")
NONE = "none"
CONNECT_SECONDS = 60.0
QUESTIONS = ("embed_url", "embed_model", "embed_api_key_env")


def run(home: Path) -> None:
    """Ask, write what changed, test, offer to migrate, and make us the host's memory provider."""
    terminal.say()
    terminal.say("pgvector memory: press Enter to keep the value in [brackets].")
    settings = load(home).settings
    _prompt_dsn(home, settings)
    given = {}
    for name in QUESTIONS:
        answer = _prompt(DECLARATIONS[name].help, shown(settings, name) or NONE)
        if answer:
            given[name] = "" if answer == NONE else answer
    try:
        changed = new_settings.save(home, given)
    except MemoryPluginError as error:
        terminal.bullet("problem", str(error), "the answers after the connection string were not saved")
        changed = []
    if changed:
        terminal.bullet("ok", f"written: {', '.join(changed)}")
    if settings_file.set_provider(home, PROVIDER_NAME):
        terminal.bullet("ok", f"memory.provider is now {PROVIDER_NAME}")
    _test(home)
    terminal.say("  To check everything: hermes-pgvector doctor")


def _prompt_dsn(home: Path, settings: Settings) -> None:
    from hermes_memory_pgvector.store.pool import check_conninfo

    current = shown(settings, "dsn") if settings.dsn else "the embedded server of this home"
    answer = _prompt(DECLARATIONS["dsn"].help, current)
    if not answer or answer == current:
        return
    if check_conninfo(answer) is not None:
        terminal.bullet("problem", "that is not a valid connection string; the current one is kept")
        return
    if new_settings.save_dsn(home, answer):
        terminal.bullet("ok", "written: dsn")


def _test(home: Path) -> None:
    """Connect, and offer to update the schema when that is all that is missing."""
    from hermes_memory_pgvector.store import schema

    settings = load(home).settings
    is_new = not settings.dsn and not parts.has_embedded_data(home)
    try:
        if not is_new:
            with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(CONNECT_SECONDS)) as reader:
                schema.verify(reader)
            terminal.bullet("ok", f"the database is ready: {parts.describe_database(home, settings)}")
            return
        terminal.bullet("note", "the embedded database of this home does not exist yet")
    except SchemaError as error:
        terminal.bullet("warning", str(error))
    except MemoryPluginError as error:
        where = parts.describe_database(home, settings)
        terminal.bullet("problem", f"{where}: {error}", "until it answers, memories wait in the journal")
        return
    if _prompt("Create or update the database schema now? (yes/no)", "yes", takes_silence=False).lower() in NO:
        terminal.bullet("note", "later: hermes-pgvector migrate")
        return
    _migrate(home, settings)


def _migrate(home: Path, settings: Settings) -> None:
    try:
        admin = database.admin_dsn(home, settings, None)
        wanted = database.wanted_model(home, settings)
        role = database.role_for(settings, admin)
        outcome = database.apply(admin, role, wanted.spec, adopt_model=settings.embed_model, quiet=False)
    except MemoryPluginError as error:
        terminal.bullet("problem", str(error), "hermes-pgvector migrate --admin-dsn OWNER_DSN")
        return
    database.tell(outcome, wanted)


def _prompt(question: str, current: str, *, takes_silence: bool = True) -> str:
    """The trimmed answer; empty for Enter. The end of input counts as Enter, or as "no" where that is safer."""
    print(f"  {question}\n  [{current}] ", end="", flush=True)
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        terminal.say()
    if not line and not takes_silence:
        return "no"
    return line.strip()
