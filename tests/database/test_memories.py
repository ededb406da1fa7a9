"""What the memory tool announces becomes rows: the contract of add, replace and remove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.postgres import Database
from testing.waiting import wait_until


def write(agent: PgvectorMemoryProvider, action: str, content: str = "", old: str | None = None, **more: Any) -> None:
    target = more.pop("target", "memory")
    metadata = {"write_origin": "assistant_tool", **({} if old is None else {"old_text": old}), **more}
    agent.on_memory_write(action, target, content, metadata=metadata)


def stored(home: AgentHome, theme: str = "marketing", target: str = "memory") -> list[str]:
    home.settle()
    return sorted(content for kind, content in home.stored.memories(theme) if kind == target)


@pytest.fixture
def agent(agent_home: AgentHome) -> PgvectorMemoryProvider:
    # What the files hold is another test's matter: here only the announcements count.
    agent_home.settings["bulk_sync_on_init"] = False
    return agent_home.provider()


def test_an_added_entry_is_stored_stripped(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    write(agent, "add", "  The launch is on 14 March \n")
    assert stored(agent_home) == ["The launch is on 14 March"]


def test_adding_an_entry_again_changes_nothing(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    for _ in range(3):
        write(agent, "add", "The launch is on 14 March")
    assert stored(agent_home) == ["The launch is on 14 March"]


def test_a_replaced_entry_keeps_its_row(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    write(agent, "add", "The launch is on 14 March")
    agent_home.settle()
    before = agent_home.stored.rows("SELECT id, created_at FROM memory_entries")
    write(agent, "replace", "The launch is on 21 March", old="14 March")
    assert stored(agent_home) == ["The launch is on 21 March"]
    assert agent_home.stored.rows("SELECT id, created_at FROM memory_entries") == before


def test_a_removed_entry_is_gone(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    write(agent, "add", "The launch is on 14 March")
    write(agent, "add", "Dana approves budgets")
    write(agent, "remove", old="14 March")
    assert stored(agent_home) == ["Dana approves budgets"]


def test_old_text_is_literal(agent_home: AgentHome) -> None:
    agent_home.settings["bulk_sync_on_init"] = False
    signs = ["%", "_", "\\", "'", '"', "100%", "a_b", "c:\\temp", "it's", "$1", "{x}", "%s", "%(a)s"]
    unchanged = "without any of these 100 a b c temp its 1 x s"
    for number, sign in enumerate(signs):
        agent = agent_home.provider(f"theme {number}")
        write(agent, "add", f"with {sign} in it")
        write(agent, "add", unchanged)
        write(agent, "replace", "changed", old=sign)
    for number, sign in enumerate(signs):
        assert stored(agent_home, theme=f"theme {number}") == ["changed", unchanged], sign
        agent = agent_home.provider(f"theme {number}")
        write(agent, "add", f"again {sign}")
        write(agent, "remove", old=sign)
    for number, sign in enumerate(signs):
        assert stored(agent_home, theme=f"theme {number}") == ["changed", unchanged], sign


@pytest.mark.parametrize("old", ["", "   ", None])
def test_a_remove_that_names_nothing_removes_nothing(
    agent_home: AgentHome, agent: PgvectorMemoryProvider, old: str | None
) -> None:
    write(agent, "add", "The launch is on 14 March")
    write(agent, "remove", "", old=old)
    write(agent, "remove", "  ", old=old)
    assert stored(agent_home) == ["The launch is on 14 March"]


def test_old_text_that_selects_two_entries_selects_none(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    write(agent, "add", "Red barrels: 11")
    write(agent, "add", "Blue barrels: 12")
    write(agent, "remove", old="barrels")
    assert stored(agent_home) == ["Blue barrels: 12", "Red barrels: 11"]


def test_a_replace_that_matches_nothing_inserts(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    write(agent, "add", "Red barrels: 11")
    write(agent, "replace", "Green barrels: 13", old="yellow")
    assert stored(agent_home) == ["Green barrels: 13", "Red barrels: 11"]


@pytest.mark.parametrize(("action", "target"), [("drop", "memory"), ("add", "elsewhere"), ("", ""), ("ADD ", "memory")])
def test_unknown_actions_and_targets_are_ignored(
    agent_home: AgentHome, agent: PgvectorMemoryProvider, action: str, target: str
) -> None:
    write(agent, "add", "Red barrels: 11")
    write(agent, action, "something", target=target)
    assert [text for text in stored(agent_home) if text != "something"] == ["Red barrels: 11"]
    assert ("something" in stored(agent_home)) == (action.strip().lower() == "add" and target == "memory")


def test_a_change_never_touches_another_themes_rows(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    other = agent_home.provider("trading")
    for one in (agent, other):
        write(one, "add", "Shared words: 11 barrels")
    write(agent, "replace", "Changed words", old="Shared")
    write(agent, "remove", old="11 barrels")
    assert stored(agent_home) == ["Changed words"]
    assert stored(agent_home, "trading") == ["Shared words: 11 barrels"]


def test_an_entry_of_two_homes_goes_when_both_have_dropped_it(
    agent_home: AgentHome, agent: PgvectorMemoryProvider, database: Database, tmp_path: Path
) -> None:
    second = AgentHome.create(tmp_path / "second", database, bulk_sync_on_init=False)
    elsewhere = second.provider()
    write(agent, "add", "Red barrels: 11")
    write(elsewhere, "add", "Red barrels: 11")
    second.settle()
    write(agent, "remove", old="Red")
    assert stored(agent_home) == ["Red barrels: 11"]
    write(elsewhere, "remove", old="Red")
    second.settle()
    assert stored(agent_home) == []


def test_an_entry_longer_than_the_cap_says_so(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    write(agent, "add", "x" * 10_000)
    (only,) = stored(agent_home)
    assert len(only) == 8192
    assert only.endswith("[cut: the first 8192 of 10000 characters are stored]")


def test_the_rows_say_which_session_wrote_them(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    write(agent, "add", "Red barrels: 11", session_id="s1", platform="api_server")
    agent_home.settle()
    ((metadata,),) = agent_home.stored.rows("SELECT metadata FROM memory_entries")
    assert metadata["session_id"] == "s1"


def test_an_operation_that_arrives_late_takes_its_place(agent_home: AgentHome, agent: PgvectorMemoryProvider) -> None:
    """A process dies after its hook returned; another one has gone on in the meantime."""
    script = """
