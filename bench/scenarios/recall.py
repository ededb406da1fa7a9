"""What recall finds against brute force, how fast it answers, and how that grows with rows and themes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from bench.corpus import MIXTURE, Corpus, Questions, Truth, common_questions, recall_at_ten
from bench.growth import scenario_name
from bench.load import load, make_index, size_of, theme_name
from bench.measure import Metric, Result, Target, percentile
from bench.stage import DIM, Seat, Stage
from bench.system import Child, Name

SMALL = ((10_000, 100),)
FULL = ((10_000, 100), *((rows, themes) for rows in (100_000, 1_000_000) for themes in (100, 1_000, 10_000)))
# Rows from which on: (questions of each kind, rounds).
EFFORT = {1_000_000: (40, 3), 100_000: (100, 3), 0: (60, 3)}
SIZES = ("small", "middle", "biggest")
SYSTEMS: tuple[Name, ...] = ("ours", "peer")
# Where the package's documentation advises its indexes, for scope 'all' and for a theme of that size. They take long to
# make, and how many other themes there are does not matter to them.
INDEX_FROM = 150_000
INDEX_THEMES = 100
# One memory for ten turns: MEMORY.md is small by design.
MEMORY_SHARE = 10
Figures = dict[str, dict[str, list[float]]]
"""system -> figure -> one value per round."""


def run(stage: Stage, result: Result, is_full: bool, cells: Sequence[tuple[int, int]] = ()) -> None:
    """Every cell of rows × themes; how figures grow is drawn from them by the report."""
    for rows, themes in cells or (FULL if is_full else SMALL):
        count, rounds = next(how for least, how in EFFORT.items() if rows >= least)
        _note(result, _cell(stage, rows, themes, count, rounds), rows, themes)
        result.keep()


def _cell(stage: Stage, rows: int, themes: int, count: int, rounds: int) -> Figures:
    turns = Corpus(rows, themes, DIM, stage.folder)
    memories = Corpus(max(1000, rows // MEMORY_SHARE), themes, DIM, stage.folder, name="memories", seed=2)
    figures: Figures = {system: {} for system in SYSTEMS}
    try:
        asked = _Asked(stage, turns, memories, count)
        with ExitStack() as seated:
            seats = {system.name: seated.enter_context(stage.seat(system)) for system in stage.systems}
            for seat in seats.values():
                seconds = load(seat, turns, memories)
                print(f"   {rows} rows, {themes} themes into {seat.system.name}: {seconds:.0f} s", flush=True)
                figures[seat.system.name]["database size"] = [size_of(seat) / 1e6]
            for systems in stage.rounds(rounds):
                for system in systems:
                    asked.of(seats[system.name], figures[system.name])
            if rows >= INDEX_FROM and themes <= INDEX_THEMES:
                asked.with_indexes(seats["ours"], figures["ours"], rounds)
    finally:
        turns.remove()
        memories.remove()
    return figures


class _Asked:
    """The questions of a cell, known to the embed server by number."""

    def __init__(self, stage: Stage, turns: Corpus, memories: Corpus, count: int) -> None:
        self._themes = {size: turns.theme(size) for size in SIZES}
        self._sizes = {size: int(turns.sizes[theme]) for size, theme in self._themes.items()}
        self._turns: dict[str, Questions] = {
            size: turns.questions(theme, count) for size, theme in self._themes.items()
        }
        self._turns["all"] = turns.questions(None, count)
        self.mixture = turns.mixture(count)
        """Questions as a fleet asks them, by theme: a theme is asked as often as it has rows."""
        biggest = memories.theme("biggest")
        self._memory_theme = biggest
        self._memories = memories.questions(biggest, count)
        vectors = [questions.vectors for questions in self._turns.values()] + [self._memories.vectors]
        vectors += [questions.vectors for _, questions in self.mixture]
        path = stage.folder / "queries.npy"
        np.save(path, np.concatenate(vectors))
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
                child.ask("ask", tool="recall_conversation", queries=queries[:10], scope=scope)
                answer = child.ask("ask", seconds=600, tool="recall_conversation", queries=queries, scope=scope)
                self._times(figures, f"recall_conversation, {label}", answer["micros"])
                _add(
                    figures, f"recall_conversation, {label}, recall@10", recall_at_ten(answer["rows"], questions.truth)
                )
                short = sum(len(rows) < true.count for rows, true in zip(answer["rows"], questions.truth, strict=True))
                _add(figures, f"recall_conversation, {label}, short answers", short / self._count)
                if size in ("biggest", "all"):
                    answer = child.ask(
                        "ask", seconds=600, tool="recall_conversation", queries=self._common, scope=scope
                    )
                    self._times(figures, f"common words, {label}", answer["micros"])
                if size != "all":
                    answer = child.ask("ask", seconds=600, tool="prefetch", queries=queries)
                    self._times(figures, f"prefetch, {label}", answer["micros"])
            child.ask("start", theme=theme_name(self._memory_theme))
            answer = child.ask("ask", seconds=600, tool="recall_memory", queries=self._queries(len(self._turns)))
            self._times(figures, "recall_memory, biggest theme", answer["micros"])
            _add(
                figures, "recall_memory, biggest theme, recall@10", recall_at_ten(answer["rows"], self._memories.truth)
            )

            self._mixed(child, figures)

    def _mixed(self, child: Child, figures: dict[str, list[float]]) -> None:
        """The questions of a fleet."""
        queries = self._queries(len(self._turns) + 1)
        found: list[list[int]] = []
        truth: list[Truth] = []
        recalls: list[float] = []
        prefetches: list[float] = []
        for theme, questions in self.mixture:
            own, queries = queries[: len(questions.truth)], queries[len(questions.truth) :]
            child.ask("start", theme=theme_name(theme))
            child.ask("ask", tool="recall_conversation", queries=[f"{query} first" for query in own[:2]])
            answer = child.ask("ask", seconds=600, tool="recall_conversation", queries=own)
            recalls += answer["micros"]
            found += answer["rows"]
            truth += questions.truth
            prefetches += child.ask("ask", seconds=600, tool="prefetch", queries=own)["micros"]
        self._times(figures, f"recall_conversation, {MIXTURE}", recalls)
        _add(figures, f"recall_conversation, {MIXTURE}, recall@10", recall_at_ten(found, truth))
        short = sum(len(rows) < true.count for rows, true in zip(found, truth, strict=True))
        _add(figures, f"recall_conversation, {MIXTURE}, short answers", short / len(truth))
        self._times(figures, f"prefetch, {MIXTURE}", prefetches)

    def with_indexes(self, seat: Seat, figures: dict[str, list[float]], rounds: int) -> None:
        """Scope 'all' and the biggest theme again, with the indexes that an administrator may make for them."""
        for size, which in (("all", ["--all"]), ("biggest", ["--theme", theme_name(self._themes["biggest"])])):
            if size != "all" and self._sizes[size] < INDEX_FROM:
                continue
            seconds = make_index(seat, *which)
            print(f"   index create {' '.join(which)}: {seconds:.0f} s", flush=True)
            label = "scope all with its index" if size == "all" else "biggest theme with its index"
            _add(figures, f"index of {'scope all' if size == 'all' else 'the biggest theme'}, made in", seconds)
            for _ in range(rounds):
                self._again += 1
                place, questions = list(self._turns).index(size), self._turns[size]
                with seat.child() as child:
                    child.ask("start", theme=theme_name(self._themes.get(size, 0)))
                    queries, scope = self._queries(place), "all" if size == "all" else "current"
                    child.ask("ask", tool="recall_conversation", queries=queries[:10], scope=scope)
                    answer = child.ask("ask", seconds=600, tool="recall_conversation", queries=queries, scope=scope)
                self._times(figures, f"recall_conversation, {label}", answer["micros"])
                found = recall_at_ten(answer["rows"], questions.truth)
                _add(figures, f"recall_conversation, {label}, recall@10", found)

    def _queries(self, place: int) -> list[str]:
        # The words differ each time, so that no cache of answers or vectors helps anybody.
        return [f"zq{place * self._count + number} again{self._again}x{number}" for number in range(self._count)]

    def _times(self, figures: dict[str, list[float]], name: str, micros: list[float]) -> None:
        _add(figures, f"{name}, p50", percentile(micros, 0.50) / 1000)
        _add(figures, f"{name}, p95", percentile(micros, 0.95) / 1000)


def _add(figures: dict[str, list[float]], name: str, value: float) -> None:
    figures.setdefault(name, []).append(value)


def _note(result: Result, figures: Figures, rows: int, themes: int) -> None:
    for name in figures["ours"]:
        unit = _unit(name)
        result.metrics.append(
            Metric.of(
                scenario_name(rows, themes),
                name,
                unit,
                "higher" if unit == "recall" else "lower",
                {system: figures[system][name] for system in SYSTEMS if name in figures[system]},
                target=_target(name, rows),
                is_portable=unit in ("recall", "share", "MB", "times"),
            )
        )


def _unit(name: str) -> str:
    known = {"recall@10": "recall", "short answers": "share", "size": "MB", "made in": "s"}
    return next((unit for end, unit in known.items() if name.endswith(end)), "ms")


def _target(name: str, rows: int) -> Target | None:
    if name.endswith("recall@10"):
        if "scope all" in name:
            return Target("at least", 0.98) if rows >= 1_000_000 else None
        return None if "with its index" in name else Target("at least", 0.998)
    if name.endswith("short answers") and "scope all" not in name:
        return Target("at most", 0)
    if rows == 100_000 and name.endswith("p95"):
        if name.startswith(("prefetch", "recall_conversation")) and MIXTURE in name:
            return Target("ratio at least", 2)
        if name.startswith("common words"):
            return Target("at most", 50)
    return None
