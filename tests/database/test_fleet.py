"""Heartbeats, and what is read from them: `status --fleet`, `metrics`, the registry of agents."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine import heartbeat, status_file
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.setup import exposition
from hermes_memory_pgvector.store import fleet
from hermes_memory_pgvector.store.fleet import AgentWork, Process
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import MODEL, Database
from testing.waiting import wait_until

ONE = Process("p1", "home-a", "host-a", "/srv/a", 11, "hermes", "cli", "2.0.0")
TWO = Process("p2", "home-a", "host-b", "/srv/a", 12, "gateway", "api_server", "2.0.0")
OTHER = Process("p3", "home-b", "host-b", "/srv/b", 13, "hermes", "", "1.9.0")
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
    given = {"age": 5, "silent_seconds": 300, "state": {}, **more}
    with pool.transaction(Deadline.after(10)) as connection:
        fleet.beat(connection, process, counters=counters or {}, **given)


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


def test_sums_only_grow_when_processes_go(pool: Pool, database: Database, commands: Commands) -> None:
    beat(pool, ONE, COUNTERS)
    beat(pool, ONE, {**COUNTERS, "recalls|tool": 5})
    beat(pool, TWO, COUNTERS, is_ended=True)
    beat(pool, OTHER, {"batches": 1})

    def told() -> tuple[float | None, ...]:
        found = samples(commands.call("metrics").out)
        return (
            value(found, "recalls_total", home="home-a", caller="tool"),
            value(found, "recall_hits_total", home="home-a", caller="tool"),
            value(found, "batches_total", home="home-b"),
        )

    before = told()
    assert before == (8, 4, 1)
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("UPDATE agent_processes SET ended_at = now() - interval '2 days' WHERE id = 'p2'")
        owner.execute("UPDATE agent_processes SET seen_at = now() - interval '9 days' WHERE id = 'p3'")
    for _ in range(2):
        with pool.transaction(Deadline.after(10)) as connection:
            fleet.expire(connection)
        assert told() == before
    beat(pool, ONE, {**COUNTERS, "recalls|tool": 5}, is_ended=True)
    with pool.transaction(Deadline.after(10)) as connection:
        fleet.expire(connection, ended_seconds=-1)
        assert fleet.processes(connection) == []
        assert {home: count for home, count, _ in fleet.past(connection)} == {"home-a": 2, "home-b": 1}
    assert told() == before
    # Two that add up at once would lose what the other one added.
    beat(pool, TWO, {"batches": 1}, is_ended=True)
    with pool.transaction(Deadline.after(10)) as first:
        assert fleet.expire(first, ended_seconds=-1) == 1
        with pool.transaction(Deadline.after(10)) as second:
            assert fleet.expire(second, ended_seconds=-1) == 0


def test_the_fleet_is_told_with_stale_ones_marked(pool: Pool, commands: Commands) -> None:
    assert "0 processes at work" in commands.call("status", "--fleet").out
    beat(pool, ONE, {"records_stored": 1234, "recalls|tool": 2, "recalls|prefetch": 3})
    beat(pool, TWO, silent_seconds=-1)
    trouble = {"trouble": {"database reads": "no connection"}, "journal_records": 7, "journal_oldest_seconds": 60.5}
    beat(pool, OTHER, state=trouble)
    with pool.transaction(Deadline.after(10)) as connection:
        work = [AgentWork("marketing", "cli", 1, 2, 3, 4), AgentWork("trading", "", turns=1)]
        fleet.note_agents(connection, ONE, work)
        fleet.note_agents(connection, TWO, [AgentWork("marketing", "api_server", 1, 1, 1, 1)])
    shown = commands.call("status", "--fleet")
    assert shown.code == 0
    lines = {line.split()[0] + line.split()[1]: line for line in shown.out.splitlines() if len(line.split()) > 1}
    assert "2 processes at work and 1 stale on 2 machines" in shown.out
    assert "1,234" in lines["hermes11"]
    assert " 5 " in lines["hermes11"]
    assert lines["hermes11"].endswith("all well")
    assert "stale" in lines["gateway12"]
    assert "database reads: no connection" in lines["hermes13"]
    told = commands.call("status", "--fleet", "--json").json
    assert {each["id"]: each["stale"] for each in told["processes"]} == {"p1": False, "p2": True, "p3": False}
    agents = {each["theme"]: each for each in told["agents"]}
    assert [agents["marketing"][name] for name in ("kind", "sessions", "turns", "memories", "recalls", "host")] == [
        "api_server", 2, 3, 4, 5, "host-b",
    ]  # fmt: skip
    found = samples(commands.call("metrics").out)
    assert value(found, "processes", home="home-a", state="live") == 1
    assert value(found, "processes", home="home-a", state="stale") == 1
    assert value(found, "breaker_open", home="home-b", breaker="database reads") == 1
    assert value(found, "journal_records", home="home-b") == 7
    assert value(found, "journal_oldest_seconds", home="home-b") == 60.5
    assert "marketing" not in commands.call("metrics").out, "themes are no labels"
    assert value(found, "records_stored_total", home="home-a") == 1234
    assert {each["name"] for each in commands.call("metrics", "--json").json["metrics"]} >= {
        "hermes_pgvector_recalls_total", "hermes_pgvector_database_up",
    }  # fmt: skip


def test_killed_processes_by_the_thousand_and_their_successors_on_the_same_pid(
    pool: Pool, commands: Commands, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that is killed and started again has the same name and pid 1; nobody's clock is to be trusted."""
    for number in range(3):
        killed = replace(ONE, id=f"killed-{number}", pid=1)
        beat(pool, killed, {"records_stored": 100}, silent_seconds=-1)
    beat(pool, replace(ONE, id="successor", pid=1, version="2.1.0"), {"records_stored": 1})
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("UPDATE agent_processes SET seen_at = now() - interval '2 hours' WHERE id LIKE 'killed%'")
        owner.execute(
            "INSERT INTO agent_processes (id, home_id, host, home, pid, command, kind, version, started_at, seen_at,"
            " expected_at, state, counters) SELECT 'gone-' || n, 'home-c', 'host-c', '/srv/c', n, 'hermes', '', '2',"
            " now() - interval '1 day', now() - interval '1 day', now() - interval '1 day', '{}', '{}'"
            " FROM generate_series(1, 1000) AS n"
        )
    wrong = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: wrong)
    shown = commands.call("status", "--fleet", "--top", "5").out
    assert "1 process at work and 1,003 stale on 2 machines" in shown
    (successor,) = [line for line in shown.splitlines() if "2.1.0" in line]
    assert " h ago" not in successor, "the database's clock counts, not this machine's"
    assert shown.count("stale: it was killed") == 5
    assert "998 more are stale" in shown
    assert len(commands.call("status", "--fleet", "--json").json["processes"]) == 1004
    assert value(samples(commands.call("metrics").out), "records_stored_total", home="home-a") == 301


