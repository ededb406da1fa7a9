"""How long an operator waits for list, show, themes, history and the memory page in a large memory, ours alone.

The services that the commands call, over one connection; what a command adds is the start of Python. Of the page, the
answer to each of its requests, through the engine of its process. Rows carry no lexemes, and vectors only in the themes
that the page searches: a search within a theme reads no other.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, LiteralString

from bench.measure import Figure, Metric, Result, Target
from bench.stage import DIM, Seat, Stage
from hermes_memory_pgvector.care import changes, see, themes
from hermes_memory_pgvector.care.ids import RowName
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine.registry import close_all
from hermes_memory_pgvector.store import browse
from hermes_memory_pgvector.values import Kind
from hermes_memory_pgvector.web import routes
from hermes_memory_pgvector.web.asked import Asked

CALLS = 60
PORTION = 100_000
SEARCHED = 20
"""So many themes have vectors."""
TURNS: LiteralString = """
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts, digest, ordinal, lexemes)
SELECT 'theme-' || lpad((n %% %(themes)s)::text, 5, '0'), n, 'session-' || n / %(themes)s / 40,
       CASE WHEN n / %(themes)s %% 2 = 0 THEN 'user' ELSE 'assistant' END, repeat(md5(n::text) || ' ', 6),
       now() - (%(total)s - n) * interval '7 seconds', decode(md5(n::text), 'hex'), 1, ''::tsvector
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n"""
MEMORIES: LiteralString = """
INSERT INTO memory_entries (agent_identity, target, content, created_at, updated_at, lexemes)
SELECT 'theme-' || lpad(theme::text, 5, '0'), 'memory', 'fact ' || n || ' of ' || theme, now(),
       now() - n * interval '1 hour' - theme * interval '3 seconds', ''::tsvector
FROM generate_series(0, %(themes)s - 1) AS theme, generate_series(1, 50) AS n"""
OPERATIONS: LiteralString = """
INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, content, at)
SELECT agent_identity, target, extract(epoch FROM updated_at)::bigint * 1000000, 'w', id, 0, 'add', content, updated_at
FROM memory_entries;
INSERT INTO recall_log (agent_identity, at, session_id, caller, kind, scope, milliseconds)
SELECT agent_identity, updated_at, 's', 'prefetch', 'memory', 'current', 1 FROM memory_entries"""

VECTORS: LiteralString = """
INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
SELECT turn.agent_identity, turn.id, turn.ts, turn.id, l2_normalize(pool.embedding)
FROM conversations AS turn
JOIN (SELECT n, array_agg(random() - 0.5)::real[]::halfvec AS embedding
      FROM generate_series(0, 499) AS n, generate_series(1, %(dim)s) AS d GROUP BY n) AS pool ON pool.n = turn.id %% 500
WHERE turn.agent_identity = ANY (%(themes)s)"""


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Fill a database, then call every service with themes and rows at random."""
    rows, theme_count = (1_000_000, 1000) if is_full else (100_000, 100)
    with stage.seat(stage.systems[0]) as seat:
        _fill(seat, rows, theme_count)
        times = {name: (took, 100) for name, took in _measure(seat, rows, theme_count).items()}
        times |= _measure_page(seat)
    where = f"{rows:,} turns in {theme_count:,} themes"
    for name, (took, most) in times.items():
        result.metrics.append(
            Metric("care", f"{name}, {where}", "ms p95", "lower", Figure.of([took]), target=Target("at most", most))
        )


def _fill(seat: Seat, rows: int, theme_count: int) -> None:
    with seat.connect() as connection:
        for first in range(1, rows + 1, PORTION):
            last = min(rows, first + PORTION - 1)
            connection.execute(TURNS, {"themes": theme_count, "total": rows, "first": first, "last": last})
        connection.execute(MEMORIES, {"themes": theme_count})
        for statement in OPERATIONS.split(";"):
            connection.execute(statement.encode())
        connection.execute(VECTORS, {"themes": [_name(number) for number in range(SEARCHED)], "dim": DIM})
        connection.execute("VACUUM ANALYZE")


def _measure(seat: Seat, rows: int, theme_count: int) -> dict[str, float]:
    dice = random.Random(11)
    with seat.connect() as connection:
        shared: Any = connection
        memory_ids = [row[0] for row in connection.execute("SELECT id FROM memory_entries LIMIT 1000").fetchall()]

        def theme() -> str:
            return _name(dice.randrange(theme_count))

        def memory() -> RowName:
            return RowName(dice.choice(memory_ids), Kind.MEMORY)

        calls: dict[str, Callable[[], object]] = {
            "themes": lambda: themes.overview(shared),
            "list, all themes": lambda: see.rows(shared, limit=50),
            "list, one theme": lambda: see.rows(shared, theme=theme(), limit=50),
            "show a turn": lambda: see.show(shared, RowName(dice.randrange(1, rows), Kind.TURN)),
            "show a memory": lambda: see.show(shared, memory()),
            "sessions": lambda: see.sessions(shared, theme()),
            "history, all themes": lambda: changes.history(shared, limit=50),
            "history, one theme": lambda: changes.history(shared, theme=theme(), limit=50),
            "history of a memory": lambda: changes.history(shared, name=memory()),
            "tail, one look": lambda: browse.turns_after(shared, None, 10**12, 10**12),
        }
        return {name: _p95(call) for name, call in calls.items()}


def _measure_page(seat: Seat) -> dict[str, tuple[float, int]]:
    """What the page asks, and how long it may take."""
    dice = random.Random(12)
    themes_page = range(0, 1000, 50)

    def ask(name: str, **query: str) -> None:
        status, document = routes.answer(routes.READS[name], Asked(seat.home, query))
        if status != routes.OK:
            raise RuntimeError(f"the page's {name} answered {status}: {document.get('detail')}")

    calls: dict[str, tuple[Callable[[], object], int]] = {
        "page: themes of the fleet": (lambda: ask("fleet", first=str(dice.choice(themes_page))), 150),
        "page: two weeks of the fleet": (lambda: ask("activity"), 150),
        "page: health": (lambda: ask("health"), 150),
        "page: one theme": (lambda: ask("theme", theme=_name(dice.randrange(SEARCHED))), 150),
        "page: search a theme, with why": (
            lambda: ask("search", q=f"what about {dice.random()}", theme=_name(dice.randrange(SEARCHED))),
            200,
        ),
    }
    try:
        return {name: (_p95(call), most) for name, (call, most) in calls.items()}
    finally:
        close_all(Deadline.after(5))


def _name(number: int) -> str:
    return f"theme-{number:05d}"


def _p95(call: Callable[[], object]) -> float:
    call()
    took = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        took.append(1000 * (time.perf_counter() - began))
    return round(sorted(took)[int(0.95 * CALLS) - 1], 1)
