"""The figures of the benches: percentiles, ratios, targets, and the pages made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.measure import Better, Figure, Metric, Result, Target, percentile
from bench.report import BEGIN, END, headlines, table, tables_page
from bench.scenarios.recall import scenario_name

ABOUT = {
    "size": "small", "started": "2026-01-01T00:00:00+00:00", "commit": "abc", "seconds": 5, "machine": "a machine",
    "load_at_start": 0.1, "python": "3.11", "server": "PostgreSQL 18",
    "versions": {"ours": {"x": "1"}, "peer": {"x": "2"}},
}  # fmt: skip


def metric(ours: float, peer: float | None, *, better: Better = "lower", target: Target | None = None) -> Metric:
    """A metric whose rounds all gave the same."""
    other = None if peer is None else Figure.of([peer])
    return Metric("hooks", "sync_turn", "µs", better, Figure.of([ours]), other, target)


def result(*metrics: Metric) -> Result:
    """A run with these metrics."""
    return Result(dict(ABOUT), list(metrics))


def test_percentile_is_a_measured_value_by_nearest_rank() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert percentile(values, 0.50) == 50
    assert percentile(values, 0.95) == 95
    assert percentile(values, 0.99) == 99
    assert percentile([7.0], 0.99) == 7
    assert percentile([1.0, 2.0], 1.0) == 2
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 0.5)


@pytest.mark.parametrize(
    ("better", "ours", "peer", "ratio"),
    [("lower", 2.0, 10.0, 5.0), ("higher", 10.0, 2.0, 5.0), ("lower", 0.0, 3.0, None), ("higher", 3.0, 0.0, None)],
)
def test_ratio_says_how_many_times_better_we_are(better: Better, ours: float, peer: float, ratio: float | None) -> None:
    assert metric(ours, peer, better=better).ratio == ratio


def test_the_table_shows_both_sides_the_ratio_and_the_verdict() -> None:
    shown = table(result(metric(5, 50, target=Target("ratio at least", 20)), replace(metric(0, 7), name="lost")))
    assert "| sync_turn | µs | 5 | 50 | 10× | ≥ 20× **missed** |" in shown
    assert "| lost | µs | 0 | 7 | ours only |  |" in shown


def test_the_page_keeps_what_people_wrote_around_the_figures(tmp_path: Path) -> None:
    run, path = tmp_path / "run-1.json", tmp_path / "page.md"
    path.write_text(f"# Head\n\n{BEGIN}\nold\n{END}\n\ntail\n", encoding="utf-8")
    lost = replace(metric(0, 7), scenario="loss", name="kill -9 while writing")
    result(lost).save(run)
    assert main(["report", str(run), "--page", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Head")
    assert text.endswith("\n\ntail\n")
    assert "old" not in text
    assert "| rows lost after kill -9 | µs | 0 | 7 | ours only |" in text
    assert "commit `abc`" in text


def test_the_folder_beside_the_page_holds_the_run(tmp_path: Path) -> None:
    run, path = tmp_path / "run-1.json", tmp_path / "page.md"
    path.write_text(f"{BEGIN}{END}", encoding="utf-8")
    result(metric(5, 50)).save(run)
    main(["report", str(run), "--page", str(path)])
    assert {each.name for each in (tmp_path / "page").iterdir()} == {"run.json", "tables.md"}
    # What was published can be published again.
    assert main(["report", str(tmp_path / "page" / "run.json"), "--page", str(path)]) == 0
    assert Result.load(tmp_path / "page" / "run.json") == Result.load(run)


def test_the_first_screen_shows_recall_at_the_largest_size_beside_the_peer() -> None:
    def cell(rows: int, ours: float, peer: float | None) -> Metric:
        name = "prefetch, themes by their rows, p95"
        return replace(metric(ours, peer), scenario=scenario_name(rows, 100), name=name, unit="ms")

    shown = headlines(result(cell(10_000, 3, 4), cell(100_000, 5, 9), cell(1_000_000, 7, None)))
    assert "| `prefetch`, p95, 100,000 rows | ms | 5 | 9 | 1.8× |" in shown
    assert len(shown.splitlines()) == 3


def test_the_tables_tell_the_problems_of_the_run() -> None:
    made = result(metric(50, 5))
    made.problems.append("ingest: OSError: no space")
    shown = tables_page(made)
    assert "- ingest: OSError: no space" in shown
    assert "- Behind the peer: hooks: sync_turn: 50 against 5" in shown
