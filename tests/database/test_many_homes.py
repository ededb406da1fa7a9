"""One process serves many homes: its threads and connections do not grow with them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermes_memory_pgvector.runtime import engine
from hermes_memory_pgvector.server.logins import Logins
from testing.agent import AgentHome
from testing.faulty import through, upstream_of
from testing.postgres import Database
from testing.proxy import Proxy
from testing.waiting import wait_until

HOMES = 200


def test_two_hundred_homes_share_threads_and_connections(tmp_path: Path, database: Database) -> None:
    before = set(threading.enumerate())
    homes = [AgentHome.create(tmp_path / f"home{number}", database) for number in range(HOMES)]
    most_threads = most_connections = 0

    def has_arrived() -> bool:
        nonlocal most_threads, most_connections
        most_threads = max(most_threads, len(set(threading.enumerate()) - before))
        most_connections = max(most_connections, homes[0].stored.connections())
        return homes[0].stored.count("conversations") == 2 * HOMES

    try:
        for number, home in enumerate(homes):
            home.provider(f"theme{number}").sync_turn(f"question {number}", f"answer {number}")
        wait_until(has_arrived, seconds=120)
        for home in homes[:20]:
            assert "answer" in home.provider(f"theme{homes.index(home)}").handle_tool_call(
                "recall_conversation", {"query": "answer"}
            )
            has_arrived()
    finally:
        homes[0].close()
    # With the thread that calls the hooks.
    assert most_threads + 1 <= 8
    assert most_connections <= 4


def test_a_home_goes_on_when_another_one_with_its_database_ends(tmp_path: Path, database: Database) -> None:
    first, second = (AgentHome.create(tmp_path / name, database) for name in ("first", "second"))
    try:
        for home in (first, second):
            home.provider().sync_turn("what is it?", f"it is {home.path.name}")
            home.settle()
        first.engine.pool.close()
        second.provider().sync_turn("and now?", "still there")
        second.settle()
    finally:
        second.close()
    assert second.stored.count("conversations") == 5


def test_a_home_goes_on_while_the_database_of_another_one_hangs(tmp_path: Path, database: Database) -> None:
    with Proxy(upstream_of(database.runtime_dsn)) as proxy:
        stuck = AgentHome.create(tmp_path / "stuck", database)
        stuck.dsn = through(database.runtime_dsn, proxy)
        well = AgentHome.create(tmp_path / "well", database)
        try:
            for home in (stuck, well):
                home.provider().sync_turn(f"what is {home.path.name}?", f"{home.path.name} is a home")
                home.settle()
            proxy.hold_answer_to = b"journal_writers"
            stuck.provider().sync_turn("are you there?", "nobody knows")
            assert proxy.held.wait(20)
            well.provider().sync_turn("and you?", "of course")
            well.settle(10)
            proxy.hold_answer_to = None
            proxy.cut()
            stuck.settle()
            assert well.stored.count("conversations") == 8
        finally:
            proxy.cut()
            well.close()


def test_homes_with_many_databases_share_threads_too(tmp_path: Path, database: Database) -> None:
    before = set(threading.enumerate())
    homes = [AgentHome.create(tmp_path / f"home{number}", database) for number in range(30)]
    most = 0

    def has_arrived() -> bool:
        nonlocal most
        now = set(threading.enumerate()) - before
        # A connection is opened by a thread that lives as long as that takes.
        most = max(most, sum(each.name != "hermes-pgvector-connect" for each in now))
        return homes[0].stored.count("conversations") == 2 * len(homes)

    try:
        for number, home in enumerate(homes):
            # To us each connection string is another database.
            home.dsn = f"{database.runtime_dsn} application_name=database{number}"
            home.provider(f"theme{number}").sync_turn(f"question {number}", f"answer {number}")
        wait_until(has_arrived, seconds=120)
    finally:
        homes[0].close()
    assert most + 1 <= 8


def test_a_home_goes_on_while_the_embedded_server_of_another_one_does_not_start(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a server of its own, so neither has a connection string in its settings."""
    stuck, well = (AgentHome.create(tmp_path / name, database, dsn="", own_server=True) for name in ("stuck", "well"))
    has_begun, goes_on = threading.Event(), threading.Event()

    def logins_of(folder: Path, *_: object, **__: object) -> Logins:
        if stuck.path in folder.parents:
            has_begun.set()
            goes_on.wait(60)
        return Logins(database.owner_dsn, database.runtime_dsn)

    monkeypatch.setattr(engine, "logins_of", logins_of)
    try:
        stuck.provider().sync_turn("are you there?", "nobody knows")
        assert has_begun.wait(20)
        well.provider().sync_turn("and you?", "of course")
        well.settle(10)
    finally:
        goes_on.set()
        well.close()
