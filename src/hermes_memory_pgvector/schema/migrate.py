"""Creates or updates the schema this package needs. For administrators: nothing at run time imports this module.

Everything happens in one transaction under an advisory lock, so several migrations may run at once, and a failed one
leaves nothing behind. A ledger records the digest of the tables' text, sql/base.sql, and of the functions'. A database
made by the seed's schema or by the published package is adopted, with every row and vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import LiteralString

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres import conventions
from hermes_memory_pgvector.postgres.errors import translated
from hermes_memory_pgvector.postgres.statements import read_sql, text_of, vector_tables
from hermes_memory_pgvector.schema.adoption import Adopted, Adoption, other_installations
from hermes_memory_pgvector.schema.model_tables import ModelSpec, ask_for_vectors, ensure_model, model_sql
from hermes_memory_pgvector.schema.sql_functions import drop_functions, shared_functions
from hermes_memory_pgvector.schema.statements import admin_statement
from hermes_memory_pgvector.store.schema import MINIMUM_PGVECTOR, SCHEMA_VERSION, is_recent, not_in_use

LOCK_KEY = 0x6865726D65737067
MINIMUM_SERVER = 140000
DEFAULT_ROLE = "hermes"
DEFAULT_LANGUAGE = "pg_catalog.english"
SMALL_ROWS = 1_000
"""So many rows are embedded anew in a moment; with more, a change of the model is left to `reembed`."""

EXTENSION: LiteralString = "CREATE EXTENSION IF NOT EXISTS vector"
# Functions are created before the tables they read, and in no particular order.
UNCHECKED: LiteralString = "SET LOCAL check_function_bodies = off"

ROUTINE_NOTICES = (
    "already exists, skipping",
    "does not exist, skipping",
    "drop cascades to ",
)
"""What Postgres says of every migration."""

BASE, FUNCTIONS = "base", "functions"
FUNCTIONS_VERSION = 0
"""Under this number the ledger has the digest of the functions, which are made anew whenever they change."""


@dataclass(slots=True)
class Outcome:
    """What a migration did."""

    applied: list[str] = field(default_factory=list)
    adopted_memories: int = 0
    adopted_turns: int = 0
    adopted_vectors: int = 0
    model_id: int | None = None
    vectors_wanted: int = 0
    kept_model: str | None = None
    """The model that stays the current one although another was given: changing it is left to `reembed`."""
    notices: list[str] = field(default_factory=list)


def digest_of(text: str) -> str:
    """What the ledger records of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def script(model: ModelSpec | None, runtime_role: str, schema: str = "public") -> Iterator[str]:
    """All the SQL for a new database, without connecting to one."""
    yield f"-- for schema {schema}\n-- ledger\n{text_of('admin/schema/ledger')}"
    yield f"-- functions\n{EXTENSION};\n{_language_sql(DEFAULT_LANGUAGE).as_string(None)};\n{read_sql('functions.sql')}"
    yield f"{UNCHECKED.replace('LOCAL ', '')};\n" + shared_functions(schema).as_string(None)
    yield f"-- tables\n{read_sql('base.sql')}"
    if model is not None:
        yield f"-- vector tables of {model.name}, {model.dim} dimensions\n" + model_sql(1, model.dim).as_string(None)
        yield _model_views_sql(1, schema).as_string(None)
    yield f"-- views\n{read_sql('views.sql')}"
    ids = [1] if model is not None else []
    yield f"-- grants to {runtime_role}\n" + _grants_sql(runtime_role, ids, has_views=model is not None).as_string(None)


