"""What row-level security costs: recall and ingest with and without it, by turns in one run.

    python -m bench.walls [--themes 20] [--rows 2000] [--rounds 12]

Everything else is the same: the build, the rows, the connections, and the statement with which a transaction says
what it is about.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from bench.corpus import vocabulary
from hermes_memory_pgvector.admin import migrate
from hermes_memory_pgvector.admin.model_tables import ModelSpec
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres
from hermes_memory_pgvector.store import turns
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import WRITER
from hermes_memory_pgvector.values import AddTurn, Kind, Moment, Question

DIM = 256
MODEL = "bench"
BATCH = 64
RECALLS = 60
BATCHES = 12
WITH, WITHOUT = "with row-level security", "without"


@dataclass(frozen=True, slots=True)
class Wishes:
    """Settings of recall."""

    embed_timeout: float = 1.0
    hybrid_search: bool = True
    exact: bool = False
    recency_half_life_days: float = 0.0


class Meanings:
    """A random vector for every question."""

    model = MODEL

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator

    def embed_query(self, text: str, deadline: Deadline) -> Sequence[float] | None:
        """A vector as an embedder gives it."""
        return [self._generator.gauss(0, 1) for _ in range(DIM)]


class Bench:
    """One database, and the words that are stored and asked for."""

    def __init__(self, owner_dsn: str, pool: Pool, themes: int, seed: int = 1) -> None:
        self._owner_dsn = owner_dsn
        self._pool = pool
        self._random = random.Random(seed)
        self._words = vocabulary()
        self._themes = [f"theme-{number:03}" for number in range(themes)]
        self._recall = Recall(pool.reading, Meanings(self._random), Wishes())
        self._said = 0

    def fill(self, rows: int) -> None:
        """So many turns with vectors in every theme."""
        for _ in range(rows * len(self._themes) // BATCH):
            self.store()
        with psycopg.connect(self._owner_dsn, autocommit=True) as owner:
            owner.execute(
                "INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)"
                " SELECT agent_identity, id, ts, id, l2_normalize(ARRAY(SELECT random() - 0.5 + 0 * id"
                f" FROM generate_series(1, {DIM}))::vector)::halfvec FROM conversations".encode()
            )
            owner.execute("DELETE FROM pending_vectors")
            owner.execute("VACUUM ANALYZE")
            owner.execute("SELECT hermes_refresh_statistics()")

    def switch(self, *, on: bool) -> None:
        """Switch row-level security on or off in every table that has it."""
        with psycopg.connect(self._owner_dsn, autocommit=True) as owner:
            tables = owner.execute("SELECT DISTINCT polrelid::regclass::text FROM pg_policy").fetchall()
            for (name,) in tables:
                word = sql.SQL("ENABLE" if on else "DISABLE")
                owner.execute(sql.SQL("ALTER TABLE {} {} ROW LEVEL SECURITY").format(sql.Identifier(str(name)), word))

    def store(self) -> None:
        """One batch of turns of different themes."""
        batch = []
        for _ in range(BATCH):
            self._said += 1
            content = f"{' '.join(self._random.choices(self._words, k=30))} {self._said}"
            moment = Moment(1_700_000_000_000_000 + self._said, self._said)
            theme = self._random.choice(self._themes)
            batch.append(AddTurn(theme, f"s{self._said // 50}", "user", content, 1, moment, is_live=True))
        with self._pool.transaction(Deadline.after(60), reach=WRITER) as connection:
            turns.insert(connection, batch, retry_window=0, wants_vector=lambda _: True)

    def ask(self) -> None:
        """One question in one theme."""
        text = " ".join(self._random.choices(self._words, k=6))
        question = Question(text, Kind.TURN, self._random.choice(self._themes), limit=10)
        self._recall.search(question, Deadline.after(60))

    def measure(self) -> tuple[list[float], list[float]]:
        """Seconds of each recall, and of each batch."""
        for _ in range(5):
            self.ask()
        return [_seconds(self.ask) for _ in range(RECALLS)], [_seconds(self.store) for _ in range(BATCHES)]


def _seconds(act: Callable[[], None]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--themes", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2000, help="turns in each theme")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-walls-") as folder:
        server = EmbeddedPostgres(Path(folder) / "pgvector")
        try:
            info = server.ensure_running(Deadline.after(120))
            migrate.apply(info.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
            pool = Pool(lambda _: info.runtime_dsn, maximum=2, connect_seconds=10)
            bench = Bench(info.owner_dsn, pool, options.themes)
            bench.fill(options.rows)
            recalls: dict[str, list[float]] = {WITH: [], WITHOUT: []}
            batches: dict[str, list[float]] = {WITH: [], WITHOUT: []}
            for number in range(options.rounds):
                for mode in (WITH, WITHOUT) if number % 2 else (WITHOUT, WITH):
                    bench.switch(on=mode == WITH)
                    asked, stored = bench.measure()
                    recalls[mode] += asked
                    batches[mode] += stored
            pool.close()
        finally:
            server.stop(Deadline.after(60), mode="immediate")
    for mode in (WITH, WITHOUT):
        cuts = statistics.quantiles(recalls[mode], n=100)
        rate = BATCH / statistics.median(batches[mode])
        print(
            f"{mode}: recall p50 {1000 * cuts[49]:.2f} ms, p95 {1000 * cuts[94]:.2f} ms "
            f"({len(recalls[mode])} questions), ingest {rate:,.0f} rows/s (median of {len(batches[mode])} batches)"
        )
    ratio = statistics.quantiles(recalls[WITH], n=100)[94] / statistics.quantiles(recalls[WITHOUT], n=100)[94]
    cost = statistics.median(batches[WITH]) / statistics.median(batches[WITHOUT])
    print(f"with / without: recall p95 {ratio:.3f}, time of a batch {cost:.3f}")


if __name__ == "__main__":
    main()
