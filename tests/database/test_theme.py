"""One theme goes into another: nothing is lost, nothing is doubled, and what is written to the old name follows."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psycopg

from hermes_memory_pgvector.store import gate, history, memories, merging, turns
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.memory_state import fold
from hermes_memory_pgvector.values import AddMemory, AddTurn, Moment, RemoveMemory
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import DIM, Database
from testing.unchanged import nothing_changes
from testing.waiting import wait_until


def fill(home: AgentHome) -> None:
    for theme in ("sales", "marketing"):
        agent = home.provider(theme)
        for entry in ("Tea is green", f"Only {theme} knows tea", "Gone soon"):
            agent.on_memory_write("add", "memory", entry, metadata={})
        agent.on_memory_write("remove", "memory", "", metadata={"old_text": f"Only {theme}"})
        agent.on_memory_write("replace", "user", f"User of {theme}", metadata={"old_text": "nobody"})
        for number in range(4):
            agent.sync_turn(f"{theme} asks question {number}", f"{theme} answers {number}", session_id=f"{theme}-1")
        agent.on_delegation(f"Task of {theme}", "Done", child_session_id=f"{theme}-child")
    # The same turn under both names, as after a retry.
    for theme in ("sales", "marketing"):
        home.provider(theme).sync_turn("Told in both themes", "Heard in both themes", session_id="both")
    home.settle()
    with psycopg.connect(home.stored.dsn) as owner:
        owner.execute(
            "INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)"
            f" SELECT agent_identity, id, ts, 1, array_fill(0.125, ARRAY[{DIM}])::halfvec FROM conversations"
        )
        owner.execute("INSERT INTO pending_vectors SELECT agent_identity, 'memory', id FROM memory_entries")


def commands_of(home: AgentHome, database: Database, folder: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(folder, [password])
    made.configure(dsn=runtime)
    return made


def test_everything_of_a_theme_goes_into_the_other(agent_home: AgentHome, database: Database, tmp_path: Path) -> None:
    fill(agent_home)
    commands = commands_of(agent_home, database, tmp_path / "operator")
    stored = agent_home.stored
    with nothing_changes(stored):
        dry = commands.call("theme", "merge", "sales", "marketing", "--json").json
        assert commands.call("theme", "merge", "sales", "marketing").code == 0
    assert (dry["executed"], dry["counts"]["turns"], dry["counts"]["duplicates"]) == (False, 11, 2)
    done = commands.call("theme", "merge", "sales", "marketing", "--execute", "--json")
    assert done.code == 0, done
    assert done.json["counts"] == {
        "memories": 1, "turns": 9, "events": 5, "recalls": 0, "duplicates": 4,
    }  # fmt: skip
    assert stored.themes() == {"marketing"}
    contents = [content for _, _, content in stored.turns("marketing")]
    assert len(contents) == len(set(contents)) == 20
    assert {content for _, content in stored.memories("marketing")} == {
        "Tea is green", "Gone soon", "User of sales", "User of marketing",
    }  # fmt: skip
    assert {theme for (theme,) in stored.rows("SELECT agent_identity FROM turn_vectors_1")} == {"marketing"}
    assert {theme for (theme,) in stored.rows("SELECT agent_identity FROM pending_vectors")} == {"marketing"}
    assert stored.rows("SELECT count(*) FROM conversations WHERE lexemes::text LIKE '%%~=sales%%'") == [(0,)]
    # The entries are still what the history makes of them.
    with psycopg.connect(database.runtime_dsn) as connection:
        left = fold(event.operation() for event in history.of_theme(connection, "marketing", "memory"))
    assert set(left) == {"Tea is green", "Gone soon"}
    # What is written to the old name follows, and so does what is asked under it.
    agent = agent_home.provider("sales", "later")
    agent.sync_turn("A late lavender question", "A late answer to it", session_id="later")
    agent.on_memory_write("add", "memory", "Lavender is late", metadata={})
    agent_home.settle()
    assert ("user", "later", "A late lavender question") in stored.turns("marketing")
    assert ("memory", "Lavender is late") in stored.memories("marketing")
    assert "lavender" in agent.handle_tool_call("recall_conversation", {"query": "lavender question"})
    ((action, theme, subject),) = stored.rows("SELECT action, theme, subject FROM audit_log WHERE action ~ '^theme'")
    assert (action, theme, subject) == ("theme merge", "marketing", "from sales")
    # And back again under another name, with the history it has; the command's former name and its options, too.
    events = stored.rows("SELECT action, content FROM memory_operations ORDER BY id")
    assert commands.call("theme", "rename", "marketing", "sales", "--execute").code == 0
    assert stored.themes() == {"sales"}
    assert stored.rows("SELECT action, content FROM memory_operations ORDER BY id") == events
    assert commands.call("remap", "--old", "sales", "--new", "trading", "--execute").code == 0
    assert stored.themes() == {"trading"}


def test_what_becomes_private_is_not_found_under_its_old_name(
    agent_home: AgentHome, database: Database, tmp_path: Path
) -> None:
    alice, mallory = agent_home.provider("alice"), agent_home.provider("mallory")
    alice.on_memory_write("add", "memory", "The pin is zebra4711", metadata={})
    alice.sync_turn("My other pin is zebra4712", "I keep it to myself", session_id="alice-1")
    agent_home.settle()
    asked = (("recall_memory", {"query": "zebra4711"}), ("recall_conversation", {"query": "zebra4712"}))
    for tool, query in asked:
        assert json.loads(mallory.handle_tool_call(tool, {**query, "scope": "alice"}))["count"] > 0
    commands = commands_of(agent_home, database, tmp_path / "operator")
    done = commands.call("theme", "rename", "alice", "dm-alice", "--execute")
    assert done.code == 0
    assert "dm-alice is private" in done.out
    for tool, query in asked:
        assert json.loads(mallory.handle_tool_call(tool, {**query, "scope": "alice"}))["count"] == 0
        assert json.loads(alice.handle_tool_call(tool, query))["count"] > 0


def test_what_cannot_be_done_is_said(agent_home: AgentHome, database: Database, tmp_path: Path) -> None:
    fill(agent_home)
    commands = commands_of(agent_home, database, tmp_path / "operator")
    unknown = commands.call("theme", "rename", "sale", "trading")
    assert unknown.code == 1
    assert "sales" in unknown.err
    assert commands.call("theme", "rename", "sales", "sales").code == 1
    assert commands.call("theme", "rename", "sales").code == 1
    there = commands.call("theme", "rename", "sales", "marketing")
    assert (there.code, "theme merge sales marketing" in there.err) == (1, True)
    assert commands.call("theme", "rename", "sales", "trading", "--execute").code == 0
    again = commands.call("theme", "merge", "sales", "trading")
    assert again.code == 1
    assert "is called 'trading' now" in again.err
    assert "merged into 'trading'" in commands.call("theme", "rename", "marketing", "sales").err


def move(connection: psycopg.Connection, old: str, new: str) -> dict[str, int]:
    gate.close(connection)
    moved = merging.merge(connection, old, new)
    connection.commit()
    return {name: number for name, number in moved.items() if number}


def test_the_same_words_said_again_are_neither_lost_nor_doubled(database: Database) -> None:
    start = int(time.time()) * 1_000_000

    with psycopg.connect(database.owner_dsn) as connection:

        def say(theme: str, ordinal: int, seconds: int, *, is_live: bool = True) -> None:
            at = start + seconds * 1_000_000
            turn = AddTurn(theme, "s", "user", "Go on, please", ordinal, Moment(at, at), is_live=is_live)
            turns.insert(connection, [turn], retry_window=600.0, wants_vector=lambda _: False)

        def said(theme: str) -> list[tuple[int, int]]:
            rows = connection.execute(
                "SELECT ordinal, ts FROM conversations WHERE agent_identity = %s ORDER BY ts", [theme]
            ).fetchall()
            return [(ordinal, int(ts.timestamp()) - start // 1_000_000) for ordinal, ts in rows]

        say("old", 1, 0)
        move(connection, "old", "new")
        say("old", 2, 1200)
        say("old", 1, 130, is_live=False)
        assert said("new") == [(1, 0), (2, 1200)]
        # Once long ago in one theme, twice in the other, and once in both.
        say("b", 1, -86_400)
        say("a", 1, 0)
        say("a", 2, 3000)
        say("b", 2, 3002)
        assert move(connection, "a", "b") == {"turns": 1, "duplicates": 1}
        assert said("b") == [(1, -86_400), (3, 0), (2, 3002)]


def test_the_merged_history_leads_to_the_entries_that_are_there(database: Database) -> None:
    start = int(time.time()) * 1_000_000
    with psycopg.connect(database.owner_dsn) as connection:

        def put(number: int, kind: str, theme: str, text: str, home: str) -> None:
            at = Moment(start + number * 1_000_000, start + number * 1_000_000)
            operation = (
                AddMemory(theme, "memory", text, at, home)
                if kind == "add"
                else RemoveMemory(theme, "memory", "", at, home, previous=text)
            )
            memories.store(connection, [Placed(operation, "w", number, 0)])

        put(0, "add", "old", "X", "h")
        put(1, "add", "new", "X", "")
        put(2, "remove", "old", "X", "h")
        put(5, "add", "new", "Y", "h")
        move(connection, "old", "new")
        put(9, "add", "new", "Late", "h")
        rows = connection.execute("SELECT content FROM memory_entries ORDER BY content").fetchall()
        assert rows == [("Late",), ("X",), ("Y",)]
        told = fold(event.operation() for event in history.of_theme(connection, "new", "memory"))
        assert {content: set(entry.homes) for content, entry in told.items()} == {"X": set(), "Y": {"h"}, "Late": {"h"}}


def test_themes_that_were_merged_before_are_merged_again(database: Database) -> None:
    at = Moment(int(time.time()) * 1_000_000, int(time.time()) * 1_000_000)
    with psycopg.connect(database.owner_dsn) as connection:
        for number, theme in enumerate("abcd"):
            added = AddMemory(theme, "memory", f"Text of {theme}", at, "h")
            memories.store(connection, [Placed(added, "w", number, 0)])
        for old, new in (("a", "b"), ("c", "d"), ("b", "d")):
            move(connection, old, new)
        told = fold(event.operation() for event in history.of_theme(connection, "d", "memory"))
        assert set(told) == {f"Text of {theme}" for theme in "abcd"}


WRITES = """
import time
agents = [provider("sales", "s"), provider("marketing", "s")]
number = 0
say("ready")
while True:
    for agent, theme in zip(agents, ("sales", "marketing")):
        agent.sync_turn(f"{theme} said {number}", f"{theme} heard {number}", session_id="s")
        agent.on_memory_write("add", "memory", f"{theme} noted {number}", metadata={})
        say(f"{theme} {number}")
    number += 1
    time.sleep(0.04)
