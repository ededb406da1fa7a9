"""The plots of a run, one file each."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bench.measure import Plot

COLOURS = {"ours": "#1f6f8b", "peer": "#c8553d"}
MARKERS = {"ours": "o", "peer": "s"}


def draw(plot: Plot, folder: Path, *, with_png: bool = False) -> list[Path]:
    """Draw a plot as SVG, the same bytes for the same figures."""
    matplotlib.rcParams["svg.hashsalt"] = plot.name
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for line in plot.lines:
        if line.points:
            xs, ys = zip(*line.points, strict=True)
            axes.plot(xs, ys, marker=MARKERS[line.system], color=COLOURS[line.system], label=line.label, linewidth=1.8)
            axes.annotate(
                _plain(ys[-1]), (xs[-1], ys[-1]), xytext=(8, 0), textcoords="offset points",
                color=COLOURS[line.system], fontsize=9, va="center",
            )  # fmt: skip
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    if plot.is_log_x:
        axes.set_xscale("log")
        axes.set_xticks(sorted({x for line in plot.lines for x, _ in line.points}))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
        axes.minorticks_off()
    if plot.is_log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.margins(x=0.12)
    axes.grid(visible=True, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{plot.name}.svg"]
    figure.savefig(paths[0], metadata={"Date": None})
    if with_png:
        paths.append(folder / f"{plot.name}.png")
        figure.savefig(paths[1], dpi=110)
    plt.close(figure)
    return paths


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
