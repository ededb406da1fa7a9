"""A Citus cluster that grows: so many turns in so many themes, measured step by step.

    python -m bench.citus_growth PGINSTALL [--turns N] [--themes N] [--step N] [--minutes M] [--output FILE] [--plots D]

A coordinator and two workers on this machine, 32 shards. The fleet grows by new themes, each with as many turns: these
are stored in the writer's batches, and their vectors (the bundled local model, 256 dimensions) come through the queue,
as with agents. After each step questions are asked of themes at random, one at a time, and what is on disk is added up.
The figures so far are written down each time, so a run that has to stop leaves what it has reached. --plots draws them.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from bench.citus import START, WORDS
from bench.measure import Line, Plot, percentile
from hermes_memory_pgvector.admin import migrate
from hermes_memory_pgvector.admin.model_tables import ModelSpec
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.local import LocalEmbedder
from hermes_memory_pgvector.recall.recall import reach_of, read_wording
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.store import vectors
from hermes_memory_pgvector.store.batch import Batch
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import UPKEEP, WRITER
from hermes_memory_pgvector.store.search import Meaning, Thresholds, search
from hermes_memory_pgvector.values import AddTurn, EmbeddingModel, Kind, Moment, Question
from testing.citus import Cluster

BATCH = 1000
QUESTIONS = 300
WARM = 100
SETTINGS = {
    "citus.shard_count": "32",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
}
SIZE = b"SELECT result FROM run_command_on_all_nodes('SELECT pg_database_size(current_database())')"


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured at one size."""

    turns: int
    themes: int
    stored_per_second: float
    embedded_per_second: float
    megabytes: float
    recall_p50_ms: float
    recall_p95_ms: float


class Fleet:
    """Themes that keep talking."""

    def __init__(self, cluster: Cluster, pool: Pool, database: str, each: int) -> None:
        """`each` is how many turns a theme has."""
        self._cluster = cluster
        self._pool = pool
        self._database = database
        self._each = each
        self._themes = 0
        self._embedder = LocalEmbedder()
        with pool.transaction(Deadline.after(30), reach=UPKEEP) as connection:
            model = current_model(connection)
        assert model is not None
        self._model: EmbeddingModel = model

    def grow(self, before: int, count: int) -> tuple[float, float]:
        """Store turns of every theme and their vectors; return both in rows a second."""
        stored = embedded = 0.0
        for first in range(before, before + count, BATCH):
            items = self._turns(first, min(BATCH, before + count - first))
            began = time.perf_counter()
            with self._pool.transaction(Deadline.after(300), reach=WRITER) as connection:
                batch = Batch(
                    connection, model_id=1, retry_window=60, wants_vector=lambda _: True, memories_want_vectors=True
                )
                batch.add("bench", first, [*items])
                batch.store()
            stored += time.perf_counter() - began
            embedded += self._embed(len(items))
        self._themes = (before + count) // self._each
        return count / stored, count / embedded

    def ask(self, number: int) -> float:
        """One question; the seconds it took, without making its vector."""
        chance = random.Random(-number)
        text = " ".join(chance.choices(WORDS, k=3))
        question = Question(text, Kind.TURN, f"theme-{chance.randrange(self._themes)}", limit=5)
        vector = self._embedder.embed_query(text, Deadline.after(30))
        assert vector is not None
        began = time.perf_counter()
        with self._pool.reading(Deadline.after(30), reach_of([question])) as connection:
            search(connection, question, Meaning(self._model, vector), read_wording(question), Thresholds(0.2, 0.2))
        return time.perf_counter() - began

    def measure(self, turns: int, stored: float, embedded: float) -> Step:
        """The figures at this size."""
        with psycopg.connect(self._cluster.coordinator.dsn(self._database), autocommit=True) as owner:
            # What autovacuum does in time.
            for table in ("conversations", "turn_vectors_1"):
                owner.execute(f"VACUUM (ANALYZE) {table}".encode())
            owner.execute("SELECT hermes_refresh_statistics()")
            sizes: list[Any] = owner.execute(SIZE).fetchall()
            counted: Any = owner.execute("SELECT count(*) FROM conversations").fetchone()
        assert counted == (turns,), counted
        for number in range(WARM):
            self.ask(number)
        took = [self.ask(WARM + number) for number in range(QUESTIONS)]
        return Step(
            turns=turns,
            themes=self._themes,
            stored_per_second=round(stored),
            embedded_per_second=round(embedded),
            megabytes=round(sum(int(size) for (size,) in sizes) / 1e6),
            recall_p50_ms=round(percentile(took, 0.5) * 1000, 1),
            recall_p95_ms=round(percentile(took, 0.95) * 1000, 1),
        )

    def _turns(self, first: int, count: int) -> list[AddTurn]:
        """The next turns, theme after theme."""
        chance = random.Random(first)
        made = []
        for number in range(first, first + count):
            at = int((START + timedelta(seconds=number)).timestamp() * 1_000_000)
            theme, session = f"theme-{number // self._each}", f"s{number // 20}"
            text = f"{' '.join(chance.choices(WORDS, k=12))} number {number}"
            role = "user" if number % 2 else "assistant"
            made.append(AddTurn(theme, session, role, text, 1, Moment(at, at), True, home_id="bench"))  # type: ignore[arg-type]
        return made

    def _embed(self, count: int) -> float:
        """Embed so many rows; the seconds it took."""
        began = time.perf_counter()
        with self._pool.transaction(Deadline.after(300), reach=UPKEEP) as connection:
            rows, _ = vectors.claim(connection, limit=count, lease_seconds=600)
            assert len(rows) == count
            found = self._embedder.embed_documents([row.content for row in rows], Deadline.after(300))
            made = [vectors.Made(row, 0, vector) for row, vector in zip(rows, found, strict=True) if vector is not None]
            vectors.store(connection, self._model, made, [])
        return time.perf_counter() - began


