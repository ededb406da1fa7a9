"""Logins of single machines or minions: a role in Postgres that sees some themes and nothing else.

For administrators: nothing at run time imports this module. What a login may see stands in `login_grants` and
`login_themes`, which the policies consult (`sql/policies.sql`); so what it says about itself does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from hermes_memory_pgvector.admin.statements import admin_statement, sql_text
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.store import audit_log, overview, schema
from hermes_memory_pgvector.store.errors import translated
from hermes_memory_pgvector.store.statements import vector_tables

CONNECT_SECONDS = 10
MAX_NAME_BYTES = 63
"""What Postgres takes as the name of a role; it would cut a longer one."""


@dataclass(frozen=True, slots=True)
class Login:
    """A login and what it was granted."""

    login: str
    may_write: bool
    may_create: bool
    themes: tuple[str, ...]
    """Names and patterns."""
    begun: tuple[str, ...]
    """Themes that it was the first to write to."""
    granted_at: datetime
    granted_by: str
    exists: bool
    """Whether there is a role of that name that can log in."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a login is to get."""

    login: str
    themes: tuple[str, ...] | None
    """None leaves them as they are."""
    may_write: bool = True
    may_create: bool = False
    homes: tuple[str, ...] = ()
    """Homes whose journals and files it goes on with."""
    keeps_rights: bool = False
    """Whether a login that is there may go on to do what it could, whatever the two say."""


@dataclass(slots=True)
class Outcome:
    """What was done."""

    login: Login | None = None
    is_new_role: bool = False
    rows_of_homes: int = 0
    notices: list[str] = field(default_factory=list)


def grant(owner_dsn: str, wanted: Wanted, *, password: str | None, actor: str, home_id: str) -> Outcome:
    """Make the role if there is none, and give it its themes: exactly those named, and those it has begun itself.

    `password` is for a new role, or replaces the one there is; None leaves it as it is.
    """
    _check_name(wanted.login)
    outcome = Outcome()
    with _opened(owner_dsn) as connection, connection.transaction():
        known = {each.login: each for each in _listed(connection)}.get(wanted.login)
        if wanted.themes is None and known is None:
            raise ConfigError("say which themes the login gets: --themes a,b")
        if wanted.themes is not None and not wanted.themes and not wanted.may_create:
            raise ConfigError("name at least one theme, or let the login begin its own: --create")
        outcome.is_new_role = _ensure_role(connection, wanted.login, password)
        _refuse_strong(connection, wanted.login)
        if wanted.keeps_rights and known is not None:
            wanted = replace(wanted, may_write=known.may_write, may_create=known.may_create)
        rights = {"login": wanted.login, "may_write": wanted.may_write, "may_create": wanted.may_create}
        connection.execute(admin_statement("logins/note"), {**rights, "made_here": outcome.is_new_role})
        if wanted.themes is not None:
            named = {"login": wanted.login, "themes": list(wanted.themes)}
            connection.execute(admin_statement("logins/drop_themes"), named)
            connection.execute(admin_statement("logins/add_themes"), named)
        give_rights(connection, wanted.login, may_write=wanted.may_write)
        if wanted.homes:
            given = {"login": wanted.login, "homes": list(wanted.homes)}
            row: Any = connection.execute(admin_statement("logins/give_homes"), given).fetchone()
            outcome.rows_of_homes = int(row[0])
        outcome.login = {each.login: each for each in _listed(connection)}[wanted.login]
        themes = len(outcome.login.themes) + len(outcome.login.begun)
        _note(connection, actor, home_id, "grant", wanted.login, {"themes": themes})
    return outcome


def revoke(owner_dsn: str, login: str, *, actor: str, home_id: str) -> Outcome:
    """Take every right from a login, end its sessions, and drop its role if `grant` made it and it can go."""
    outcome = Outcome()
    with _opened(owner_dsn) as connection:
        with connection.transaction():
            found: Any = connection.execute("SELECT made_here FROM login_grants WHERE login = %s", (login,)).fetchone()
            if found is None:
                raise ConfigError(f"no themes were granted to {login!r}; see: hermes-pgvector grants")
            outcome.login = {each.login: each for each in _listed(connection)}[login]
            if outcome.login.exists:
                _take_rights(connection, login)
            connection.execute("DELETE FROM login_grants WHERE login = %s", (login,))
            _note(connection, actor, home_id, "revoke-login", login, {"themes": len(outcome.login.themes)})
        if outcome.login.exists:
            _end_sessions(connection, login, outcome)
            if found[0]:
                _drop_role(connection, login, outcome)
            else:
                outcome.notices.append(f'role "{login}" was there before it was granted themes, and stays')
    return outcome


def listed(owner_dsn: str) -> list[Login]:
    """Every login that was granted single themes."""
    with _opened(owner_dsn) as connection:
        return _listed(connection)


