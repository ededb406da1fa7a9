"""What recall finds against brute force, how fast it answers, and how that grows with rows and themes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from bench.corpus import MIXTURE, Corpus, Truth, common_questions, recall_at_ten
from bench.load import load, size_of, theme_name
from bench.measure import Metric, Result, Target, percentile
from bench.stage import DIM, Seat, Stage
from bench.system import Child, Name

SMALL = ((10_000, 100),)
FULL = ((10_000, 100), (100_000, 1_000), (1_000_000, 1_000))
# The peer's index takes a quarter of an hour to build for a million rows.
PEER_ROWS = 100_000
# Rows from which on: (questions of each kind, rounds).
EFFORT = {1_000_000: (40, 3), 100_000: (100, 3), 0: (60, 3)}
SIZES = ("small", "biggest")
SYSTEMS: tuple[Name, ...] = ("ours", "peer")
# One memory for ten turns: MEMORY.md is small by design.
MEMORY_SHARE = 10
UNITS = {"recall@10": "recall", "short answers": "share", "size": "MB"}
Figures = dict[str, dict[str, list[float]]]
"""system -> figure -> one value per round."""


def scenario_name(rows: int, themes: int) -> str:
    """What a cell is called in the tables."""
    return f"recall, {rows:,} rows, {themes:,} themes"


def rows_of(scenario: str) -> int:
    """The rows of a cell; 0 for every other scenario, which so comes first in an ordered list."""
    cell = re.fullmatch(r"recall, ([\d,]+) rows, [\d,]+ themes", scenario)
    return 0 if cell is None else int(cell[1].replace(",", ""))


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Every cell of rows × themes."""
    for rows, themes in FULL if is_full else SMALL:
        count, rounds = next(how for least, how in EFFORT.items() if rows >= least)
        _note(result, _cell(stage, rows, themes, count, rounds), rows, themes)


