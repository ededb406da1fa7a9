"""Options that every command has, and the parts of the house that commands open for themselves."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.settings_file import data_folder, default_home, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, Held, ServerError

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.embedding import Embedder
    from hermes_memory_pgvector.engine.engine import Engine
    from hermes_memory_pgvector.store.pool import Connection, Pool

PLACE_SECONDS = 60.0
ADMIN_VARIABLE = "HERMES_PGVECTOR_ADMIN_DSN"


def add_common(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    """The options every command understands."""
    parser.add_argument(
        "--hermes-home", type=Path, metavar="DIR", help="hermes home (default: $HERMES_HOME, ~/.hermes)"
    )
    if json:
        parser.add_argument("--json", action="store_true", help="print the result as JSON")


def positive(text: str) -> int:
    """A whole number above zero."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expects a whole number above 0, not {text!r}")
    return value


def home_of(args: argparse.Namespace) -> Path:
    """The hermes home a command is about."""
    given = getattr(args, "hermes_home", None)
    home: Path = (given or default_home()).expanduser().absolute()
    if given and not home.is_dir():
        raise ConfigError(f"there is no folder {home}; give the hermes home that `hermes config path` names")
    return home


def has_embedded_data(home: Path) -> bool:
    """Whether this home's embedded server has ever been made."""
    from hermes_memory_pgvector.server.folder import has_data

    return has_data(data_folder(home))


def place(home: Path, settings: Settings) -> str:
    """Where the database is, without its password."""
    if not settings.dsn:
        return f"embedded, in {data_folder(home)}"
    from hermes_memory_pgvector.store.conninfo import brief

    try:
        return brief(settings.dsn)
    except ConfigError as error:
        return str(error)


def runtime_dsn(home: Path, settings: Settings, deadline: Deadline) -> str:
    """The connection string in force; starts an existing embedded server but never makes one."""
    if settings.hold:
        raise Held(settings.hold)
    if settings.dsn:
        return settings.dsn
    keep_from_embedded(home)
    if not has_embedded_data(home):
        raise ServerError("there is no database yet; run: hermes-pgvector up")
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    return EmbeddedPostgres(data_folder(home)).ensure_running(deadline).runtime_dsn


def keep_from_embedded(home: Path) -> None:
    """Held where the journal belongs to another database than the embedded one, which then stays as it is."""
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.store.installation import Doorkeeper

    Doorkeeper(data_folder(home), home_id(home), "", is_named=False).before_start(has_data=has_embedded_data(home))


def objection(home: Path, settings: Settings, connection: Connection) -> str:
    """Why the journal of this home does not go to the database that answers; empty when it does."""
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.store import installation

    found = installation.identify(connection)
    known = installation.read(data_folder(home), home_id(home))
    return "" if found is None else installation.objection(known, installation.place(settings.dsn), found)


def belong(home: Path, settings: Settings, connection: Connection) -> bool:
    """The operator means this database: the journal of this home goes there from now on; False if it did before."""
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.store import installation

    found = installation.identify(connection)
    if found is None:
        return False
    folder, own = data_folder(home), home_id(home)
    before = installation.read(folder, own)
    installation.learn(folder, own, installation.place(settings.dsn), found)
    return before is not None and before.identity is not None and before.identity != found


@contextmanager
def open_pool(home: Path, settings: Settings) -> Iterator[Pool]:
    """Connections as the runtime role."""
    from hermes_memory_pgvector.store.pool import Pool

    pool = Pool(
        lambda deadline: runtime_dsn(home, settings, deadline), maximum=2, connect_seconds=settings.connect_timeout
    )
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def open_embedder(home: Path, settings: Settings) -> Iterator[Embedder]:
    """The embedder the settings describe; its calls raise EmbeddingMisconfigured where a setting is wrong."""
    from hermes_memory_pgvector.embedding.configured import ConfiguredEmbedder

    embedder = ConfiguredEmbedder(home, settings, cache_entries=64)
    try:
        yield embedder
    finally:
        embedder.close()


@contextmanager
def open_engine(home: Path) -> Iterator[Engine]:
    """All parts together, for commands that read or write like the provider does; its threads start when asked."""
    from hermes_memory_pgvector.engine.engine import Engine

    settings = load(home).settings
    runtime_dsn(home, settings, Deadline.after(PLACE_SECONDS))
    engine = Engine(home, settings)
    try:
        yield engine
    finally:
        engine.close(Deadline.after(settings.shutdown_drain_timeout))
        engine.pool.close()
        engine.embedder.close()


def profile_theme(home: Path, settings: Settings) -> str:
    """The theme of a plain chat in this home: the profile's name, or the host's default workspace."""
    from hermes_memory_pgvector.capture import identity
    from hermes_memory_pgvector.config.home import pseudonym_key

    name = home.name if home.parent.name == "profiles" else "hermes"
    return identity.theme_of(name, settings, lambda: pseudonym_key(home)).theme


def at_terminal() -> bool:
    """Whether someone is there to answer."""
    return os.isatty(0) and os.isatty(1)
