"""The turns beside a hit: of its own session and theme only, and read from the session's timeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from database.searching import START, Said, Store, store_of
from database.test_plans import nodes

from hermes_memory_pgvector.recall import tools
from hermes_memory_pgvector.store.search import NEIGHBOUR_CHARS, send_neighbours
from hermes_memory_pgvector.values import Hit, Neighbour, Scope
from testing.postgres import Database


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with store_of(database) as opened:
        yield opened


def beside(store: Store, text: str, **more: Any) -> list[tuple[str | None, str, str | None]]:
    """(before, hit, after) of each hit for these words."""
    with store.connection.transaction():
        hits = send_neighbours(store.connection, store.ask(text, **more))()
    return [(_text(hit.before), hit.content, _text(hit.after)) for hit in sorted(hits, key=lambda hit: hit.id)]


def _text(neighbour: Neighbour | None) -> str | None:
    return None if neighbour is None else neighbour.content


def test_a_hit_has_the_turn_just_before_and_just_after_it(store: Store) -> None:
    store.say("first", "second", Said("the zebra budget", role="assistant"), "fourth", "fifth")
    assert beside(store, "zebra") == [("second", "the zebra budget", "fourth")]


def test_only_what_exists_is_there(store: Store) -> None:
    store.say(Said("zebra alone", session="s1"), Said("zebra opens", session="s2"), Said("the end", session="s2"))
    store.say(Said("the start", session="s3"), Said("zebra closes", session="s3"))
    assert beside(store, "zebra") == [
        (None, "zebra alone", None), (None, "zebra opens", "the end"), ("the start", "zebra closes", None),
    ]  # fmt: skip


def test_time_decides_and_then_the_order_of_arrival(store: Store) -> None:
    """Turns of a transcript may be stored late, or all bear the same time."""
    late, same = START + timedelta(days=1), START + timedelta(days=2)
    store.say(Said("zebra one", ts=late), Said("said earlier", ts=late - timedelta(seconds=1)))
    store.say(*(Said(text, session="s2", ts=same) for text in ("a", "b", "zebra two", "c", "d")))
    assert beside(store, "zebra") == [("said earlier", "zebra one", None), ("b", "zebra two", "c")]


def test_another_theme_in_the_same_session_is_never_read(store: Store) -> None:
    """Session ids are the host's: two themes may share one, and a private theme may be one of them."""
    store.say(
        Said("other before", "other"), Said("private before", "dm-1"), Said("zebra of the fleet"),
        Said("private after", "dm-1"), Said("other after", "other"), Said("zebra of the other", "other"),
    )  # fmt: skip
    assert beside(store, "zebra") == [(None, "zebra of the fleet", None)]
    assert beside(store, "zebra", scope=Scope.ALL) == [
        (None, "zebra of the fleet", None), ("other after", "zebra of the other", None),
    ]  # fmt: skip
    assert beside(store, "private", theme="dm-1") == [
        (None, "private before", "private after"), ("private before", "private after", None),
    ]  # fmt: skip


def test_long_neighbours_are_cut_as_hits_are(store: Store) -> None:
    store.say("ü" * 5000, "the zebra budget")
    ((before, _, _),) = beside(store, "zebra")
    assert before == "ü" * tools.CONTENT_CHARS == "ü" * NEIGHBOUR_CHARS


def test_a_session_is_read_from_its_timeline_whatever_the_planner_knows(database: Database, store: Store) -> None:
    """From a handful of rows, never analysed, to many sessions of which the statistics have never heard."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("ALTER TABLE conversations SET (autovacuum_enabled = off)")
        store.say("first", "the zebra budget", "third")
        (hit,) = store.ask("zebra")
        check_plan(database, hit)
        add(owner, "s1", sessions=1, rows=3000)
        owner.execute("ANALYZE conversations")
        check_plan(database, hit)
        add(owner, "late", sessions=1000, rows=10_000)
        check_plan(database, hit)
        owner.execute("VACUUM ANALYZE conversations")
        check_plan(database, hit)
        add(owner, "long", sessions=1, rows=10_000)
        owner.execute("VACUUM ANALYZE conversations")
        check_plan(database, hit)


def add(owner: psycopg.Connection[Any], name: str, *, sessions: int, rows: int) -> None:
    """Turns of the fleet, a minute apart."""
    owner.execute(
        "INSERT INTO conversations (agent_identity, session_id, role, content, ts)"
        " SELECT 'fleet', %s || CASE WHEN %s > 1 THEN (n %% %s)::text ELSE '' END, 'user', 'said', %s + n * interval"
        " '1 minute' FROM generate_series(1, %s) AS n",
        (name, sessions, sessions, START + timedelta(hours=1), rows),
    )


def check_plan(database: Database, hit: Hit) -> None:
    told: list[Any] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        told.append(json.loads((notice.message_primary or "").partition("plan:")[2]))

    with psycopg.connect(database.owner_dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("LOAD 'auto_explain'")
        connection.execute(
            "SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;"
            "SET auto_explain.log_format = json; SET client_min_messages = log"
        )
        connection.add_notice_handler(note)
        with connection.transaction():
            (found,) = send_neighbours(connection, [hit])()
    assert found.before is not None
    assert found.before.content == "first"
    (plan,) = [list(nodes(each["Plan"])) for each in told if "hit.session_id" in each["Query Text"]]
    scans = [node for node in plan if "Index Name" in node]
    assert [scan["Index Name"] for scan in scans] == ["conversations_session_timeline"] * 2
    for scan in scans:
        assert "session_id = hit.session_id" in scan["Index Cond"]
        assert "ts " in scan["Index Cond"]
        assert scan["Actual Rows"] <= 3
    assert not [node for node in plan if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan", "Sort")]
