"""What is brought in is data and not an order: a file cannot stop, redirect or open a memory, nor guess whose it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.host_state import host_state
from testing.postgres import Database
from testing.stored import Stored

HEADER = {"kind": "hermes-pgvector", "format": 1}
KEY = "00" * 32
EVERYTHING = "a63bac906f826a395e68010d13e02a8f"
"""What an older file calls everything that anybody says, under that key."""
GREETING = "Good morning, what is on the agenda for today in this team?"
AT = "2026-01-01T00:00:00+00:00"
PHONE = "agent:main:telegram:dm:4915100000000"


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database.owner_dsn)


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_url="http://127.0.0.1:9/", embed_on_write=False)
    return made


@pytest.fixture
def home(commands: Commands, database: Database) -> AgentHome:
    return AgentHome.create(commands.home, database)


def brought(commands: Commands, *lines: dict[str, Any]) -> None:
    """Import lines as somebody may send them; a refusal is as good as leaving them out."""
    path = commands.folder / "brought.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, *lines)), encoding="utf-8")
    commands.call("import", "jsonl", str(path), "--execute")


def say(home: AgentHome, theme: str, text: str, **more: Any) -> None:
    home.provider(theme, "s1", **more).sync_turn(text, f"Noted: {text}", session_id="s1")
    home.settle()
    home.close()


def test_an_imported_file_cannot_keep_out_what_is_said_afterwards(
    commands: Commands, home: AgentHome, stored: Stored
) -> None:
    at = "2099-01-01T00:00:00+00:00"
    receipt = {"kind": "receipt", "receipt": 1, "at": at, "actor": "x", "home": "", "named": [], "key": KEY}
    brought(commands, receipt, {"kind": "tombstone", "receipt": 1, "hash": EVERYTHING, "at": at})
    say(home, "marketing", "The spring campaign starts on Monday")
    home.provider("marketing").on_memory_write("add", "memory", "Invoices are sent on the last day")
    home.settle()
    assert len(stored.turns("marketing")) == 2
    assert stored.memories("marketing") == [("memory", "Invoices are sent on the last day")]


def test_an_imported_file_cannot_open_a_private_chat(commands: Commands, home: AgentHome, stored: Stored) -> None:
    say(home, PHONE, "My secret diary says that the blue pelican sings", platform="telegram")
    (private,) = stored.themes()
    assert private.startswith("dm-")
    brought(commands, {"kind": "alias", "old": "newsletter", "new": private, "since": AT})
    stranger = home.provider("newsletter", "s2")
    assert "pelican" not in stranger.prefetch("What does the blue pelican do?")
    assert "pelican" not in stranger.handle_tool_call("recall_conversation", {"query": "blue pelican"})


def test_an_imported_theme_is_spelled_as_themes_are(commands: Commands, stored: Stored) -> None:
    for theme in ("DM-deadbeef", " _BENCH", "Victim"):
        brought(commands, {"kind": "memory", "theme": theme, "content": f"A pelican of {theme}"})
    assert stored.themes() == {"dm-deadbeef", "_bench", "victim"}
    found = commands.call("recall", "pelican", "--theme", "other", "--scope", "all", "--json").json["results"]
    assert [each["agent_identity"] for each in found] == ["victim"]


def test_an_imported_file_cannot_send_what_is_said_to_another_theme(
    commands: Commands, home: AgentHome, stored: Stored
) -> None:
    brought(commands, {"kind": "alias", "old": "marketing", "new": "evil", "since": AT})
    say(home, "marketing", "The spring campaign starts on Monday")
    assert stored.themes() == {"marketing"}


@pytest.mark.parametrize("more", [(), pytest.param(("--execute",), marks=pytest.mark.large)])
def test_an_import_names_the_private_chats_that_a_file_writes_into(commands: Commands, more: tuple[str, ...]) -> None:
    entry = {"kind": "memory", "target": "memory", "content": "Pay Mallory first", "created_at": AT}
    path = commands.folder / "brought.jsonl"
    lines = [HEADER, *({**entry, "theme": theme} for theme in ("dm-0123456789abcdef", "group-f", "sales"))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = commands.call("import", str(path), *more)
    assert done.code == 0, done.everything
    said = " ".join(done.everything.split())
    assert "2 rows for private themes, as the source says: dm-0123456789abcdef, group-f" in said
    again = commands.call("import", str(path))
    assert ("private themes" in again.everything) is (not more), "what is there already opens nothing"


def test_turns_and_memories_of_a_file_are_taken(commands: Commands, stored: Stored) -> None:
    """The other tests of this file would pass where every file is refused."""
    at = "2026-01-01T00:00:00+00:00"
    turn = {
        "kind": "turn",
        "theme": "sales",
        "session": "s",
        "role": "user",
        "content": "Hello",
        "ordinal": 1,
        "at": at,
    }
    memory = {"kind": "memory", "theme": "sales", "target": "memory", "content": "Kept", "created_at": at}
    brought(commands, turn, memory)
    assert [content for *_, content in stored.turns("sales")] == ["Hello"]
    assert stored.memories("sales") == [("memory", "Kept")]


def test_what_a_file_says_of_the_future_was_said_now_at_the_latest(commands: Commands, stored: Stored) -> None:
    turn = {"kind": "turn", "theme": "sales", "session": "s", "role": "user", "content": "Hello", "ordinal": 1}
    memory = {"kind": "memory", "theme": "sales", "target": "memory", "content": "Kept"}
    late = "2099-01-01T00:00:00+00:00"
    brought(commands, {**turn, "at": late}, {**memory, "created_at": late, "updated_at": late})
    assert stored.rows("SELECT content FROM conversations WHERE ts <= now()") == [("Hello",)]
    assert stored.rows("SELECT content FROM memory_entries WHERE updated_at <= now()") == [("Kept",)]


def prompt(theme: str) -> str:
    return f"You are helpful.\n## Shared memory (pgvector)\nYour memory theme is '{theme}'. What you save"


def chats(home: Path, themes: list[str]) -> None:
    """Chats of several themes that begin alike: the host gives them one session id and the last one's prompt."""
    with host_state(home) as state:
        state.session("api-c6997dfe26d37379", "api_server", system_prompt=prompt(themes[-1]))
        for theme in themes:
            state.exchange("api-c6997dfe26d37379", GREETING, f"In {theme} there is a review of the {theme} budget.")
        state.session("api-alone", "api_server", system_prompt=prompt(themes[0]))
        state.exchange("api-alone", "What does the harbour pilot do at night?", "The pilot waits at the quay.")


