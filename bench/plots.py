"""The plots of a run, one file each."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

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
            axes.annotate(f" {ys[-1]:,.4g}", (xs[-1], ys[-1]), color=COLOURS[line.system], fontsize=9, va="center")
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    if plot.is_log_x:
        axes.set_xscale("log")
    if plot.is_log_y:
        axes.set_yscale("log")
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
