"""The same rows on one server and on a Citus cluster of a coordinator and two workers, measured in turns.

    python -m bench.citus PGINSTALL [--turns N] [--themes N] [--rounds N] [--batch N] [--moves]

PGINSTALL is the folder of a Postgres with Citus and pgvector. "Plain" is a database that is not distributed, on a
server of the same binaries and settings. Both systems store the same turns in the same batches, get the same vectors
and are asked the same questions, through the store's own functions; they take turns round by round. --moves then adds a
worker and moves shards to it while questions and writes go on, and counts what failed.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from bench.measure import percentile
from hermes_memory_pgvector.admin import migrate
from hermes_memory_pgvector.admin.model_tables import ModelSpec
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.recall.recall import reach_of, read_wording
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.store import vectors
from hermes_memory_pgvector.store.batch import Batch
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import UPKEEP, WRITER
from hermes_memory_pgvector.store.search import Meaning, Thresholds, search
from hermes_memory_pgvector.values import AddTurn, Kind, Moment, Question
from testing.citus import Cluster

DIM = 256
FIRST, SECOND = "ba de fi go hu ka le mi no pu ra se ti vo zu", "ran lo met sik pan dor gel fin tas bur"
WORDS = [first + second for first in FIRST.split() for second in SECOND.split()]
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class System:
    """One of the two."""

    name: str
    pool: Pool
    stored: list[float] = field(default_factory=list)
    """Rows per second of each round."""
    embedded: list[float] = field(default_factory=list)
    recalled: list[float] = field(default_factory=list)
    """Seconds of each question."""


def vector_of(text: str) -> list[float]:
    """Some vector of a text: the sum of those of its words."""
    parts = [random.Random(word).choices((-1.0, 1.0), k=DIM) for word in text.split()]
    return [sum(column) + 0.01 for column in zip(*parts, strict=True)]


def turns(first: int, count: int, themes: int) -> list[AddTurn]:
    """The turns of a round, of all themes in turn."""
    chance = random.Random(first)
    made = []
    for number in range(first, first + count):
        at = int((START + timedelta(seconds=number)).timestamp() * 1_000_000)
        text = f"{' '.join(chance.choices(WORDS, k=12))} number {number}"
        theme = f"theme-{number % themes}"
        made.append(
            AddTurn(theme, f"s{number // (themes * 20)}", "user", text, 1, Moment(at, at), True, home_id="bench")
        )
    return made


def store(system: System, items: list[AddTurn], size: int) -> None:
    """Store turns in batches, as the writer does, then their vectors."""
    began = time.perf_counter()
    for start in range(0, len(items), size):
        with system.pool.transaction(Deadline.after(120), reach=WRITER) as connection:
            batch = Batch(
                connection, model_id=1, retry_window=60, wants_vector=lambda _: True, memories_want_vectors=True
            )
            batch.add("bench", start, [*items[start : start + size]])
            batch.store()
    system.stored.append(len(items) / (time.perf_counter() - began))
    spent = 0.0
    done = 0
    while True:
        with system.pool.transaction(Deadline.after(120), reach=UPKEEP) as connection:
            model = current_model(connection)
            assert model is not None
            rows, _ = vectors.claim(connection, limit=size, lease_seconds=600)
            made = [vectors.Made(row, 0, vector_of(row.content)) for row in rows]
            began = time.perf_counter()
            vectors.store(connection, model, made, [])
        spent += time.perf_counter() - began
        done += len(rows)
        if not rows:
            break
    system.embedded.append(done / spent)


def ask(system: System, number: int, themes: int) -> int:
    """One question; how many hits."""
    chance = random.Random(-number)
    text = " ".join(chance.choices(WORDS, k=3))
    question = Question(text, Kind.TURN, f"theme-{chance.randrange(themes)}", limit=5)
    meaning = vector_of(text)
    began = time.perf_counter()
    with system.pool.reading(Deadline.after(10), reach_of([question])) as connection:
        model = MODEL_OF[system.name]
        hits = search(connection, question, Meaning(model, meaning), read_wording(question), Thresholds(0.2, 0.2))
    system.recalled.append(time.perf_counter() - began)
    return len(hits)


MODEL_OF: dict[str, Any] = {}


@contextmanager
def opened(cluster: Cluster, name: str, *, is_spread: bool) -> Iterator[System]:
    """A migrated database of the cluster, spread or on its coordinator alone."""
    with cluster.database(name) as info:
        migrate.apply(info.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec("bench", DIM), distributes=is_spread)
        pool = Pool(lambda _: info.runtime_dsn, maximum=4, connect_seconds=10)
        try:
            with pool.transaction(Deadline.after(10), reach=UPKEEP) as connection:
                MODEL_OF[name] = current_model(connection)
            yield System(name, pool)
        finally:
            pool.close()


def analyze(cluster: Cluster, name: str) -> None:
    """What autovacuum does in time."""
    with psycopg.connect(cluster.coordinator.dsn(name), autocommit=True) as owner:
        for table in ("conversations", "turn_vectors_1", "memory_entries"):
            owner.execute(f"VACUUM (ANALYZE) {table}".encode())
        owner.execute("SELECT hermes_refresh_statistics()")


def run(cluster: Cluster, options: argparse.Namespace) -> dict[str, Any]:
    """Measure both in turns."""
    with opened(cluster, "plain", is_spread=False) as plain, opened(cluster, "spread", is_spread=True) as spread:
        systems = [plain, spread]
        each = options.turns // options.rounds
        for number in range(options.rounds):
            for system in systems if number % 2 else systems[::-1]:
                store(system, turns(number * each, each, options.themes), options.batch)
            print(
                f"round {number + 1}: " + ", ".join(f"{s.name} {s.stored[-1]:,.0f} rows/s" for s in systems), flush=True
            )
        for system in systems:
            analyze(cluster, system.name)
            for number in range(50):
                ask(system, number, options.themes)
            system.recalled.clear()
        for number in range(options.questions):
            hits = {ask(system, 1000 + number, options.themes) for system in (systems if number % 2 else systems[::-1])}
            assert len(hits) == 1, "the answers differ"
        report: dict[str, Any] = {
            "turns": options.turns,
            "batch": options.batch,
            "themes": options.themes,
            "questions": options.questions,
        }
        for system in systems:
            report[system.name] = {
                "stored_rows_per_second": round(sorted(system.stored)[len(system.stored) // 2]),
                "embedded_rows_per_second": round(sorted(system.embedded)[len(system.embedded) // 2]),
                "recall_p50_ms": round(percentile(system.recalled, 0.5) * 1000, 2),
                "recall_p95_ms": round(percentile(system.recalled, 0.95) * 1000, 2),
            }
        report["recall_p95_ratio"] = round(report["spread"]["recall_p95_ms"] / report["plain"]["recall_p95_ms"], 2)
        report["ingest_ratio"] = round(
            report["spread"]["stored_rows_per_second"] / report["plain"]["stored_rows_per_second"], 2
        )
        if options.moves:
            report["moves"] = moves(cluster, spread, options)
        return report


def moves(cluster: Cluster, system: System, options: argparse.Namespace) -> dict[str, Any]:
    """A worker is added and shards are moved to it while questions and writes go on."""
    over = threading.Event()
    counts = {"asked": 0, "failed_questions": 0, "stored": 0, "failed_batches": 0}
    waits: list[float] = []

    def question() -> None:
        number = 0
        while not over.is_set():
            number += 1
            began = time.perf_counter()
            try:
                ask(system, 50_000 + number, options.themes)
                counts["asked"] += 1
            except MemoryPluginError:
                counts["failed_questions"] += 1
            waits.append(time.perf_counter() - began)

    def write() -> None:
        first = options.turns
        while not over.is_set():
            items = turns(first, 100, options.themes)
            try:
                with system.pool.transaction(Deadline.after(30), reach=WRITER) as connection:
                    batch = Batch(
                        connection,
                        model_id=1,
                        retry_window=60,
                        wants_vector=lambda _: False,
                        memories_want_vectors=False,
                    )
                    batch.add("moves", first, [*items])
                    batch.store()
                first += 100
                counts["stored"] += 100
            except MemoryPluginError:
                counts["failed_batches"] += 1

    threads = [threading.Thread(target=each) for each in (question, write)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    began = time.perf_counter()
    node = cluster.add_worker(system.name)
    added = time.perf_counter() - began
    moved = []
    with psycopg.connect(cluster.coordinator.dsn(system.name), autocommit=True) as owner:
        rows = owner.execute(
            "SELECT shardid, nodename, nodeport FROM citus_shards WHERE table_name = 'conversations'::regclass LIMIT 3"
        ).fetchall()
        for shard, host, port in rows:
            began = time.perf_counter()
            owner.execute(
                "SELECT citus_move_shard_placement(%s, %s, %s, '127.0.0.1', %s, 'force_logical')",
                (shard, host, port, node.port),
            )
            moved.append(round(time.perf_counter() - began, 2))
    time.sleep(2)
    over.set()
    for thread in threads:
        thread.join()
    with psycopg.connect(cluster.coordinator.dsn(system.name)) as owner:
        there: Any = owner.execute("SELECT count(*) FROM conversations").fetchone()
    return {
        **counts,
        "rows_missing": options.turns + counts["stored"] - int(there[0]),
        "seconds_to_add_a_worker": round(added, 2),
        "seconds_per_moved_shard": moved,
        "question_p95_ms": round(percentile(waits, 0.95) * 1000, 2),
        "question_worst_ms": round(max(waits) * 1000, 2),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.citus", description=__doc__)
    parser.add_argument("pginstall", type=Path)
    parser.add_argument("--turns", type=int, default=48_000)
    parser.add_argument("--themes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--batch", type=int, default=500, help="turns in a transaction")
    parser.add_argument("--shards", type=int, default=32)
    parser.add_argument("--moves", action="store_true")
    options = parser.parse_args()
    settings = {
        "citus.shard_count": str(options.shards),
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(Path(folder) / "cluster", options.pginstall, settings=settings) as cluster,
    ):
        print(json.dumps(run(cluster, options), indent=1))


if __name__ == "__main__":
    main()