import threading
from hermes_memory_pgvector.writer.writer import Writer
# The writer's turn never comes: what is recorded stays in the journal.
Writer.run_once = lambda self: 60.0
agent = provider("marketing")
agent.on_memory_write("add", "memory", "Red barrels: 11", {})
say("recorded")
threading.Event().wait()
"""
    child = agent_home.start(script)
    assert child.stdout is not None
    assert child.stdout.readline() == "recorded\n"
    write(agent, "replace", "Red barrels: 12", old="Red")
    assert stored(agent_home) == ["Red barrels: 12"]
    child.kill()
    child.wait(10)
    child.stdout.close()
    agent_home.close()
    again = agent_home.provider()
    write(again, "add", "Blue barrels: 1")
    wait_until(lambda: agent_home.stored.count("memory_operations") == 3)
    # The late add came first: the replace that was announced after it has replaced it.
    assert stored(agent_home) == ["Blue barrels: 1", "Red barrels: 12"]


def test_thousands_of_entries_appear_in_the_file_and_go_again(agent_home: AgentHome) -> None:
    """One comparison finds all of them: what the writer stores behind them must not wait for long."""
    entries = [f"fact number {number} of a large import" for number in range(6000)]
    agent_home.write_memories(*entries)
    agent = agent_home.provider(None)
    wait_until(lambda: agent_home.stored.count("memory_entries") == 6000, seconds=120, every=0.5)
    agent.on_memory_write("add", "user", "said behind all of them", metadata={})
    agent_home.settle(60)
    agent_home.write_memories(*entries[:10])
    wait_until(lambda: agent_home.stored.count("memory_entries") == 11, seconds=120, every=0.5)
