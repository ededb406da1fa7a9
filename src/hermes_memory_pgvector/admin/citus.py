"""A database whose rows are spread over the workers of a Citus cluster, each theme on one of them.

What `migrate` does there besides: it distributes tables that are not yet, makes the functions of every shard (a search
runs on the worker that has the theme, in the shard's own tables) and those of the coordinator that send a question to
them. All functions are made on every node, for shards that lie elsewhere too: a shard that moves finds them there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from hermes_memory_pgvector.admin.sql_functions import (
    MEMORIES,
    TURNS,
    Kind,
    drop_functions,
    kind_functions,
    model_functions,
)
from hermes_memory_pgvector.admin.statements import admin_statement, sql_text
from hermes_memory_pgvector.errors import SchemaError
from hermes_memory_pgvector.store.distributed import THEN
from hermes_memory_pgvector.store.statements import FOLDER

DISTRIBUTED = (
    "conversations", "memory_entries", "memory_sources", "memory_operations", "delegations", "quarantined_turns",
    "quarantined_memories", "theme_growth", "recall_log", "shard_anchors", "shard_lexemes",
)  # fmt: skip
"""Spread by theme, all in the same way; a table stands after those that it refers to. So are the vector tables."""
REFERENCE = ("quarantines",)
"""Whole on every node: shards look into them."""
LOCAL = (
    "hermes_pgvector_migrations", "hermes_pgvector_installation", "embedding_models", "reembedding", "journal_writers",
    "journals_ended", "pending_vectors", "memory_files", "dead_letters", "lexeme_statistics", "theme_indexes",
    "theme_aliases", "agents", "agent_processes", "past_processes", "audit_log", "erasure_key",
    "erasure_receipts", "tombstones", "login_grants", "login_themes", "operator_changes", "shard_keys",
)  # fmt: skip
"""On the coordinator alone: the books of journals and processes, queues, what belongs to no theme."""
ONLY_HERE = frozenset({"shard_anchors", "shard_lexemes", "shard_keys"})
"""Tables that only a distributed database has."""
NAMES = (
    "hermes_found", "hermes_found_in_shard", "hermes_search", "hermes_near", "hermes_near_in_shard", "hermes_by_words",
    "hermes_by_words_in_shard",
)  # fmt: skip
"""Functions of every source, which are made anew whatever their arguments."""
VECTORS = re.compile(r"(turn|memory)_vectors_[0-9]+")

DECLARED: LiteralString = (
    "theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz, terms text[], "
    "queries text[], own_queries text[], weights real[], is_exact boolean[], question halfvec, "
    "candidate_limit integer, min_similarity real, min_coverage real, needs_both boolean, unrelated real, "
    "asks_when boolean, speaker text, authors text, period_start timestamptz, period_end timestamptz, "
    "half_life_days real, now timestamptz, by_session boolean, wanted integer, trust text"
)
"""What a search is asked; see functions/per_model/search.sql."""
ANSWERED: LiteralString = (
    "agent_identity text, id bigint, ts timestamptz, content text, similarity real, rank real, count integer, "
    "place text, role text, origin text, trusted text, tools jsonb, number bigint"
)
ORIGINS: Mapping[str, LiteralString] = {
    TURNS.table: "hermes_origin_of_turn(row.origin, row.role)",
    MEMORIES.table: "hermes_origin_of_memory(row.origin, row.metadata)",
}


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of all distributed tables that holds the same themes."""

    id: int
    """Of its part of conversations."""
    tables: Mapping[str, str]
    """What each table is called in this shard."""

    @property
    def schema(self) -> str:
        """Where its functions are."""
        return f"hermes_shard_{self.id}"


def is_coordinator(connection: psycopg.Connection) -> bool:
    """Whether the database has Citus and this node knows workers."""
    row = connection.execute(admin_statement("citus/has_citus")).fetchone()
    if row != (True,):
        return False
    return connection.execute(admin_statement("citus/has_workers")).fetchone() == (True,)


def is_distributed(connection: psycopg.Connection) -> bool:
    """Whether the tables of this schema are spread over a cluster."""
    if connection.execute(admin_statement("citus/has_citus")).fetchone() != (True,):
        return False
    return connection.execute(admin_statement("citus/is_distributed")).fetchone() == (True,)


def spread_tables(connection: psycopg.Connection) -> list[str]:
    """The tables of this schema that are spread over a cluster, or whole on every node of it."""
    if connection.execute(admin_statement("citus/has_citus")).fetchone() != (True,):
        return []
    return [str(row[0]) for row in connection.execute(admin_statement("citus/spread_tables"))]


def prepare(connection: psycopg.Connection) -> None:
    """Before anything is changed in a database that is, or will be, distributed."""
    connection.execute(admin_statement("citus/prepare"))


