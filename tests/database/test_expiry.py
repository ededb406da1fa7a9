"""Turns go when they are older than their theme keeps them; memories only if a setting says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.config.settings import parse
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.runtime import sweep
from hermes_memory_pgvector.runtime.sweep import Sweep, sweep_once
from hermes_memory_pgvector.store import expiry, memories
from hermes_memory_pgvector.store.expiry import Rules
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.values import AddMemory, Moment, Origin
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database
from testing.stored import Stored
from testing.unchanged import nothing_changes

ROWS = """
INSERT INTO conversations (agent_identity, session_id, role, content, ts)
SELECT theme, 's', 'user', theme || ' ' || days, now() - days * interval '1 day'
FROM unnest(ARRAY['market', 'garden', 'vault']) AS theme, unnest(ARRAY[1, 26, 28, 40, 400]) AS days;
INSERT INTO pending_vectors (agent_identity, kind, id) SELECT agent_identity, 'turn', id FROM conversations;
INSERT INTO memory_entries (agent_identity, target, content, updated_at) VALUES
    ('market', 'memory', 'old', now() - interval '400 days'), ('market', 'memory', 'new', now());
"""


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, ttl_days={"turns": 30, "theme:Garden": 100, "theme:vault": 0})
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(ROWS)
    return made


def turns(database: Database) -> dict[str, int]:
    return dict(Stored(database.owner_dsn).rows("SELECT agent_identity, count(*) FROM conversations GROUP BY 1"))


def test_expired_follows_the_settings_and_changes_nothing_before_it_is_told_to(
    commands: Commands, database: Database
) -> None:
    stored = Stored(database.owner_dsn)
    with nothing_changes(stored):
        dry = commands.call("forget", "--expired", "--json").json
    assert (dry["executed"], dry["counts"]) == (False, {"turns": 3, "memories": 0})
    assert {each["theme"]: each["turns"] for each in dry["samples"]} == {"market": 2, "garden": 1}
    status = commands.call("status", "--json").json["stored"]["expiring"]
    assert {each["theme"]: (each["now"], each["soon"]) for each in status} == {"market": (2, 2), "garden": (1, 0)}
    assert "expiring" in commands.call("status").out
    done = commands.call("prune", "--execute", "--json").json
    assert done["counts"] == {"turns": 3}
    assert turns(database) == {"market": 3, "garden": 4, "vault": 5}
    assert stored.count("pending_vectors") == 12
    assert stored.count("memory_entries") == 2
    assert "there is nothing" in commands.call("forget", "--expired").out
    ((action, subject, counts),) = stored.rows("SELECT action, subject, counts FROM audit_log")
    assert (action, subject, counts) == ("forget", "expired", {"turns": 3})


def test_expired_in_one_theme_and_what_it_does_not_understand(commands: Commands, database: Database) -> None:
    assert commands.call("forget", "--expired", "--theme", "garden", "--execute").code == 0
    assert turns(database) == {"market": 5, "garden": 4, "vault": 5}
    assert commands.call("forget", "--theme", "vault", "--before", "27d", "--execute").code == 0
    assert turns(database) == {"market": 5, "garden": 4, "vault": 2}
    unknown = commands.call("forget", "--expired", "--theme", "markte")
    assert unknown.code == 1
    assert "market" in unknown.err
    both = commands.call("forget", "--expired", "--match", "market")
    assert (both.code, "say by themselves" in both.err) == (2, True)
    commands.configure(dsn=commands.config["memory"]["pgvector"]["dsn"])
    nothing = commands.call("forget", "--expired")
    assert nothing.code == 1
    assert "ttl_days" in nothing.err


def test_the_background_sweep_deletes_a_little_at_a_time_in_one_process(
    database: Database, agent_home: AgentHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "BATCH", 2)
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(ROWS)
    rules = Rules.of(parse({"file": {"ttl_days": 30}}).settings, datetime.now(UTC))
    pool = Pool(lambda _: database.runtime_dsn, maximum=2, connect_seconds=5)
    try:
        with pool.transaction(Deadline.after(10)) as other:
            assert expiry.is_alone(other)
            assert sweep_once(pool, rules, "home") is None
        monkeypatch.setattr(sweep, "FIRST_SECONDS", 0.0)
        settings = parse(
            {"file": {"ttl_days": {"turns": 30, "memories": 365, "theme:garden": 30, "theme:vault": 30}}}
        ).settings
        agent_home.engine.writer._intake.themes.add("market")
        task = Sweep(pool, agent_home.engine.writer, settings, "home")
        assert task.run() == sweep.BUSY_SECONDS
        assert sum(turns(database).values()) == 15 - sweep.ROUNDS * expiry.BATCH
        for _ in range(9):
            task._due_at = 0.0
            if task.run() == sweep.IDLE_SECONDS:
                break
        assert turns(database) == {"market": 3, "garden": 3, "vault": 3}
        assert Stored(database.owner_dsn).memories("market") == [("memory", "new")]
    finally:
        pool.close()


def sweep_all(home: AgentHome, **settings: object) -> None:
    task = Sweep(home.engine.pool, home.engine.writer, parse({"file": settings}).settings, home.engine.home_id)
    for _ in range(9):
        task._due_at = 0.0
        if task.run() == sweep.IDLE_SECONDS:
            break


def test_a_home_sweeps_only_themes_it_writes_to_or_names_and_memories_nobody_else_holds(
    database: Database, agent_home: AgentHome
) -> None:
    stored = agent_home.stored
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(ROWS)
        owner.execute(
            "INSERT INTO memory_entries (agent_identity, target, content, updated_at, homes)"
            " SELECT theme, 'memory', 'held by another', now() - interval '400 days',"
            ' \'{"another": {"o": "file", "s": 1}}\''
            " FROM unnest(ARRAY['market', 'vault']) AS theme"
        )
    agent_home.provider("market").sync_turn("A word of today", "An answer of today", session_id="today")
    agent_home.settle()
    sweep_all(agent_home, ttl_days={"turns": 30, "memories": 30, "theme:garden": 100})
    assert turns(database) == {"market": 5, "garden": 4, "vault": 5}
    assert stored.memories("market") == [("memory", "new"), ("memory", "held by another")]
    assert stored.memories("vault") == [("memory", "held by another")]


def test_a_rule_that_keeps_turns_holds_under_their_new_name(commands: Commands, database: Database) -> None:
    warned = commands.call("theme", "merge", "vault", "market")
    assert "how long vault keeps its turns" in warned.everything
    assert commands.call("theme", "merge", "vault", "market", "--execute").code == 0
    assert commands.call("forget", "--expired", "--execute").code == 0
    assert turns(database) == {"market": 10, "garden": 4}
    now = datetime.now(UTC)
    settings = parse({"file": {"ttl_days": {"turns": 90, "theme:a": 30, "theme:b": 0, "theme:c": 10}}}).settings
    rules = Rules.of(settings, now).of_home("home", ["b", "d"]).renamed({"a": "c", "b": "e", "c2": "f"})
    assert dict(rules.themes) == {"c": now - timedelta(days=30), "e": None}
    assert rules.written == ("d", "e")
    assert rules.named == ("c", "d", "e")


def test_a_memory_that_somebody_added_again_stays_and_makes_no_receipt(
    database: Database, agent_home: AgentHome
) -> None:
    now = datetime.now(UTC)
    with psycopg.connect(database.owner_dsn) as owner:
        for number, (text, home, days) in enumerate(
            (("Likes tea", "h1", 400), ("Likes tea", "h2", 10), ("Likes nobody", "h1", 300), ("Was new", "h1", 5))
        ):
            at = Moment(*[int((now - timedelta(days=days)).timestamp() * 1e6)] * 2)
            added = AddMemory("market", "memory", text, at, home, Origin.FILE)
            memories.store(owner, [Placed(added, "w", number, 0)])
    stored, pool = agent_home.stored, agent_home.engine.pool
    for cut, count in ((350, 0), (30, 1), (30, 1)):
        sweep_once(pool, Rules(None, memories=now - timedelta(days=cut)), "home")
        assert stored.count("receipts") == count
    assert sorted(stored.memories("market")) == [("memory", "Likes tea"), ("memory", "Was new")]
    # What is said of entries that stay is kept.
    assert stored.rows("SELECT content, home_id FROM memory_operations ORDER BY at") == [
        ("Likes tea", "h1"), ("Likes tea", "h2"), ("Was new", "h1"),
    ]  # fmt: skip


def test_without_a_rule_nothing_is_asked(agent_home: AgentHome) -> None:
    task = Sweep(agent_home.engine.pool, agent_home.engine.writer, parse({}).settings, "home")
    assert task.run() == sweep.IDLE_SECONDS
    themes = parse({"file": {"ttl_days": "theme:market=30, theme:garden=0"}}).settings.days_of_themes
    assert themes == (("market", 30), ("garden", 0))
    assert parse({"file": {"ttl_days": {"theme:market": -1}}}).problems
    assert parse({"file": {"ttl_days": {"market": 1}}}).problems