"""


def test_what_agents_write_while_themes_are_merged_arrives_once(
    agent_home: AgentHome, database: Database, tmp_path: Path
) -> None:
    commands = commands_of(agent_home, database, tmp_path / "operator")
    stored = agent_home.stored
    writer = agent_home.start(WRITES)
    assert writer.stdout is not None
    assert writer.stdout.readline().strip() == "ready"
    wait_until(lambda: stored.themes() == {"sales", "marketing"})
    assert commands.call("theme", "merge", "sales", "marketing", "--execute").code == 0
    said = [line for line in iter(writer.stdout.readline, "marketing 40\n") if line.count(" ") == 1]
    writer.kill()
    writer.communicate()
    agent_home.provider("marketing", "after").sync_turn("The end of it", "Is near", session_id="after")
    wanted = {f"{theme} said {number}" for theme, number in map(str.split, said)}
    noted = {f"{theme} noted {number}" for theme, number in map(str.split, said)}
    wait_until(lambda: wanted <= {content for _, _, content in stored.turns("marketing")}, seconds=60)
    assert stored.themes() == {"marketing"}
    contents = [content for _, _, content in stored.turns("marketing")]
    assert len(contents) == len(set(contents))
    found = [content for _, content in stored.memories("marketing")]
    assert len(found) == len(set(found))
    assert noted <= set(found)