def migration_texts(file: str) -> list[LiteralString]:
    """What a migration does in a database that is distributed, one text after the other.

    Mostly it is the same. What Citus takes only in other words stands under citus/migrations by the same name: it wants
    every change of a distributed table for itself.
    """
    if not FOLDER.joinpath(f"citus/migrations/{file}").is_file():
        return [sql_text(f"migrations/{file}")]
    return sql_text(f"citus/migrations/{file}").split(THEN)


def spread(connection: psycopg.Connection, schema: str, *, anew: bool = False) -> int:
    """Distribute what is not yet and make the functions of every shard; how many shards there are."""
    if connection.execute("SELECT 1 FROM login_grants LIMIT 1").fetchone() is not None:
        raise SchemaError(
            "logins of single minions cannot be kept to their themes on the workers of a cluster; "
            "revoke them first: hermes-pgvector revoke-login LOGIN"
        )
    connection.execute(sql_text("citus/tables.sql"))
    connection.execute(admin_statement("citus/loosen"))
    _distribute(connection)
    drop_functions(connection, NAMES)
    connection.execute(_rendered_folder("functions", _schema_names(schema)))
    shards = find_shards(connection)
    _place_anchors(connection, shards)
    for row, kind in _sources(connection):
        names = {**_schema_names(schema), **_source_names(schema, row, kind)}
        connection.execute(_rendered_folder("functions/per_source", names))
        connection.execute(
            _rendered_folder("functions/per_texts" if row == kind.table else "functions/per_vectors", names)
        )
    _make_shard_functions(connection, schema, shards, anew=anew)
    return len(shards)


def grant(connection: psycopg.Connection, fleet: Sequence[str]) -> None:
    """Give these roles what running agents takes besides."""
    for role in fleet:
        names = {"role": sql.Identifier(role), "role_literal": sql.Literal(role)}
        connection.execute(sql.SQL(sql_text("citus/grants.sql")).format(**names))


def find_shards(connection: psycopg.Connection) -> list[Shard]:
    """Every shard, by the themes' order of hash."""
    found: dict[int, dict[str, str]] = {}
    for shard_id, table, name in connection.execute(admin_statement("citus/shards")):
        found.setdefault(int(shard_id), {})[str(table)] = str(name)
    return [Shard(shard_id, tables) for shard_id, tables in found.items()]


def _distribute(connection: psycopg.Connection) -> None:
    done = set(spread_tables(connection))
    vectors = [str(row[0]) for row in connection.execute(admin_statement("citus/vector_tables"))]
    wanted = [name for name in (*REFERENCE, *DISTRIBUTED, *vectors) if name not in done]
    # A table that refers to one that is not distributed yet would keep it from being so.
    bonds = connection.execute(admin_statement("citus/bonds"), (wanted,)).fetchall()
    for table, name, _ in bonds:
        connection.execute(
            sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(sql.Identifier(table), sql.Identifier(name))
        )
    # Rows that are only carried to their shards are neither new nor late.
    triggers = connection.execute(admin_statement("citus/triggers"), (wanted,)).fetchall()
    for table, name, _ in triggers:
        connection.execute(sql.SQL("DROP TRIGGER {} ON {}").format(sql.Identifier(name), sql.Identifier(table)))
    # No login is kept from statistics here, and shards have no other place to count words in.
    for name in (kind.table for kind in (TURNS, MEMORIES) if kind.table in wanted):
        connection.execute(admin_statement("citus/count_words").format(table=sql.Identifier(name)))
    for name in wanted:
        if name in REFERENCE:
            connection.execute("SELECT create_reference_table(%s)", (name,))
            continue
        beside = "none" if name == DISTRIBUTED[0] else DISTRIBUTED[0]
        connection.execute(
            "SELECT create_distributed_table(%s::regclass, 'agent_identity', colocate_with => %s)", (name, beside)
        )
    # What was carried away would stay on the coordinator, where nobody sees it and nothing erases it.
    for name in wanted:
        connection.execute("SELECT truncate_local_data_after_distributing_table(%s::regclass)", (name,))
    for table, name, said in bonds:
        parts = {"table": sql.Identifier(table), "name": sql.Identifier(name), "said": sql.SQL(said)}
        connection.execute(sql.SQL("ALTER TABLE {table} ADD CONSTRAINT {name} {said}").format(**parts))
    for _, _, said in triggers:
        connection.execute(said)
    for name in (name for name in wanted if VECTORS.fullmatch(name) and name not in {bond[0] for bond in bonds}):
        rows = TURNS.table if name.startswith(TURNS.vectors) else MEMORIES.table
        parts = {"vectors": sql.Identifier(name), "rows": sql.Identifier(rows)}
        connection.execute(admin_statement("citus/bind_vectors").format(**parts))


