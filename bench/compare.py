"""Two runs beside each other: what got worse by more than a margin.

Figures that have a peer are compared by their ratio to it, which cancels the machine out; figures that mean the same on
every machine by themselves. Others are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure import Metric, Result


@dataclass(frozen=True, slots=True)
class Change:
    """A metric in both runs."""

    key: str
    old: float
    new: float
    loss: float
    """The share of the old figure that was lost; negative when it was gained."""
    is_worse: bool


def compare(old: Result, new: Result, margin: float) -> list[Change]:
    """Every metric that can be compared, the worst first."""
    before = {metric.key: metric for metric in old.metrics}
    changes = [_change(before[metric.key], metric, margin) for metric in new.metrics if metric.key in before]
    return sorted((change for change in changes if change is not None), key=lambda change: -change.loss)


def missing(old: Result, new: Result) -> list[str]:
    """Metrics that the new run no longer has."""
    return sorted({metric.key for metric in old.metrics} - {metric.key for metric in new.metrics})


def _change(old: Metric, new: Metric, margin: float) -> Change | None:
    if new.is_portable:
        first, second = old.ours.median, new.ours.median
        higher_is_better = new.better == "higher"
    elif old.ratio is not None and new.ratio is not None:
        first, second, higher_is_better = old.ratio, new.ratio, True
    else:
        return None
    if first == second:
        loss = 0.0
    elif higher_is_better:
        loss = (first - second) / first if first else -1.0
    else:
        # Nothing lost before and something now is a whole loss, whatever the margin.
        loss = (second - first) / first if first else 1.0
    return Change(new.key, first, second, loss, loss > margin)