def _cell(stage: Stage, rows: int, themes: int, count: int, rounds: int) -> Figures:
    turns = Corpus(rows, themes, DIM, stage.folder)
    memories = Corpus(max(1000, rows // MEMORY_SHARE), themes, DIM, stage.folder, name="memories", seed=2)
    figures: Figures = {system: {} for system in SYSTEMS}
    try:
        asked = _Asked(stage, turns, memories, count)
        with ExitStack() as seated:
            systems = [system for system in stage.systems if system.name == "ours" or rows <= PEER_ROWS]
            seats = {system.name: seated.enter_context(stage.seat(system)) for system in systems}
            for seat in seats.values():
                seconds = load(seat, turns, memories)
                print(f"   {rows} rows, {themes} themes into {seat.system.name}: {seconds:.0f} s", flush=True)
                figures[seat.system.name]["database size"] = [size_of(seat) / 1e6]
            for turn in stage.rounds(rounds):
                for name in (system.name for system in turn if system.name in seats):
                    asked.of(seats[name], figures[name])
    finally:
        turns.remove()
        memories.remove()
    return figures


class _Asked:
    """The questions of a cell, known to the embed server by number."""

    def __init__(self, stage: Stage, turns: Corpus, memories: Corpus, count: int) -> None:
        self._themes = {size: turns.theme(size) for size in SIZES}
        self._turns = {size: turns.questions(theme, count) for size, theme in self._themes.items()}
        self._turns["all"] = turns.questions(None, count)
        self._memory_theme = memories.theme("biggest")
        self._memories = memories.questions(self._memory_theme, count)
        self._mixture = turns.mixture(count)
        """Questions as a fleet asks them, by theme: a theme is asked as often as it has rows."""
        asked = [*self._turns.values(), self._memories, *(questions for _, questions in self._mixture)]
        path = stage.folder / "queries.npy"
        np.save(path, np.concatenate([questions.vectors for questions in asked]))
        stage.embedder.set(vectors=str(path))
        self._count = count
        self._common = common_questions(count)
        self._again = 0

    def of(self, seat: Seat, figures: dict[str, list[float]]) -> None:
        """Ask everything of one system, in one process."""
        self._again += 1
        with seat.child() as child:
            for place, (size, questions) in enumerate(self._turns.items()):
                child.ask("start", theme=theme_name(self._themes.get(size, 0)))
                scope = "all" if size == "all" else "current"
                label = "scope all" if size == "all" else f"{size} theme"
                queries = self._queries(place)
                _ask(child, "recall_conversation", queries[:10], scope)
                micros, rows = _ask(child, "recall_conversation", queries, scope)
                _add_answers(figures, f"recall_conversation, {label}", micros, rows, questions.truth)
                if size in ("biggest", "all"):
                    _add_times(
                        figures, f"common words, {label}", _ask(child, "recall_conversation", self._common, scope)[0]
                    )
                if size != "all":
                    _add_times(figures, f"prefetch, {label}", _ask(child, "prefetch", queries)[0])
            child.ask("start", theme=theme_name(self._memory_theme))
            micros, rows = _ask(child, "recall_memory", self._queries(len(self._turns)))
            _add_answers(figures, "recall_memory, biggest theme", micros, rows, self._memories.truth)
            self._mixed(child, figures)

    def _mixed(self, child: Child, figures: dict[str, list[float]]) -> None:
        """The questions of a fleet."""
        queries = self._queries(len(self._turns) + 1)
        found: list[list[int]] = []
        truth: list[Truth] = []
        recalls: list[float] = []
        prefetches: list[float] = []
        for theme, questions in self._mixture:
            own, queries = queries[: len(questions.truth)], queries[len(questions.truth) :]
            child.ask("start", theme=theme_name(theme))
            _ask(child, "recall_conversation", [f"{query} first" for query in own[:2]])
            micros, rows = _ask(child, "recall_conversation", own)
            recalls += micros
            found += rows
            truth += questions.truth
            prefetches += _ask(child, "prefetch", own)[0]
        _add_answers(figures, f"recall_conversation, {MIXTURE}", recalls, found, truth)
        _add_times(figures, f"prefetch, {MIXTURE}", prefetches)

    def _queries(self, place: int) -> list[str]:
        # The words differ each time, so that no cache of answers or vectors helps anybody.
        return [f"zq{place * self._count + number} again{self._again}x{number}" for number in range(self._count)]


def _ask(child: Child, tool: str, queries: list[str], scope: str = "current") -> tuple[list[float], list[list[int]]]:
    answer = child.ask("ask", seconds=600, tool=tool, queries=queries, scope=scope)
    if answer["errors"]:
        raise RuntimeError(f"{child.system.name}: {answer['errors']} of {len(queries)} questions failed")
    return answer["micros"], answer["rows"]


def _add_answers(
    figures: dict[str, list[float]], name: str, micros: list[float], rows: list[list[int]], truth: Sequence[Truth]
) -> None:
    _add_times(figures, name, micros)
    figures.setdefault(f"{name}, recall@10", []).append(recall_at_ten(rows, truth))
    short = sum(len(found) < true.count for found, true in zip(rows, truth, strict=True))
    figures.setdefault(f"{name}, short answers", []).append(short / len(truth))


def _add_times(figures: dict[str, list[float]], name: str, micros: list[float]) -> None:
    for label, share in (("p50", 0.50), ("p95", 0.95)):
        figures.setdefault(f"{name}, {label}", []).append(percentile(micros, share) / 1000)


def _note(result: Result, figures: Figures, rows: int, themes: int) -> None:
    for name in figures["ours"]:
        unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "ms")
        result.metrics.append(
            Metric.of(
                scenario_name(rows, themes),
                name,
                unit,
                "higher" if unit == "recall" else "lower",
                {system: figures[system][name] for system in SYSTEMS if name in figures[system]},
                target=_target(name, rows),
            )
        )


def _target(name: str, rows: int) -> Target | None:
    if name.endswith("recall@10"):
        return Target("at least", 0.998)
    if name.endswith("short answers"):
        return Target("at most", 0)
    if rows == 100_000 and name.endswith("p95"):
        if name.startswith(("prefetch", "recall_conversation")) and MIXTURE in name:
            return Target("ratio at least", 2)
        if name.startswith("common words"):
            return Target("at most", 50)
    return None
