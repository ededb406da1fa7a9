"""The lines that count each theme's rows: always right, whoever adds or deletes rows, and few when added up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import psycopg
import pytest
from psycopg.rows import TupleRow

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine import tasks
from hermes_memory_pgvector.engine.tasks import CountRows
from hermes_memory_pgvector.store import browse
from testing.agent import AgentHome
from testing.postgres import Database

TODAY = date(2026, 6, 15)
COUNTED = "SELECT agent_identity, sum(memories)::int, sum(turns)::int FROM theme_growth GROUP BY 1 ORDER BY 1"
TRUE = """
SELECT agent_identity, sum(memories)::int, sum(turns)::int
FROM (SELECT agent_identity, 1 AS memories, 0 AS turns FROM memory_entries
      UNION ALL SELECT agent_identity, 0, 1 FROM conversations) AS rows GROUP BY 1 ORDER BY 1"""


@pytest.fixture
def runtime(database: Database) -> Iterator[psycopg.Connection[TupleRow]]:
    with psycopg.connect(database.operator_dsn, autocommit=True) as connection:
        yield connection


def say(connection: psycopg.Connection[TupleRow], theme: str, number: int) -> None:
    connection.execute(
        "INSERT INTO conversations (agent_identity, session_id, role, content)"
        " SELECT %s, 's', 'user', 'said ' || n FROM generate_series(1, %s) AS n",
        (theme, number),
    )


def remember(connection: psycopg.Connection[TupleRow], theme: str, content: str) -> None:
    connection.execute(
        "INSERT INTO memory_entries (agent_identity, target, content) VALUES (%s, 'memory', %s)", (theme, content)
    )


def is_right(connection: psycopg.Connection[TupleRow]) -> bool:
    counted = [row for row in connection.execute(COUNTED.encode()).fetchall() if row[1:] != (0, 0)]
    return counted == connection.execute(TRUE.encode()).fetchall()


def test_note_added_counts_what_a_statement_adds(runtime: psycopg.Connection[TupleRow]) -> None:
    """hermes_note_added() is a trigger of both tables."""
    say(runtime, "market", 5)
    say(runtime, "garden", 2)
    remember(runtime, "market", "prices rise")
    assert runtime.execute(COUNTED.encode()).fetchall() == [("garden", 0, 2), ("market", 1, 5)]
    with runtime.transaction(force_rollback=True):
        say(runtime, "market", 3)
    assert is_right(runtime)


def test_note_gone_counts_what_a_statement_deletes(runtime: psycopg.Connection[TupleRow]) -> None:
    """hermes_note_gone() is a trigger of both tables."""
    say(runtime, "market", 5)
    remember(runtime, "market", "prices rise")
    runtime.execute("DELETE FROM conversations WHERE content < 'said 3'")
    assert runtime.execute(COUNTED.encode()).fetchall() == [("market", 1, 3)]
    runtime.execute("DELETE FROM memory_entries")
    assert runtime.execute(COUNTED.encode()).fetchall() == [("market", 0, 3)]


def test_note_moved_counts_what_changes_its_theme(runtime: psycopg.Connection[TupleRow]) -> None:
    """hermes_note_moved() is a trigger of both tables."""
    say(runtime, "market", 5)
    remember(runtime, "market", "prices rise")
    runtime.execute("UPDATE conversations SET agent_identity = 'garden' WHERE content = 'said 5'")
    runtime.execute("UPDATE memory_entries SET content = 'prices fall'")
    assert runtime.execute(COUNTED.encode()).fetchall() == [("garden", 0, 1), ("market", 1, 4)]


def test_note_emptied_counts_a_truncated_table(database: Database, runtime: psycopg.Connection[TupleRow]) -> None:
    """hermes_note_emptied() is the trigger of TRUNCATE."""
    say(runtime, "market", 5)
    remember(runtime, "market", "prices rise")
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("TRUNCATE conversations CASCADE")
    assert runtime.execute(COUNTED.encode()).fetchall() == [("market", 1, 0)]


def test_lines_are_added_up_and_stay_right(runtime: psycopg.Connection[TupleRow]) -> None:
    for number in range(1, 6):
        say(runtime, "market", number)
        say(runtime, "garden", 1)
    runtime.execute("UPDATE theme_growth SET day = %s WHERE id %% 3 = 0", (TODAY,))
    runtime.execute("UPDATE theme_growth SET day = %s WHERE id %% 3 = 1", (date(2026, 6, 1),))
    runtime.execute("UPDATE theme_growth SET day = %s WHERE id %% 3 = 2", (date(2026, 1, 1),))
    before = browse.themes(runtime, TODAY)
    assert browse.fold_growth(runtime, TODAY) > 0
    assert browse.themes(runtime, TODAY) == before
    assert runtime.execute("SELECT count(*) FROM theme_growth").fetchone() == (4,)
    assert browse.fold_growth(runtime, TODAY) == 0
    assert is_right(runtime)


def test_only_one_process_adds_up_at_a_time(database: Database, runtime: psycopg.Connection[TupleRow]) -> None:
    say(runtime, "market", 1)
    say(runtime, "market", 1)
    with psycopg.connect(database.operator_dsn) as other:
        assert browse.fold_growth(other, TODAY) == 1
        assert browse.fold_growth(runtime, TODAY) == 0
    assert is_right(runtime)


def test_a_busy_process_adds_up_now_and_then(agent_home: AgentHome) -> None:
    """Every stored batch wakes the tasks; adding up reads the lines of all themes."""
    engine = agent_home.engine
    agent = agent_home.provider()
    engine.tasks.stop(Deadline.after(10))
    task = CountRows(engine.pool, engine.writer)

    def lines_after(text: str) -> int:
        agent.sync_turn(text, "")
        agent_home.settle()
        task.run()
        return agent_home.stored.count("theme_growth")

    assert lines_after("The pilot boat is moored at the quay") == 1
    assert lines_after("The lighthouse keeper lives upstairs") == 2
    assert 0 < task.run() <= tasks.COUNT_SECONDS
    task._not_before = 0.0
    assert lines_after("The harbour master has gone fishing") == 1


def test_growth_is_what_came_today_and_this_week(runtime: psycopg.Connection[TupleRow]) -> None:
    for day, number in ((TODAY, 1), (date(2026, 6, 9), 2), (date(2026, 6, 8), 4)):
        say(runtime, "dm-0123", number)
        runtime.execute("UPDATE theme_growth SET day = %s WHERE id = (SELECT max(id) FROM theme_growth)", (day,))
    (theme,) = browse.themes(runtime, TODAY)
    assert (theme.turns, theme.new_today, theme.new_this_week, theme.is_private) == (7, 1, 3, True)
    assert theme.last_write is not None
    assert theme.last_recall is None
