"""What a cluster costs, beside one Postgres of the same binaries: `python -m bench cluster`.

Both hold the same turns and are asked the same questions in turn, by the package's own statements. PGINSTALL names an
installation of Postgres with citus and vector. All servers share this machine: only ratios of one run mean anything.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.corpus import Corpus, Halves
from bench.measure import percentile
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres.buckets import bucket_of
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.recall.recall import read_wording
from hermes_memory_pgvector.schema import buckets as dealing
from hermes_memory_pgvector.schema import migrate, owner
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.store import models, turns, vectors, watermarks
from hermes_memory_pgvector.store.search import Meaning, search
from hermes_memory_pgvector.values import AddTurn, EmbeddingModel, Kind, Moment, Question
from testing.cluster import Cluster

DIM = 256
BUCKETS = 16
WINDOW = 10_000
TOGETHER = 500
SECONDS = 300.0
# A usual server's memory and promises; the tests' servers have neither.
SERVER = {"shared_buffers": "512MB", "max_wal_size": "4GB", "fsync": "on", "full_page_writes": "on"}


class System:
    """A database, one bucket or sixteen, and what it took so far."""

    def __init__(self, dsn: str, model: EmbeddingModel | None = None) -> None:
        self.pool = Pool(lambda _: dsn, maximum=4, connect_seconds=10)
        self.count = self.pool.buckets(Deadline.after(SECONDS))
        with self.pool.transaction(Deadline.after(SECONDS), bucket=0) as connection:
            found = models.current_model(connection)
        assert found is not None
        self.model = model or found
        self.seconds = {"turns": 0.0, "vectors": 0.0}
        self._mark = 0

    def take(self, items: Sequence[AddTurn], embeddings: Halves) -> None:
        """Store a window of turns, bucket by bucket, and their vectors."""
        dealt: dict[int, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            dealt[bucket_of(item.theme, self.count)].append(place)
        for bucket, places in dealt.items():
            for start in range(0, len(places), TOGETHER):
                part = places[start : start + TOGETHER]
                began = time.perf_counter()
                with self.pool.transaction(Deadline.after(SECONDS), bucket=bucket) as connection:
                    watermarks.lock(connection, "bench", "")
                    stored = turns.insert(
                        connection, [items[place] for place in part], retry_window=0.0, wants_vector=lambda _: False
                    )
                    self._mark += 1
                    watermarks.advance(connection, "bench", self._mark)
                self.seconds["turns"] += time.perf_counter() - began
                self._embed(bucket, stored, {items[place].content: embeddings[place] for place in part})

    def _embed(self, bucket: int, stored: Sequence[tuple[str, int]], embeddings: dict[str, Any]) -> None:
        began = time.perf_counter()
        with self.pool.transaction(Deadline.after(SECONDS), bucket=bucket) as connection:
            texts = vectors.texts(connection, [(theme, Kind.TURN.value, number) for theme, number in stored])
            made = [vectors.Made(row, 0, embeddings[row.content].tolist()) for row in texts]
            vectors.insert(connection, self.model, made)
        self.seconds["vectors"] += time.perf_counter() - began

    def ask(self, question: Question, vector: Sequence[float]) -> list[tuple[str, float]]:
        """What is found, best first."""
        with self.pool.reading(Deadline.after(SECONDS), theme=question.theme) as connection:
            hits = search(connection, question, Meaning(self.model, vector), read_wording(question))
        return [(hit.content, round(hit.rank, 4)) for hit in hits]


def window_of(corpus: Corpus, rows: range) -> list[AddTurn]:
    """Rows of a corpus as turns."""
    return [
        AddTurn(f"theme-{corpus.theme_of[row]}", f"s{row // 20}", "user", corpus.content(row), 1,
                Moment(1_700_000_000_000_000 + row * 1_000_000, row), is_live=False)
        for row in rows
    ]  # fmt: skip


def run(rows: int, themes: int, questions: int) -> None:
    """Load both, ask both, and print the ratios."""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o755)
        with Cluster(folder, settings=SERVER) as cluster:
            cluster.coordinator.rows("CREATE DATABASE plain", database="postgres")
            cluster.coordinator.rows("CREATE EXTENSION vector", database="plain")
            spec = NewModel("bench", DIM, 0.0, DIM**-0.5)
            migrate.apply(cluster.coordinator.dsn(database="plain"), runtime_role=RUNTIME_ROLE, model=spec)
            began = time.perf_counter()
            migrate.apply(cluster.coordinator.dsn(), runtime_role=RUNTIME_ROLE, model=spec, buckets=BUCKETS)
            print(f"{BUCKETS} buckets made and handed out in {time.perf_counter() - began:.0f} s", flush=True)
            plain = System(cluster.coordinator.dsn(RUNTIME_ROLE, "plain"))
            spread = System(cluster.coordinator.dsn(RUNTIME_ROLE))
            corpus = Corpus(rows, themes, DIM, folder)
            _load(corpus, plain, spread)
            for dsn in (cluster.coordinator.dsn(database="plain"), cluster.coordinator.dsn()):
                with owner.connected(dsn, "bench") as connection:
                    dealing.tidy(connection)
            asked = _questions(corpus, questions)
            _compare(asked, plain, spread)


def _load(corpus: Corpus, *systems: System) -> None:
    ratios: dict[str, list[float]] = defaultdict(list)
    for number, start in enumerate(range(0, corpus.rows, WINDOW)):
        window = range(start, min(start + WINDOW, corpus.rows))
        items, embeddings = window_of(corpus, window), corpus.vectors[window.start : window.stop]
        before = [dict(system.seconds) for system in systems]
        # Who goes first changes each time.
        for system in systems if number % 2 else systems[::-1]:
            system.take(items, embeddings)
        for what in ("turns", "vectors"):
            plain, spread = (system.seconds[what] - then[what] for system, then in zip(systems, before, strict=True))
            ratios[what].append(plain / spread)
    for what, each in ratios.items():
        plain, spread = (corpus.rows / system.seconds[what] for system in systems)
        print(f"{what}/s: plain {plain:,.0f}, cluster {spread:,.0f}: {spread / plain:.2f} "
              f"(windows: median {median(each):.2f}, worst {min(each):.2f})", flush=True)  # fmt: skip


def _questions(corpus: Corpus, count: int) -> list[tuple[Question, list[float]]]:
    random = np.random.default_rng(9)
    asked = []
    for theme, found in corpus.mixture(count):
        pool = np.flatnonzero(corpus.theme_of == theme)
        for vector in found.vectors:
            words = corpus.content(int(random.choice(pool))).split()[1:5]
            question = Question(" ".join(words), Kind.TURN, f"theme-{theme}", limit=5)
            asked.append((question, [float(number) for number in vector]))
    random.shuffle(asked)
    return asked


def _compare(asked: Sequence[tuple[Question, list[float]]], plain: System, spread: System) -> None:
    took: dict[System, list[float]] = {plain: [], spread: []}
    for turn in range(3):
        alike = 0
        for number, (question, vector) in enumerate(asked):
            answers = []
            for system in (plain, spread) if (number + turn) % 2 else (spread, plain):
                began = time.perf_counter()
                answers.append(system.ask(question, vector))
                if turn:
                    took[system].append(1000 * (time.perf_counter() - began))
            alike += [text for text, _ in answers[0]] == [text for text, _ in answers[1]]
        print(f"round {turn}: {alike} of {len(asked)} answers alike", flush=True)
    (p50, p95), (s50, s95) = ((percentile(each, 0.5), percentile(each, 0.95)) for each in took.values())
    print(f"recall ms, p50/p95: plain {p50:.1f}/{p95:.1f}, cluster {s50:.1f}/{s95:.1f}: "
          f"{s50 / p50:.2f}/{s95 / p95:.2f}", flush=True)  # fmt: skip