def apply(
    owner_dsn: str,
    *,
    runtime_role: str = DEFAULT_ROLE,
    runtime_password: str | None = None,
    model: ModelSpec | None = None,
    switches_model: bool = False,
    adopt_model: str = "nomic-embed-text",
    connect_seconds: int = 10,
    report: Callable[[str], None] = lambda _: None,
    announce: Callable[[str], None] = lambda _: None,
    may_be_closed: bool = False,
    language: str | None = None,
) -> Outcome:
    """Bring the database up to date; safe to run again and from many processes at once.

    `report` gets a line per step; `announce` gets a sentence about what is going to be adopted. `may_be_closed` is for
    whoever moves an installation to this database. Another model than the database's becomes the current one where that
    concerns few rows, or where `switches_model` says so. `language` names the text search configuration that words are
    taken apart by; None leaves it as it is.
    """
    outcome = Outcome()
    with translated():
        connection = psycopg.connect(
            owner_dsn,
            connect_timeout=connect_seconds,
            application_name="hermes-pgvector-migrate",
            prepare_threshold=None,
        )
    with connection, translated():
        connection.add_notice_handler(lambda notice: _collect(outcome, notice))
        check_server(connection)
        with connection.transaction():
            conventions.keep_to(connection)
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_KEY,))
            connection.execute("SET LOCAL client_min_messages = notice")
            schema = schema_to_migrate(connection)
            connection.execute(admin_statement("schema/ledger"))
            _ensure_extension(connection)
            stay_within(connection, schema)
            if not may_be_closed:
                check_in_use(connection)
            adoption = Adoption.find(connection)
            if adoption is not None:
                announce(adoption.intention(schema))
                adoption.set_aside()
            _note_neighbours(connection, schema, outcome)
            drop_functions(connection)
            _make_schema(connection, schema, outcome, report, language)
            if model is not None:
                outcome.model_id = _take_model(connection, model, outcome, is_wanted=switches_model)
            if adoption is not None:
                _note_adoption(outcome, adoption.carry_over(adopt_model, outcome.model_id))
            if outcome.model_id is not None:
                outcome.vectors_wanted = ask_for_vectors(connection, outcome.model_id)
            _ensure_role(connection, runtime_role, runtime_password, outcome)
            fleet = _fleet(connection, runtime_role)
            _grant(connection, runtime_role, fleet, outcome)
        # With fresh statistics, the first searches are planned like later ones.
        if outcome.applied:
            connection.execute("ANALYZE memory_entries, conversations")
    return outcome


def _take_model(connection: psycopg.Connection, model: ModelSpec, outcome: Outcome, *, is_wanted: bool) -> int:
    """Make a model the current one, unless that would leave many rows to keyword search; the current one's id.

    Whoever upgrades the package, or has a setting of their own, does not mean to take everybody's vectors away.
    """
    current = connection.execute("SELECT id, name, dim FROM embedding_models WHERE is_current").fetchone()
    if current is None or tuple(current[1:]) == (model.name, model.dim):
        return ensure_model(connection, model, is_current=True)
    model_id = int(current[0])
    if not is_wanted:
        many = admin_statement("models/has_many_vectors").format(**vector_tables(model_id))
        if connection.execute(many, {"most": SMALL_ROWS}).fetchone() == (True,):
            outcome.kept_model = f"{current[1]} ({current[2]} dimensions)"
            return model_id
    return ensure_model(connection, model, is_current=True)


def _make_schema(
    connection: psycopg.Connection,
    schema: str,
    outcome: Outcome,
    report: Callable[[str], None],
    language: str | None,
) -> None:
    """Make the functions that are not as they should be, and in an empty schema the tables."""
    done = _ledger(connection)
    _check_known(done)
    spoken = DEFAULT_LANGUAGE
    if SCHEMA_VERSION in done:
        row = connection.execute(admin_statement("schema/language")).fetchone()
        spoken = DEFAULT_LANGUAGE if row is None else str(row[0])
    wanted = spoken if language is None else _find_language(connection, language)
    connection.execute(_language_sql(wanted))
    text = read_sql("functions.sql")
    if done.get(FUNCTIONS_VERSION) != digest_of(text):
        connection.execute(text)
        _record(connection, FUNCTIONS_VERSION, FUNCTIONS, text)
    connection.execute(UNCHECKED)
    connection.execute(shared_functions(schema))
    if SCHEMA_VERSION not in done:
        report("making the tables")
        text = read_sql("base.sql")
        connection.execute(text)
        _record(connection, SCHEMA_VERSION, BASE, text)
        outcome.applied.append(BASE)
    if wanted != spoken:
        report(f"taking words apart by {wanted}")
        connection.execute(admin_statement("schema/set_language"), (wanted,))
        connection.execute(admin_statement("schema/make_words_of_memories"))
        connection.execute(admin_statement("schema/make_words_of_turns"))


def _find_language(connection: psycopg.Connection, name: str) -> str:
    """The full name of a text search configuration; SchemaError where the server has none of that name."""
    found = [str(row[0]) for row in connection.execute(admin_statement("schema/languages"))]
    for each in (name, f"pg_catalog.{name}"):
        if each in found:
            return each
    known = ", ".join(sorted(each.removeprefix("pg_catalog.") for each in found))
    raise SchemaError(f"this server cannot take words of {name!r} apart; it knows: {known}")


def _language_sql(language: str) -> sql.Composed:
    return admin_statement("schema/make_language").format(language=sql.Literal(language))


