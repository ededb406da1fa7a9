"""The two tables, and the two views beside them, that people and programs may depend on: as psql shows them."""

from __future__ import annotations

import random

import psycopg
import pytest
from psycopg.errors import CheckViolation, NotNullViolation, UniqueViolation

from testing.postgres import DIM, Database
from testing.stored import Stored

COLUMNS = {
    "memory_entries": {"id", "agent_identity", "target", "content", "created_at", "updated_at", "metadata"},
    "conversations": {"id", "session_id", "agent_identity", "role", "content", "ts", "metadata"},
}
REFUSED = {
    "a memory of no known target": "INSERT INTO memory_entries (target, content) VALUES ('diary', 'x')",
    "a memory without a target": "INSERT INTO memory_entries (content) VALUES ('x')",
    "a memory without words": "INSERT INTO memory_entries (target) VALUES ('user')",
    "a memory of no theme": "INSERT INTO memory_entries (agent_identity, target, content) VALUES (NULL, 'user', 'x')",
    "a turn of no known role": "INSERT INTO conversations (session_id, role, content) VALUES ('s', 'poet', 'x')",
    "a turn of no theme": "INSERT INTO conversations (agent_identity, session_id, role, content)"
    " VALUES (NULL, 's', 'user', 'x')",
}
KEYS = """
SELECT c.relname, i.indexrelid::regclass::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
WHERE (i.indisunique OR i.indisprimary) AND c.relname = ANY (%s) AND c.relnamespace = 'public'::regnamespace
  AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = i.indrelid AND a.attname = 'agent_identity'
                  AND a.attnum = ANY (i.indkey::int2[]))
"""


@pytest.mark.parametrize("table", COLUMNS)
def test_a_table_has_the_columns_that_are_promised(database: Database, table: str) -> None:
    asked = "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = 'public'"
    assert COLUMNS[table] <= {name for (name,) in Stored(database.owner_dsn).rows(asked, table)}


def test_keys_contain_the_theme(database: Database) -> None:
    stored = Stored(database.owner_dsn)
    vectors = [
        name for (name,) in stored.rows("SELECT tablename FROM pg_tables WHERE tablename LIKE '%%\\_vectors\\_1'")
    ]
    assert len(vectors) >= 2
    assert stored.rows(KEYS, [*COLUMNS, *vectors]) == []


@pytest.mark.parametrize("statement", REFUSED.values(), ids=REFUSED)
def test_what_is_no_memory_and_no_turn_is_refused(database: Database, statement: str) -> None:
    with psycopg.connect(database.owner_dsn) as owner, pytest.raises((CheckViolation, NotNullViolation)):
        owner.execute(statement.encode())


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_a_turn_has_one_of_four_roles(database: Database, role: str) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("INSERT INTO conversations (session_id, role, content) VALUES ('s', %s, 'x')", (role,))


@pytest.mark.parametrize("length", [10, 20_000])
def test_an_entry_is_there_once_per_theme_and_target_however_long_it_is(database: Database, length: int) -> None:
    say = "INSERT INTO memory_entries (agent_identity, target, content) VALUES (%s, %s, %s)"
    content = random.Random(length).randbytes(length // 2).hex()
    with psycopg.connect(database.owner_dsn) as owner:
        for theme, target in (("a", "memory"), ("a", "user"), ("b", "memory")):
            owner.execute(say.encode(), (theme, target, content))
        with pytest.raises(UniqueViolation):
            owner.execute(say.encode(), ("a", "memory", content))


def test_the_views_have_the_columns_of_their_table_and_the_current_vector(database: Database) -> None:
    stored = Stored(database.owner_dsn)
    asked = "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
    for table, columns in COLUMNS.items():
        assert columns | {"embedding"} <= {name for (name,) in stored.rows(asked, f"{table}_embedded")}
    typed = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s"
    assert stored.rows(typed, "turn_vectors_1", "embedding") == [(f"halfvec({DIM})",)]
