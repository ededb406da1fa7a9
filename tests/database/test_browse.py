"""Lists over all themes are the newest rows of all, however they lie in themes and whichever share their time."""

from __future__ import annotations

import random

import psycopg
import pytest

from hermes_memory_pgvector.ops.browse import lists
from hermes_memory_pgvector.values import Kind
from testing.postgres import Database

FILL = """
INSERT INTO conversations (agent_identity, session_id, role, content, ts)
SELECT 'theme-' || n %% %(themes)s, 's', 'user', 'said ' || n,
       timestamptz '2026-01-01' + (n * 7 %% %(times)s) * interval '1 h'
FROM generate_series(1, 90) AS n;
INSERT INTO memory_entries (agent_identity, target, content, updated_at)
SELECT 'theme-' || n %% %(themes)s, CASE WHEN n %% 3 = 0 THEN 'user' ELSE 'memory' END, 'fact ' || n,
       timestamptz '2026-01-01' + (n * 5 %% %(times)s) * interval '1 h'
FROM generate_series(1, 60) AS n"""
ALL = """
SELECT kind, id
FROM (SELECT 'turn' AS kind, id, ts FROM conversations
      UNION ALL SELECT 'memory', id, updated_at FROM memory_entries) AS row
WHERE kind = ANY (%s) ORDER BY ts DESC, kind DESC, id DESC"""

NOTHING_GIVEN = dict.fromkeys(("theme", "since", "until", "page", "origin"))


@pytest.mark.parametrize(("themes", "times"), [(1, 100), (7, 11), (40, 3), (40, 100)])
def test_pages_over_all_themes_are_the_whole_list_in_order(database: Database, themes: int, times: int) -> None:
    dice = random.Random(themes * 1000 + times)
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        for statement in FILL.split(";"):
            connection.execute(statement.encode(), {"themes": themes, "times": times})
        for which, kinds in (("turns", (Kind.TURN,)), ("memories", (Kind.MEMORY,)), ("rows", tuple(Kind))):
            wanted = connection.execute(ALL.encode(), ([kind.value for kind in kinds],)).fetchall()
            seen: list[tuple[str, int]] = []
            page = None
            while True:
                given = {**NOTHING_GIVEN, "page": page, "limit": dice.choice((1, 2, 3, 17, 50))}
                found, page = lists.page_of(connection, which, given)
                seen += [(row.kind, int(row.id[1:])) for row in found]
                if page is None:
                    break
            assert seen == wanted