def test_an_agent_at_work_is_heard_of_and_its_end_too(
    database: Database, tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(heartbeat, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(heartbeat, "LOOK_SECONDS", 0.05)
    home = AgentHome.create(tmp_path / "agent", database, prefetch_budget=7.5, tool_budget=30)
    try:
        agent = home.provider("market", session="s1")
        agent.sync_turn("Where do we moor the harbour pilot boat tonight?", "At the northern quay of the harbour.")
        agent.on_memory_write("add", "memory", "The harbour master signs every permit in blue ink", {})
        home.settle()
        later = home.provider("market", session="s2")
        later.prefetch("who signs the harbour permit in the harbour?")
        later.handle_tool_call("recall_memory", {"query": "zinnia"})
        wanted = {
            "rows_stored|turn": 2,
            "rows_stored|memory": 1,
            "recalls|prefetch": 1,
            "recalls|tool": 1,
        }

        def counters() -> dict[str, float]:
            rows = home.stored.rows("SELECT counters FROM agent_processes")
            return dict(rows[0][0]) if rows else {}

        home.engine.tasks.wake()
        wait_until(lambda: {name: counters().get(name) for name in wanted} == wanted)
        assert counters()["batches"] >= 1
        assert home.stored.rows("SELECT kind, ended_at FROM agent_processes")[0][1] is None
        # Other settings make another engine, and the same process goes on.
        before = home.engine
        (home.path / "config.yaml").write_text("memory:\n  pgvector:\n    prefetch_limit: 7\n", encoding="utf-8")
        wait_until(lambda: home.engine is not before)
        home.provider("market", session="s3").prefetch("who signs the harbour permit?")
        home.engine.tasks.wake()
        wait_until(lambda: counters().get("recalls|prefetch") == 2)
    finally:
        home.close()
    assert home.stored.rows("SELECT count(*), count(ended_at) FROM agent_processes") == [(1, 1)]
    assert home.stored.rows("SELECT agent_identity, sessions, turns, memories, recalls FROM agents") == [
        ("market", 3, 2, 1, 3)
    ]
    texts = str(home.stored.rows("SELECT p::text FROM agent_processes AS p"))
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
        task._due_at = 0
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


def test_renamed_and_forgotten_themes_are_so_in_the_registry(
    pool: Pool, commands: Commands, database: Database
) -> None:
    with pool.transaction(Deadline.after(10)) as connection:
        fleet.note_agents(connection, ONE, [AgentWork("old", "cli", 1, 1, 1, 1), AgentWork("new", "cli", 1, 1, 1, 1)])
        fleet.note_agents(connection, OTHER, [AgentWork("old", "cli", 1, 1, 1, 1)])
    with psycopg.connect(database.runtime_dsn) as connection:
        connection.execute(
            "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES ('old', 's', 'user', 'x')"
        )

    def agents() -> dict[tuple[str, str], int]:
        with pool.transaction(Deadline.after(10)) as connection:
            return {(each.theme, each.home_id): each.turns for each in fleet.agents(connection, None, 9)}

    done = commands.call("theme", "merge", "old", "new", "--execute")
    assert done.code == 0, done.everything
    assert agents() == {("new", "home-a"): 1, ("new", "home-b"): 1}
    with pool.transaction(Deadline.after(10)) as connection:
        fleet.note_agents(connection, ONE, [AgentWork("old", "cli", turns=5)])
    assert agents() == {("new", "home-a"): 6, ("new", "home-b"): 1}
    done = commands.call("forget", "--theme", "new", "--execute")
    assert done.code in (0, 3), done.everything
    assert agents() == {}


def test_without_the_database_this_machine_still_says_how_it_is(database: Database, tmp_path: Path) -> None:
    runtime, password = with_password(database.runtime_dsn)
    commands = Commands(tmp_path, [password])
    commands.configure(dsn=runtime, embed_url="http://127.0.0.1:9/")
    shot = status_file.snapshot([], writer_waiting=12)
    status_file.publish(commands.home / "pgvector", shot)
    commands.configure(dsn="host=127.0.0.1 port=9 dbname=x user=y connect_timeout=2", embed_url="http://127.0.0.1:9/")
    done = commands.call("metrics")
    assert done.code == 0
    found = samples(done.out)
    assert value(found, "database_up") == 0
    (records,) = [number for (name, _), number in found.items() if name == "hermes_pgvector_journal_records"]
    assert records == 12
    assert not [name for name, _ in found if name.endswith("_total")], "sums are left out rather than told too low"
    shown = commands.call("status", "--fleet")
    assert shown.code == 2
    assert "12 records waiting" in shown.out


def test_metrics_leave_pipes_devices_and_links_what_they_are(commands: Commands, tmp_path: Path) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "hermes.prom"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert commands.call("metrics", "--output", str(pipe)).code == 0
    assert pipe.is_fifo()
    assert samples(os.read(reader, 1_000_000).decode())
    os.close(reader)
    link.symlink_to(file)
    assert commands.call("metrics", "--output", str(link)).code == 0
    assert link.is_symlink()
    assert samples(file.read_text())
    for wrong in (tmp_path, tmp_path / "nowhere" / "x.prom", file / "x.prom"):
        done = commands.call("metrics", "--output", str(wrong))
        assert (done.code, f"{wrong} cannot be written" in done.err) == (1, True)


@pytest.mark.large
def test_metrics_are_written_at_once_and_served(commands: Commands, tmp_path: Path, pool: Pool) -> None:
    beat(pool, ONE, COUNTERS)
    file = tmp_path / "hermes.prom"
    file.write_text("old")
    assert commands.call("metrics", "--output", str(file)).code == 0
    assert samples(file.read_text())
    assert file.stat().st_mode & 0o777 == 0o644
    process = commands.start("metrics", "--listen", "127.0.0.1:0", "--json")
    try:
        assert process.stdout is not None
        told = "".join(iter(process.stdout.readline, "}\n")) + "}"
        url = json.loads(told)["url"]
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            found = samples(answer.read().decode())
        assert value(found, "recalls_total", home="home-a", caller="tool") == 3
        port = int(url.rpartition(":")[2].partition("/")[0])
        taken = commands.run("metrics", "--listen", f"127.0.0.1:{port}")
        assert taken.code == 1
        assert "cannot be served" in taken.err
    finally:
        process.terminate()
        assert commands.finish(process).code == 0


def test_every_series_is_named_beforehand(commands: Commands, pool: Pool, database: Database) -> None:
    beat(pool, ONE, COUNTERS)
    (commands.home / "pgvector").mkdir()
    with psycopg.connect(database.runtime_dsn) as connection:
        connection.execute("INSERT INTO memory_entries (agent_identity, target, content) VALUES ('a', 'memory', 'x')")
    told = {name for name, _ in samples(commands.call("metrics").out)}
    assert told == set(exposition.names())


def test_a_probe_is_silent_while_all_is_well_and_says_one_line_for_each_fault(
    commands: Commands, database: Database
) -> None:
    fine = commands.call("doctor", "--check", "--only", "database,journal")
    assert (fine.code, fine.everything) == (0, "")
    with psycopg.connect(database.runtime_dsn) as connection:
        connection.execute("INSERT INTO dead_letters (writer, seq, payload, reason) VALUES ('w', 1, '', 'x')")
    assert commands.call("doctor", "--check", "--only", "database,journal").everything == ""
    strict = commands.call("doctor", "--check", "--strict", "--only", "database,journal")
    assert strict.code == 1
    assert "dead letters: 1 record rejected by Postgres (hermes-pgvector journal dead list)" in strict.out.splitlines()
    embedder = commands.call("doctor", "--check", "--only", "embedder")
    assert embedder.code == 2
    assert len(embedder.out.splitlines()) == 1
    assert embedder.out.startswith("embedder: ")
    commands.configure(dsn="host=127.0.0.1 port=9 dbname=x user=y connect_timeout=2", embed_url="http://127.0.0.1:9/")
    away = commands.call("doctor", "--check", "--only", "database")
    assert away.code == 2
    assert [line.partition(":")[0] for line in away.out.splitlines()] == ["database"]
    assert commands.call("doctor", "--check", "--only", "database", "--json").json["exit_code"] == 2
    with pytest.raises(SystemExit):
        commands.call("doctor", "--only", "everything")
