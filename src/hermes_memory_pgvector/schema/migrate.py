"""Creates or updates the schema this package needs. For administrators: nothing at run time imports this module.

Everything happens in one transaction under an advisory lock, so several migrations may run at once, and a failed one
leaves nothing behind. A ledger records the digest of the tables' text (sql/installation.sql, sql/base.sql). A database
made by the seed's schema or by the published package is adopted, with every row and vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres import conventions
from hermes_memory_pgvector.postgres.statements import admin_statement, read_sql, text_of, vector_tables
from hermes_memory_pgvector.schema import owner
from hermes_memory_pgvector.schema.adoption import EarlierTables
from hermes_memory_pgvector.schema.buckets import deal, hand_out, tidy
from hermes_memory_pgvector.schema.model_tables import NewModel, ensure_model, model_sql
from hermes_memory_pgvector.schema.owner import value
from hermes_memory_pgvector.store.schema import MINIMUM_PGVECTOR, SCHEMA_VERSION, is_recent

MINIMUM_SERVER: Final = 140000
DEFAULT_ROLE: Final = "hermes"
DEFAULT_LANGUAGE: Final = "pg_catalog.english"
SMALL_ROWS: Final = 1_000
"""So many rows are embedded anew in a moment; with more, a change of the model is left to `reembed`."""
BASE: Final = "base"
ALL_BUCKETS: Final = (
    "conversations", "memory_entries", "memory_operations", "pending_vectors", "hidden", "forgotten", "recall_log",
    "dead_letters", "theme_aliases", "hermes_rows", "hermes_sessions", "hermes_events",
)  # fmt: skip
LEAPING: Final = ("hermes_theme_names", "hermes_themes")
"""What a distributed engine answers for one bucket only: of each, the whole answer is fetched first."""
EMBEDDED: Final = ("memory_entries_embedded", "conversations_embedded")
"""What views beside the tables of the whole installation show of all buckets."""
EXTENSION: LiteralString = "CREATE EXTENSION IF NOT EXISTS vector"

Connection = psycopg.Connection[Any]


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
    dealt: int = 0
    """To how many buckets themes were dealt."""
    handed_out: int = 0
    """How many buckets workers were given."""


def script(model: NewModel | None, runtime_role: str) -> Iterator[str]:
    """All the SQL for a new database, without connecting to one."""
    yield f"-- ledger\n{text_of('admin/schema/ledger')}"
    yield f"-- functions\n{EXTENSION};\n{_language_sql(DEFAULT_LANGUAGE).as_string(None)};\n{read_sql('functions.sql')}"
    yield f"-- tables\n{_tables()}"
    if model is not None:
        yield f"-- vector tables of {model.name}, {model.dim} dimensions\n" + model_sql(
            1, model.dim, "public"
        ).as_string(None)
    ids = [1] if model is not None else []
    made = _views_and_grants("public", ids, ids[0] if ids else None, [runtime_role])
    whole = _installation_views_and_grants([runtime_role])
    yield f"-- views and grants to {runtime_role}\n{made}\n{whole}"


def apply(
    owner_dsn: str,
    *,
    runtime_role: str = DEFAULT_ROLE,
    runtime_password: str | None = None,
    model: NewModel | None = None,
    switches_model: bool = False,
    adopt_model: str = "nomic-embed-text",
    report: Callable[[str], None] = lambda _: None,
    may_be_closed: bool = False,
    language: str | None = None,
    buckets: int | None = None,
) -> Outcome:
    """Bring the database up to date; safe to run again and from many processes at once.

    `report` gets a line per step. `may_be_closed` is for whoever moves an installation to this database. Another model
    than the database's becomes the current one where that concerns few rows, or where `switches_model` says so.
    `language` names the text search configuration that words are taken apart by, `buckets` in how many schemas the
    tables of themes lie; None leaves it as it is.
    """
    outcome = Outcome()
    with owner.connected(owner_dsn, "hermes-pgvector-migrate") as connection:
        check_server(connection)
        with connection.transaction():
            conventions.keep_to(connection)
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (owner.LOCK_KEY,))
            schema = owner.schema_to_migrate(connection)
            connection.execute(admin_statement("schema/ledger"))
            _ensure_extension(connection)
            owner.stay_within(connection, schema)
            if not may_be_closed:
                owner.check_in_use(connection)
            earlier = EarlierTables.find(connection)
            if earlier is not None:
                report(earlier.intention(schema))
                earlier.set_aside()
            _make_schema(connection, outcome, report, language)
            if model is not None:
                outcome.model_id = _take_model(connection, model, outcome, is_wanted=switches_model)
            if earlier is not None:
                adopted = earlier.carry_over(adopt_model, outcome.model_id)
                outcome.adopted_memories, outcome.adopted_turns = adopted.memories, adopted.turns
                outcome.adopted_vectors, outcome.model_id = adopted.vectors, adopted.model_id
                outcome.notices.append(earlier.notice)
            made = len(owner.buckets(connection))
            if buckets is not None and buckets != made:
                if made > 1:
                    raise SchemaError(f"the database has {made} buckets, and keeps them: it is not dealt anew")
                deal(connection, buckets, report)
                outcome.dealt = buckets
            if outcome.model_id is not None:
                names = vector_tables(outcome.model_id)
                for _ in owner.within_buckets(connection):
                    for enqueue in (
                        admin_statement("models/enqueue_memories"),
                        admin_statement("models/enqueue_turns"),
                    ):
                        outcome.vectors_wanted += connection.execute(enqueue.format(**names)).rowcount
            if _ensure_role(connection, runtime_role, runtime_password, outcome):
                make_views_and_grants(connection, runtime_role)
        outcome.handed_out = hand_out(connection, report)
        if outcome.applied or outcome.dealt or outcome.handed_out:
            report("collecting statistics")
            tidy(connection)
    return outcome


def _take_model(connection: Connection, model: NewModel, outcome: Outcome, *, is_wanted: bool) -> int:
    """Make a model the current one, unless that would leave many rows to keyword search; the current one's id.

    Whoever upgrades the package, or has a setting of their own, does not mean to take everybody's vectors away.
    """
    for _ in owner.within_buckets(connection):
        row = connection.execute("SELECT id, name, dim FROM embedding_models WHERE is_current").fetchone()
        if row is None or row[1:] == (model.name, model.dim) or is_wanted:
            continue
        counted = admin_statement("models/has_many_vectors").format(
            **vector_tables(row[0]), most=sql.Literal(SMALL_ROWS)
        )
        if value(connection, counted):
            outcome.kept_model, kept = f"{row[1]} ({row[2]} dimensions)", int(row[0])
    if outcome.kept_model is not None:
        return kept
    return ensure_model(connection, model, is_current=True)


def _tables() -> LiteralString:
    return f"{read_sql('installation.sql')}\n{read_sql('base.sql')}"


def _make_schema(connection: Connection, outcome: Outcome, report: Callable[[str], None], language: str | None) -> None:
    """Make the functions anew, and in an empty schema the tables."""
    rows = connection.execute("SELECT version, sha256 FROM hermes_pgvector_migrations ORDER BY version").fetchall()
    digest = hashlib.sha256(_tables().encode()).hexdigest()
    if rows and rows[-1][0] > SCHEMA_VERSION:
        raise SchemaError(
            f"the database is at schema version {rows[-1][0]}, this package knows {SCHEMA_VERSION}; "
            "upgrade this package: pip install -U hermes-memory-pgvector"
        )
    if rows and rows != [(SCHEMA_VERSION, digest)]:
        raise SchemaError(
            f"the tables of schema version {SCHEMA_VERSION} were made from another text than this package has; "
            "install the package version that made this database"
        )
    spoken = str(value(connection, "schema/language")) if rows else DEFAULT_LANGUAGE
    wanted = spoken if language is None else _find_language(connection, language)
    connection.execute(_language_sql(wanted))
    connection.execute(read_sql("functions.sql"))
    if not rows:
        report("making the tables")
        connection.execute(read_sql("installation.sql"))
        connection.execute(read_sql("base.sql"))
        connection.execute(admin_statement("schema/record_migration"), (SCHEMA_VERSION, BASE, digest))
        outcome.applied.append(BASE)
    if wanted != spoken:
        report(f"taking words apart by {wanted}")
        connection.execute(admin_statement("schema/set_language"), (wanted,))
        for _ in owner.within_buckets(connection):
            connection.execute(admin_statement("schema/make_words_of_memories"))
            connection.execute(admin_statement("schema/make_words_of_turns"))


def _find_language(connection: Connection, name: str) -> str:
    """The full name of a text search configuration; SchemaError where the server has none of that name."""
    found = {str(row[0]) for row in connection.execute(admin_statement("schema/languages"))}
    known = [each for each in (name, f"pg_catalog.{name}") if each in found]
    if not known:
        told = ", ".join(sorted(each.removeprefix("pg_catalog.") for each in found))
        raise SchemaError(f"this server cannot take words of {name!r} apart; it knows: {told}")
    return known[0]


def _language_sql(language: str) -> sql.Composed:
    return admin_statement("schema/make_language").format(language=sql.Literal(language))


def check_server(connection: Connection) -> None:
    """SchemaError for a server that is too old, lacks pgvector, or cannot hold every text."""
    major = connection.info.server_version // 10000
    if connection.info.server_version < MINIMUM_SERVER:
        raise SchemaError(
            f"Postgres {major} is too old: {MINIMUM_SERVER // 10000} or newer is needed; upgrade the server "
            "(pg_upgrade), or use the embedded one: hermes-pgvector up"
        )
    version = value(connection, "schema/pgvector_version")
    if version is None:
        raise SchemaError(
            "pgvector is not installed on this server. Install it there, then run this again. "
            f"Debian, Ubuntu: apt install postgresql-{major}-pgvector; Fedora, RHEL: dnf install pgvector_{major} "
            "(both from apt/yum.postgresql.org); macOS: brew install pgvector; "
            f"Docker: image pgvector/pgvector:pg{major}; a managed server: switch the extension vector on"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise SchemaError(
            f"the database's encoding is {encoding}, which cannot hold every text: UTF8 is needed; "
            f"make another database for the memory: CREATE DATABASE hermes ENCODING 'UTF8' TEMPLATE template0"
        )
    if not is_recent(str(version), MINIMUM_PGVECTOR):
        wanted = ".".join(map(str, MINIMUM_PGVECTOR))
        raise SchemaError(
            f"pgvector {version} is too old: {wanted} or newer is needed (half-precision vectors, iterative scans); "
            "install it, then run: ALTER EXTENSION vector UPDATE"
        )


def _ensure_extension(connection: Connection) -> None:
    try:
        with connection.transaction():
            connection.execute(EXTENSION)
    except psycopg.errors.InsufficientPrivilege:
        raise SchemaError(
            "this login may not install pgvector into the database; a superuser has to run once in this database: "
            "CREATE EXTENSION vector; then run this again"
        ) from None


def _ensure_role(connection: Connection, role: str, password: str | None, outcome: Outcome) -> bool:
    """Whether there is a role of this name afterwards."""
    exists = sql.SQL("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)")
    is_there, name = bool(value(connection, exists, (role,))), sql.Identifier(role)
    try:
        with connection.transaction():
            if not is_there:
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
        return is_there
    return True


def make_views_and_grants(connection: Connection, *more_roles: str) -> None:
    """Let the views show the current model's vectors, and give the roles that run agents, and more, what that takes."""
    told = connection.execute(admin_statement("schema/runtime_roles")).fetchall()
    roles = sorted({*more_roles, *(str(role) for (role,) in told)})
    main, schemas = owner.schema_to_migrate(connection), owner.buckets(connection)
    shown = (*ALL_BUCKETS, *LEAPING) if schemas != [main] else ()
    for name in EMBEDDED if shown else ():
        # Made anew, as what they show may be of another dimension now.
        connection.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(sql.Identifier(main, name)))
    for schema in owner.within_buckets(connection):
        models = connection.execute("SELECT id, is_current FROM embedding_models ORDER BY id").fetchall()
        current = next((model_id for model_id, is_current in models if is_current), None)
        made = _views_and_grants(schema, [model_id for model_id, _ in models], current, roles)
        connection.execute(made.encode())
    vectors = [f"{kind}_vectors_{model_id}" for model_id, _ in models for kind in ("turn", "memory")]
    for name in (*shown, *vectors, "embedding_models", *(EMBEDDED if current is not None else ())) if shown else ():
        # What every bucket has a copy of is told by the first.
        places = schemas[:1] if name == "embedding_models" else schemas
        parts = [sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, name)) for schema in places]
        if name in LEAPING:
            found = [sql.Identifier(schema) for schema in schemas]
            answers = [sql.SQL("{} AS MATERIALIZED ({})").format(*each) for each in zip(found, parts, strict=True)]
            parts = [sql.SQL("SELECT * FROM {}").format(each) for each in found]
            parts[0] = sql.SQL("WITH {} {}").format(sql.SQL(", ").join(answers), parts[0])
        view = sql.SQL("CREATE OR REPLACE VIEW {} AS {}").format(
            sql.Identifier(name), sql.SQL(" UNION ALL ").join(parts)
        )
        connection.execute(view)
        for role in roles:
            connection.execute(sql.SQL("GRANT SELECT ON {} TO {}").format(sql.Identifier(name), sql.Identifier(role)))
    connection.execute(_installation_views_and_grants(roles).encode())


