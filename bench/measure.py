"""Figures: how they are summed up, compared with a target, and kept."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Better = Literal["lower", "higher"]


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, by nearest rank: always one that was measured."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Figure:
    """One system's figure: the median of its rounds, with all of them."""

    median: float
    low: float
    high: float
    rounds: tuple[float, ...]

    @staticmethod
    def of(rounds: Sequence[float]) -> Figure:
        """A figure from what each round gave."""
        kept = tuple(round(value, 6) for value in rounds)
        return Figure(round(statistics.median(kept), 6), min(kept), max(kept), kept)


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure has to reach."""

    kind: Literal["at most", "at least", "ratio at least"]
    value: float

    def is_met(self, ours: float, ratio: float | None) -> bool:
        """Whether it is reached."""
        if self.kind == "at most":
            return ours <= self.value
        if self.kind == "at least":
            return ours >= self.value
        return ratio is not None and ratio >= self.value


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the table."""

    scenario: str
    name: str
    unit: str
    better: Better
    ours: Figure
    peer: Figure | None = None
    target: Target | None = None
    note: str = ""

    @staticmethod
    def of(
        scenario: str,
        name: str,
        unit: str,
        better: Better,
        rounds: Mapping[Any, Sequence[float]],
        *,
        target: Target | None = None,
        note: str = "",
    ) -> Metric:
        """A metric from what each round of each system gave: {"ours": …, "peer": …}."""
        peer = Figure.of(rounds["peer"]) if "peer" in rounds else None
        return Metric(scenario, name, unit, better, Figure.of(rounds["ours"]), peer, target, note)

    @property
    def key(self) -> str:
        """What identifies the metric between runs."""
        return f"{self.scenario}: {self.name}"

    @property
    def ratio(self) -> float | None:
        """How many times better we are; None when there is nothing to divide by."""
        if self.peer is None:
            return None
        ours, peer = self.ours.median, self.peer.median
        over, under = (peer, ours) if self.better == "lower" else (ours, peer)
        return over / under if under > 0 and over > 0 else None

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None without one, and for a ratio to a peer that was not measured."""
        if self.target is None or (self.target.kind == "ratio at least" and self.peer is None):
            return None
        return self.target.is_met(self.ours.median, self.ratio)


@dataclass(slots=True)
class Result:
    """One run."""

    about: dict[str, Any]
    metrics: list[Metric] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write the run as JSON."""
        rows = [dataclasses.asdict(metric) for metric in self.metrics]
        document = {"about": self.about, "problems": self.problems, "metrics": rows}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Result:
        """Read a run."""
        document = json.loads(path.read_text(encoding="utf-8"))
        result = Result(document["about"], problems=document["problems"])
        for row in document["metrics"]:
            row["ours"] = _figure(row["ours"])
            row["peer"] = None if row["peer"] is None else _figure(row["peer"])
            row["target"] = None if row["target"] is None else Target(**row["target"])
            result.metrics.append(Metric(**row))
        return result


def _figure(row: dict[str, Any]) -> Figure:
    return Figure(row["median"], row["low"], row["high"], tuple(row["rounds"]))
