"""The rows of a home equal its MEMORY.md and USER.md, whoever changed the files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.postgres import Database
from testing.waiting import wait_until

Rows = dict[str, list[str]]


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are compared at once: the pause for a hook that is about to announce is not what is tested."""
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)


def add(agent: PgvectorMemoryProvider, content: str) -> None:
    agent.on_memory_write("add", "memory", content, metadata={})


def rows(home: AgentHome, target: str = "memory") -> Rows:
    """Contents and their themes, when everything announced and every file has been taken in."""
    home.settle()
    home.mirror()
    found: Rows = {}
    for theme, content in home.stored.rows(
        "SELECT agent_identity, content FROM memory_entries WHERE target = %s ORDER BY 1", target
    ):
        found.setdefault(content, []).append(theme)
    return found


def test_the_files_are_taken_into_the_profiles_theme_not_the_requests(agent_home: AgentHome) -> None:
    agent_home.write_memories("Wifi is hummingbird", "Servers run Debian")
    agent_home.write_memories("Prefers tea", target="user")
    agent_home.provider("marketing")
    assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"], "Servers run Debian": ["hermes"]}
    assert rows(agent_home, "user") == {"Prefers tea": ["hermes"]}


def test_a_second_theme_copies_nothing(agent_home: AgentHome) -> None:
    agent_home.write_memories("Wifi is hummingbird")
    add(agent_home.provider("marketing"), "Launch is 14 March")
    agent_home.write_memories("Wifi is hummingbird", "Launch is 14 March")
    agent_home.provider("trading")
    assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"], "Launch is 14 March": ["marketing"]}


def test_an_entry_edited_in_its_place_stays_in_its_theme(agent_home: AgentHome) -> None:
    add(agent_home.provider("marketing"), "Launch is 14 March")
    agent_home.write_memories("Wifi is hummingbird", "Launch is 14 March")
    assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"], "Launch is 14 March": ["marketing"]}
    agent_home.write_memories("Wifi is kolibri", "Launch is 21 March")
    assert rows(agent_home) == {"Wifi is kolibri": ["hermes"], "Launch is 21 March": ["marketing"]}


def test_an_entry_gone_from_the_file_is_gone(agent_home: AgentHome) -> None:
    add(agent_home.provider("marketing"), "Launch is 14 March")
    agent_home.write_memories("Wifi is hummingbird", "Launch is 14 March")
    rows(agent_home)
    agent_home.write_memories("Wifi is hummingbird")
    assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"]}


def test_a_reset_memory_is_empty(agent_home: AgentHome) -> None:
    agent_home.write_memories("Wifi is hummingbird")
    agent_home.provider()
    assert rows(agent_home)
    (agent_home.path / "memories" / "MEMORY.md").unlink()
    assert rows(agent_home) == {}