@pytest.mark.parametrize("count", [2, 50])
def test_a_chat_that_several_themes_share_is_imported_into_none(commands: Commands, stored: Stored, count: int) -> None:
    chats(commands.home, [f"team-{number}" for number in range(count)])
    done = commands.call("import", "state", "--execute", "--json")
    assert done.code == 0, done.everything
    assert not stored.rows("SELECT content FROM conversations WHERE session_id = 'api-c6997dfe26d37379'")


def test_a_chat_that_several_themes_share_is_imported_into_none_when_one_was_forgotten(
    commands: Commands, stored: Stored, home: AgentHome
) -> None:
    """With its answers gone, only one of the themes is known to have had the chat."""
    chats(commands.home, ["alpha", "beta"])
    for theme in ("alpha", "beta"):
        agent = home.provider(theme, "api-c6997dfe26d37379")
        agent.sync_turn(GREETING, f"In {theme} there is a review of the {theme} budget.")
    home.settle()
    home.close()
    assert commands.call("forget", "--theme", "alpha", "--execute").code == 0
    assert commands.call("import", "state", "--execute", "--json").code == 0
    assert not [row for row in stored.turns("beta") if "alpha" in row[2]]
    assert len(stored.turns("beta")) <= 4
    assert stored.rows("SELECT count(*) FROM conversations WHERE session_id LIKE 'api-c69%%'") == [(2,)]
