"""Canaries: whatever is asked in one theme, no row of another crosses, also where the statements have no predicates.

A call is a tool, a prefetch, a list, a history or an export, as the commands and the provider make them, on pooled
connections that now and then fail in the middle.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.admin import logins
from hermes_memory_pgvector.admin.logins import Wanted
from hermes_memory_pgvector.admin.statements import sql_text
from hermes_memory_pgvector.care import changes, see
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseError
from hermes_memory_pgvector.recall import tools
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.store import statements, taking_along
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import within
from hermes_memory_pgvector.store.taking_along import Selection
from hermes_memory_pgvector.transfer import export
from hermes_memory_pgvector.values import Kind, Question, Session
from testing.postgres import DIM, MODEL, Database

SHARED = [f"theme-{number:02}" for number in range(15)]
PRIVATE = ["dm-1", "dm-2", "group-1", "group-2", "_bench"]
THEMES = [*SHARED, *PRIVATE]
CANARY = re.compile(r"canary of ([\w-]+)")
VECTOR = [0.125] * DIM
CALLS = 300
MANY = 100_000


@dataclass(frozen=True, slots=True)
class Wishes:
    """Settings of recall."""

    embed_timeout: float = 1.0
    hybrid_search: bool = True
    exact: bool = False
    recency_half_life_days: float = 0.0


class Near:
    """Finds every question equally near to every row: only borders keep rows apart."""

    model = MODEL

    def embed_query(self, text: str, deadline: Deadline) -> Sequence[float] | None:
        return VECTOR if len(text) % 3 else None


@pytest.fixture
def filled(database: Database) -> Database:
    """Twenty themes with the same words, each row with the canary of its theme."""
    with psycopg.connect(database.operator_dsn) as connection:
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
    """A process: a pool under one login, and what it may see at most."""

    pool: Pool
    granted: frozenset[str]
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
            if found not in allowed or found not in self.granted:
                self.crossed.append((about, theme, found))

    def fail(self, generator: random.Random) -> None:
        """Leave a transaction about some theme in the middle, by an error or by losing the connection."""
        ruin: bytes = generator.choice(
            [b"SELECT 1 / 0", b"SELECT pg_terminate_backend(pg_backend_pid())", b"SELECT nobody", b"COMMIT"]
        )
        with (
            suppress(DatabaseError),
            self.pool.transaction(Deadline.after(10), reach=within(generator.choice(THEMES))) as connection,
        ):
            connection.execute(ruin)
            connection.execute("SELECT content FROM conversations")

    def _recall(self) -> Recall:
        return Recall(self.pool.reading, Near(), Wishes())

    def _tool(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        scope = generator.choice(["current", "session", "all", "all", generator.choice(THEMES)])
        rule = generator.choice(["allow", "deny", f"{theme}={SHARED[0]}|{PRIVATE[0]}"])
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
        reached = {"allow": set(SHARED), "deny": set()}.get(rule, {SHARED[0]})
        allowed = {theme} | (reached if scope == "all" else {scope} & reached)
        if scope not in ("all", "current", "session", theme) and scope not in reached:
            assert "error" in json.loads(answer)
        return f"tool, scope {scope}, {rule}", allowed, answer

    def _prefetch(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        kind = generator.choice([Kind.MEMORY, Kind.TURN])
        asked = Question("budget canary", kind, theme, limit=20, is_ambient=True)
        return "prefetch", {theme}, str(self._recall().search(asked, Deadline.after(30)).hits)

    def _list(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        with self.pool.transaction(Deadline.after(30), reach=within(theme)) as connection:
            return "list", {theme}, str(see.rows(connection, limit=generator.randint(1, 50)))

    def _history(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        with self.pool.transaction(Deadline.after(30), reach=within(theme)) as connection:
            return "history", {theme}, str(changes.history(connection, limit=generator.randint(1, 50)))

    def _export(self, theme: str, generator: random.Random) -> tuple[str, set[str], str]:
        wanted = Selection(generator.choice([theme, None]), None, None, None)
        with taking_along.snapshot(self.pool, Deadline.after(30), within(theme)) as connection:
            rows = export.rows(connection, wanted, is_redacted=False)
            return "export", {theme}, str(list(rows))


@contextmanager
def askers(database: Database) -> Iterator[list[Asker]]:
    """The fleet's own role, and two logins with different grants."""
    granted = {
        f"one_{database.name}": ("theme-00", "theme-01", "dm-1"),
        f"two_{database.name}": ("theme-0*", "group-*"),
    }
    made = [Asker(_pool(database.runtime_dsn), frozenset(THEMES))]
    for login, names in granted.items():
        logins.grant(database.owner_dsn, Wanted(login, names), password="x", actor="test", home_id="")
        dsn = make_conninfo(database.runtime_dsn, user=login, password="x", passfile="")
        seen = {theme for theme in THEMES for name in names if re.fullmatch(name.replace("*", ".*"), theme)}
        made.append(Asker(_pool(dsn), frozenset(seen)))
    try:
        yield made
    finally:
        for asker in made:
            asker.pool.close()
        for login in granted:
            logins.revoke(database.owner_dsn, login, actor="test", home_id="")


