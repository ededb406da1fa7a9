"""A guard on recall: in a small corpus with known answers the real search finds what brute force finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from bench.adapter import ROW
from bench.corpus import Corpus, Floats, recall_at_ten
from bench.load import load, theme_name
from bench.stage import Seat
from bench.system import our_system
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.values import Kind, Question, Scope
from testing.postgres import DIM, MODEL, Database

ROWS, THEMES = 4000, 40


class Known:
    """Gives the text `zq<n>` the vector n."""

    model = MODEL

    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors

    def embed_query(self, text: str, deadline: Deadline) -> Sequence[float]:
        """The vector that the text names."""
        values: list[float] = self._vectors[int(text.removeprefix("zq"))].tolist()
        return values


@pytest.fixture
def corpus(tmp_path: Path, database: Database) -> Iterator[Corpus]:
    turns = Corpus(ROWS, THEMES, DIM, tmp_path)
    memories = Corpus(1000, THEMES, DIM, tmp_path, name="memories", seed=2)
    load(Seat(our_system(), tmp_path, database.runtime_dsn, database.owner_dsn), turns, memories)
    with psycopg.connect(database.owner_dsn) as owner:
        # Ten rows are wanted however far they are; which of them to show is for another test.
        owner.execute("UPDATE embedding_models SET unrelated_mean = -2, unrelated_sd = 0.001")
    yield turns
    turns.remove()
    memories.remove()


def test_recall_at_ten_is_exact_in_every_theme_and_over_all(corpus: Corpus, database: Database) -> None:
    pool = Pool(lambda deadline: database.runtime_dsn, maximum=2, connect_seconds=10)
    try:
        for size in ("small", "biggest", "all"):
            theme = None if size == "all" else corpus.theme(size)
            questions = corpus.questions(theme, 20)
            recall = Recall(pool.reading, Known(questions.vectors), Settings())
            found = []
            for number in range(20):
                question = Question(
                    text=f"zq{number}",
                    kind=Kind.TURN,
                    theme=theme_name(0 if theme is None else theme),
                    scope=Scope.ALL if theme is None else Scope.CURRENT,
                    limit=10,
                    now=datetime.now(UTC),
                )
                hits = recall.search(question, Deadline.after(30)).hits
                found.append([int(ROW.findall(hit.content)[0]) for hit in hits])
            assert recall_at_ten(found, questions.truth) >= 0.995, size
    finally:
        pool.close()
