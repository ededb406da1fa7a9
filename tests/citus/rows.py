"""Rows of some themes with a vector each, and questions to them, the same in every database."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.recall.recall import reach_of, read_wording
from hermes_memory_pgvector.store import turns, vectors
from hermes_memory_pgvector.store.batch import Batch
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import UPKEEP, WRITER
from hermes_memory_pgvector.store.search import Meaning, Thresholds, search
from hermes_memory_pgvector.values import AddMemory, AddTurn, Hit, Kind, Moment, Question, Role
from testing.postgres import DIM, Database

THEMES = ["fleet", "workshop", "orders", "garden", "dm-ann", "tower"]
WORDS = [
    "anchor", "bridge", "copper", "delta", "engine", "falcon", "garden", "hammer", "island", "jacket", "kettle",
    "ladder", "marble", "needle", "orange", "pepper", "quarry", "ribbon", "saddle", "timber", "umbrella", "valley",
]  # fmt: skip
START = datetime(2026, 3, 1, tzinfo=UTC)


@contextmanager
def opened(database: Database) -> Iterator[Pool]:
    """The pool of an agent."""
    pool = Pool(lambda _: database.runtime_dsn, maximum=3, connect_seconds=10)
    try:
        yield pool
    finally:
        pool.close()


def soon() -> Deadline:
    """Far enough away."""
    return Deadline.after(60)


def moment(number: int) -> Moment:
    """The n-th minute."""
    at = int((START + timedelta(minutes=number)).timestamp() * 1_000_000)
    return Moment(at, at)


def said(number: int, theme: str, chance: random.Random) -> AddTurn:
    """A turn of a few words."""
    role: Role = "user" if number % 2 else "assistant"
    words = " ".join(chance.choices(WORDS, k=8))
    return AddTurn(theme, f"s{number // 20}", role, f"{words} number {number}", 1, moment(number), True, home_id="h")


def fill(pool: Pool, size: int = 240) -> None:
    """Turns and memories of all themes, each with a vector that its number decides."""
    chance = random.Random(7)
    items = [said(number, THEMES[number % len(THEMES)], chance) for number in range(size)]
    with pool.transaction(soon(), reach=WRITER) as connection:
        batch = Batch(connection, model_id=1, retry_window=60, wants_vector=lambda _: True, memories_want_vectors=True)
        batch.add("w", 1, [*items])
        kept = [f"{theme} keeps the {WORDS[n]} and the {WORDS[n + 7]}" for n, theme in enumerate(THEMES)]
        entries = [AddMemory(theme, "memory", text, moment(0), "h") for theme, text in zip(THEMES, kept, strict=True)]
        batch.add("w", 2, [*entries])
        batch.store()
    embed(pool)


def insert(pool: Pool, items: list[AddTurn]) -> int:
    """Store turns; how many were new."""
    with pool.transaction(soon(), reach=WRITER) as connection:
        return len(turns.insert(connection, items, retry_window=60, wants_vector=lambda _: True))


def embed(pool: Pool) -> None:
    """Give every row that waits a vector, the same in every database."""
    with pool.transaction(soon(), reach=UPKEEP) as connection:
        model = current_model(connection)
        assert model is not None
        rows, _ = vectors.claim(connection, limit=10_000, lease_seconds=60)
        made = [vectors.Made(row, 0, vector_of(row.content)) for row in rows]
        vectors.store(connection, model, made, [])


def vector_of(text: str) -> list[float]:
    """Some vector of a text: the sum of those of its words."""
    parts = [random.Random(word).choices((-1.0, 1.0), k=DIM) for word in text.split()]
    return [sum(column) + 0.01 for column in zip(*parts, strict=True)]


def ask(pool: Pool, text: str, *, has_vector: bool = True, **more: Any) -> list[Hit]:
    """An answer."""
    question = replace(Question(text, Kind.TURN, "fleet", limit=10, now=START + timedelta(days=1)), **more)
    with pool.transaction(soon(), reach=reach_of([question])) as connection:
        model = current_model(connection)
        assert model is not None
        meaning = Meaning(model, vector_of(text)) if has_vector else None
        return search(connection, question, meaning, read_wording(question), Thresholds(0.2, 0.2))


QUESTIONS = [
    "copper bridge",
    "the garden and the hammer",
    "number 17",
    "quarry ribbon saddle timber",
    "nothing of this",
]