def _views_and_grants(schema: str, model_ids: Collection[int], current: int | None, roles: Collection[str]) -> str:
    parts: list[sql.Composable] = []
    if current is not None:
        views = sql.SQL(read_sql("model_views.sql"))
        parts.append(views.format(schema=sql.Identifier(schema), **vector_tables(current)))
    parts.append(sql.SQL(read_sql("views.sql")))
    for name in roles:
        role = sql.Identifier(name)
        parts.append(sql.SQL(read_sql("grants.sql")).format(role=role, role_literal=sql.Literal(name)))
        grant = sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {memory_vectors}, {turn_vectors} TO {role};")
        parts += [grant.format(role=role, **vector_tables(model_id)) for model_id in model_ids]
        if current is not None:
            shown = sql.SQL("GRANT SELECT ON memory_entries_embedded, conversations_embedded TO {};")
            parts.append(shown.format(role))
    return sql.SQL("\n").join(parts).as_string(None)


def _installation_views_and_grants(roles: Collection[str]) -> str:
    grants = sql.SQL(read_sql("installation_grants.sql"))
    parts = [sql.SQL(read_sql("installation_views.sql"))]
    made = [grants.format(role=sql.Identifier(name), role_literal=sql.Literal(name)) for name in roles]
    return sql.SQL("\n").join([*parts, *made]).as_string(None)
