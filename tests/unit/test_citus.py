"""What a cluster gets: a decision for every table, keys that contain the theme, and texts that stand for statements."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hermes_memory_pgvector
from hermes_memory_pgvector.admin import citus
from hermes_memory_pgvector.errors import DatabaseRejected
from hermes_memory_pgvector.store import dead_letters
from hermes_memory_pgvector.store.distributed import PER_THEME, THEN, other_texts
from hermes_memory_pgvector.writer import deliver_waiting

SQL = Path(hermes_memory_pgvector.__file__).parent / "sql"
TEXTS = sorted(file.relative_to(SQL / "citus" / "queries") for file in (SQL / "citus" / "queries").rglob("*.sql"))
PARAMETER = re.compile(r"%\((\w+)\)[sbt]")


def snapshot() -> str:
    return (SQL / "schema.sql").read_text(encoding="utf-8")


def tables() -> list[str]:
    return re.findall(r"^CREATE TABLE public\.(\w+) \(", snapshot(), re.M)


def test_every_table_has_one_place() -> None:
    known = [*citus.DISTRIBUTED, *citus.REFERENCE, *citus.LOCAL]
    assert len(known) == len(set(known))
    here = {name for name in tables() if not citus.VECTORS.fullmatch(name)}
    assert here == set(known) - citus.ONLY_HERE, "a new table needs a decision in admin/citus.py"


def test_every_key_of_a_distributed_table_contains_the_theme() -> None:
    text = snapshot()
    spread = [name for name in tables() if name in citus.DISTRIBUTED or citus.VECTORS.fullmatch(name)]
    assert len(spread) > 8
    for name in spread:
        keys = re.findall(
            rf"ALTER TABLE ONLY public\.{name}\s+ADD CONSTRAINT \w+ (?:PRIMARY KEY|UNIQUE) \(([^)]*)", text
        )
        keys += re.findall(rf"CREATE UNIQUE INDEX \w+ ON public\.{name} USING btree \((.*)\)", text)
        assert keys, name
        assert all(key.split(",")[0].strip() == "agent_identity" for key in keys), (name, keys)


@pytest.mark.parametrize("file", TEXTS, ids=str)
def test_a_text_takes_what_its_statement_takes(file: Path) -> None:
    own = (SQL / "citus" / "queries" / file).read_text(encoding="utf-8")
    plain = (SQL / "queries" / file).read_text(encoding="utf-8")
    given = set(PARAMETER.findall(plain))
    for part in own.split(THEN):
        is_per_theme = part.startswith(PER_THEME)
        assert set(PARAMETER.findall(part)) <= given | ({"theme"} if is_per_theme else set())
        if is_per_theme:
            assert "themes" in given
            assert re.search(r"agent_identity = %\(theme\)s", part)


def test_a_text_per_theme_gets_the_elements_of_that_theme() -> None:
    (following,) = other_texts("turns/following", {})
    params = {"themes": ["b", "a", "b"], "session_ids": ["1", "2", "3"], "limit": 5}
    assert following.arguments(params) == [
        {"theme": "a", "themes": ["a"], "session_ids": ["2"], "limit": 5},
        {"theme": "b", "themes": ["b", "b"], "session_ids": ["1", "3"], "limit": 5},
    ]
    assert following.arguments({"themes": [], "session_ids": []}) == [{"theme": "", "themes": [], "session_ids": []}]
    (beside,) = other_texts("turns/beside", {})
    whole = {"themes": ["b", "a", "b"], "ids": [1, 2, 3]}
    assert beside.arguments(whole) == [{**whole, "theme": "a"}, {**whole, "theme": "b"}]
    # A list that happens to be as long is nobody's part.
    (with_context,) = other_texts("turns/with_context", {})
    both = {"themes": ["a", "b"], "ids": [1, 2], "left_out": [3, 4]}
    assert with_context.arguments(both) == [
        {"theme": "a", "themes": ["a"], "ids": [1], "left_out": [3, 4]},
        {"theme": "b", "themes": ["b"], "ids": [2], "left_out": [3, 4]},
    ]
    assert other_texts("turns/stored_keys", {}) == ()


def test_what_is_refused_whatever_it_says_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that cannot be committed, as where a worker prepares none: the writer does not try for ever."""
    sizes: list[int] = []

    def take(_: Any, after: int, most: int, max_bytes: int) -> list[Any]:
        sizes.append(most)
        raise DatabaseRejected("refused")

    monkeypatch.setattr(dead_letters, "take_waiting", take)
    pool: Any = SimpleNamespace(transaction=lambda *_, **__: nullcontext())
    absent: Any = SimpleNamespace(look=lambda: None, waiting=3, names=frozenset())
    intake: Any = SimpleNamespace(begin=lambda: None)
    with pytest.raises(DatabaseRejected):
        deliver_waiting.deliver_waiting(
            pool,
            absent,
            intake,
            seconds=1.0,
            max_bytes=1,
            on_stored=lambda _: None,
            is_stopping=lambda: len(sizes) > 50,
        )
    assert sizes == [200, 100, 50, 25, 12, 6, 3, 1]