def _pool(dsn: str) -> Pool:
    return Pool(lambda _: dsn, maximum=2, connect_seconds=10)


def ask(database: Database, calls: int, seed: int = 7) -> None:
    generator = random.Random(seed)
    with askers(database) as found:
        for _ in range(calls):
            asker = generator.choice(found)
            if generator.random() < 0.05:
                asker.fail(generator)
            asker.call(generator)
        assert [asker.crossed for asker in found] == [[], [], []]
        assert all(asker.seen > calls / 10 for asker in found)


# Comparisons of a row's theme with the one that was asked for, in functions and in statements.
PREDICATES = (
    re.compile(r"\b(?:\w+\.)?agent_identity(?: \|\| '')? = (?:theme|\w+\.theme|%\(theme\)s(?:::text)?)(?![\w.])"),
    re.compile(r"NOT (?:\{schema\}\.)?hermes_is_private\([rv]\.agent_identity\)"),
)


def without_predicates(text: str) -> str:
    for pattern in PREDICATES:
        text = pattern.sub("true", text)
    return text


@pytest.fixture
def unguarded(filled: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A build without the application's predicates: in the functions of the database, and in the statements."""
    from hermes_memory_pgvector.admin import sql_functions

    read: Callable[[str], Any] = statements._read
    monkeypatch.setattr(statements, "_read", lambda path: without_predicates(read(path)))
    for cached in (statements.statement, statements.model_statement, statements.search_statement):
        cached.cache_clear()
    text = sql_text
    monkeypatch.setattr(sql_functions, "sql_text", lambda path: without_predicates(text(path)))
    with psycopg.connect(filled.owner_dsn) as owner:
        owner.execute("SET LOCAL search_path = public, pg_temp")
        # Those that run as the owner have their own check instead, which stays; row-level security is under the others.
        for part in (sql_functions.kind_functions("public"), sql_functions.model_functions(1)):
            owner.execute(part)
    return filled


@pytest.fixture(autouse=True)
def _fresh_statements() -> Iterator[None]:
    yield
    for cached in (statements.statement, statements.model_statement, statements.search_statement):
        cached.cache_clear()


def test_no_canary_crosses_a_border(filled: Database) -> None:
    ask(filled, CALLS)


@pytest.mark.large
def test_no_canary_of_a_hundred_thousand_calls_crosses_a_border(filled: Database) -> None:
    ask(filled, MANY)


def test_row_level_security_alone_keeps_every_canary_in(unguarded: Database) -> None:
    with psycopg.connect(unguarded.owner_dsn) as owner:
        # Seen with the owner's eyes, the predicates are gone indeed.
        found = owner.execute(
            "SELECT count(DISTINCT c.agent_identity)"
            " FROM hermes_nearest_exact(NULL::turn_vectors_1, 'theme-00', false, NULL, NULL, NULL, %s::halfvec) AS n,"
            " unnest(n.ids) AS id JOIN conversations AS c USING (id)",
            (str(VECTOR),),
        ).fetchone()
        assert found is not None
        assert found[0] > 1
    ask(unguarded, CALLS)


def test_with_row_level_security_switched_off_the_same_build_lets_canaries_out(unguarded: Database) -> None:
    """Otherwise the test above could not fail."""
    with psycopg.connect(unguarded.owner_dsn, autocommit=True) as owner:
        for table in ("conversations", "memory_entries", "turn_vectors_1", "memory_vectors_1", "memory_operations"):
            owner.execute(sql.SQL("ALTER TABLE {} DISABLE ROW LEVEL SECURITY").format(sql.Identifier(table)))
    generator = random.Random(3)
    with askers(unguarded) as found:
        for _ in range(60):
            generator.choice(found).call(generator)
        assert all(asker.crossed for asker in found)
