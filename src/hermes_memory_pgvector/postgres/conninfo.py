"""Takes connection strings apart, puts them together, and tries whether they work."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.errors import ConfigError, DatabaseError
from hermes_memory_pgvector.postgres.conventions import ENCODING
from hermes_memory_pgvector.postgres.errors import translate

APPLICATION_NAME = "hermes-pgvector"
KEEPALIVES = {"keepalives": "1", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}


def complete_conninfo(conninfo: str, connect_seconds: float) -> str:
    """The operator's connection string with our defaults for what it leaves open."""
    given = conninfo_to_dict(conninfo)
    wanted = {
        "application_name": APPLICATION_NAME,
        "connect_timeout": str(max(2, round(connect_seconds))),
        **KEEPALIVES,
    }
    open_ones = {key: value for key, value in wanted.items() if key not in given}
    return make_conninfo(conninfo, **open_ones, client_encoding=ENCODING)


@functools.lru_cache(maxsize=16)
def check_conninfo(conninfo: str) -> DatabaseError | None:
    """What is wrong with a connection string, without connecting; remembered, because every request asks."""
    try:
        conninfo_to_dict(conninfo)
    except psycopg.Error as error:
        return translate(error)
    return None


def user_of(conninfo: str) -> str:
    """The role a connection string names; empty when it names none."""
    with _readable():
        return str(conninfo_to_dict(conninfo).get("user") or "")


def database_of(conninfo: str) -> str:
    """The database a connection string names; empty when it names none."""
    with _readable():
        return str(conninfo_to_dict(conninfo).get("dbname") or "")


def place_of(conninfo: str) -> str:
    """Which database, and where; the same whoever logs in."""
    with _readable():
        parts = conninfo_to_dict(conninfo)
    where = str(parts.get("host") or parts.get("hostaddr") or parts.get("service") or "the default host")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{parts.get('dbname') or parts.get('user') or 'the default database'} on {where}{port}"


def brief(conninfo: str) -> str:
    """A connection string in words: which database, where, as whom; never with a password."""
    user = user_of(conninfo)
    return f"{place_of(conninfo)} as {user}" if user else place_of(conninfo)


def split_password(conninfo: str) -> tuple[str, str]:
    """The connection string without its password, and the password."""
    with _readable():
        parts = conninfo_to_dict(conninfo)
        password = str(parts.pop("password", None) or "")
        return (make_conninfo("", **parts), password) if password else (conninfo, "")


def with_login(conninfo: str, user: str, password: str) -> str:
    """The same database as another role."""
    with _readable():
        parts = {name: value for name, value in conninfo_to_dict(conninfo).items() if name != "passfile"}
        return make_conninfo("", **{**parts, "user": user or None, "password": password})


def may_connect(conninfo: str, seconds: float) -> bool:
    """Whether this login is accepted; False also when the server cannot be reached."""
    return connect_problem(conninfo, seconds) is None


def connect_problem(conninfo: str, seconds: float) -> DatabaseError | None:
    """Why this login leads nowhere; None when it is accepted."""
    with _readable():
        whole = complete_conninfo(conninfo, seconds)
    try:
        with psycopg.connect(whole, autocommit=True):
            return None
    except psycopg.Error as error:
        return translate(error)


def has_role(conninfo: str, role: str, seconds: float) -> bool:
    """Whether the server has a role of that name; DatabaseError when it cannot be reached."""
    try:
        with psycopg.connect(complete_conninfo(conninfo, seconds), autocommit=True) as connection:
            return connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None
    except psycopg.Error as error:
        raise translate(error) from None


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (psycopg.ProgrammingError, UnicodeError):
        raise ConfigError(
            "this is not a valid connection string; write it like postgresql://user@host:5432/database"
        ) from None
