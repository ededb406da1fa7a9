"""Turns are found by words of the turns before them: an edit or an erasure changes those that follow, and no others."""

from __future__ import annotations

import psycopg
import pytest

from hermes_memory_pgvector.store import hidden, vectors
from hermes_memory_pgvector.store.hidden import Key
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.store.vectors import Made
from hermes_memory_pgvector.values import Kind
from testing.agent import AgentHome
from testing.postgres import DIM, Database

ROWS = "SELECT id, session_id, ts, content, lexemes::text, xmin::text FROM conversations ORDER BY ts, id"
SAID = [
    ("The quokka plan is this one", "Noted, a plan for later"),
    ("What about the harbour budget", "It stands at twelve thousand"),
    ("And who signs the permit", "The harbour master does"),
]


@pytest.fixture
def talk(agent_home: AgentHome, database: Database) -> AgentHome:
    """A conversation in which every turn has its vector."""
    agent = agent_home.provider("marketing", "group")
    for author, (asked, told) in zip(("Tim", "Anna", "Tim"), SAID, strict=True):
        agent.sync_turn(asked, told, session_id="group", turn_author={"id": author, "name": author})
    agent_home.settle()
    with psycopg.connect(database.owner_dsn) as owner:
        model = current_model(owner)
        assert model is not None
        keys = [("marketing", "turn", row[0]) for row in agent_home.stored.rows(ROWS)]
        vectors.enqueue(owner, keys)
        wanting, _ = vectors.claim(owner, limit=100, lease_seconds=60)
        vectors.store(owner, model, [Made(row, 0, [1.0] * DIM) for row in wanting], [])
    assert agent_home.stored.count("turn_vectors_1") == 6
    return agent_home


def lexemes(home: AgentHome) -> list[str]:
    return [str(row[4]) for row in home.stored.rows(ROWS)]


def test_what_follows_a_hidden_turn_is_embedded_anew_and_the_rest_keeps_its_vectors(
    talk: AgentHome, database: Database
) -> None:
    ids = [row[0] for row in talk.stored.rows(ROWS)]
    assert any("later" in text for text in lexemes(talk)[2:])
    with psycopg.connect(database.owner_dsn) as owner:
        # What stands before a turn further on is nobody's to touch, as in sessions that were adopted without it.
        owner.execute("UPDATE conversations SET before = 'kept' WHERE content LIKE '%permit%'")
        number = hidden.add(owner, "muted", "op")
        hidden.hide(owner, number, [Key(Kind.TURN, "marketing", ids[1])])
    assert not any("later" in text for text in lexemes(talk))
    assert "kept" in lexemes(talk)[4]
    assert talk.stored.rows("SELECT id FROM pending_vectors ORDER BY id") == [(ids[2],), (ids[3],)]
    assert talk.stored.rows("SELECT id FROM turn_vectors_1 ORDER BY id") == [(ids[n],) for n in (0, 4, 5)]
