"""How long an operator waits for list, show, themes, history and the memory page in a large memory, ours alone.

The services that the commands call, over one connection; what a command adds is the start of Python. Of the page, the
answer to each of its requests, through the engine of its process. Every row has words and a vector. Vectors are sums of
two drawn at random, so no two turns have the same.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, LiteralString

import numpy as np

from bench.corpus import vocabulary
from bench.load import make_index, without_indexes
from bench.measure import Figure, Metric, Result, Target
from bench.stage import DIM, Seat, Stage
from hermes_memory_pgvector.care import changes, see, themes
from hermes_memory_pgvector.care.ids import RowName
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine.registry import close_all
from hermes_memory_pgvector.store import browse
from hermes_memory_pgvector.values import Kind
from hermes_memory_pgvector.web import fleet, routes
from hermes_memory_pgvector.web.asked import Asked

CALLS = 60
INDEX_FROM = 150_000
"""So many vectors of all themes, and the guide advises an index over them."""
PORTION = 100_000
PICKED = 1000
"""From so many vectors those of the rows are made, two for each."""
WORDS: LiteralString = """
CREATE TEMP TABLE vocabulary AS
SELECT place - 1 AS place, word FROM unnest(%(words)s::text[]) WITH ORDINALITY AS known (word, place)"""
PICK: LiteralString = """
CREATE TEMP TABLE picked AS
SELECT n, array_agg(random() - 0.5)::real[]::halfvec AS embedding
FROM generate_series(0, %(picked)s - 1) AS n, generate_series(1, %(dim)s) AS d GROUP BY n"""
TURNS: LiteralString = """
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts, digest, ordinal, lexemes)
SELECT made.theme, made.n, 'session-' || made.n / %(themes)s / 40,
       CASE WHEN made.n / %(themes)s %% 2 = 0 THEN 'user' ELSE 'assistant' END, made.content,
       now() - (%(total)s - made.n) * interval '7 seconds', decode(md5(made.n::text), 'hex'), 1,
       (format('''~=%%s'' ''~all'' ', made.theme) || made.lexemes)::tsvector
FROM (SELECT picks.n, 'theme-' || lpad((picks.n %% %(themes)s)::text, 5, '0') AS theme,
             string_agg(v.word, ' ') AS content, string_agg(format('''%%s'':1A', v.word), ' ') AS lexemes
      FROM (SELECT n, floor(%(words)s * random() ^ 3)::bigint AS place
            FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n, generate_series(1, 16)) AS picks
      JOIN vocabulary AS v USING (place)
      GROUP BY picks.n) AS made"""
TURN_VECTORS: LiteralString = """
INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
SELECT turn.agent_identity, turn.id, turn.ts, turn.id, l2_normalize(one.embedding + other.embedding)
FROM conversations AS turn
JOIN picked AS one ON one.n = turn.id %% %(picked)s
JOIN picked AS other ON other.n = turn.id / %(picked)s %% %(picked)s
WHERE turn.id BETWEEN %(first)s AND %(last)s"""
MEMORIES: LiteralString = """
INSERT INTO memory_entries (agent_identity, target, content, created_at, updated_at, lexemes)
SELECT 'theme-' || lpad(theme::text, 5, '0'), 'memory', 'fact ' || n || ' of ' || theme, now(),
       now() - n * interval '1 hour' - theme * interval '3 seconds',
       format('''~=theme-%%s'' ''~all'' ''fact'':1A ''%%s'':1A ''%%s'':1A',
              lpad(theme::text, 5, '0'), n, theme)::tsvector
FROM generate_series(0, %(themes)s - 1) AS theme, generate_series(1, 50) AS n"""
MEMORY_VECTORS: LiteralString = """
INSERT INTO memory_vectors_1 (agent_identity, id, ts, target, embedding)
SELECT fact.agent_identity, fact.id, fact.updated_at, fact.target, l2_normalize(one.embedding + other.embedding)
FROM memory_entries AS fact
JOIN picked AS one ON one.n = fact.id * 7 %% %(picked)s
JOIN picked AS other ON other.n = fact.id / 7 %% %(picked)s"""
OPERATIONS: LiteralString = """
INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, content, at)
SELECT agent_identity, target, extract(epoch FROM updated_at)::bigint * 1000000, 'w', id, 0, 'add', content, updated_at
FROM memory_entries;
INSERT INTO recall_log (agent_identity, at, session_id, caller, kind, scope, milliseconds)
SELECT agent_identity, updated_at, 's', 'prefetch', 'memory', 'current', 1 FROM memory_entries"""
ASKED: LiteralString = """
SELECT said.content, near.embedding::real[] FROM conversations AS said
JOIN turn_vectors_1 AS near ON near.agent_identity = said.agent_identity AND near.id = said.id
WHERE said.id = ANY (%(ids)s)"""


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Fill a database, then call every service with themes and rows at random."""
    rows, theme_count = (1_000_000, 1000) if is_full else (100_000, 100)
    with stage.seat(stage.systems[0]) as seat:
        _fill(seat, rows, theme_count)
        times: dict[str, tuple[float, int | None]] = {
            name: (took, 100) for name, took in _measure(seat, rows, theme_count).items()
        }
        times |= _measure_page(stage, seat, rows, theme_count)
        _note(result, times, rows, theme_count)
        if rows >= INDEX_FROM:
            result.keep()
            seconds = make_index(seat, "--all")
            print(f"   index create --all: {seconds:.0f} s", flush=True)
            _note(result, _measure_search_with_index(stage, seat, rows), rows, theme_count)


def _note(result: Result, times: Mapping[str, tuple[float, int | None]], rows: int, theme_count: int) -> None:
    where = f"{rows:,} turns in {theme_count:,} themes"
    for name, (took, most) in times.items():
        target = None if most is None else Target("at most", most)
        result.metrics.append(Metric("care", f"{name}, {where}", "ms p95", "lower", Figure.of([took]), target=target))


def _fill(seat: Seat, rows: int, theme_count: int) -> None:
    with seat.connect() as connection:
        connection.execute("SET maintenance_work_mem = '2GB'")
        words = vocabulary()
        connection.execute(WORDS, {"words": words})
        connection.execute(PICK, {"picked": PICKED, "dim": DIM})
        connection.execute("ANALYZE vocabulary, picked")
        with without_indexes(connection, "gin"):
            for first in range(1, rows + 1, PORTION):
                last = min(rows, first + PORTION - 1)
                portion = {"first": first, "last": last}
                size = {"themes": theme_count, "total": rows, "words": len(words)}
                connection.execute(TURNS, {**size, **portion})
                connection.execute(TURN_VECTORS, {"picked": PICKED, **portion})
            connection.execute(MEMORIES, {"themes": theme_count})
            connection.execute(MEMORY_VECTORS, {"picked": PICKED})
        for statement in OPERATIONS.split(";"):
            connection.execute(statement.encode())
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


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
            "tail, one look": lambda: browse.turns_after(shared, None, 10**12),
        }
        return {name: _p95(call) for name, call in calls.items()}


def _measure_page(stage: Stage, seat: Seat, rows: int, theme_count: int) -> dict[str, tuple[float, int | None]]:
    """What the page asks, and how long it may take."""
    dice = random.Random(12)
    questions = _questions(stage, seat, rows, dice)
    ask = partial(_ask, seat)

    def theme() -> str:
        return _name(dice.randrange(theme_count))

    def two_weeks() -> None:
        fleet.forget_answers()
        ask("activity")

    calls: dict[str, tuple[Callable[[], object], int | None]] = {
        "page: themes of the fleet": (lambda: ask("fleet", first=str(dice.randrange(0, theme_count, 50))), 150),
        "page: two weeks of the fleet": (two_weeks, 150),
        "page: health": (lambda: ask("health"), 150),
        "page: one theme": (lambda: ask("theme", theme=theme()), 150),
        "page: search a theme": (lambda: ask("search", q=next(questions), theme=theme()), 200),
        # From INDEX_FROM vectors on, the guide advises the index for this.
        "page: search all themes": (lambda: ask("search", q=next(questions)), None if rows >= INDEX_FROM else 200),
    }
    try:
        return {name: (_p95(call), most) for name, (call, most) in calls.items()}
    finally:
        close_all(Deadline.after(5))


def _measure_search_with_index(stage: Stage, seat: Seat, rows: int) -> dict[str, tuple[float, int | None]]:
    questions = _questions(stage, seat, rows, random.Random(13))
    try:
        return {"page: search all themes, with its index": (_p95(lambda: _ask(seat, "search", q=next(questions))), 200)}
    finally:
        close_all(Deadline.after(5))


def _ask(seat: Seat, name: str, **query: str) -> None:
    status, document = routes.answer(routes.READS[name], Asked(seat.home, query))
    if status != routes.OK:
        raise RuntimeError(f"the page's {name} answered {status}: {document.get('detail')}")


def _questions(stage: Stage, seat: Seat, rows: int, dice: random.Random) -> Iterator[str]:
    """Questions without end, each near a turn and with some of its words; none is asked twice."""
    with seat.connect() as connection:
        drawn = connection.execute(ASKED, {"ids": dice.sample(range(1, rows + 1), CALLS)}).fetchall()
    path = stage.folder / "queries.npy"
    np.save(path, np.array([vector for _, vector in drawn], dtype=np.float32))
    stage.embedder.set(vectors=str(path))
    for again in itertools.count():
        for number, (content, _) in enumerate(drawn):
            yield f"zq{number} {' '.join(dice.sample(content.split(), 4))} again{again}"


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