def _place_anchors(connection: psycopg.Connection, shards: Sequence[Shard]) -> None:
    """One row in every shard; the keys are tried until each shard has one."""
    known = {int(row[0]): str(row[1]) for row in connection.execute("SELECT shard_id, key FROM shard_keys")}
    if set(known) == {shard.id for shard in shards}:
        return
    connection.execute("DELETE FROM shard_anchors")
    connection.execute("DELETE FROM shard_lexemes")
    connection.execute("DELETE FROM shard_keys")
    connection.execute(admin_statement("citus/place_keys"), {"tries": 200 * len(shards)})
    placed = {int(row[0]) for row in connection.execute("SELECT shard_id FROM shard_keys")}
    missing = {shard.id for shard in shards} - placed
    if missing:
        raise SchemaError(f"no theme was found that lies in shard {min(missing)}; run this again with fewer shards")
    connection.execute("INSERT INTO shard_anchors (agent_identity, shard_id) SELECT key, shard_id FROM shard_keys")


def _make_shard_functions(connection: psycopg.Connection, schema: str, shards: Sequence[Shard], *, anew: bool) -> None:
    made = {str(row[0]): str(row[1]) for row in connection.execute(admin_statement("citus/shard_schemas"), (schema,))}
    keys = {int(row[0]): str(row[1]) for row in connection.execute("SELECT shard_id, key FROM shard_keys")}
    for name in made.keys() - {shard.schema for shard in shards}:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
    path = connection.execute("SELECT current_setting('search_path')").fetchone()
    assert path is not None
    for shard in shards:
        text = shard_sql(connection, schema, shard, keys[shard.id])
        mark = f"hermes {schema} {hashlib.sha256(text.encode()).hexdigest()}"
        if made.get(shard.schema) == mark and not anew:
            continue
        own = sql.Identifier(shard.schema)
        if shard.schema in made:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(own))
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(own))
        connection.execute("SELECT set_config('search_path', %s, true)", (f"{shard.schema}, {path[0]}",))
        connection.execute(text.encode())
        connection.execute("SELECT set_config('search_path', %s, true)", (path[0],))
        connection.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(own, sql.Literal(mark)))


def shard_sql(connection: psycopg.Connection, schema: str, shard: Shard, key: str) -> str:
    """The functions of one shard: those of every search, in its own tables."""
    own = {"shard_lexemes": sql.Identifier(shard.tables["shard_lexemes"]), "key": sql.Literal(key)}
    parts: list[sql.Composable] = [_rendered_folder("shard", own), kind_functions(schema, shard.tables)]
    for model_id in _model_ids(connection):
        parts.append(model_functions(model_id, shard.tables))
    for row, kind in _sources(connection):
        names = {**_source_names(schema, row, kind), "table": sql.Identifier(shard.tables[kind.table])}
        parts.append(_rendered_folder("shard/per_source", names))
    return sql.SQL("\n").join(parts).as_string(connection)


def _model_ids(connection: psycopg.Connection) -> list[int]:
    return [int(row[0]) for row in connection.execute("SELECT id FROM embedding_models ORDER BY id")]


def _sources(connection: psycopg.Connection) -> list[tuple[str, Kind]]:
    """The row types that say what is searched, each with its kind."""
    found = [(kind.table, kind) for kind in (TURNS, MEMORIES)]
    return [(str(row), kind) for row, kind in found] + [
        (f"{kind.vectors}_{model_id}", kind) for model_id in _model_ids(connection) for kind in (TURNS, MEMORIES)
    ]


def _source_names(schema: str, row: str, kind: Kind) -> dict[str, sql.Composable]:
    names = [each.split()[0] for each in DECLARED.split(", ")]
    return {
        "row": sql.Identifier(row),
        "declared": sql.SQL(DECLARED),
        "answered": sql.SQL(ANSWERED),
        "origin": sql.SQL(ORIGINS[kind.table]),
        "given": sql.SQL(", ").join(sql.Identifier(name) for name in names),
        "places": sql.SQL(", ").join(sql.SQL("${}").format(sql.Literal(n)) for n in range(1, len(names) + 1)),
        "nothing": sql.SQL("NULL::{}.{}").format(sql.Identifier(schema), sql.Identifier(row)),
        "no_text": sql.SQL("NULL::{}.{}").format(sql.Identifier(schema), sql.Identifier(kind.table)),
    }


def _schema_names(schema: str) -> dict[str, sql.Composable]:
    return {"schema": sql.Identifier(schema), "schema_name": sql.Literal(schema)}


def _rendered_folder(folder: str, names: Mapping[str, sql.Composable]) -> sql.Composed:
    files = sorted(file.name for file in FOLDER.joinpath("citus", folder).iterdir() if file.name.endswith(".sql"))
    return sql.SQL("\n").join(sql.SQL(sql_text(f"citus/{folder}/{name}")).format(**names) for name in files)
