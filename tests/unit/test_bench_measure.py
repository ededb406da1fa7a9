"""The figures of the benches: percentiles, ratios, targets, and what compare calls worse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.compare import compare
from bench.growth import scenario_name
from bench.measure import Better, Figure, Line, Metric, Plot, Result, Target, percentile
from bench.report import BEGIN, END, all_plots, headlines, misses, table, tables_page

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
    """A run with these metrics and one plot."""
    lines = (Line("this package", "ours", ((1.0, 2.0), (2.0, 3.0))), Line("peer", "peer", ((1.0, 4.0), (2.0, 9.0))))
    return Result(dict(ABOUT), list(metrics), [Plot("growth", "Growth", "rows", "ms", lines)])


def test_percentile_is_a_measured_value_by_nearest_rank() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert percentile(values, 0.50) == 50
    assert percentile(values, 0.95) == 95
    assert percentile(values, 0.99) == 99
    assert percentile([7.0], 0.99) == 7
    assert percentile([1.0, 2.0], 1.0) == 2
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 0.5)


def test_figure_is_the_median_with_its_spread() -> None:
    figure = Figure.of([9.0, 1.0, 5.0])
    assert (figure.median, figure.low, figure.high) == (5, 1, 9)


@pytest.mark.parametrize(
    ("better", "ours", "peer", "ratio"),
    [("lower", 2.0, 10.0, 5.0), ("higher", 10.0, 2.0, 5.0), ("lower", 0.0, 3.0, None), ("higher", 3.0, 0.0, None)],
)
def test_ratio_says_how_many_times_better_we_are(better: Better, ours: float, peer: float, ratio: float | None) -> None:
    assert metric(ours, peer, better=better).ratio == ratio


def test_targets_are_judged_by_value_or_by_ratio() -> None:
    assert metric(5, 50, target=Target("at most", 5)).is_met is True
    assert metric(6, 50, target=Target("at most", 5)).is_met is False
    assert metric(0.99, None, better="higher", target=Target("at least", 0.998)).is_met is False
    assert metric(5, 50, target=Target("ratio at least", 10)).is_met is True
    assert metric(5, 49, target=Target("ratio at least", 10)).is_met is False
    assert metric(5, None).is_met is None


def test_a_result_is_the_same_after_saving_and_loading(tmp_path: Path) -> None:
    made = result(metric(5, 50, target=Target("ratio at least", 10)), metric(1, None))
    made.problems.append("something")
    made.save(tmp_path / "deep" / "run.json")
    assert Result.load(tmp_path / "deep" / "run.json") == made


def test_compare_calls_a_lost_ratio_worse_and_ignores_the_machine() -> None:
    old = result(metric(10, 100))
    assert not compare(old, result(metric(100, 1000)), 0.25)[0].is_worse
    assert not compare(old, result(metric(13, 100)), 0.25)[0].is_worse
    assert compare(old, result(metric(14, 100)), 0.25)[0].is_worse
    assert compare(old, result(metric(1, 100)), 0.25)[0].loss < 0


def test_compare_does_not_judge_figures_that_depend_on_the_machine_alone() -> None:
    assert compare(result(metric(1, None)), result(metric(99, None)), 0.25) == []


def test_one_lost_row_is_worse_than_none_whatever_the_margin() -> None:
    none, one = (replace(metric(lost, 100), is_portable=True) for lost in (0, 1))
    assert compare(result(none), result(one), 0.9)[0].is_worse
    assert not compare(result(one), result(none), 0.0)[0].is_worse


def test_the_command_fails_when_a_ratio_got_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / name) for name in ("old.json", "new.json")]
    result(metric(10, 100)).save(Path(paths[0]))
    result(metric(20, 100)).save(Path(paths[1]))
    assert main(["compare", *paths]) == 1
    assert "WORSE" in capsys.readouterr().out
    assert main(["compare", *paths, "--margin", "0.6"]) == 0
    assert main(["compare", paths[1], paths[0]]) == 0


def test_the_table_shows_both_sides_the_ratio_and_the_verdict() -> None:
    shown = table(result(metric(5, 50, target=Target("ratio at least", 20)), replace(metric(0, 7), name="lost")))
    assert "| sync_turn | µs | 5 | 50 | 10× | ≥ 20× **missed** |" in shown
    assert "| lost | µs | 0 | 7 | ours only |  |" in shown


def test_misses_name_missed_targets_and_where_the_peer_is_ahead() -> None:
    missed = metric(5, 50, target=Target("at most", 4))
    behind = replace(metric(50, 5), name="slow")
    fine = replace(metric(5, 50), name="fast")
    lines = misses(result(missed, behind, fine))
    assert len(lines) == 2
    assert lines[0].startswith("- **Missed**: hooks: sync_turn: 5, target ≤ 4.")
    assert lines[1].startswith("- Behind the peer: hooks: slow: 50 against 5")


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_folder_beside_the_page_holds_one_run(tmp_path: Path) -> None:
    run, path = tmp_path / "run-1.json", tmp_path / "page.md"
    path.write_text(f"{BEGIN}{END}", encoding="utf-8")
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "of-another-run.svg").touch()
    result(metric(5, 50)).save(run)
    main(["report", str(run), "--page", str(path)])
    assert {each.name for each in (tmp_path / "page").iterdir()} == {"run.json", "tables.md", "growth.svg"}
    assert "![Growth](growth.svg)" in (tmp_path / "page" / "tables.md").read_text(encoding="utf-8")
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


def test_growth_is_drawn_from_the_cells_of_a_run_the_worst_of_each_size() -> None:
    def cell(rows: int, themes: int, ours: float, peer: float) -> Metric:
        name = "recall_conversation, biggest theme, p95"
        return replace(metric(ours, peer), scenario=scenario_name(rows, themes), name=name)

    several = result(cell(10_000, 100, 3, 4), cell(100_000, 100, 5, 9), cell(100_000, 10_000, 6, 8))
    (plot,) = (plot for plot in all_plots(several) if plot.name == "recall-growth")
    assert [line.points for line in plot.lines] == [((10_000, 3), (100_000, 6)), ((10_000, 4), (100_000, 9))]
    assert all(plot.name != "recall-growth" for plot in all_plots(result(cell(10_000, 100, 3, 4))))


@pytest.mark.slow
def test_a_plot_is_drawn_the_same_twice(tmp_path: Path) -> None:
    from bench.plots import draw

    plot = result().plots[0]
    (first,), (second,) = draw(plot, tmp_path / "a"), draw(plot, tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    assert b"Growth" in first.read_bytes() or b"<svg" in first.read_bytes()