def test_a_file_that_is_away_for_a_moment_was_not_deleted(
    agent_home: AgentHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some programs save a file by moving the old one away first; what comes back would belong to another theme."""
    add(agent_home.provider("marketing"), "Launch is 14 March")
    agent_home.write_memories("Launch is 14 March")
    assert rows(agent_home) == {"Launch is 14 March": ["marketing"]}
    path = agent_home.path / "memories" / "MEMORY.md"
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 60.0)
    path.rename(path.with_suffix(".bak"))
    assert agent_home.engine.mirror.run("hermes", lambda: True) > 0
    path.with_suffix(".bak").rename(path)
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    assert rows(agent_home) == {"Launch is 14 March": ["marketing"]}


def test_a_missing_folder_says_nothing(agent_home: AgentHome) -> None:
    agent_home.write_memories("Wifi is hummingbird")
    agent_home.provider()
    assert rows(agent_home)
    (agent_home.path / "memories").rename(agent_home.path / "memories.away")
    assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"]}


def test_a_linked_file_whose_disk_is_away_says_nothing(agent_home: AgentHome, tmp_path: Path) -> None:
    agent_home.write_memories("Wifi is hummingbird")
    file, share = agent_home.path / "memories" / "MEMORY.md", tmp_path / "share"
    share.mkdir()
    file.rename(share / "MEMORY.md")
    file.symlink_to(share / "MEMORY.md")
    agent_home.provider()
    assert rows(agent_home)
    share.rename(tmp_path / "away")
    assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"]}


def test_rows_of_other_homes_are_not_touched(agent_home: AgentHome, database: Database, tmp_path: Path) -> None:
    second = AgentHome.create(tmp_path / "second", database)
    for home in (agent_home, second):
        home.write_memories("Both have this", f"Only {home.path.name}")
        home.provider()
        rows(home)
    agent_home.write_memories()
    assert rows(agent_home) == {"Both have this": ["hermes"], "Only second": ["hermes"]}
    second.write_memories("Only second")
    assert rows(second) == {"Only second": ["hermes"]}


def test_an_announced_remove_that_the_file_shows_too_happens_once(agent_home: AgentHome) -> None:
    agent = agent_home.provider("marketing")
    agent_home.write_memories("likes tea", "likes tea with milk")
    add(agent, "likes tea")
    add(agent, "likes tea with milk")
    assert len(rows(agent_home)) == 2
    agent_home.write_memories("likes tea with milk")
    assert rows(agent_home) == {"likes tea with milk": ["marketing"]}


def test_a_theme_that_changes_anothers_entry_takes_it_over(agent_home: AgentHome) -> None:
    marketing, trading = agent_home.provider("marketing"), agent_home.provider("trading")
    agent_home.write_memories("Launch is 14 March")
    add(marketing, "Launch is 14 March")
    rows(agent_home)
    agent_home.write_memories("Launch is 21 March")
    trading.on_memory_write("replace", "memory", "Launch is 21 March", metadata={"old_text": "14 March"})
    assert rows(agent_home) == {"Launch is 21 March": ["trading"]}


def test_what_the_mirror_guessed_gives_way_to_the_theme_that_announces_it(agent_home: AgentHome) -> None:
    agent = agent_home.provider("marketing")
    agent_home.write_memories("Launch is 14 March")
    assert rows(agent_home) == {"Launch is 14 March": ["hermes"]}
    add(agent, "Launch is 14 March")
    assert rows(agent_home) == {"Launch is 14 March": ["marketing"]}


LATE = """
import threading
from hermes_memory_pgvector.writer.writer import Writer
# The writer's turn never comes: what is recorded stays in the journal.
Writer.run_once = lambda self: 60.0
agent = provider(arguments[0])
action, content, old = arguments[1:]
agent.on_memory_write(action, "memory", content, {"old_text": old} if old else {})
say("recorded")
threading.Event().wait()
"""


@contextmanager
def undelivered(home: AgentHome, *arguments: str) -> Iterator[None]:
    """A process that has announced something and is killed before it could deliver."""
    with home.start(LATE, *arguments) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "recorded\n"
        try:
            yield
        finally:
            child.kill()


def adopted(home: AgentHome, operations: int) -> Rows:
    """The rows when what dead processes have left is in."""
    home.close()
    home.provider("hermes")
    wait_until(lambda: home.stored.count("memory_operations") >= operations)
    return rows(home)


def test_a_change_announced_by_a_process_that_died_replaces_the_guess(agent_home: AgentHome) -> None:
    """The file was compared before the announcement arrived: the guess went to the theme that held the entry."""
    agent_home.write_memories("Launch is 14 March")
    add(agent_home.provider("marketing"), "Launch is 14 March")
    assert rows(agent_home) == {"Launch is 14 March": ["marketing"]}
    with undelivered(agent_home, "trading", "replace", "Launch is 21 March", "14 March"):
        agent_home.write_memories("Launch is 21 March")
        assert rows(agent_home) == {"Launch is 21 March": ["marketing"]}
    assert adopted(agent_home, 4) == {"Launch is 21 March": ["trading"]}


def test_what_was_deleted_before_its_announcement_arrived_stays_deleted(agent_home: AgentHome) -> None:
    agent_home.provider("hermes")
    with undelivered(agent_home, "trading", "add", "Launch is 14 March", ""):
        agent_home.write_memories("Wifi is hummingbird")
        assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"]}
    wait_until(lambda: agent_home.stored.count("memory_operations") >= 2)
    wait_until(lambda: rows(agent_home) == {"Wifi is hummingbird": ["hermes"]}, seconds=10)


def test_a_replayed_announcement_takes_nothing_from_the_theme_that_holds_it_now(agent_home: AgentHome) -> None:
    """A failed-over server has lost the watermark but not the rows: the same operation arrives again."""
    agent = agent_home.provider("marketing")
    add(agent, "Launch is 14 March")
    agent.on_memory_write("remove", "memory", "", metadata={"old_text": "14 March"})
    rows(agent_home)
    agent_home.write_memories("Launch is 14 March")
    assert rows(agent_home) == {"Launch is 14 March": ["hermes"]}
    agent_home.stored.rows("UPDATE journal_writers SET position = 0 RETURNING 1")
    add(agent, "Something new")
    agent_home.write_memories("Launch is 14 March", "Something new")
    assert rows(agent_home) == {"Launch is 14 March": ["hermes"], "Something new": ["marketing"]}


def test_what_a_tool_removed_is_stored_again_when_somebody_writes_it_into_the_file(agent_home: AgentHome) -> None:
    agent = agent_home.provider("marketing")
    agent_home.write_memories("Launch is 14 March", "Wifi is hummingbird")
    rows(agent_home)
    agent.on_memory_write("remove", "memory", "", metadata={"old_text": "14 March"})
    agent_home.settle()
    agent_home.write_memories("Wifi is hummingbird", "Launch is 14 March")
    assert rows(agent_home) == {"Launch is 14 March": ["hermes"], "Wifi is hummingbird": ["hermes"]}


def test_a_reset_takes_away_what_was_saved_and_never_compared(agent_home: AgentHome) -> None:
    add(agent_home.provider("marketing"), "Launch is 14 March")
    agent_home.settle()
    agent_home.close()
    agent_home.stored.rows("DELETE FROM memory_files RETURNING 1")
    agent_home.write_memories("Launch is 14 March")
    (agent_home.path / "memories" / "MEMORY.md").unlink()
    agent_home.provider("marketing")
    assert rows(agent_home) == {}


def test_what_is_announced_while_there_is_no_file_yet_stays(agent_home: AgentHome) -> None:
    add(agent_home.provider("marketing"), "Launch is 14 March")
    assert rows(agent_home) == {"Launch is 14 March": ["marketing"]}
    agent_home.engine.mirror.look_again()
    assert rows(agent_home) == {"Launch is 14 March": ["marketing"]}


@pytest.mark.parametrize("kind", ["a pipe", "far too large"])
def test_a_file_that_is_no_memory_file_changes_nothing_and_keeps_nobody_waiting(
    agent_home: AgentHome, kind: str
) -> None:
    agent_home.settings["prefetch_budget"] = 7.5  # what is counted is CPU, not how busy the machine is
    agent_home.write_memories("Wifi is hummingbird")
    agent = agent_home.provider(None)
    assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"]}
    path = agent_home.path / "memories" / "MEMORY.md"
    new = path.with_suffix(".new")
    if kind == "a pipe":
        os.mkfifo(new)
    else:
        new.write_text("\n§\n".join(f"entry {number} of very many" for number in range(2_000_000)), encoding="utf-8")
    # In one step: between two, the file would be missing, which means that its entries were deleted.
    new.replace(path)
    answer: list[str] = []
    asking = threading.Thread(target=lambda: answer.append(agent.prefetch("What is the wifi called?")), daemon=True)
    asking.start()
    asking.join(30)
    assert answer
    assert "hummingbird" in answer[0]
    assert rows(agent_home) == {"Wifi is hummingbird": ["hermes"]}
