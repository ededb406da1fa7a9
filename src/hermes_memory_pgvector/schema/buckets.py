"""Deals the themes of a database to several buckets, and hands buckets to the workers of a Citus cluster.

Dealing is one transaction: nobody stores anything meanwhile, and whoever is killed on the way has dealt nothing.
Handing out is one transaction a bucket: what still lies on the coordinator works there, until migrate runs again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import psycopg
from psycopg import sql

from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.postgres.statements import admin_statement, read_sql, statement
from hermes_memory_pgvector.schema import owner
from hermes_memory_pgvector.schema.model_tables import model_sql
from hermes_memory_pgvector.store import overview

MOST_BUCKETS: Final = 64
GATE_SECONDS: Final = 90
COPIED: Final = ("embedding_models", "forgotten", "journal_writers")
"""What every bucket needs whole, because each write looks at it there."""
APART: Final = {"hidden": "buckets/deal_hidden", "theme_aliases": "buckets/deal_aliases"}
"""What is dealt by something else than its theme."""

Connection = psycopg.Connection[Any]


def deal(connection: Connection, count: int, report: Callable[[str], None]) -> None:
    """Make so many buckets, and give each the rows of its themes; the transaction is the caller's."""
    if not 1 < count <= MOST_BUCKETS:
        raise SchemaError(f"{count} buckets cannot be made: 2 to {MOST_BUCKETS}")
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{GATE_SECONDS}s",))
    # Before the gate, as every writer locks its mark before it comes in: whoever waited there with a mark would be in
    # the way of taking the tables away.
    connection.execute("LOCK TABLE journal_writers IN EXCLUSIVE MODE")
    connection.execute(statement("gate/close"))
    main = owner.schema_to_migrate(connection)
    schemas = [f"{'hermes' if main == 'public' else main}_{number:02}" for number in range(count)]
    models = connection.execute("SELECT id, dim FROM embedding_models ORDER BY id").fetchall()
    tables = re.findall(r"^CREATE TABLE (\w+) \(", read_sql("base.sql"), re.MULTILINE)
    tables += [f"{kind}_vectors_{model}" for model, _ in models for kind in ("memory", "turn")]
    columns = {name: _columns(connection, name) for name in tables}
    _place_themes(connection, columns, count)
    for number, schema in enumerate(schemas):
        report(f"dealing themes to bucket {number + 1} of {count}")
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        owner.stay_within(connection, schema, main)
        connection.execute(read_sql("base.sql"))
        for model, dim in models:
            connection.execute(model_sql(model, dim, schema))
        sequences = [str(name) for (name,) in connection.execute(admin_statement("buckets/sequences"))]
        owner.stay_within(connection, main)
        for name in tables:
            if name == "dead_letters" and number > 0:
                continue
            is_whole = name in (*COPIED, "dead_letters")
            how = "buckets/copy" if is_whole else APART.get(name, "buckets/deal")
            parts = {"table": sql.Identifier(name), "columns": columns[name], "number": sql.Literal(number)}
            connection.execute(admin_statement(how).format(bucket=sql.Identifier(schema), **parts))
        for name in sequences:
            last = int(owner.value(connection, "buckets/last_number", (name,)))
            first = last + 1 + (number - last) % count
            parts = {"step": sql.Literal(count), "start": sql.Literal(number + 1), "next": sql.Literal(first)}
            counting = admin_statement("buckets/number").format(sequence=sql.Identifier(schema, name), **parts)
            connection.execute(counting)
    _drop(connection, admin_statement("buckets/drop").format(sql.SQL(", ").join(map(sql.Identifier, tables))))
    connection.execute(admin_statement("buckets/set_buckets"), (schemas,))


def _drop(connection: Connection, dropping: sql.Composed) -> None:
    """Take the tables away; whoever has read one and waits for the gate gives up at some time, and this does not."""
    until = time.monotonic() + GATE_SECONDS
    while True:
        try:
            with connection.transaction():
                connection.execute(dropping)
        except psycopg.errors.DeadlockDetected:
            if time.monotonic() > until:
                raise
        else:
            return


def _columns(connection: Connection, table: str) -> sql.Composed:
    rows = connection.execute(admin_statement("moving/columns"), (table,)).fetchall()
    return sql.SQL(", ").join(sql.Identifier(str(name)) for (name,) in rows)


def _place_themes(connection: Connection, columns: Mapping[str, sql.Composed], count: int) -> None:
    """Note for this transaction which bucket each theme goes to, and for good which names lead elsewhere."""
    themed = [name for name, named in columns.items() if "agent_identity" in named.as_string(None)]
    found = connection.execute(
        sql.SQL(" UNION ").join(
            [
                *(sql.SQL("SELECT agent_identity FROM {}").format(sql.Identifier(name)) for name in themed),
                sql.SQL("SELECT theme FROM hidden WHERE theme IS NOT NULL"),
                sql.SQL("SELECT new FROM theme_aliases"),
            ]
        )
    ).fetchall()
    themes = [str(theme) for (theme,) in found]
    connection.execute(admin_statement("buckets/deal_themes"), (themes, [bucket_of(theme, count) for theme in themes]))
    aliases = connection.execute("SELECT old, new FROM theme_aliases").fetchall()
    places = [(old, bucket_of(new, count)) for old, new in aliases if bucket_of(old, count) != bucket_of(new, count)]
    connection.execute(
        admin_statement("buckets/set_places"), ([old for old, _ in places], [bucket for _, bucket in places])
    )


def hand_out(connection: Connection, report: Callable[[str], None]) -> int:
    """Hand every bucket that is still here to a worker, where this database coordinates some; how many it was."""
    schemas = owner.buckets(connection)
    if len(schemas) == 1 or not overview.workers(connection):
        return 0
    for number in range(len(schemas)):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (owner.LOCK_KEY,))
            name = owner.value(connection, "cluster/undistributed", (schemas,))
            if name is None:
                return number
            report(f"handing {name} to a worker")
            connection.execute(admin_statement("cluster/distribute"), (name,))
    return len(schemas)


def tidy(connection: Connection) -> None:
    """Vacuum and analyse, so that the first searches are planned like later ones and read an index alone."""
    for schema in owner.buckets(connection):
        for (name,) in connection.execute(admin_statement("buckets/searched"), (schema,)).fetchall():
            connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(schema, name)))
