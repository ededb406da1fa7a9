"""Heartbeats, and what is read from them: `status --fleet` and `metrics`."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from docs.test_dashboard import GAUGES

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.runtime import heartbeat
from hermes_memory_pgvector.runtime.processes import text_of_now
from hermes_memory_pgvector.store import processes
from hermes_memory_pgvector.store.processes import Process
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import MODEL, Database
from testing.waiting import wait_until

ONE = Process("p1", "home-a", "host-a", 11, "hermes", "2.0.0")
TWO = Process("p2", "home-a", "host-b", 12, "gateway", "2.0.0")
OTHER = Process("p3", "home-b", "host-b", 13, "hermes", "1.9.0")
COUNTERS: dict[str, float] = {"recalls|tool": 3, "recall_hits|tool": 2}
LINE = re.compile(r"(\w+)(?:{(.*)})? (\S+)")
LABEL = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def pool(database: Database) -> Iterator[Pool]:
    made = Pool(lambda _: database.runtime_dsn, maximum=2, connect_seconds=5)
    yield made
    made.close()


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_model=MODEL, embed_url="http://127.0.0.1:9/")
    return made


def beat(pool: Pool, process: Process, counters: dict[str, float] | None = None, **more: Any) -> None:
    status = {"home": "/srv/x", "trouble": {}, **more.pop("state", {}), "counters": counters or {}}
    with pool.transaction(Deadline.after(10)) as connection:
        processes.beat(connection, process, status, **{"age": 5, "silent_seconds": 300, **more})


def samples(text: str) -> Samples:
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            parsed = LINE.fullmatch(line)
            assert parsed is not None, line
            labels = tuple(sorted((name, str(json.loads(told))) for name, told in LABEL.findall(parsed[2] or "")))
            found[parsed[1], labels] = float(parsed[3])
    return found


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((f"hermes_pgvector_{name}", tuple(sorted(labels.items()))))


def test_rows_of_processes_that_are_long_gone_go(pool: Pool, database: Database, commands: Commands) -> None:
    beat(pool, ONE, COUNTERS)
    beat(pool, ONE, {**COUNTERS, "recalls|tool": 5})
    beat(pool, TWO, COUNTERS, is_ended=True)
    beat(pool, OTHER, {"batches": 1})
    found = samples(commands.call("metrics").out)
    assert value(found, "recalls_total", home="home-a", process="p1", of="tool") == 5
    assert value(found, "recalls_total", home="home-a", process="p2", of="tool") == 3
    assert value(found, "batches_total", home="home-b", process="p3") == 1
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("UPDATE processes SET ended_at = now() - interval '2 days' WHERE id = 'p2'")
        owner.execute("UPDATE processes SET seen_at = now() - interval '9 days' WHERE id = 'p3'")
    # Two that delete at once do not wait for each other.
    with psycopg.connect(database.owner_dsn) as other:
        other.execute("SELECT FROM processes WHERE id = 'p2' FOR UPDATE")
        beat(pool, ONE, COUNTERS)
        with pool.transaction(Deadline.after(10)) as connection:
            assert [each.process.id for each in processes.listed(connection, 9)] == ["p1", "p2"]
    beat(pool, ONE, COUNTERS)
    with pool.transaction(Deadline.after(10)) as connection:
        assert [each.process.id for each in processes.listed(connection, 9)] == ["p1"]


def test_the_fleet_is_told_with_silent_ones_marked(pool: Pool, commands: Commands) -> None:
    assert "0 at work" in commands.call("status", "--fleet").out
    beat(pool, ONE, {"records_stored": 1234, "recalls|tool": 2})
    beat(pool, TWO, silent_seconds=-1)
    trouble = {"trouble": {"database reads": "no connection"}, "journal_records": 7, "journal_oldest_seconds": 60.5}
    beat(pool, OTHER, state=trouble)
    shown = commands.call("status", "--fleet")
    assert shown.code == 0
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "2 at work and 1 silent on 2 machines" in shown.out
    assert "1,234" in shown.out
    told = commands.call("status", "--fleet", "--json").json["processes"]
    states = {each["id"]: (each["state"], each["trouble"]) for each in told}
    assert states == {
        "p1": ("all well", ""), "p2": ("silent", "it was killed, or cannot reach the database"),
        "p3": ("in trouble", "database reads: no connection"),
    }  # fmt: skip
    assert "database reads: no connection" in shown.out
    found = samples(commands.call("metrics").out)
    assert value(found, "processes", home="home-a", state="live") == 1
    assert value(found, "processes", home="home-a", state="silent") == 1
    assert value(found, "trouble", home="home-b", process="p3", what="database reads") == 1
    assert value(found, "journal_records", home="home-b", process="p3") == 7
    assert value(found, "journal_oldest_seconds", home="home-b", process="p3") == 60.5
    assert value(found, "records_stored_total", home="home-a", process="p1") == 1234
    assert {each["name"] for each in commands.call("metrics", "--json").json["metrics"]} >= {
        "hermes_pgvector_recalls_total", "hermes_pgvector_database_up",
    }  # fmt: skip


def test_killed_processes_by_the_thousand_and_their_successors_on_the_same_pid(
    pool: Pool, commands: Commands, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that is killed and started again has the same name and pid 1; nobody's clock is to be trusted."""
    beat(pool, replace(ONE, id="successor", pid=1, version="2.1.0"), {"records_stored": 1})
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(
            "INSERT INTO processes (id, home_id, host, pid, command, version, started_at, seen_at, expected_at, status)"
            " SELECT 'gone-' || n, 'home-c', 'host-c', n, 'hermes', '2', now() - interval '1 day',"
            " now() - interval '1 day', now() - interval '1 day', '{}' FROM generate_series(1, 1000) AS n"
        )
    wrong = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: wrong)
    shown = commands.call("status", "--fleet", "--limit", "5").out
    assert "1 at work and 1,000 silent on 2 machines" in shown
    assert "just now" in shown, "the database's clock counts, not this machine's"
    assert "996 processes more" in shown
    everything = commands.call("status", "--fleet", "--limit", "2000", "--json").json["processes"]
    assert (len(everything), everything[0]["id"]) == (1001, "successor")


