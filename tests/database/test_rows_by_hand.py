"""Rows that somebody types into the documented tables, with the documented columns only, are memories like any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.embed_server import EmbedServer
from testing.postgres import DIM, MODEL, Database
from testing.waiting import wait_until

MEMORY = "The harbour pilot moors at the northern quay"
TURN = "The ferry to the island carries bicycles on Sundays"
BY_HAND = (
    ("INSERT INTO memory_entries (agent_identity, target, content) VALUES ('marketing', 'user', %s)", MEMORY),
    (
        "INSERT INTO conversations (session_id, agent_identity, role, content, ts, metadata)"
        " VALUES ('by-hand', 'marketing', 'user', %s, '2026-01-02 03:04:05+00', '{\"from\": \"psql\"}')",
        TURN,
    ),
)

VIEWS = ("memory_entries_embedded", "conversations_embedded")


@pytest.fixture
def embedder() -> Iterator[EmbedServer]:
    with EmbedServer(dim=DIM) as server:
        yield server


def insert(home: AgentHome) -> None:
    with psycopg.connect(home.stored.dsn) as connection:
        for statement, words in BY_HAND:
            connection.execute(statement.encode(), (words,))


def hits(home: AgentHome, tool: str, query: str, theme: str = "marketing") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(home.provider(theme).handle_tool_call(tool, {"query": query}))["results"]
    return found


def all_have_vectors(home: AgentHome, view: str) -> bool:
    return home.stored.rows(f"SELECT count(*) FROM {view} WHERE embedding IS NULL") == [(0,)]


def test_rows_typed_by_hand_are_recalled_by_words_at_once(agent_home: AgentHome) -> None:
    insert(agent_home)
    (memory,) = hits(agent_home, "recall_memory", "Where does the harbour pilot moor?")
    assert (memory["content"], memory["target"], memory["agent_identity"]) == (MEMORY, "user", "marketing")
    (turn,) = hits(agent_home, "recall_conversation", "Which ferry carries bicycles?")
    assert (turn["content"], turn["session_id"], turn["role"]) == (TURN, "by-hand", "user")
    assert turn["ts"].startswith("2026-01-02T03:04:05")
    assert MEMORY in agent_home.provider("marketing", "s2").prefetch("Where does the harbour pilot moor?")
    assert hits(agent_home, "recall_memory", "Where does the harbour pilot moor?", "sales") == []


def test_rows_typed_by_hand_without_a_theme_are_of_the_default_theme(agent_home: AgentHome) -> None:
    with psycopg.connect(agent_home.stored.dsn) as connection:
        connection.execute(b"INSERT INTO memory_entries (target, content) VALUES ('memory', %s)", (MEMORY,))
        connection.execute(b"INSERT INTO conversations (session_id, role, content) VALUES ('s', 'user', %s)", (TURN,))
    assert agent_home.stored.memories("default") == [("memory", MEMORY)]
    assert agent_home.stored.turns("default") == [("user", "s", TURN)]


@pytest.fixture
def embedding_home(agent_home: AgentHome, embedder: EmbedServer) -> AgentHome:
    """A home with an embedder, and rows of others in its database."""
    agent_home.settings |= {"embed_url": embedder.url, "embed_model": MODEL, "embed_on_write": True}
    insert(agent_home)
    return agent_home


def are_found_by_meaning(home: AgentHome) -> bool:
    found = [
        *hits(home, "recall_memory", "harbour pilot quay"),
        *hits(home, "recall_conversation", "ferry island bicycles"),
    ]
    return len(found) == 2 and all(hit["score"] is not None for hit in found)


def test_rows_typed_by_hand_get_vectors_when_somebody_asks_for_them(
    embedding_home: AgentHome, database: Database, tmp_path: Path
) -> None:
    runtime, password = with_password(database.runtime_dsn)
    commands = Commands(tmp_path, [password])
    commands.configure(**embedding_home.settings, dsn=runtime)
    done = commands.call("backfill")
    assert done.code == 0, done.everything
    assert all(all_have_vectors(embedding_home, view) for view in VIEWS)
    assert are_found_by_meaning(embedding_home)


def test_rows_typed_by_hand_get_vectors_by_themselves(embedding_home: AgentHome) -> None:
    embedding_home.provider("marketing").on_memory_write("add", "memory", "Something that the agent wrote itself")
    embedding_home.settle()
    for view in VIEWS:
        wait_until(partial(all_have_vectors, embedding_home, view), seconds=5)
    assert are_found_by_meaning(embedding_home)