def give_rights(connection: psycopg.Connection, login: str, *, may_write: bool) -> None:
    """The rights on tables that a login needs, and no others; a new version of the tables needs them anew."""
    _take_rights(connection, login)
    role = {"role": sql.Identifier(login), "role_literal": sql.Literal(login)}
    parts = [sql.SQL(sql_text("grants_login.sql")).format(**role)]
    if may_write:
        parts.append(sql.SQL(sql_text("grants_login_writes.sql")).format(**role))
    rights = sql.SQL("SELECT, INSERT, UPDATE, DELETE" if may_write else "SELECT")
    for (model_id,) in connection.execute("SELECT id FROM embedding_models ORDER BY id").fetchall():
        model = sql.SQL(sql_text("grants_login_model.sql"))
        parts.append(model.format(role=role["role"], rights=rights, **vector_tables(int(model_id))))
    if connection.execute("SELECT to_regclass('conversations_embedded')").fetchone() != (None,):
        parts.append(sql.SQL(sql_text("grants_views.sql")).format(**role))
    connection.execute(sql.SQL("\n").join(parts))


def give_all_rights(connection: psycopg.Connection) -> None:
    """The rights of every granted login, after the tables have changed."""
    for each in _listed(connection):
        if each.exists:
            give_rights(connection, each.login, may_write=each.may_write)


def _check_name(login: str) -> None:
    if not login or len(login.encode()) > MAX_NAME_BYTES or not login.isprintable():
        raise ConfigError(f"{login!r} is no name for a login: 1 to {MAX_NAME_BYTES} printable characters")
    if login.startswith("pg_") or login == "public":
        raise ConfigError(f"{login!r} is a name that Postgres keeps for itself; choose another")


@contextmanager
def _opened(owner_dsn: str) -> Iterator[psycopg.Connection]:
    with translated():
        connection = psycopg.connect(
            owner_dsn,
            connect_timeout=CONNECT_SECONDS,
            application_name="hermes-pgvector-grant",
            prepare_threshold=None,
            autocommit=True,
        )
    with connection, translated():
        schema.verify(connection)
        yield connection


def _listed(connection: psycopg.Connection) -> list[Login]:
    rows = connection.execute(admin_statement("logins/list")).fetchall()
    return [
        Login(login, may_write, may_create, tuple(themes), tuple(begun), at, by, exists)
        for login, may_write, may_create, themes, begun, at, by, exists in rows
    ]


def _ensure_role(connection: psycopg.Connection, login: str, password: str | None) -> bool:
    """Whether the role had to be made."""
    name = sql.Identifier(login)
    is_new = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (login,)).fetchone() is None
    if is_new:
        limits = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT"
        connection.execute(sql.SQL("CREATE ROLE {} {}").format(name, sql.SQL(limits)))
    if password is not None:
        # A server that logs statements gets to see a verifier, not the password.
        verifier = connection.pgconn.encrypt_password(password.encode(), login.encode(), b"scram-sha-256")
        connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, sql.Literal(verifier.decode())))
    return is_new


def _refuse_strong(connection: psycopg.Connection, login: str) -> None:
    """A role that can do more than it is granted would make the wall a picture of one."""
    obstacle = overview.login_obstacle(connection, login)
    if obstacle:
        raise ConfigError(f'role "{login}" would see every theme: {obstacle}; choose another name')
    opened = [str(each[0]) for each in connection.execute(admin_statement("logins/open_schema"), {"login": login})]
    if opened:
        raise ConfigError(
            f"everybody may create objects in schema {opened[0]}, and could so change what our functions mean; "
            f"first, as its owner: REVOKE CREATE ON SCHEMA {opened[0]} FROM PUBLIC"
        )


def _take_rights(connection: psycopg.Connection, login: str) -> None:
    (place,) = connection.execute("SELECT current_schema()").fetchone() or ("public",)
    names = {"schema": sql.Identifier(str(place)), "role": sql.Identifier(login)}
    connection.execute(admin_statement("logins/take_rights").format(**names))


def _end_sessions(connection: psycopg.Connection, login: str, outcome: Outcome) -> None:
    try:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (login,))
    except psycopg.errors.InsufficientPrivilege:
        outcome.notices.append(f'sessions of "{login}" that are open now see nothing any more, but could not be ended')


def _drop_role(connection: psycopg.Connection, login: str, outcome: Outcome) -> None:
    try:
        with connection.transaction():
            database = sql.SQL("REVOKE ALL ON DATABASE {} FROM {}")
            row: Any = connection.execute("SELECT current_database()").fetchone()
            connection.execute(database.format(sql.Identifier(str(row[0])), sql.Identifier(login)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(login)))
    except (psycopg.errors.DependentObjectsStillExist, psycopg.errors.InsufficientPrivilege):
        outcome.notices.append(f'role "{login}" has rights elsewhere on this server, and stays')


def _note(
    connection: psycopg.Connection, actor: str, home_id: str, action: str, login: str, counts: dict[str, int]
) -> None:
    audit_log.insert(
        connection,
        actor=actor,
        home_id=home_id,
        action=action,
        theme="",
        subject=f"login {login}",
        counts=counts,
    )
