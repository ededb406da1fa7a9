"""The script that learns the weights of the ranking, and the page its figures go to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bench import learn_ranking, recall_report
from bench.learn_ranking import FEATURES, SHIPPED, STEP, Example, learn, left_out, ranked
from hermes_memory_pgvector.postgres.statements import FOLDER
from hermes_memory_pgvector.schema.sql_functions import TURNS


def example(seed: int, group: str = "a", *, tells: int = 0) -> Example:
    """Ten candidates, of which the one with the answer stands out in one feature."""
    generator = np.random.default_rng(seed)
    features = generator.random((10, len(FEATURES)), dtype=np.float32)
    features[3, tells] = 2
    answer = np.zeros(10, dtype=np.bool_)
    answer[3] = True
    return Example(group, tuple(map(str, range(10))), ("s",) * 10, features, answer)


def test_the_shipped_weights_are_those_of_the_sql() -> None:
    text = FOLDER.joinpath("functions", "rank.sql").read_text(encoding="utf-8")
    similarity, session, *marks = (float(number) for number in re.findall(r"(?<!\d)(0\.\d+)(?: \*|::double)", text))
    assert (similarity, 1.0, session, *marks) == SHIPPED
    assert float(TURNS.step) == STEP


def test_what_tells_the_answer_gets_the_weight() -> None:
    weights = learn([[example(seed, tells=0) for seed in range(30)]])
    assert abs(weights[0]) > 3 * max(abs(weights[1:]))
    assert ranked(example(99, tells=0), weights / abs(weights[0]) * np.sign(weights[0]))[0] == "3"


def test_what_is_left_out_is_not_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    learned_from: list[list[str]] = []

    def learn(sets: list[list[Example]]) -> np.ndarray:
        learned_from.append([one.group for part in sets for one in part])
        return np.ones(len(FEATURES), np.float32)

    monkeypatch.setattr(learn_ranking, "learn", learn)
    sets = [[example(1, "a"), example(2, "b")], [example(3, "c")]]
    figures = left_out(sets, lambda one, keys: {"first": float(keys[0]), "group": ord(one.group)})
    assert learned_from == [["b", "c"], ["a", "c"], ["a", "b"]]
    assert [[int(each["group"]) for each in part] for part in figures] == [[97, 98], [99]]


def test_further_hits_of_a_session_step_back() -> None:
    features = np.zeros((3, len(FEATURES)), np.float32)
    features[:, 1] = (0.5, 0.499, 0.498)
    one = Example("a", ("x", "y", "z"), ("s", "s", "t"), features, np.array([True, False, False]))
    assert ranked(one, np.array(SHIPPED, np.float32)) == ["x", "z", "y"]


def test_a_result_becomes_tables_on_the_page(tmp_path: Path) -> None:
    figures = {"questions": 4.0, "R@5": 0.5, "R@10": 0.625, "all@5": 0.75, "all@10": 1.0}
    talk = {figure: 0.25 for figure, _ in recall_report.PREFETCH}
    one = {"ours": {"all": figures}, "BM25": {"all": figures}, "prefetch": talk}
    learned = {"weights": {"similarity": 0.7}, "left out": {"locomo": figures, "longmemeval": figures}}
    document = {
        "about": {"part": "all", "commit": "abc", "started": "2026-01-01"},
        "recall quality": {"locomo": one, "longmemeval": one, "learned": learned},
    }
    source, page = tmp_path / "quality.json", tmp_path / "page.md"
    source.write_text(json.dumps(document), encoding="utf-8")
    page.write_text(f"before\n{recall_report.BEGIN}\nold\n{recall_report.END}\nafter\n", encoding="utf-8")
    assert recall_report.is_recall_quality(source)
    recall_report.publish(source, page)
    text = page.read_text(encoding="utf-8")
    assert (text[:7], text[-7:], "old" in text) == ("before\n", "\nafter\n", False)
    assert "| ours, as shipped | 0.500 | 0.625 | 0.500 | 0.625 | 0.750 | 1.000 |" in text
    assert text.index("as shipped") < text.index("learned without") < text.index("BM25")
    assert (tmp_path / "page" / "recall-quality.json").read_bytes() == source.read_bytes()
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(ValueError, match="does not have the lines"):
        recall_report.publish(source, page)