def _ledger(connection: psycopg.Connection) -> dict[int, str]:
    """The digest of what was made, by version."""
    rows = connection.execute("SELECT version, sha256 FROM hermes_pgvector_migrations").fetchall()
    return {int(version): str(digest) for version, digest in rows}


def _check_known(done: dict[int, str]) -> None:
    newest = max(done, default=SCHEMA_VERSION)
    if newest > SCHEMA_VERSION:
        raise SchemaError(
            f"the database is at schema version {newest}, this package knows {SCHEMA_VERSION}; "
            "upgrade this package: pip install -U hermes-memory-pgvector"
        )
    if done.get(SCHEMA_VERSION, digest_of(read_sql("base.sql"))) != digest_of(read_sql("base.sql")):
        raise SchemaError(
            f"the tables of schema version {SCHEMA_VERSION} were made from another text than this package has; "
            "install the package version that made this database"
        )


def _record(connection: psycopg.Connection, version: int, name: str, text: str) -> None:
    connection.execute(admin_statement("schema/record_migration"), (version, name, digest_of(text)))


def check_server(connection: psycopg.Connection) -> None:
    """SchemaError for a server that is too old or lacks pgvector."""
    if connection.info.server_version < MINIMUM_SERVER:
        raise SchemaError(
            f"Postgres {connection.info.server_version // 10000} is too old: {MINIMUM_SERVER // 10000} or newer is "
            "needed; upgrade the server (pg_upgrade), or use the embedded one: hermes-pgvector up"
        )
    row = connection.execute(admin_statement("schema/pgvector_version")).fetchone()
    if row is None:
        raise SchemaError(no_pgvector(connection.info.server_version // 10000))
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise SchemaError(
            f"the database's encoding is {encoding}, which cannot hold every text: UTF8 is needed; "
            f"make another database for the memory: CREATE DATABASE hermes ENCODING 'UTF8' TEMPLATE template0"
        )
    version = str(row[0] or row[1])
    if not is_recent(version, MINIMUM_PGVECTOR):
        wanted = ".".join(map(str, MINIMUM_PGVECTOR))
        raise SchemaError(
            f"pgvector {version} is too old: {wanted} or newer is needed (half-precision vectors, bit codes, iterative "
            "scans); install it, then run: ALTER EXTENSION vector UPDATE"
        )
    connection.rollback()


def no_pgvector(major: int) -> str:
    """What to install on a server without pgvector, by system."""
    return (
        "pgvector is not installed on this server. Install it there, then run this again. "
        f"Debian, Ubuntu: apt install postgresql-{major}-pgvector; "
        f"Fedora, RHEL: dnf install pgvector_{major} (both from apt/yum.postgresql.org); macOS: brew install pgvector; "
        f"Docker: image pgvector/pgvector:pg{major}; a managed server: switch the extension vector on"
    )


def schema_to_migrate(connection: psycopg.Connection) -> str:
    """The schema that new tables go to; SchemaError when there is none."""
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] is None:
        raise SchemaError(
            "the search_path of this login names no schema that exists; create the schema, "
            "then run: hermes-pgvector migrate"
        )
    return str(row[0])


def stay_within(connection: psycopg.Connection, schema: str) -> None:
    """Resolve names in this schema only, here and in the functions we create.

    Another schema further along the login's search_path may hold another installation, which we must not touch.
    Temporary tables come last, so that none can shadow one of ours.
    """
    connection.execute(admin_statement("schema/stay_within"), (schema,))


def check_in_use(connection: psycopg.Connection) -> None:
    """Keep off a database that is no longer in use: its rights must stay as they are."""
    has_mark = connection.execute(admin_statement("schema/table_exists"), ("hermes_pgvector_installation",)).fetchone()
    if has_mark is not None and has_mark[0]:
        row = connection.execute(admin_statement("moving/mark")).fetchone()
        if row is not None and row[1] is not None:
            raise SchemaError(not_in_use(row[1]))


def _note_neighbours(connection: psycopg.Connection, schema: str, outcome: Outcome) -> None:
    """Tell the operator about memories in other schemas: it is easy to connect with the wrong search_path."""
    if connection.execute("SELECT 1 FROM hermes_pgvector_migrations LIMIT 1").fetchone() is not None:
        return
    for name in other_installations(connection, schema):
        outcome.notices.append(
            f'schema "{name}" of this database holds memories too; they stay there, and "{schema}" starts empty'
        )


def _ensure_extension(connection: psycopg.Connection) -> None:
    try:
        with connection.transaction():
            connection.execute(EXTENSION)
    except psycopg.errors.InsufficientPrivilege:
        raise SchemaError(
            "this login may not install pgvector into the database; a superuser has to run once in this database: "
            "CREATE EXTENSION vector; then run this again"
        ) from None


def _ensure_role(connection: psycopg.Connection, role: str, password: str | None, outcome: Outcome) -> None:
    exists = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    name = sql.Identifier(role)
    try:
        with connection.transaction():
            if exists is None:
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
                if password is None:
                    outcome.notices.append(
                        f'role "{role}" was created without a password; set one if the server asks for it'
                    )
            if password is not None:
                # A server that logs statements gets to see a verifier, not the password.
                verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
                connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, sql.Literal(verifier.decode())))
    except psycopg.errors.InsufficientPrivilege:
        outcome.notices.append(
            f'role "{role}" could not be created or changed by this user; ask an administrator for: '
            f"CREATE ROLE {role} LOGIN; then run: hermes-pgvector migrate --runtime-role {role}"
        )


