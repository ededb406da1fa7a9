"""A hermes-agent after 0.20: all it hands over is masked, it says who has asked, and it may require a checkpoint."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import PLAIN, AgentHome
from testing.next_host import NextHost
from testing.refusing import Disk
from testing.scopes import DSN, serving_several_homes, working_for
from testing.waiting import wait_until

KEY = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1aXy4z"
CODE = "Kf83jvQpl20xWmz7Tr5bNa"
THEMES = ("marketing", "trading")


def message(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


@pytest.fixture
def hosts(agent_home: AgentHome) -> Iterator[dict[str, NextHost]]:
    """An agent of each theme on one home."""
    agent_home.settings["bulk_sync_on_init"] = True
    agent_home.write_memories()
    made = {theme: NextHost(agent_home.provider(theme, session=theme)) for theme in THEMES}
    yield made
    for each in made.values():
        each.__exit__(None, None, None)
        assert each.refused == []


def test_a_turn_is_stored_once_although_its_words_are_masked_later(
    agent_home: AgentHome, hosts: dict[str, NextHost]
) -> None:
    """The key is plain in the first turn; a tool's result gives it away, and then it is hidden in the whole session."""
    host = hosts["marketing"]
    talk = [message("user", f"The badge of the new guard is {CODE}."), message("assistant", "I shall remember that.")]
    host.turn(talk[0]["content"], talk[1]["content"], talk)
    talk += [
        message("user", "Which variables does the build have?"),
        message("assistant", "", tool_calls=[{"id": "1", "function": {"name": "terminal", "arguments": "{}"}}]),
        message("tool", f"API_KEY={CODE}", tool_call_id="1"),
        message("assistant", "It has one: API_KEY."),
    ]
    host.turn(talk[2]["content"], talk[5]["content"], talk)
    host.compress(talk, evidence=[each for each in talk if each["role"] != "tool"], require=True)
    host.end(talk)
    agent_home.settle()
    assert [role for role, _, _ in agent_home.stored.turns("marketing")] == ["user", "assistant"] * 2


def test_who_has_asked_stands_with_the_question(agent_home: AgentHome, hosts: dict[str, NextHost]) -> None:
    hosts["marketing"].turn("Who waters the ferns in the hall?", "Nobody, I fear.", id="7", name="Ada", is_bot=False)
    agent_home.settle()
    ((author,),) = agent_home.stored.rows("SELECT metadata -> 'author' FROM conversations WHERE role = 'user'")
    assert author["name"] == "Ada"


def test_a_required_checkpoint_is_kept_or_refused(
    agent_home: AgentHome, hosts: dict[str, NextHost], disk: Disk
) -> None:
    host = hosts["trading"]
    talk = [message("user", f"The build signs in with {KEY} on Mondays."), message("assistant", "So it does.")]
    disk.error = errno.ENOSPC
    with pytest.raises(MemoryPluginError):
        host.compress(talk, evidence=talk, require=True)
    disk.error = 0
    host.compress(talk, evidence=talk, require=True)
    host.end(talk)
    agent_home.settle()
    assert [role for role, _, _ in agent_home.stored.turns("trading")] == ["user", "assistant"]


def test_entries_with_keys_stay_in_the_theme_that_wrote_them(agent_home: AgentHome, hosts: dict[str, NextHost]) -> None:
    """Batches of two themes at once, in the one file that they share."""
    lock, together = threading.Lock(), threading.Barrier(len(THEMES))
    entries: list[str] = []

    def entry(theme: str, number: int, day: str) -> str:
        return f"The {theme} robot number {number} signs in with {KEY} on {day}."

    def write(theme: str, before: dict[str, str], *operations: dict[str, str]) -> None:
        with lock:
            for old in before.values():
                entries.remove(old)
            entries.extend(filter(None, (each.get("content") or each.get("new_text") for each in operations)))
            agent_home.write_memories(*entries)
        hosts[theme].wrote("memory", *operations, before=dict(enumerate(before.values(), start=1)))

    def work(theme: str) -> None:
        for number in range(10):
            together.wait()
            first, second = entry(theme, number, "Mondays"), entry(theme, number, "Tuesdays")
            write(theme, {}, {"action": "add", "content": first})
            write(theme, {"1": first}, {"action": "replace", "old_text": first, "new_text": second})
            if number % 2:
                write(theme, {"1": second}, {"action": "remove", "old_text": second})

    threads = [threading.Thread(target=work, args=(theme,)) for theme in THEMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agent_home.settle()
    agent_home.mirror()
    rows = agent_home.stored.rows("SELECT agent_identity, content FROM memory_entries")
    assert sorted(theme for theme, _ in rows) == ["marketing"] * 5 + ["trading"] * 5
    assert all(content.startswith(f"The {theme} robot") for theme, content in rows)
    assert all("Tuesdays" in content and KEY not in content for _, content in rows)


def test_a_masked_question_is_answered(agent_home: AgentHome, hosts: dict[str, NextHost]) -> None:
    host = hosts["marketing"]
    host.turn(f"The build robot signs in with {KEY} on Mondays.", "I shall remember that.")
    agent_home.settle()
    found = host.tool("recall_conversation", query=f"build robot {KEY}")
    assert any("build robot" in each["content"] for each in found["results"])


@pytest.mark.parametrize("is_several", [True, False], ids=["one of several homes", "alone"])
def test_a_scheduled_job_and_the_chat_after_it_are_stored(
    agent_home: AgentHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_several: bool
) -> None:
    """A job has a scope around it. The login of one of several homes is there only; else only in the environment."""
    nowhere = "host=127.0.0.1 port=9 dbname=of_another_home"
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "launch" if is_several else agent_home.path))
    monkeypatch.setenv(DSN, nowhere if is_several else agent_home.dsn)
    scope = {DSN: agent_home.dsn} if is_several else {}
    with serving_several_homes(is_several):
        for platform, around in (("cron", scope), ("cli", scope if is_several else None)):
            with working_for(agent_home.path, around), NextHost(PgvectorMemoryProvider(PLAIN)) as host:
                host.provider.initialize(platform, hermes_home=str(agent_home.path), platform=platform)
                host.turn(f"What has the {platform} to say of the harbour?", "That it is open all day long.")
            assert host.refused == []
        wait_until(lambda: agent_home.stored.count("conversations") == 4)
    sessions = agent_home.stored.rows("SELECT DISTINCT session_id FROM conversations ORDER BY 1")
    assert sessions == [("cli",), ("cron",)]
