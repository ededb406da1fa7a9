"""The questions of `hermes memory setup pgvector`. Enter, or no input at all, keeps the current value."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import DECLARATIONS, Settings, shown
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError, SchemaError
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.ops import new_settings, parts, password
from hermes_memory_pgvector.terminal import render, sink
from hermes_memory_pgvector.terminal.operation import Mark, Note

NO = ("n", "no")
NONE = "none"
EMBEDDED = "embedded"
MOST_TRIES = 3
INTERRUPTED = 130
CONNECT_SECONDS = 60.0
ENDPOINT_QUESTIONS = ("embed_model", "embed_api_key_env")
"""Asked only when there is an endpoint."""


def run(home: Path) -> None:
    """Ask, write what changed, test, offer to migrate, and make us the host's memory provider.

    The host would show a traceback for whatever ends this early, so it ends the program with a sentence.
    """
    try:
        _ask(home)
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


def _ask(home: Path) -> None:
    sink.write()
    sink.write("pgvector memory: press Enter to keep the value in [brackets].")
    settings = load(home).settings
    _prompt_dsn(home, settings)
    has_endpoint = _prompt_setting(home, settings, "embed_url", NONE)
    if has_endpoint:
        for name in ENDPOINT_QUESTIONS:
            _prompt_setting(home, load(home).settings, name, NONE)
    if settings_file.set_provider(home, PROVIDER_NAME):
        _tell("ok", f"memory.provider is now {PROVIDER_NAME}")
    _test(home)
    sink.write("  To check everything: hermes-pgvector doctor")


def _prompt_setting(home: Path, settings: Settings, name: str, nothing: str) -> str:
    """Ask for one setting and write it if it can work; ask again if not. Returns the value in force."""
    for _ in range(MOST_TRIES):
        current = str(shown(settings, name) or nothing)
        answer = _prompt(DECLARATIONS[name].help, current)
        if not answer or answer == current:
            break
        try:
            changed = new_settings.save(home, {name: "" if answer == nothing else answer})
        except MemoryPluginError as error:
            _tell("problem", str(error))
            continue
        if changed:
            _tell("ok", f"written: {name}")
        break
    return str(getattr(load(home).settings, name) or "")


def _prompt_dsn(home: Path, settings: Settings) -> None:
    from hermes_memory_pgvector.postgres.conninfo import check_conninfo

    for _ in range(MOST_TRIES):
        current = shown(settings, "dsn") if settings.dsn else EMBEDDED
        way_back = f" ({EMBEDDED}: the server of this home)" if settings.dsn else ""
        answer = _prompt(f"{DECLARATIONS['dsn'].help}{way_back}", current)
        if not answer or answer == current:
            return
        if answer.lower() == EMBEDDED:
            changed = new_settings.unset_dsn(home)
            _tell("ok", "written: dsn, the embedded server of this home" if changed else "unchanged")
            return
        if check_conninfo(answer) is not None:
            _tell(
                "problem", "that is not a valid connection string", "write it like postgresql://user@host:5432/database"
            )
            continue
        try:
            complete = password.complete(answer)
        except MemoryPluginError as error:
            _tell("problem", str(error), "nothing was written; give another, or Enter to keep the current one")
            continue
        if new_settings.save_dsn(home, complete):
            _tell("ok", "written: dsn")
        return


def _test(home: Path) -> None:
    """Connect, and offer to update the schema when that is all that is missing."""
    from hermes_memory_pgvector.store import schema

    settings = load(home).settings
    is_new = not settings.dsn and not parts.has_embedded_data(home, settings)
    try:
        if not is_new:
            with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(CONNECT_SECONDS)) as reader:
                schema.verify(reader)
            _tell("ok", f"the database is ready: {parts.describe_database(home, settings)}")
            return
        _tell("note", "the embedded database of this home does not exist yet")
    except SchemaError as error:
        _tell("warning", str(error))
    except MemoryPluginError as error:
        where = parts.describe_database(home, settings)
        _tell("problem", f"{where}: {error}", "until it answers, memories wait in the journal")
        return
    if _prompt("Create or update the database schema now? (yes/no)", "yes", takes_silence=False).lower() in NO:
        _tell("note", "later: hermes-pgvector migrate")
        return
    _migrate(home, settings)


def _migrate(home: Path, settings: Settings) -> None:
    try:
        admin = database.admin_dsn(home, settings, None)
        wanted = database.wanted_model(home, settings)
        role = database.role_for(settings, admin)
        outcome = database.apply(admin, role, wanted.spec, adopt_model=settings.embed_model)
    except MemoryPluginError as error:
        _tell("problem", str(error), "hermes-pgvector migrate --admin-dsn OWNER_DSN")
        return
    for note in database.told(outcome, wanted):
        render.tell(note)


def _tell(mark: Mark, text: str, hint: str = "") -> None:
    render.tell(Note(mark, text, hint))


def _prompt(question: str, current: str, *, takes_silence: bool = True) -> str:
    """The trimmed answer; empty for Enter. The end of input counts as Enter, or as "no" where that is safer."""
    print(f"  {question}\n  [{current}] ", end="", flush=True)
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        sink.write()
    if not line and not takes_silence:
        return "no"
    return line.strip()
