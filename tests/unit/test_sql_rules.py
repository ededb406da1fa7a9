"""No statement deletes or changes rows that nobody named: every file under sql/ is read for it."""

from __future__ import annotations

import pytest

from testing.sql_files import everything
from testing.sql_rules import TENANT_TABLES, changes, fault, portability

STATEMENTS = {each.name: each.text for each in everything()}


# statement, table: why the rule does not hold there.
EXCEPTIONS = {
    (
        "admin/models/finish_pending",
        "pending_vectors",
    ): "what has its vector waits for none, in any theme; no content",
}
EXCEPTIONS |= {
    (f"admin/schema/make_words_of_{kind}", table): "another language takes every row's words apart; no content"
    for kind, table in (("memories", "memory_entries"), ("turns", "conversations"))
}
EXCEPTIONS |= {
    (f"queries/themes/{name}", table): "a theme becomes another one: all that it has is meant, or what both have"
    for name, table in (
        ("drop_entries", "memory_entries"),
        ("drop_turns", "conversations"),
        ("drop_waiting", "pending_vectors"),
        ("move_entries", "memory_entries"),
        ("move_history", "memory_operations"),
        ("move_turns", "conversations"),
        ("move_waiting", "pending_vectors"),
        ("share_homes", "memory_entries"),
    )
}
FORMER_TRIM = """
WITH kept AS (SELECT turn.ts, turn.id FROM unnest(%(digests)s::text[], %(ordinals)s::integer[]) AS still (digest, nth)
    JOIN conversations AS turn ON turn.agent_identity = %(theme)s AND turn.digest = decode(still.digest, 'hex'))
DELETE FROM conversations AS turn
WHERE turn.agent_identity = %(theme)s AND turn.session_id = %(session_id)s AND turn.ts < %(at)s::timestamptz
  AND ((cardinality(%(digests)s::text[]) = 0) OR (turn.ts, turn.id) > (SELECT ts, id FROM kept));"""


def faults(text: str) -> dict[str, str]:
    found = {change.table: fault(change, text) for change in changes(text) if change.table in TENANT_TABLES}
    return {table: wrong for table, wrong in found.items() if wrong}


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_deletes_or_changes_rows_that_nobody_named(name: str) -> None:
    found = faults(STATEMENTS[name])
    assert {table: wrong for table, wrong in found.items() if (name, table) not in EXCEPTIONS} == {}


def test_every_exception_is_still_one() -> None:
    for name, table in EXCEPTIONS:
        assert table in faults(STATEMENTS[name])


def test_the_files_are_read_indeed() -> None:
    seen = {(change.verb, change.table) for text in STATEMENTS.values() for change in changes(text)}
    assert {
        ("DELETE", "conversations"), ("DELETE", "memory_entries"), ("DELETE", "{memory_vectors}"),
        ("UPDATE", "memory_entries"), ("UPDATE", "embedding_models"),
        ("UPSERT", "{memory_vectors}"), ("UPSERT", "pending_vectors"),
    } <= seen  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        (FORMER_TRIM, "something that is empty or missing widens it"),
        ("DELETE FROM conversations -- of this theme: agent_identity = %(theme)s", "there is no WHERE"),
        ("DELETE FROM conversations WHERE agent_identity = %(theme)s", "neither a bound set of keys nor a moment"),
        ("DELETE FROM conversations /* agent_identity = %(theme)s AND */ WHERE id = %(id)s", "no bound theme"),
        ("DELETE FROM conversations WHERE agent_identity = %(theme)s OR id = %(id)s", "no bound theme"),
        ("DELETE FROM conversations AS c WHERE c.agent_identity = c.agent_identity AND id = %(id)s", "no bound theme"),
        (
            "DELETE FROM memory_entries WHERE agent_identity = %(theme)s AND (%(id)s::bigint IS NULL OR id = %(id)s)",
            "something that is empty or missing widens it",
        ),
        ("UPDATE memory_entries AS e SET content = %(content)s WHERE e.id = %(id)s", "no bound theme"),
        ("WITH gone AS (DELETE FROM memory_operations RETURNING 1) SELECT FROM gone WHERE 1 = 1", "there is no WHERE"),
        ("CREATE FUNCTION f() AS $$ BEGIN DELETE FROM {schema}.conversations; END $$", "there is no WHERE"),
        ("INSERT INTO memory_entries (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1", "its key has no theme"),
        ("TRUNCATE conversations", "TRUNCATE names no rows"),
    ],
)  # fmt: skip
def test_a_statement_that_goes_too_far_is_noticed(statement: str, wrong: str) -> None:
    assert set(faults(statement).values()) == {wrong}


def test_statements_run_wherever_the_tables_of_their_themes_are() -> None:
    """On one server, and on many that each have some themes: no text is for one of them only."""
    found = {name: portability(text) for name, text in STATEMENTS.items() if name.startswith("queries/")}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SELECT id FROM public.conversations", "names a schema"),
        ("SELECT id FROM conversations JOIN processes ON true", "names tables of both sides"),
        ("UPDATE hidden SET undone_at = now() WHERE id = %(id)s", "changes rows by the server's clock"),
        ("INSERT INTO hidden (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET at = clock_timestamp()",
         "changes rows by the server's clock"),
        ("WITH made AS (INSERT INTO hidden (id) VALUES (1) RETURNING id) SELECT id FROM made",
         "writes by way of an intermediate result"),
        ("CREATE TRIGGER t AFTER INSERT ON hidden EXECUTE FUNCTION f()", "makes a trigger"),
    ],
)  # fmt: skip
def test_what_is_not_portable_is_seen(text: str, wrong: str) -> None:
    assert portability(text) == [wrong]


def test_what_only_looks_like_it_is_portable() -> None:
    for text in (
        "INSERT INTO hidden (id) SELECT id FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS given (id, place)",
        "INSERT INTO processes (seen_at) VALUES (now())",
        "WITH found AS (SELECT id FROM hidden) SELECT id FROM found",
    ):
        assert portability(text) == []
