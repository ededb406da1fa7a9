"""Canaries: whatever is asked in one theme, no row of another crosses, as long as the statements name their theme.

A call is a tool, a prefetch, a list, a history or an export, as the commands and the provider make them, on pooled
connections that now and then fail in the middle.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psycopg
import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseError
from hermes_memory_pgvector.ops.browse import lists
from hermes_memory_pgvector.ops.carry import export
from hermes_memory_pgvector.postgres import statements
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.postgres.statements import read_sql
from hermes_memory_pgvector.recall import tools
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.store import history, search_statement
from hermes_memory_pgvector.values import Kind, Question, Session
from testing.postgres import DIM, MODEL, Database

SHARED = [f"theme-{number:02}" for number in range(15)]
PRIVATE = ["dm-1", "dm-2", "group-1", "group-2", "_bench"]
THEMES = [*SHARED, *PRIVATE]
CANARY = re.compile(r"canary of ([\w-]+)")
VECTOR = [0.125] * DIM
CALLS = 300
MANY = 100_000


class Near:
    """Finds every question equally near to every row: only borders keep rows apart."""

    model = MODEL

    def embed_query(self, text: str, deadline: Deadline) -> Sequence[float] | None:
        return VECTOR if len(text) % 3 else None


@pytest.fixture
def filled(database: Database) -> Database:
    """Twenty themes with the same words, each row with the canary of its theme."""
    with psycopg.connect(database.runtime_dsn) as connection:
        for theme in THEMES:
            for number in range(4):
                text = f"canary of {theme} says budget {number}"
                row = connection.execute(
                    "INSERT INTO conversations (agent_identity, session_id, role, content)"
                    " VALUES (%s, 's', 'user', %s) RETURNING id",
                    (theme, text),
                ).fetchone()
                assert row is not None
                connection.execute(
                    "INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)"
                    " VALUES (%s, %s, now(), %s, %s::halfvec)",
                    (theme, row[0], row[0], str(VECTOR)),
                )
                row = connection.execute(
                    "INSERT INTO memory_entries (agent_identity, target, content)"
                    " VALUES (%s, 'memory', %s) RETURNING id",
                    (theme, text),
                ).fetchone()
                assert row is not None
                connection.execute(
                    "INSERT INTO memory_vectors_1 (agent_identity, id, ts, target, embedding)"
                    " VALUES (%s, %s, now(), 'memory', %s::halfvec)",
                    (theme, row[0], str(VECTOR)),
                )
                connection.execute(
                    "INSERT INTO memory_operations"
                    " (agent_identity, target, order_us, writer, seq, part, action, content, at)"
                    " VALUES (%s, 'memory', %s, 'w', %s, 0, 'add', %s, now())",
                    (theme, number, number, text),
                )
    return database


@dataclass(slots=True)
class Asker:
    """A process, and what crossed a border in its answers."""

    pool: Pool
    seen: int = 0
    crossed: list[tuple[str, str, str]] = field(default_factory=list)

    def call(self, generator: random.Random) -> None:
        """Make one call of any kind, and note every canary that may not be in its answer."""
        theme = generator.choice(THEMES)
        about, allowed, answer = generator.choice(
            [self._tool, self._tool, self._prefetch, self._list, self._history, self._export]
        )(theme, generator)
        for found in CANARY.findall(answer):
            self.seen += 1
            if found not in allowed:
                self.crossed.append((about, theme, found))

    def fail(self, generator: random.Random) -> None:
        """Leave a transaction about some theme in the middle, by an error or by losing the connection."""
        ruin: bytes = generator.choice(
            [b"SELECT 1 / 0", b"SELECT pg_terminate_backend(pg_backend_pid())", b"SELECT nobody", b"COMMIT"]
        )
        with (
            suppress(DatabaseError),
            self.pool.transaction(Deadline.after(10)) as connection,
        ):
            connection.execute(ruin)
            connection.execute("SELECT content FROM conversations")

    def _recall(self) -> Recall:
        return Recall(self.pool.reading, Near(), Settings())

    def _tool(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        scope = generator.choice(["current", "session", "all", "all", generator.choice(THEMES)])
        rule = generator.choice(["allow", "deny"])
        arguments = {"query": generator.choice(["budget", "canary says", "what 3"]), "scope": scope, "limit": 20}
        if generator.random() < 0.3:
            arguments["context"] = 1
        answer = tools.answer(
            generator.choice(tools.TOOL_NAMES),
            arguments,
            Session(theme, "s", theme),
            scope_default="current",
            max_query_chars=2000,
            cross_theme=rule,
            search=lambda questions: self._recall().search_together(questions, Deadline.after(30)),
        )
        reached = set(SHARED) if rule == "allow" else set()
        allowed = {theme} | (reached if scope == "all" else {scope} & reached)
        if scope not in ("all", "current", "session", theme) and scope not in reached:
            assert "error" in json.loads(answer)
        return f"tool, scope {scope}, {rule}", allowed, answer

    def _prefetch(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        kind = generator.choice([Kind.MEMORY, Kind.TURN])
        asked = Question("budget canary", kind, theme, limit=20, is_ambient=True)
        return "prefetch", {theme}, str(self._recall().search(asked, Deadline.after(30)).hits)

    def _list(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        with self.pool.transaction(Deadline.after(30)) as connection:
            given = {**dict.fromkeys(("since", "until", "page", "origin")), "theme": theme}
            found = lists.page_of(connection, "rows", {**given, "limit": generator.randint(1, 50)})
            return "list", {theme}, str(found)

    def _history(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        with self.pool.transaction(Deadline.after(30)) as connection:
            return "history", {theme}, str(newest_events(connection, theme, generator.randint(1, 50)))

    def _export(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        with self.pool.transaction(Deadline.after(30)) as connection:
            wanted = {"theme": theme, "since": None, "until": None, "hidden": True}
            return "export", {theme}, str(list(export.fetched(connection, "carry/rows", wanted)))


def newest_events(connection: Connection, theme: str, limit: int) -> list[history.Event]:
    return history.newest(connection, theme=theme, since=None, until=None, before_id=None, limit=limit)


@contextmanager
def asker(database: Database) -> Iterator[Asker]:
    pool = Pool(lambda _: database.runtime_dsn, maximum=2, connect_seconds=10)
    try:
        yield Asker(pool)
    finally:
        pool.close()


def ask(database: Database, calls: int, seed: int = 7) -> None:
    generator = random.Random(seed)
    with asker(database) as one:
        for _ in range(calls):
            if generator.random() < 0.05:
                one.fail(generator)
            one.call(generator)
        assert one.crossed == []
        assert one.seen > calls


# Comparisons of a row's theme with the one that was asked for, in functions and in statements.
PREDICATES = (
    re.compile(r"\b(?:\w+\.)?agent_identity(?: \|\| '')? = (?:theme|\w+\.theme|%\(theme\)s(?:::text)?)(?![\w.])"),
    re.compile(r"NOT (?:\{schema\}\.)?hermes_is_private\([rv]\.agent_identity\)"),
)

CACHED = (statements.blocks, statements.statement, statements.model_statement, search_statement.search_statement)


def without_predicates(text: str) -> str:
    for pattern in PREDICATES:
        text = pattern.sub("true", text)
    return text


@pytest.fixture
def unguarded(filled: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A build without the predicates of its statements."""
    text = read_sql
    monkeypatch.setattr(statements, "read_sql", lambda path: without_predicates(text(path)))
    for name in ("_IN_THEME", "_UNINDEXED", "_EVERYWHERE"):
        monkeypatch.setattr(search_statement, name, "true")
    for cached in CACHED:
        cached.cache_clear()
    return filled


@pytest.fixture(autouse=True)
def _fresh_statements() -> Iterator[None]:
    yield
    for cached in CACHED:
        cached.cache_clear()


def test_no_canary_crosses_a_border(filled: Database) -> None:
    ask(filled, CALLS)


@pytest.mark.large
def test_no_canary_of_a_hundred_thousand_calls_crosses_a_border(filled: Database) -> None:
    ask(filled, MANY)


def test_without_the_comparisons_canaries_cross(unguarded: Database) -> None:
    """Otherwise the tests above could not fail."""
    generator = random.Random(3)
    with asker(unguarded) as one:
        for _ in range(60):
            one.call(generator)
        assert one.crossed
