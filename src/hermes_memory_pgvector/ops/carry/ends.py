"""The two ends of a move: which database a home's settings name, which one is meant, and whose homes go along."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config.home import ID_NAME, homes_of
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, current_provider, data_folder, load, secret
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import CareError, ConfigError, Held
from hermes_memory_pgvector.ops import parts, password
from hermes_memory_pgvector.ops.migration import ADMIN_VARIABLE
from hermes_memory_pgvector.server.folder import PostgresFolder

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.schema.moving import Side

EMBEDDED = "embedded"
START_SECONDS = 120.0
LOCK_NAME = "promotion.lock"


@dataclass(frozen=True, slots=True)
class End:
    """A database, through its owner's login; the embedded server of a folder where there is no login."""

    folder: Path
    login: str = ""

    @property
    def place(self) -> str:
        """Where it is, in words."""
        from hermes_memory_pgvector.store.installation import place

        return place(self.login)

    @property
    def key(self) -> tuple[str, Path | None]:
        """The same for all logins to a database."""
        return self.place, self.folder if self.is_embedded else None

    @property
    def is_embedded(self) -> bool:
        """Whether it is the embedded server."""
        return not self.login

    @property
    def is_there(self) -> bool:
        """Whether there is anything to connect to."""
        return bool(self.login) or PostgresFolder(self.folder).data.is_dir()

    @contextmanager
    def opened(self) -> Iterator[Side]:
        """The owner's connection; the embedded server is started for it, and made where there is none."""
        from hermes_memory_pgvector.schema.moving import open_side

        with open_side(self.owner_login()) as side:
            yield side

    def owner_login(self) -> str:
        """The owner's connection string."""
        if self.login:
            return self.login
        from hermes_memory_pgvector.server.server import EmbeddedPostgres

        return EmbeddedPostgres(self.folder).ensure_running(Deadline.after(START_SECONDS)).owner_dsn


@dataclass(frozen=True, slots=True)
class Ends:
    """From where to where, and who goes along."""

    source: End
    target: End
    homes: tuple[Path, ...]
    """Those whose settings still lead to the source."""
    arrived: tuple[Path, ...]
    """Those whose settings lead to the target."""
    agents_login: str = ""
    """A login of the agents' that the operator has named; empty when one is to be made."""


def ends_of(home: Path, to: str, admin: str | None) -> Ends:
    """The ends of a move from the database that this home uses; ConfigError when the settings do not fit it."""
    from hermes_memory_pgvector.store.installation import place

    settings = load(home).settings
    if settings.hold:
        raise Held(settings.hold)
    folder = parts.server_folder(home, settings)
    if to.strip().lower() == EMBEDDED:
        own = admin or _kept_admin(home, settings.dsn) or settings.dsn
        if not own:
            raise ConfigError("this home uses the embedded server already")
        return _with_homes(home, End(folder, login_of(own)), End(folder), "")
    kept = admin or _kept_admin(home, to)
    target = End(folder, login_of(kept or to))
    # Whoever was killed on the way may have led this home there already.
    is_there = not settings.dsn or place(settings.dsn) == target.place
    return _with_homes(home, End(folder) if is_there else end_of(home, None), target, to if kept else "")


def end_of(home: Path, admin: str | None) -> End:
    """The database that a home uses now; `admin` is the owner's login to a Postgres of the operator's own."""
    settings = load(home).settings
    if settings.hold:
        raise Held(f"{home}: {settings.hold}")
    folder = parts.server_folder(home, settings)
    return End(folder, login_of(_kept_admin(home, settings.dsn, admin) or settings.dsn) if settings.dsn else "")


def login_of(dsn: str) -> str:
    """The connection string with a password that works.

    PGPASSWORD is taken from the environment: it is meant for this login, and libpq would use it for the embedded server
    as well, before that one's own password file.
    """
    from hermes_memory_pgvector.postgres.conninfo import split_password, user_of, with_login

    given = os.environ.pop("PGPASSWORD", "")
    return password.complete(with_login(dsn, user_of(dsn), given) if given and not split_password(dsn)[1] else dsn)


def shown(dsn: str) -> str:
    """What somebody has typed, without a password that may be in it."""
    from hermes_memory_pgvector.postgres.conninfo import split_password

    return split_password(dsn)[0] if is_dsn(dsn) else dsn


def is_dsn(text: str) -> bool:
    """Whether a text is a connection string."""
    from hermes_memory_pgvector.postgres.conninfo import check_conninfo

    return ("://" in text or "=" in text) and check_conninfo(text) is None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only one who moves this installation."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    files.give(lock, files.owner_of(folder))
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CareError("another `promote` of this installation is at work; wait until it has finished") from None
        yield
    finally:
        os.close(lock)


def _kept_admin(home: Path, dsn: str, given: str | None = None) -> str:
    """The owner's login that was given, or is kept for this home, if it leads to the same place."""
    from hermes_memory_pgvector.store.installation import place

    kept = given or secret(home, ADMIN_VARIABLE) or ""
    return kept if kept and dsn and place(kept) == place(dsn) else ""


def _with_homes(home: Path, source: End, target: End, agents: str) -> Ends:
    leaving, arrived = [], []
    for each in homes_of(home):
        settings = load(each).settings
        if parts.server_folder(each, settings) != source.folder or not _is_ours(each):
            continue
        if _leads_to(settings, target):
            arrived.append(each)
        elif _leads_to(settings, source):
            leaving.append(each)
    return Ends(source, target, tuple(leaving), tuple(arrived), agents)


def _leads_to(settings: Settings, end: End) -> bool:
    from hermes_memory_pgvector.store.installation import place

    return place(settings.dsn) == end.place


def _is_ours(home: Path) -> bool:
    """Whether a home uses this memory, or did."""
    try:
        uses = current_provider(home) == PROVIDER_NAME
    except ConfigError:
        uses = False
    return uses or (data_folder(home) / ID_NAME).exists()
