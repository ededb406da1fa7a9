"""The rule that keeps statements to a theme sees what a statement leaves open."""

from __future__ import annotations

import pytest

from testing.theme_rule import mutants, unnamed

KEPT = (
    "SELECT FROM conversations WHERE agent_identity = %(theme)s",
    "SELECT FROM conversations AS a JOIN conversations AS b ON b.agent_identity = a.agent_identity"
    " WHERE a.agent_identity = %(theme)s",
    "SELECT FROM unnest(%(themes)s::text[]) AS hit (theme) CROSS JOIN LATERAL"
    " (SELECT FROM conversations AS c WHERE c.agent_identity = hit.theme) AS c",
    "SELECT FROM conversations AS a WHERE a.agent_identity = %(theme)s AND NOT EXISTS"
    " (SELECT FROM memory_entries AS b WHERE b.agent_identity = a.agent_identity)",
    "SELECT FROM conversations AS a LEFT JOIN pending_vectors AS b ON b.agent_identity = a.agent_identity"
    " WHERE a.agent_identity = %(theme)s",
)
OPEN = (
    "SELECT FROM conversations",
    "SELECT FROM conversations AS a, memory_entries AS b WHERE a.agent_identity = %(theme)s",
    "SELECT FROM conversations WHERE agent_identity = %(theme)s OR id = 1",
    "SELECT FROM conversations WHERE id = 1 OR agent_identity = %(theme)s",
    "SELECT FROM conversations AS a JOIN conversations AS b ON b.agent_identity = a.agent_identity",
    "SELECT FROM conversations AS a LEFT JOIN unnest(%(themes)s::text[]) AS own (theme)"
    " ON own.theme = a.agent_identity",
    "SELECT FROM conversations WHERE agent_identity = %(theme)s UNION ALL SELECT FROM memory_entries",
    "SELECT FROM conversations AS a WHERE EXISTS (SELECT FROM memory_entries AS b WHERE a.agent_identity = %(theme)s)",
    "SELECT FROM conversations AS a WHERE NOT EXISTS (SELECT WHERE a.agent_identity = %(theme)s)",
    "UPDATE conversations AS a SET agent_identity = %(theme)s WHERE a.id = 1",
    "SELECT FROM conversations WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s",
    "SELECT 1 -- FROM nothing\n FROM conversations WHERE id = 1 -- AND agent_identity = %(theme)s",
)


@pytest.mark.parametrize("text", KEPT)
def test_a_statement_that_names_its_theme_is_kept_to_it(text: str) -> None:
    assert unnamed(text) == []
    assert all(unnamed(mutant) for _, mutant in mutants(text))


@pytest.mark.parametrize("text", OPEN)
def test_a_statement_that_leaves_a_table_open_is_noticed(text: str) -> None:
    assert unnamed(text)


def test_a_theme_that_may_be_left_out_is_named_only_where_that_is_allowed() -> None:
    assert unnamed(OPEN[10], may_be_left_out=True) == []
