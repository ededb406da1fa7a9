"""Results as Markdown: one table per question, what was missed, and where the plots are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.growth import cell_of, growth_plots
from bench.measure import Figure, Metric, Result

BEGIN, END = "<!-- figures: begin (written by python -m bench report) -->", "<!-- figures: end -->"


def table(result: Result) -> str:
    """All metrics, grouped by scenario."""
    parts = []
    for scenario in sorted(dict.fromkeys(metric.scenario for metric in result.metrics), key=cell_of):
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


def page(result: Result, images: str | None) -> str:
    """The part of the page that comes from the run."""
    about = result.about
    versions = about["versions"]
    head = [_run_line(run) for run in about.get("runs", [about])] + [
        f"\nOurs: {_versions(versions['ours'])}. Peer: {_versions(versions['peer'])}.",
    ]
    parts = ["\n".join(head), table(result)]
    if result.problems:
        parts.append("### Problems of this run\n\n" + "\n".join(f"- {problem}" for problem in result.problems))
    lost = misses(result)
    parts.append("### Where we lose or miss\n\n" + ("\n".join(lost) if lost else "Nowhere in this run."))
    if images is not None:
        shown = "\n\n".join(f"![{plot.title}]({images}/{plot.name}.svg)" for plot in result.plots)
        parts.append("### Plots\n\n" + shown)
    return "\n\n".join(parts)


def merged(results: Sequence[Result]) -> Result:
    """Several results as one; a later run's figures take the place of earlier ones of the same name.

    A figure that stands beside the peer's gives way only to one that does, too.
    """
    # By their own clock: the order of file names says nothing about which run is later.
    results = sorted(results, key=lambda result: str(result.about["started"]))
    first = results[0]
    metrics: dict[str, Metric] = {}
    owner: dict[str, int] = {}
    for number, result in enumerate(results):
        for metric in result.metrics:
            known = metrics.get(metric.key)
            if known is None or known.peer is None or metric.peer is not None:
                metrics[metric.key], owner[metric.key] = metric, number
    plots = {plot.name: plot for result in results for plot in result.plots}
    plots |= {plot.name: plot for plot in growth_plots(list(metrics.values()))}
    problems = [problem for result in results for problem in result.problems]
    # Every run is named with what was taken from it: nothing is replaced in silence.
    runs = [
        {**result.about, "gives": sorted({key.split(":")[0] for key, place in owner.items() if place == number}),
         "replaced": sorted({metric.scenario for metric in result.metrics if owner[metric.key] != number})}
        for number, result in enumerate(results)
    ]  # fmt: skip
    about = {**first.about, "runs": runs, "seconds": sum(result.about["seconds"] for result in results)}
    return Result(about, list(metrics.values()), list(plots.values()), problems)


def write_page(path: Path, text: str) -> None:
    """Put the text between the page's markers."""
    old = path.read_text(encoding="utf-8")
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


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


def _run_line(run: dict[str, Any]) -> str:
    took = f"{run['seconds']} s" if run["seconds"] else "stopped before its end"
    line = (
        f"- Run of {run['started']}, size `{run['size']}`, commit `{run['commit']}`, {took}, "
        f"load {run['load_at_start']} at the start; {run['machine']}; Python {run['python']}; {run['server']}."
    )
    if run.get("gives"):
        line += f" Gives: {'; '.join(run['gives'])}."
    if run.get("replaced"):
        line += f" Measured too, but shown from another run: {'; '.join(run['replaced'])}."
    return line


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
