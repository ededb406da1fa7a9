"""How recall grows with rows: curves from the cells that a run has measured."""

from __future__ import annotations

import re

from bench.measure import Line, Metric, Plot

GROWTH = {
    "recall_conversation, biggest theme, recall@10": (
        "recall-share",
        "Found of the biggest theme",
        "recall@10",
    ),
    "recall_conversation, biggest theme, p95": ("recall-growth", "recall_conversation, biggest theme", "p95, ms"),
    "prefetch, biggest theme, p95": ("prefetch-growth", "prefetch, biggest theme", "p95, ms"),
    "common words, biggest theme, p95": ("words-growth", "A question of common words, biggest theme", "p95, ms"),
    "database size": ("size-growth", "Database with all indexes", "MB"),
}
_SCENARIO = re.compile(r"recall, ([\d,]+) rows, ([\d,]+) themes")


def scenario_name(rows: int, themes: int) -> str:
    """What a cell is called in the tables."""
    return f"recall, {rows:,} rows, {themes:,} themes"


def cell_of(scenario: str) -> tuple[int, int]:
    """(rows, themes) of a cell; zeros for every other scenario, which so comes first in an ordered list."""
    cell = _SCENARIO.fullmatch(scenario)
    return (0, 0) if cell is None else (int(cell[1].replace(",", "")), int(cell[2].replace(",", "")))


def growth_plots(metrics: list[Metric]) -> list[Plot]:
    """One plot per figure that was measured at several sizes."""
    plots = []
    for name, (file, title, unit) in GROWTH.items():
        is_share = unit == "recall@10"
        ours: dict[int, list[float]] = {}
        peer: dict[int, list[float]] = {}
        for metric in metrics:
            cell = _SCENARIO.fullmatch(metric.scenario)
            if cell is None or metric.name != name:
                continue
            rows = int(cell[1].replace(",", ""))
            ours.setdefault(rows, []).append(metric.ours.median)
            if metric.peer is not None:
                peer.setdefault(rows, []).append(metric.peer.median)
        # Several numbers of themes at the same size: the worst for the system is drawn.
        worst = min if is_share else max
        lines = (
            Line("this package", "ours", tuple((float(rows), worst(ours[rows])) for rows in sorted(ours))),
            Line("peer", "peer", tuple((float(rows), worst(peer[rows])) for rows in sorted(peer))),
        )
        if len(ours) > 1:
            plots.append(Plot(file, title, "rows", unit, lines, is_log_x=True, is_log_y=not is_share))
    return plots
