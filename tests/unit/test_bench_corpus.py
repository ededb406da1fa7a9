"""The benches' data: known answers for known questions, so that a wrong search cannot look right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench import adapter
from bench.corpus import TOP, Corpus, Truth, recall_at_ten, truth_of, unit


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Corpus]:
    made = Corpus(3000, 20, 32, tmp_path)
    yield made
    made.remove()


@pytest.mark.parametrize("theme", [0, 7, None])
def test_truth_is_what_a_full_sort_finds(corpus: Corpus, theme: int | None) -> None:
    questions = corpus.questions(theme, 15)
    pool = np.arange(3000) if theme is None else np.flatnonzero(corpus.theme_of == theme)
    rows = unit(np.asarray(corpus.vectors[pool], dtype=np.float32))
    for vector, true in zip(questions.vectors, questions.truth, strict=True):
        best = pool[np.argsort(-(rows @ vector))[:TOP]]
        assert true.sure <= set(best.tolist()) <= true.sure | true.tied
        assert true.share(best.tolist()) == 1.0


def test_a_question_is_nearest_to_rows_of_its_own_theme_only(corpus: Corpus) -> None:
    for true in corpus.questions(3, 10).truth:
        assert {int(corpus.theme_of[row]) for row in true.sure | true.tied} == {3}


def test_recall_counts_what_is_missing_and_nothing_else() -> None:
    rows = [list(range(10)), list(range(10, 20))]
    truth = [Truth(10, frozenset(each), frozenset()) for each in rows]
    assert recall_at_ten(rows, truth) == 1.0
    assert recall_at_ten([rows[0][::-1], rows[1]], truth) == 1.0
    assert recall_at_ten([rows[0][:5], []], truth) == pytest.approx(0.25)
    # Rows beyond the tenth do not count, however right they are.
    assert recall_at_ten([[99] * 10 + rows[0], rows[1]], truth) == pytest.approx(0.5)


def test_equally_near_rows_may_stand_for_each_other_but_for_nobody_else() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.33, 0.32, 0.31, 0.30999, 0.2], dtype=np.float32)
    truth = truth_of(np.arange(12), scores)
    assert truth == Truth(10, frozenset(range(9)), frozenset((9, 10)))
    assert truth.share([*range(9), 10]) == 1.0
    assert truth.share([*range(1, 9), 9, 10]) == pytest.approx(0.9)
    assert truth.share([*range(9), 11]) == pytest.approx(0.9)


class Echo:
    """A provider that answers with what it was asked."""

    def initialize(self, session_id: str, **kwargs: object) -> None:
        self.theme = kwargs["gateway_session_key"]

    def handle_tool_call(self, name: str, args: dict[str, object]) -> str:
        return json.dumps({"results": [{"content": f"row{number} {self.theme}"} for number in (4, 2)], "count": 2})

    def prefetch(self, query: str, *, session_id: str) -> str:
        return "- row7 something\n- row8 something"


def test_the_adapter_reads_the_rows_out_of_tools_and_prefetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "fresh", lambda module: Echo())
    made = adapter.Adapter("anything", "/nowhere", None)
    made.answer({"do": "start", "theme": "a"})
    answer = made.answer({"do": "ask", "tool": "recall_conversation", "queries": ["x", "y"]})
    assert answer["rows"] == [[4, 2], [4, 2]]
    assert answer["errors"] == 0
    assert len(answer["micros"]) == 2
    assert made.answer({"do": "ask", "tool": "prefetch", "queries": ["x"]})["rows"] == [[7, 8]]