def _fleet(connection: psycopg.Connection, role: str) -> list[str]:
    """The roles that run agents, with this one."""
    exists = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None
    return sorted({*fleet_roles(connection), *([role] if exists else [])})


def _grant(connection: psycopg.Connection, role: str, fleet: Sequence[str], outcome: Outcome) -> None:
    if role not in fleet:
        return
    # Every role that runs agents needs the new tables and views, not only the one named now.
    make_views_and_grants(connection, fleet)
    may_create = connection.execute(admin_statement("roles/may_create"), (role,)).fetchone()
    if may_create is not None:
        outcome.notices.append(
            f'the runtime role "{role}" may create objects in this schema, as Postgres 14 lets everybody; '
            f"to forbid it: REVOKE CREATE ON SCHEMA {may_create[0]} FROM PUBLIC"
        )
    owner = connection.execute("SELECT current_user").fetchone()
    if owner is not None and owner[0] == role:
        outcome.notices.append(
            f'the runtime role "{role}" is the owner of the tables; give migrate another --admin-dsn to separate them'
        )


def make_views_and_grants(connection: psycopg.Connection, roles: Collection[str]) -> None:
    """Let the views show the current model's vectors, and give these roles what running agents takes."""
    ids = [int(row[0]) for row in connection.execute("SELECT id FROM embedding_models ORDER BY id")]
    current = connection.execute("SELECT id FROM embedding_models WHERE is_current").fetchone()
    if current is not None:
        schema = connection.execute("SELECT current_schema()").fetchone()
        assert schema is not None
        connection.execute(_model_views_sql(int(current[0]), str(schema[0])))
    connection.execute(read_sql("views.sql"))
    for name in roles:
        connection.execute(_grants_sql(name, ids, has_views=current is not None))


def _grants_sql(role: str, model_ids: list[int], *, has_views: bool) -> sql.Composed:
    parts: list[sql.Composable] = [
        sql.SQL(read_sql("grants.sql")).format(role=sql.Identifier(role), role_literal=sql.Literal(role))
    ]
    parts += [
        sql.SQL(read_sql("grants_model.sql")).format(role=sql.Identifier(role), **vector_tables(model_id))
        for model_id in model_ids
    ]
    if has_views:
        parts.append(sql.SQL(read_sql("grants_model_views.sql")).format(role=sql.Identifier(role)))
    return sql.SQL("\n").join(parts)


def _model_views_sql(model_id: int, schema: str) -> sql.Composed:
    return sql.SQL(read_sql("model_views.sql")).format(schema=sql.Identifier(schema), **vector_tables(model_id))


def fleet_roles(connection: psycopg.Connection) -> list[str]:
    """The roles that run agents."""
    return [str(row[0]) for row in connection.execute(admin_statement("roles/runtime_roles")).fetchall()]


def _note_adoption(outcome: Outcome, adopted: Adopted) -> None:
    outcome.adopted_memories = adopted.memories
    outcome.adopted_turns = adopted.turns
    outcome.adopted_vectors = adopted.vectors
    outcome.model_id = outcome.model_id or adopted.model_id
    outcome.notices.append(adopted.notice)


def _collect(outcome: Outcome, notice: psycopg.errors.Diagnostic) -> None:
    text = notice.message_primary
    if text and not any(each in text for each in ROUTINE_NOTICES):
        outcome.notices.append(text)
