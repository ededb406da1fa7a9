"""Twenty themes that say the same, without row-level security: no word of one is seen or changed from another.

The tour goes through the provider's hooks and tools. Then every statement that it sent, and every function of the
database that compares themes, loses its comparisons, and the tour has to notice: wherever statements are kept, what
the driver sends is what is tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from testing.agent import AgentHome
from testing.embed_server import EmbedServer
from testing.postgres import DIM, MODEL, Database, new_database
from testing.waiting import wait_until

SHARED = [f"team-{number:02}" for number in range(15)]
PRIVATE = [f"agent:main:telegram:dm:49151000000{number:02}" for number in range(5)]
CANARY = re.compile(r"canary of ([\w:-]+)")
COMPARISON = re.compile(
    r"(?<!SET )\b(?:\w+\.)?agent_identity(?: \|\| '')?\s*=\s*"
    r"(?:ANY\s*\(\s*%\(\w+\)s(?:::text\[\])?\s*\)|%\(\w+\)s(?:::text)?|theme\b|\w+\.theme\b)"
)
UNSEEN = re.compile(r"recall_log|theme_growth|count\(|INSERT INTO|UPDATE|DELETE")
"""Statements whose answers hold no words."""


@dataclass
class Tour:
    """Asks and writes in a few of the themes, and notes what it should not have seen."""

    home: AgentHome
    crossed: set[tuple[str, str, str]] = field(default_factory=set)
    seen: int = 0
    session: int = 0

    def note(self, about: str, asker: str, allowed: set[str], answer: str) -> None:
        for name in CANARY.findall(answer):
            self.seen += 1
            if name not in allowed:
                self.crossed.add((about, asker, name))

    def ask(self, key: str) -> None:
        self.session += 1
        agent = self.home.provider(key, f"asking-{self.session}", platform=platform(key))
        question = "Which canary says what the budget of the spring campaign is?"
        for tool in ("recall_memory", "recall_conversation"):
            for more in ({}, {"scope": "session"}, {"since": "2020-01-01"}, {"target": "user"}, {"context": 1}):
                answer = agent.handle_tool_call(tool, {"query": question, "limit": 20, **more})
                self.note(f"{tool} {more}", key, {key}, answer)
            answer = agent.handle_tool_call(tool, {"query": question, "limit": 20, "scope": "all"})
            self.note(f"{tool} all", key, {key, *SHARED}, answer)
            answer = agent.handle_tool_call(tool, {"query": question, "limit": 20, "scope": SHARED[3]})
            self.note(f"{tool} by name", key, {key, SHARED[3]}, answer)
        self.note("prefetch", key, {key}, agent.prefetch(question))

    def run(self) -> set[tuple[str, str, str]]:
        self.crossed, self.seen = set(), 0
        for key in (SHARED[0], SHARED[7], PRIVATE[0]):
            self.ask(key)
        return self.crossed


def platform(key: str) -> str:
    return "telegram" if key in PRIVATE else "api_server"


def text(key: str, number: int) -> str:
    return f"canary of {key} says that the budget of the spring campaign is {number} thousand"


@pytest.fixture(scope="module")
def tour(postgres_server: Any, migrated_template: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tour]:
    """Twenty themes in one database whose rows nothing but statements keeps apart."""
    folder = tmp_path_factory.mktemp("leaks")
    with EmbedServer(dim=DIM) as embedder, new_database(postgres_server, template=migrated_template.name) as database:
        settings = {"embed_url": embedder.url, "embed_model": MODEL, "embed_on_write": True, "cross_theme": "allow"}
        home = AgentHome.create(Path(folder) / "home", database, **settings)
        for key in (*SHARED, *PRIVATE):
            agent = home.provider(key, "s1", platform=platform(key))
            agent.sync_turn(text(key, 1), text(key, 2), session_id="s1")
            agent.on_memory_write("add", "memory", text(key, 3))
            agent.on_memory_write("add", "user", text(key, 4))
        home.settle()
        turns = "SELECT count(embedding) FROM conversations_embedded"
        count = f"SELECT ({turns}), count(embedding) FROM memory_entries_embedded"
        wait_until(lambda: home.stored.rows(count) == [(40, 40)], seconds=60)
        with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
            # All rows are equally near: only comparisons of themes keep them apart.
            owner.execute("UPDATE embedding_models SET unrelated_mean = -2, unrelated_sd = 1e9")
            rows = owner.execute("SELECT relname FROM pg_class WHERE relrowsecurity").fetchall()
            for (name,) in rows:
                owner.execute(sql.SQL("ALTER TABLE {} DISABLE ROW LEVEL SECURITY").format(sql.Identifier(name)))
        yield Tour(home)
        home.close()


@contextmanager
def sent(change: Any) -> Iterator[None]:
    """Every statement that is sent meanwhile is what `change` makes of it."""
    execute = psycopg.Cursor.execute

    def changed(self: Any, query: Any, *arguments: Any, **more: Any) -> Any:
        whole = query.as_string(self) if isinstance(query, sql.Composable) else query
        whole = whole.decode() if isinstance(whole, bytes) else whole
        new = change(whole)
        return execute(self, query if new == whole else new.encode(), *arguments, **more)

    psycopg.Cursor.execute = changed  # type: ignore[method-assign]
    try:
        yield
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]


def without(statement: str) -> str:
    return COMPARISON.sub("TRUE", statement)


def test_nothing_crosses_between_twenty_themes_without_row_level_security(tour: Tour) -> None:
    assert tour.run() == set()
    assert tour.seen > 50


def test_a_statement_without_its_comparisons_of_a_theme_is_noticed(tour: Tour) -> None:
    statements: set[str] = set()

    def keep(statement: str) -> str:
        statements.add(statement)
        return statement

    with sent(keep):
        assert tour.run() == set()
    tried = {each for each in statements if without(each) != each and ("WITH here" in each or not UNSEEN.search(each))}
    assert tried, "no statement compares themes"
    for statement in sorted(tried):
        with sent(lambda each, statement=statement: without(each) if each == statement else each):
            assert tour.run(), f"nobody notices that this lost its theme: {statement}"
    assert tour.run() == set()