def test_an_agent_at_work_is_heard_of_and_its_end_too(
    database: Database, tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(heartbeat, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(heartbeat, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(Settings, "tool_budget", 30.0)
    home = AgentHome.create(tmp_path / "agent", database, prefetch_budget=7.5)
    try:
        agent = home.provider("market", session="s1")
        agent.sync_turn("Where do we moor the harbour pilot boat tonight?", "At the northern quay of the harbour.")
        agent.on_memory_write("add", "memory", "The harbour master signs every permit in blue ink", {})
        home.settle()
        later = home.provider("market", session="s2")
        later.prefetch("who signs the harbour permit in the harbour?")
        later.handle_tool_call("recall_memory", {"query": "zinnia"})
        wanted = {
            "recalls|prefetch": 1,
            "recalls|tool": 1,
        }

        def counters() -> dict[str, float]:
            rows = home.stored.rows("SELECT status -> 'counters' FROM processes")
            return dict(rows[0][0]) if rows else {}

        home.engine.tasks.wake()
        wait_until(lambda: {name: counters().get(name) for name in wanted} == wanted)
        assert counters()["batches"] >= 1
        assert home.stored.rows("SELECT ended_at FROM processes") == [(None,)]
        # Under other settings the same process goes on.
        (home.path / "config.yaml").write_text("memory:\n  pgvector:\n    prefetch_limit: 7\n", encoding="utf-8")
        wait_until(lambda: home.engine.settings.prefetch_limit == 7)
        home.provider("market", session="s3").prefetch("who signs the harbour permit?")
        home.engine.tasks.wake()
        wait_until(lambda: counters().get("recalls|prefetch") == 2)
    finally:
        home.close()
    assert home.stored.rows("SELECT count(*), count(ended_at) FROM processes") == [(1, 1)]
    texts = str(home.stored.rows("SELECT p::text FROM processes AS p"))
    assert "market" not in texts
    assert "harbour" not in texts


def test_an_idle_process_is_heard_of_seldom(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = AgentHome.create(tmp_path / "agent", database)
    beats: list[float] = []
    try:
        home.provider("market").sync_turn("Where do we moor the harbour pilot boat?", "At the northern quay, as ever.")
        home.settle()
        task = home.engine._heartbeat
        monkeypatch.setattr(task, "_tell", lambda *_: beats.append(task._due_at))
        # On a slow machine its own thread has told of it by now.
        task._due_at, task._told = 0, ()
        assert task.run() == heartbeat.BUSY_SECONDS
        task._due_at = 0
        assert task.run() == heartbeat.LOOK_SECONDS
        assert len(beats) == 1, "nothing has happened since"
        task._due_at, task._told_at = 0, task._told_at - heartbeat.QUIET_SECONDS
        task.run()
        assert len(beats) == 2, "it lives"
    finally:
        monkeypatch.undo()
        home.close()


def test_without_the_database_this_machine_still_says_how_it_is(database: Database, tmp_path: Path) -> None:
    runtime, password = with_password(database.runtime_dsn)
    commands = Commands(tmp_path, [password])
    commands.configure(dsn=runtime, embed_url="http://127.0.0.1:9/")
    at_work = Journal(commands.home / "pgvector" / "journal", max_bytes=1_000_000)
    at_work.open()
    at_work.tell(text_of_now([], writer_waiting=12))
    commands.configure(dsn="host=127.0.0.1 port=9 dbname=x user=y connect_timeout=2", embed_url="http://127.0.0.1:9/")
    done = commands.call("metrics")
    assert done.code == 0
    found = samples(done.out)
    assert value(found, "database_up") == 0
    assert value(found, "waiting") == 12
    assert not [name for name, _ in found if name.endswith("_total")], "sums are left out rather than told too low"
    shown = commands.call("status", "--fleet")
    assert shown.code == 2
    assert "1 of this home at work" in shown.out
    assert "12 records of live processes waiting for Postgres" in commands.call("status").out
    journal = Journal(commands.home / "pgvector" / "journal", max_bytes=1_000_000)
    journal.open()
    for number in range(3):
        journal.append(b"record %d" % number)
    journal.close(Deadline.after(5))
    told = " ".join(commands.call("status").out.split())
    assert "12 records of live processes waiting for Postgres, and of ended ones at most 3" in told
    assert commands.call("status", "--json").json["journal"]["waiting"] == 3


@pytest.mark.large
def test_metrics_are_served(commands: Commands, pool: Pool) -> None:
    beat(pool, ONE, COUNTERS)
    process = commands.start("metrics", "--listen", "127.0.0.1:0")
    try:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http"))
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            found = samples(answer.read().decode())
        assert value(found, "recalls_total", home="home-a", process="p1", of="tool") == 3
        port = int(url.rpartition(":")[2].partition("/")[0])
        taken = commands.run("metrics", "--listen", f"127.0.0.1:{port}")
        assert taken.code == 1
        assert "cannot be served" in taken.err
    finally:
        process.terminate()
        assert commands.finish(process).code == 0


def test_every_series_is_named_beforehand(commands: Commands, pool: Pool) -> None:
    state = {"trouble": {"x": "y"}, "journal_records": 1, "journal_bytes": 1, "journal_oldest_seconds": 1}
    beat(pool, ONE, COUNTERS, state={**state, "refused_waiting": 0})
    told = {name.removeprefix("hermes_pgvector_") for name, _ in samples(commands.call("metrics").out)}
    assert told - {"recalls_total", "recall_hits_total"} == set(GAUGES) - {"waiting"}


def test_a_probe_says_one_line_for_each_fault_and_nothing_else(commands: Commands, database: Database) -> None:
    with psycopg.connect(database.runtime_dsn) as connection:
        connection.execute("INSERT INTO dead_letters (writer, position, payload, reason) VALUES ('w', 1, '', 'x')")
    commands.configure(dsn="host=127.0.0.1 port=9 dbname=x user=y connect_timeout=2", embed_url="http://127.0.0.1:9/")
    away = commands.call("doctor", "--check")
    assert away.code == 2
    assert {"embedder", "database"} <= {line.partition(":")[0] for line in away.out.splitlines()}
    assert len(away.out.splitlines()) == len({line.partition(":")[0] for line in away.out.splitlines()})
    assert commands.call("doctor", "--check", "--json").json["exit_code"] == 2
