"""What storing turns costs Postgres when vectors cost nothing: rows per second and write-ahead log per row, ours alone.

Batches of 64 rows, each one transaction with text, lexemes and vectors, into tables that already hold rows and have all
their indexes.
"""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any

import numpy as np

from bench.corpus import Corpus
from bench.load import load, theme_name
from bench.measure import Figure, Metric, Result, Target
from bench.stage import DIM, Seat, Stage
from hermes_memory_pgvector.store import turns, vectors
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.store.vectors import Made, Wanting
from hermes_memory_pgvector.values import AddTurn, Kind, Moment

BATCH = 64
THEMES = 100


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Three rounds on the same tables."""
    loaded, batches = (100_000, 150) if is_full else (10_000, 60)
    corpus = Corpus(loaded, THEMES, DIM, stage.folder)
    memories = Corpus(1000, THEMES, DIM, stage.folder, name="memories", seed=2)
    try:
        with stage.seat(stage.systems[0]) as seat:
            load(seat, corpus, memories)
            figures: dict[str, list[float]] = {"rate": [], "wal": []}
            for number in range(3):
                rate, wal = _round(seat, corpus, batches, number)
                figures["rate"].append(rate)
                figures["wal"].append(wal)
    finally:
        corpus.remove()
        memories.remove()
    where = f"batches of {BATCH} with vectors into {loaded:,} rows"
    result.metrics.append(
        Metric("store", where, "rows/s", "higher", Figure.of(figures["rate"]), target=Target("at least", 4000))
    )
    result.metrics.append(
        Metric("store", f"write-ahead log, {where}", "bytes/row", "lower", Figure.of(figures["wal"]),
               target=Target("at most", 20_000), is_portable=True)
    )  # fmt: skip


def _round(seat: Seat, corpus: Corpus, batches: int, number: int) -> tuple[float, float]:
    random = np.random.default_rng([9, number])
    with seat.connect() as connection:
        model = current_model(connection)
        assert model is not None
        prepared = []
        for batch in range(batches):
            rows = random.integers(0, corpus.rows, size=BATCH)
            made = corpus.vectors[rows].astype(np.float32).tolist()
            prepared.append(([_turn(corpus, number, batch, int(row), place) for place, row in enumerate(rows)], made))
        connection.execute("CHECKPOINT")
        before = _wal(connection)
        begin = time.perf_counter()
        for items, made in prepared:
            with connection.transaction():
                keys = turns.insert(connection, items, retry_window=0, wants_vector=lambda _: False)
                vectors.store(connection, model, [
                    Made(Wanting(theme, Kind.TURN, row_id, "", "", sha256(item.content.encode()).digest()), 0, vector)
                    for (theme, row_id), item, vector in zip(keys, items, made, strict=True)
                ], [])  # fmt: skip
        seconds = time.perf_counter() - begin
        return batches * BATCH / seconds, (_wal(connection) - before) / (batches * BATCH)


def _turn(corpus: Corpus, number: int, batch: int, row: int, place: int) -> AddTurn:
    now = time.time_ns() // 1000 + place
    content = f"round {number} batch {batch} place {place}: {corpus.content(row)}"
    session = f"stored-{number}-{batch}-{place // 8}"
    return AddTurn(theme_name(int(corpus.theme_of[row])), session, "user", content, 1, Moment(now, now), False)


def _wal(connection: Any) -> int:
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    return int(row[0])
