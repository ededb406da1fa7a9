"""What is left of a session after an erasure is found by its own words and its author, as before."""

from __future__ import annotations

import psycopg

from hermes_memory_pgvector.store import erasure
from testing.agent import AgentHome
from testing.postgres import Database

LEXEMES = "SELECT lexemes::text FROM conversations WHERE content LIKE '%%harbour%%'"


def test_the_turns_that_are_left_keep_their_author(agent_home: AgentHome, database: Database) -> None:
    agent = agent_home.provider("marketing", "group")
    for author, words in (("Tim", "The quokka plan is this one"), ("Anna", "What about the harbour budget")):
        agent.sync_turn(words, "Noted for later", session_id="group", turn_author={"id": author, "name": author})
    agent_home.settle()
    ((before,),) = agent_home.stored.rows(LEXEMES)
    assert "~by:anna" in before
    assert "quokka" in before
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("DELETE FROM conversations WHERE content LIKE '%quokka%'")
        assert erasure.mend_sessions(owner, [("marketing", "group")])
    ((after,),) = agent_home.stored.rows(LEXEMES)
    assert "~by:anna" in after
    assert "quokka" not in after
