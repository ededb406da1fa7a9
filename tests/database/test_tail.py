"""What arrives is told once, also when it appears out of order."""

from __future__ import annotations

import psycopg

from hermes_memory_pgvector.ops.browse.follow import Tail
from testing.postgres import Database

SAY = "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES (%s, 's', 'user', %s)"


def test_every_turn_is_told_once_even_if_it_is_committed_late(database: Database) -> None:
    with (
        psycopg.connect(database.runtime_dsn, autocommit=True) as reader,
        psycopg.connect(database.runtime_dsn) as slow,
        psycopg.connect(database.runtime_dsn, autocommit=True) as quick,
    ):
        quick.execute(SAY, ("market", "before"))
        everything, garden = Tail(reader), Tail(reader, theme="garden")
        assert everything.look(reader) == []
        slow.execute(SAY, ("market", "slow"))
        quick.execute(SAY, ("garden", "quick"))
        assert [row.content for row in everything.look(reader)] == ["quick"]
        slow.commit()
        assert [row.content for row in everything.look(reader)] == ["slow"]
        assert everything.look(reader) == []
        assert [row.content for row in garden.look(reader)] == ["quick"]
        quick.execute(
            "INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, content, at)"
            " VALUES ('garden', 'memory', 1, 'w', 1, 0, 'add', 'Roses need sun', now())"
        )
        for tail in (everything, garden):
            assert [event.content for event in tail.look(reader)] == ["Roses need sun"]
            assert tail.look(reader) == []
