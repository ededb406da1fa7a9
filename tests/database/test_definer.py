"""What runs with the owner's rights cannot be made to run anything else with them.

The runtime role is given more than it has: it may create temporary objects, as on any server that nobody locked down,
and objects in the schema, as Postgres 14 lets everybody. Then it puts a trap of its own in the place of everything that
such a function could mistake for ours or for Postgres's, and calls it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from testing.postgres import Database

Connection = psycopg.Connection[Any]
DEFINERS = """
SELECT p.oid::regprocedure::text, p.proname, p.prosrc, p.proconfig
FROM pg_proc AS p WHERE p.prosecdef AND p.pronamespace <> 'pg_catalog'::regnamespace ORDER BY 1"""
TYPES = [
    "integer",
    "bigint",
    "smallint",
    "real",
    "float8",
    "numeric",
    "text",
    "varchar",
    "name",
    "oid",
    "boolean",
    "tsquery",
    "tsvector",
    "regclass",
    "regnamespace",
    "integer[]",
    "bigint[]",
    "real[]",
    "float8[]",
    "text[]",
    "boolean[]",
    "tsquery[]",
]
OPERATORS = ["||", "&&", "@@", "=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "/", "~", "<<"]


@pytest.fixture
def victim(database: Database) -> Iterator[Connection]:
    """The runtime role's connection to a database with rows, with every right an unlocked server would give it."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, session_id, role, content)"
            " SELECT 'market', 's', 'user', 'the launch ' || n || CASE WHEN n < 9 THEN ' rocket' ELSE '' END"
            " FROM generate_series(1, 500) AS n"
        )
        owner.execute(
            "INSERT INTO memory_entries (agent_identity, target, content) VALUES ('market', 'user', 'launch')"
        )
        owner.execute("ANALYZE")
        role, name = sql.Identifier(RUNTIME_ROLE), sql.Identifier(database.name)
        owner.execute(sql.SQL("GRANT TEMPORARY ON DATABASE {} TO {}").format(name, role))
        owner.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(role))
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION public.trap() RETURNS boolean LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'TRAPPED as %', current_user; END $$"
        )
        connection.execute(
            "CREATE FUNCTION public.trap_trigger() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN PERFORM public.trap(); RETURN NULL; END $$"
        )
        yield connection


def calls(connection: Connection) -> list[str]:
    """Calls of every function that runs with its owner's rights; none takes an argument."""
    found = connection.execute(DEFINERS).fetchall()
    assert len(found) >= 2
    return [f"SELECT * FROM public.{name}()" for _, name, _, _ in found]


def words(connection: Connection) -> set[str]:
    """Every word in the bodies of these functions."""
    found = {word for row in connection.execute(DEFINERS) for word in re.findall(r"[a-z_]+", row[2])}
    # What a function calls is part of it.
    rows = connection.execute("SELECT prosrc FROM pg_proc WHERE proname = ANY(%s)", (list(found),))
    return found | {word for row in rows for word in re.findall(r"[a-z_]+", row[0])}


def tables(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace IN ('public'::regnamespace,"
        " 'pg_catalog'::regnamespace) AND relname = ANY(%s)",
        ([*words(connection)],),
    )
    return [row[0] for row in rows]


def temporary_tables(connection: Connection) -> None:
    for name in tables(connection):
        table = sql.Identifier(name)
        connection.execute(sql.SQL("CREATE TEMPORARY TABLE {} (LIKE {})").format(table, table))
        connection.execute(
            sql.SQL(
                "CREATE TRIGGER trap BEFORE INSERT OR UPDATE OR DELETE ON pg_temp.{}"
                " FOR EACH STATEMENT EXECUTE FUNCTION public.trap_trigger()"
            ).format(table)
        )


def temporary_views(connection: Connection) -> None:
    for name in tables(connection):
        connection.execute(
            sql.SQL("CREATE TEMPORARY VIEW {} AS SELECT t.* FROM {} AS t WHERE public.trap()").format(
                sql.Identifier(name),
                sql.Identifier("pg_catalog" if name.startswith("pg_") else "public", name),
            )
        )


def temporary_types(connection: Connection) -> None:
    for name in ("tsquery", "tsvector", "regclass", "regnamespace", "text", "float8", "int4", "name"):
        connection.execute(
            sql.SQL("CREATE DOMAIN pg_temp.{0} AS pg_catalog.{0} CHECK (public.trap())").format(sql.Identifier(name))
        )


def functions(connection: Connection) -> None:
    known = connection.execute(
        "SELECT DISTINCT proname, pronargs FROM pg_proc WHERE proname = ANY(%s) AND pronargs BETWEEN 1 AND 2"
        " AND prokind = 'f' AND proname NOT LIKE 'trap%%'",
        ([*words(connection)],),
    ).fetchall()
    assert ("unnest", 1) in known
    for name, count in known:
        for types in itertools.product(TYPES, repeat=count):
            attempt(
                connection,
                f"CREATE FUNCTION public.{name}({', '.join(types)}) RETURNS SETOF text LANGUAGE plpgsql"
                " AS $$ BEGIN PERFORM public.trap(); END $$",
            )


def operators(connection: Connection) -> None:
    for left, right in itertools.product(TYPES, repeat=2):
        procedure = f"spring_{abs(hash((left, right)))}"
        attempt(
            connection,
            f"CREATE FUNCTION public.{procedure}({left}, {right}) RETURNS boolean LANGUAGE plpgsql"
            " AS $$ BEGIN RETURN public.trap(); END $$",
        )
        for name in OPERATORS:
            attempt(
                connection,
                f"CREATE OPERATOR public.{name} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = public.{procedure})",
            )


def attempt(connection: Connection, statement: str) -> None:
    """Make a trap, unless its place is taken."""
    body = statement.replace("'", "''")
    connection.execute(
        f"DO $attempt$ BEGIN EXECUTE '{body}'; EXCEPTION WHEN duplicate_function OR wrong_object_type"
        " OR invalid_function_definition THEN NULL; END $attempt$".encode()
    )


@pytest.mark.parametrize("trap", [temporary_tables, temporary_views, temporary_types, functions, operators])
def test_no_caller_can_make_them_run_its_own_code(victim: Connection, trap: Callable[[Connection], None]) -> None:
    # Whatever is remembered of a connection's plans was made before there were traps.
    statements = calls(victim)
    for statement in statements:
        victim.execute(statement.encode())
    with victim.transaction():
        trap(victim)
    for path in ("DEFAULT", "pg_temp, public, pg_catalog"):
        victim.execute(f"SET search_path = {path}".encode())
        victim.execute("DISCARD PLANS")
        for statement in statements:
            victim.execute(statement.encode())


def test_the_traps_do_spring(victim: Connection) -> None:
    """A function as they used to be, with the search_path of its maker, walks into them."""
    with victim.transaction():
        temporary_tables(victim)
    with pytest.raises(psycopg.errors.RaiseException, match="TRAPPED"):
        victim.execute("DELETE FROM lexeme_statistics")


def test_each_sees_postgres_alone_and_nothing_temporary_first(database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as connection:
        for name, _, _, settings in connection.execute(DEFINERS):
            assert "search_path=pg_catalog, pg_temp" in settings, name


def test_none_of_them_is_for_everybody(database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as connection:
        rows = connection.execute(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE prosecdef"
            " AND has_function_privilege('public', oid, 'EXECUTE') AND pronamespace <> 'pg_catalog'::regnamespace"
        ).fetchall()
    assert rows == []
