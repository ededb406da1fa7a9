"""How many rows each theme has: what is there, on the days of which it tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg

from hermes_memory_pgvector.store import browse
from testing.postgres import Database


def test_growth_is_what_came_today_and_this_week(database: Database) -> None:
    noon = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with psycopg.connect(database.runtime_dsn, autocommit=True) as connection:
        for days, number in ((0, 1), (6, 2), (7, 4)):
            connection.execute(
                "INSERT INTO conversations (agent_identity, session_id, role, content, ts)"
                " SELECT 'dm-0123', 's', 'user', 'said ' || n, %s FROM generate_series(1, %s) AS n",
                (noon - timedelta(days), number),
            )
        connection.execute("INSERT INTO memory_entries (agent_identity, target, content) VALUES ('m', 'user', 'tea')")
        connection.execute("DELETE FROM memory_entries")
        (theme,) = browse.themes(connection)
    assert (theme.turns, theme.new_today, theme.new_this_week, theme.is_private) == (7, 1, 3, True)
    assert theme.last_write == noon
    assert theme.last_recall is None
