"""Checks of the database: reachable, migrated, rows embedded, MEMORY.md and rows alike."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import (
    EmbeddingError,
    EmbeddingMisconfigured,
    Held,
    MemoryPluginError,
    SchemaError,
)
from hermes_memory_pgvector.ops import belonging as journal_database
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.setup.checks.finding import Finding, ok, problem, warning
from hermes_memory_pgvector.terminal import amounts
from hermes_memory_pgvector.text.secrets import masker_for

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.embedding import ModelInfo
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.values import EmbeddingModel

DATABASE_SECONDS = 60.0
EMBED_SECONDS = 15.0
MOST_COUNTED = 100_001


@dataclass(slots=True)
class Seen:
    """What earlier checks have learned and later ones need."""

    info: ModelInfo | None = None
    model: EmbeddingModel | None = None
    marks: dict[str, int] | None = None
    dead_letters: int = 0


def check_embedder(home: Path, settings: Settings, seen: Seen) -> Iterator[Finding]:
    """Whether the embedder works, and how fast."""
    where = parts.describe_embedder(home, settings)
    try:
        with parts.open_embedder(home, settings) as embedder:
            deadline = Deadline.after(EMBED_SECONDS)
            seen.info = embedder.info(deadline)
            embedder.embed_query("is anybody there", deadline)
            started = time.perf_counter()
            embedder.embed_query("a second question, with everything loaded", deadline)
            took = time.perf_counter() - started
    except EmbeddingMisconfigured as error:
        hint = "fix it with: hermes-pgvector config set; until then recall falls back to keyword search"
        yield problem("embedder", str(error), hint)
        return
    except EmbeddingError as error:
        if not settings.uses_local_model:
            hint = "check embed_url, embed_model and embed_api_key_env: hermes-pgvector config show"
        else:
            hint = "hermes-pgvector up fetches it; or set embed_url to an endpoint"
        yield problem("embedder", f"{where}: {error}", hint, unreachable=True)
        return
    info = seen.info
    yield ok("embedder", f"{info.name} ({info.protocol}), {info.dim} dimensions, {amounts.seconds(took)} per question")


def check(home: Path, settings: Settings, writers: list[str], seen: Seen) -> Iterator[Finding]:
    """Everything we can check in the database."""
    from hermes_memory_pgvector.store import overview, schema

    hint = "check the server and dsn: hermes-pgvector config get dsn" if settings.dsn else "hermes-pgvector up"
    try:
        with parts.open_pool(home, settings) as pool:
            started = time.perf_counter()
            with pool.transaction(Deadline.after(DATABASE_SECONDS), pause_seconds=DATABASE_SECONDS) as connection:
                overview.ping(connection)
                overview.check_transactions(connection)
                took = amounts.seconds(time.perf_counter() - started)
                yield from _server(connection, f"{parts.describe_database(home, settings)}; answers in {took}")
                try:
                    state = schema.verify(connection)
                except SchemaError as error:
                    yield problem("schema", str(error), "hermes-pgvector migrate")
                    return
                if state.news:
                    yield warning("schema", state.news, "pip install -U hermes-memory-pgvector")
                else:
                    yield ok("schema", f"version {state.version}, up to date")
                yield from _belonging(connection, home, settings)
                yield from _vectors(connection, settings, seen)
                yield from _mirror(connection, home, settings)
                _remember(connection, writers, seen)
    except Held as error:
        yield problem(
            "database", f"nothing is stored: {error}", "check config.yaml and .env: hermes-pgvector config show"
        )
    except MemoryPluginError as error:
        yield problem("database", f"{parts.describe_database(home, settings)}: {error}", hint, unreachable=True)


def _belonging(connection: Connection, home: Path, settings: Settings) -> Iterator[Finding]:
    reason = journal_database.objection(home, settings, connection)
    if reason:
        yield problem(
            "journal",
            f"nothing is stored: {reason}",
            "or switch back to the other one: hermes-pgvector config set dsn DSN",
        )


def _server(connection: Connection, where: str) -> Iterator[Finding]:
    from hermes_memory_pgvector.store import overview, schema

    facts = overview.server_facts(connection)
    owns = ", which owns the tables" if facts.owns_tables else ""
    told = f"Postgres {facts.version}, pgvector {facts.pgvector}, {amounts.size(facts.database_bytes)}"
    said, refusal = f"{where}; {told}; agents connect as {facts.role}{owns}", overview.read_only_reason(connection)
    if refusal:
        hint = "let dsn name the primary, or reset default_transaction_read_only of the role, database or server"
        yield problem("database", f"nothing is stored, for the database takes no writes: {refusal}; {said}", hint)
    else:
        yield ok("database", said)
    if facts.pgvector is None:
        yield problem("pgvector", "the extension is not installed in this database", "hermes-pgvector migrate")
    elif not schema.is_recent(facts.pgvector):
        yield problem("pgvector", f"{facts.pgvector} is too old", "upgrade it, then: ALTER EXTENSION vector UPDATE")


def _vectors(connection: Connection, settings: Settings, seen: Seen) -> Iterator[Finding]:
    from hermes_memory_pgvector.ops.setup.checks import model as model_checks
    from hermes_memory_pgvector.store import overview, vectors
    from hermes_memory_pgvector.store.current_model import current_model

    model = seen.model = current_model(connection)
    yield from model_checks.check(settings, seen.info, model)
    if model is None:
        return
    missing = overview.count_missing(connection, model, MOST_COUNTED)
    is_meant = not settings.embed_on_write or settings.conversation_embed_policy != "all"
    if missing and not is_meant:
        more = "more than " if missing == MOST_COUNTED else ""
        waiting = amounts.count(min(missing, MOST_COUNTED - 1), "row")
        yield warning(
            "vectors", f"{more}{waiting} without a vector; keyword search still finds them", "hermes-pgvector reembed"
        )
    else:
        meant = f"; {amounts.count(missing, 'row')} without one, as configured" if missing else ""
        yield ok("vectors", f"every row that should have a vector has one{meant}")
    for reason, count in vectors.given_up(connection).items():
        yield warning("vectors", f"{amounts.count(count, 'row')} get no vector: {reason}", "check embed_model")


def _mirror(connection: Connection, home: Path, settings: Settings) -> Iterator[Finding]:
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.mirror import memory_file
    from hermes_memory_pgvector.store import overview

    if not settings.bulk_sync_on_init:
        yield ok("mirror", "MEMORY.md and USER.md are not mirrored, as configured")
        return
    for target, name in memory_file.FILE_NAMES.items():
        entries = memory_file.read(home / "memories" / name, settings.memory_max_chars, masker_for(settings))
        if entries is None:
            if (home / "memories").is_dir():
                yield problem("mirror", f"{home / 'memories' / name} cannot be read")
            continue
        held = overview.entries_held(connection, home_id(home), target)
        unseen, stale = len(set(entries) - held), len(held - set(entries))
        if unseen or stale:
            said = [f"{amounts.count(unseen, 'entry', 'entries')} not stored yet"] if unseen else []
            said += [f"{amounts.count(stale, 'stored entry', 'stored entries')} no longer in the file"] if stale else []
            yield warning("mirror", f"{name}: {', '.join(said)}", "this is fixed the next time hermes runs")
        else:
            yield ok("mirror", f"{name}: {amounts.count(len(entries), 'entry', 'entries')}, all stored")


def _remember(connection: Connection, writers: list[str], seen: Seen) -> None:
    from hermes_memory_pgvector.store import dead_letters, watermarks

    seen.marks = watermarks.read(connection, writers)
    seen.dead_letters = len(dead_letters.newest(connection, 10_000))
