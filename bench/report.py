"""A run as Markdown: a page with the figures that matter most, and all tables on a page beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.measure import Figure, Metric, Result
from bench.scenarios.recall import rows_of

BEGIN, END = "<!-- figures: begin (written by python -m bench report) -->", "<!-- figures: end -->"
NOTE = "<!-- Written by python -m bench report; run it again instead of editing. -->"
HEADLINES = (
    ("loss", "kill -9 while writing", "rows lost after kill -9"),
    ("loss", "Postgres is away", "rows lost while Postgres is down for 10 s"),
    ("ingest", "rows lost of a burst", "rows lost of a burst of 1,000 turns (2,000 rows)"),
    ("ingest", "text durable, embedder at 20 ms", "rows stored, embedder at 20 ms"),
    ("ingest", "with vector, embedder at 20 ms", "rows stored with their vector, embedder at 20 ms"),
    ("start", "warm, p95", "`initialize`, p95"),
    ("start", "Postgres down, worst", "`initialize` while Postgres is down, worst"),
    ("fleet", "threads, most", "threads for a provider per request, most"),
    ("fleet", "Postgres connections, most", "connections for a provider per request, most"),
    ("recall", "recall_conversation, themes by their rows, recall@10", "`recall_conversation`, recall@10"),
    ("recall", "recall_conversation, themes by their rows, p95", "`recall_conversation`, p95"),
    ("recall", "prefetch, themes by their rows, p95", "`prefetch`, p95"),
    ("hooks", "sync_turn, paced, p50", "`sync_turn`, p50"),
)
"""The first screen: scenario, beginning of the metric's name, and what the page calls it."""


def table(result: Result) -> str:
    """All metrics, grouped by scenario."""
    parts = []
    for scenario in sorted(dict.fromkeys(metric.scenario for metric in result.metrics), key=rows_of):
        rows = [metric for metric in result.metrics if metric.scenario == scenario]
        parts.append("\n".join([
            f"### {scenario[:1].upper()}{scenario[1:]}",
            "",
            "| what | unit | ours | peer | times better | target |",
            "|---|---|---:|---:|---:|---|",
            *(_row(metric) for metric in rows),
        ]))  # fmt: skip
    return "\n\n".join(parts)


def misses(result: Result) -> list[str]:
    """One line for each target that is missed and each figure where the peer is ahead."""
    lines = []
    for metric in result.metrics:
        if metric.is_met is False:
            assert metric.target is not None
            shown = number(metric.ours.median) if metric.target.kind != "ratio at least" else _ratio(metric)
            lines.append(f"- **Missed**: {metric.key}: {shown}, target {_target(metric)}.")
        elif metric.ratio is not None and metric.ratio < 0.95:
            assert metric.peer is not None
            lines.append(
                f"- Behind the peer: {metric.key}: {number(metric.ours.median)} against "
                f"{number(metric.peer.median)} {metric.unit}."
            )
    return lines


def headlines(result: Result) -> str:
    """The figures of the first screen; those of recall at the largest size that stands beside the peer."""
    lines = ["| what | unit | ours | peer | times better |", "|---|---|---:|---:|---:|"]
    for scenario, name, label in HEADLINES:
        found = [
            metric
            for metric in result.metrics
            if metric.peer is not None
            and metric.scenario.partition(",")[0] == scenario
            and metric.name.startswith(name)
        ]
        if found:
            metric = max(found, key=lambda each: rows_of(each.scenario))
            rows = rows_of(metric.scenario)
            label = f"{label}, {rows:,} rows" if rows else label
            assert metric.peer is not None
            ours, peer = number(metric.ours.median), number(metric.peer.median)
            lines.append(f"| {label} | {metric.unit} | {ours} | {peer} | {_ratio(metric)} |")
    return "\n".join(lines)


def page(result: Result, folder: str) -> str:
    """The part of the page that comes from the run; `folder` is where all tables are."""
    links = f"[All tables]({folder}/tables.md) · [raw figures]({folder}/run.json)"
    return "\n\n".join([_run_line(result.about), headlines(result), links])


def tables_page(result: Result) -> str:
    """Every figure of the run, as a page of its own."""
    versions = "; ".join(
        f"{name}: " + ", ".join(f"{package} {version}" for package, version in known.items())
        for name, known in result.about["versions"].items()
    )
    parts = [
        NOTE,
        "# All figures of the run",
        f"{_run_line(result.about)} {versions}.",
        "[Benchmarks](../benchmarks.md) explains how they were measured.",
        table(result),
    ]
    if result.problems:
        parts.append("### Problems of this run\n\n" + "\n".join(f"- {problem}" for problem in result.problems))
    lost = misses(result)
    parts.append("### Where the peer is ahead or a target is missed\n\n" + ("\n".join(lost) or "Nowhere in this run."))
    return "\n\n".join(parts) + "\n"


def publish(source: Path, path: Path) -> None:
    """Write a run to a page and, beside it, all tables and the raw figures."""
    result = Result.load(source)
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    result.save(folder / "run.json")
    (folder / "tables.md").write_text(tables_page(result), encoding="utf-8")
    write_between(path, BEGIN, END, page(result, folder.name))


def write_between(path: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two markers of a page; ValueError when the page does not have them."""
    old = path.read_text(encoding="utf-8")
    if begin not in old or end not in old:
        raise ValueError(f"{path} does not have the lines {begin} and {end}")
    head, _, rest = old.partition(begin)
    _, _, tail = rest.partition(end)
    path.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")


def number(value: float) -> str:
    """Three digits that matter."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _row(metric: Metric) -> str:
    name = metric.name + (f" ({metric.note})" if metric.note else "")
    peer = "–" if metric.peer is None else _figure(metric.peer)
    return f"| {name} | {metric.unit} | {_figure(metric.ours)} | {peer} | {_ratio(metric)} | {_verdict(metric)} |"


def _figure(figure: Figure) -> str:
    if figure.low == figure.high:
        return number(figure.median)
    return f"{number(figure.median)} <sub>{number(figure.low)}–{number(figure.high)}</sub>"


def _ratio(metric: Metric) -> str:
    if metric.ratio is not None:
        return f"{number(metric.ratio)}×"
    if metric.peer is None:
        return "–"
    ours, peer = metric.ours.median, metric.peer.median
    if ours == peer:
        return "equal"
    return "ours only" if (ours < peer) == (metric.better == "lower") else "peer only"


def _target(metric: Metric) -> str:
    assert metric.target is not None
    sign = {"at most": "≤ ", "at least": "≥ ", "ratio at least": "≥ "}[metric.target.kind]
    return sign + number(metric.target.value) + ("×" if metric.target.kind == "ratio at least" else "")


def _verdict(metric: Metric) -> str:
    if metric.is_met is None:
        return ""
    return f"{_target(metric)} {'met' if metric.is_met else '**missed**'}"


def _run_line(about: dict[str, Any]) -> str:
    took = f"{about['seconds']} s" if about["seconds"] else "stopped before its end"
    return (
        f"Run of {about['started']}, size `{about['size']}`, commit `{about['commit']}`, {took}, load "
        f"{about['load_at_start']} at the start; {about['machine']}; Python {about['python']}; {about['server']}."
    )
