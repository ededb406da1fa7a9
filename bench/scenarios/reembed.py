"""How fast `reembed` makes the vectors of a new model beside those in use, and how long writers wait at the switch."""

from __future__ import annotations

import time
from typing import LiteralString

from bench.measure import Figure, Metric, Result
from bench.stage import DIM, Seat, Stage
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.setup import reembedding
from hermes_memory_pgvector.writer.reembed import Progress

ROWS: LiteralString = """
INSERT INTO conversations (agent_identity, session_id, role, content, ts, lexemes)
SELECT 'theme-' || n %% 50, 's' || n / 40, 'user', 'Turn ' || n || ' about ' || repeat(md5(n::text) || ' ', 6),
       now() - n * interval '1 minute', ''::tsvector
FROM generate_series(1, %(rows)s) AS n"""
VECTORS: LiteralString = """
INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
SELECT agent_identity, id, ts, hermes_content_hash(content),
       (SELECT array_agg(sin(id + i)) FROM generate_series(1, %(dim)s) AS i)::real[]::halfvec
FROM conversations"""


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Rows per second with an embedder that answers at once and after 20 ms, and the seconds of the switch."""
    rows = 20_000 if is_full else 4_000
    for latency in (0.0, 0.02):
        with stage.seat(stage.systems[0]) as seat:
            stage.embedder.set(latency=latency)
            rate, switch = _change(seat, rows)
        where = f"{rows:,} rows, embedder at {latency * 1000:.0f} ms"
        result.metrics.append(Metric("reembed", f"rows embedded, {where}", "rows/s", "higher", Figure.of([rate])))
        result.metrics.append(Metric("reembed", f"the switch, {where}", "s", "lower", Figure.of([switch])))


def _change(seat: Seat, rows: int) -> tuple[float, float]:
    with seat.connect() as connection:
        connection.execute(ROWS, {"rows": rows})
        connection.execute(VECTORS, {"dim": DIM})
        connection.execute("VACUUM ANALYZE")
    settings = load(seat.home).settings
    aimed = reembedding.aim(seat.home, settings, {"model": "another-model"})
    times: dict[str, float] = {}

    def watch(phase: str, _: Progress | None) -> None:
        times.setdefault(phase, time.perf_counter())

    begun = time.perf_counter()
    done = reembedding.run(seat.home, settings, seat.owner_dsn, aimed, rate=0.0, switches=True, watch=watch)
    ended = time.perf_counter()
    if (done.embedded, done.switched) != (rows, True):
        raise RuntimeError(f"{done.embedded} of {rows} rows were embedded")
    return rows / (times["preparing the switch"] - begun), ended - times["switching"]
