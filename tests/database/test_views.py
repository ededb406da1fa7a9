"""The seven views: what they show, how Postgres reads them, and the recipes that docs/reference/sql.md gives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from docs.pages import page

from hermes_memory_pgvector.postgres.statements import statement
from hermes_memory_pgvector.server.server import ConnectionInfo
from testing.postgres import Database, new_database

PAGE = page("docs/reference/sql.md").text
RECIPES = re.findall(r"```sql\n(.*?);\n```", PAGE, re.DOTALL)
VIEWS = {
    name: re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", columns))
    for name, columns in re.findall(r"^\| `(hermes_\w+)` \| [^|]+ \| (.+) \|$", PAGE, re.MULTILINE)
}
FILL = """
INSERT INTO conversations (agent_identity, session_id, role, content, ts, metadata)
SELECT 'theme-' || n % 40, 's' || n % 400, CASE n % 2 WHEN 0 THEN 'user' ELSE 'assistant' END, 'said ' || n,
       timestamptz '2026-01-01' + n * interval '1 minute', '{}'
FROM generate_series(1, 8000) AS n;
INSERT INTO memory_entries (agent_identity, target, content, updated_at)
SELECT 'theme-' || n % 40, 'memory', 'fact ' || n, timestamptz '2026-01-01' + n * interval '1 hour'
FROM generate_series(1, 400) AS n;
ANALYZE conversations, memory_entries;
"""


@pytest.fixture(scope="module")
def filled(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """Forty themes; nothing is changed in them."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            owner.execute(FILL.encode())
            owner.execute("VACUUM conversations, memory_entries")
        yield database


@pytest.mark.parametrize("view", ["rows", "themes", "sessions", "events", "processes", "metrics"])
def test_a_view_has_the_columns_that_the_page_promises(filled: Database, view: str) -> None:
    with psycopg.connect(filled.runtime_dsn) as connection:
        found = connection.execute(f"SELECT * FROM hermes_{view} LIMIT 0".encode())
        assert found.description is not None
        assert [column.name for column in found.description] == VIEWS[f"hermes_{view}"]


def test_there_are_twelve_recipes() -> None:
    assert len(RECIPES) == 12


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_runs_for_the_runtime_role(filled: Database, recipe: str) -> None:
    with psycopg.connect(filled.runtime_dsn) as connection:
        found = connection.execute(recipe.replace("marketing", "theme-1").encode())
        assert found.description is not None


def scans(filled: Database, **values: Any) -> list[dict[str, Any]]:
    """How the list of rows is read: every node that reads the two tables."""
    given = {
        "theme": None, "kinds": ["memory", "turn"], "origin": None, "since": None, "before": None, "before_kind": "",
        "before_id": None, "limit": 20,
    }  # fmt: skip
    with psycopg.connect(filled.runtime_dsn) as connection:
        text = statement("browse/rows").as_string(connection)
        row: Any = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {text}".encode(), given | values).fetchone()
    told = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return [node for node in nodes(told[0]["Plan"]) if node.get("Relation Name") in ("conversations", "memory_entries")]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("theme", [None, "theme-7"])
def test_the_newest_rows_are_read_from_the_themes_timelines(filled: Database, theme: str | None) -> None:
    """Of each theme its newest turns alone, however many it has; nothing is scanned."""
    found = scans(filled, theme=theme)
    assert not [node for node in found if node["Node Type"] == "Seq Scan"]
    (turns,) = [node for node in found if node.get("Index Name") == "conversations_timeline" and "Index Cond" in node
                and "stored" not in node["Alias"] and node["Node Type"] == "Index Scan"]  # fmt: skip
    assert turns["Actual Rows"] <= 25
    assert turns["Actual Loops"] == (40 if theme is None else 1)


def test_a_session_is_shown_once_with_its_first_words(filled: Database) -> None:
    with psycopg.connect(filled.runtime_dsn) as connection:
        rows = connection.execute(
            "SELECT session_id, turns, begins_with, last_at > first_at FROM hermes_sessions WHERE theme = 'theme-2'"
            " ORDER BY last_at DESC"
        ).fetchall()
    assert len(rows) == 10
    assert {row[1:] for row in rows if row[0] == "s2"} == {(20, "said 2", True)}