def plots(steps: list[Step]) -> list[Plot]:
    """Growth, one figure each."""
    made = []
    for name, title, unit, label in (
        ("recall_p95_ms", "Recall in a theme", "p95, ms", "coordinator and two workers"),
        ("stored_per_second", "Turns stored", "rows a second", "coordinator and two workers"),
        ("megabytes", "On disk, all nodes", "MB", "with all indexes"),
    ):
        points = tuple((float(each.turns), float(getattr(each, name))) for each in steps)
        made.append(Plot(f"citus-{name}", title, "turns", unit, (Line(label, "ours", points),)))
    return made


def main() -> None:
    """Print a line for every step."""
    parser = argparse.ArgumentParser(prog="python -m bench.citus_growth", description=__doc__)
    parser.add_argument("pginstall", type=Path)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--themes", type=int, default=10_000)
    parser.add_argument("--step", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--output", type=Path, default=Path("citus-growth.json"))
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    steps: list[Step] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(Path(folder) / "cluster", options.pginstall, settings=SETTINGS) as cluster,
        cluster.database("growth") as info,
    ):
        migrate.apply(
            info.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(LocalEmbedder().model, 256), distributes=True
        )
        pool = Pool(lambda _: info.runtime_dsn, maximum=2, connect_seconds=30)
        fleet = Fleet(cluster, pool, "growth", options.turns // options.themes)
        for before in range(0, options.turns, options.step):
            step = fleet.measure(before + options.step, *fleet.grow(before, options.step))
            steps.append(step)
            print(step, flush=True)
            options.output.write_text(json.dumps([asdict(each) for each in steps], indent=1) + "\n", encoding="utf-8")
            if time.monotonic() > end:
                print(f"stopped after {options.minutes:g} minutes", flush=True)
                break
        pool.close()
    if options.plots is not None:
        from bench.plots import draw

        for plot in plots(steps):
            draw(plot, options.plots)


if __name__ == "__main__":
    main()
