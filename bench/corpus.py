"""Rows to search: themes of Zipf sizes, texts of Zipf words, vectors in clusters; and what brute force finds in them.

Vectors have the halfvec precision from the start, so the truth does not depend on how a system stores them; questions
have not, so rows that only their rounding tells apart count as equally near. Half of a theme's rows come from clusters
the theme prefers, as people have their subjects; the rest from anywhere. All share a direction, so that random pairs
have a cosine of 0.36 to 0.48: an assumption about real models, which SHARED = 0 drops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

Halves = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

CHUNK = 20_000
CLUSTERS = 400
OWN_CLUSTERS = 12
RANK = 64
SHARED = 1.15
VOCABULARY = 4000
COMMON = 12
TOP = 10
MIXTURE = "themes by their rows"
"""What the questions of a fleet are called in the tables."""
TIE = 3e-5
"""What rounding a question to half precision may change of a cosine: a few times 2^-11 over the root of 768."""
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]


@dataclass(frozen=True, slots=True)
class Truth:
    """What brute force finds for one question."""

    count: int
    """How many rows an answer has: ten, or fewer in a theme that has not so many."""
    sure: frozenset[int]
    """Rows that belong to it."""
    tied: frozenset[int]
    """Rows that fill the rest, in any choice."""

    def share(self, found: Sequence[int]) -> float:
        """How much of it was found."""
        rows = set(found[: self.count])
        return (len(rows & self.sure) + min(len(rows & self.tied), self.count - len(self.sure))) / self.count


@dataclass(frozen=True, slots=True)
class Questions:
    """Queries about some rows, and what brute force finds for each."""

    vectors: Floats
    truth: list[Truth]


class Corpus:
    """`rows` rows in `themes` themes; the same for the same numbers."""

    def __init__(self, rows: int, themes: int, dim: int, folder: Path, *, name: str = "turns", seed: int = 1) -> None:
        self.rows = rows
        self.themes = themes
        self.dim = dim
        self._random = np.random.default_rng([seed, rows, themes])
        self._words = vocabulary()
        weights = 1 / np.arange(1, themes + 1)
        self.theme_of: Integers = self._random.choice(themes, size=rows, p=weights / weights.sum())
        self._file = folder / f"{name}-{rows}-{themes}.f16"
        self.vectors: Halves = np.memmap(self._file, dtype=np.float16, mode="w+", shape=(rows, dim))
        self._make_vectors()

    def remove(self) -> None:
        """Delete the vectors' file."""
        self._file.unlink(missing_ok=True)

    @cached_property
    def sizes(self) -> Integers:
        """Rows of each theme."""
        return np.bincount(self.theme_of, minlength=self.themes)

    def theme(self, size: str) -> int:
        """A small theme (the smallest that has ten rows to find), or the biggest."""
        if size == "biggest":
            return int(self.sizes.argmax())
        enough = np.flatnonzero(self.sizes >= TOP)
        return int(enough[self.sizes[enough].argmin()])

    def content(self, row: int) -> str:
        """The text of a row; its number is in it."""
        random = np.random.default_rng([3, row])
        count = int(random.integers(12, 60))
        picks = np.minimum(random.zipf(1.25, size=count) - 1, VOCABULARY - 1)
        return f"row{row} " + " ".join(self._words[pick] for pick in picks)

    def questions(self, theme: int | None, count: int, seed: int = 5) -> Questions:
        """Queries near rows of a theme, or of all themes, with what brute force finds there."""
        random = np.random.default_rng([seed, 0 if theme is None else theme + 1])
        pool = np.arange(self.rows) if theme is None else np.flatnonzero(self.theme_of == theme)
        asked = np.sort(random.choice(pool, size=count, replace=len(pool) < count))
        near = self.vectors[asked].astype(np.float32)
        noise = unit(random.standard_normal((count, RANK)).astype(np.float32) @ self._basis)
        vectors = unit(near + 0.35 * noise + 0.2 * unit(random.standard_normal((count, self.dim)).astype(np.float32)))
        return Questions(vectors, self._nearest(vectors, pool))

    def mixture(self, count: int, seed: int = 6) -> list[tuple[int, Questions]]:
        """As many queries, each in the theme of a row drawn from all: large themes are asked more often."""
        drawn = self.theme_of[np.random.default_rng(seed).integers(0, self.rows, size=count)]
        themes, counts = np.unique(drawn, return_counts=True)
        return [
            (int(theme), self.questions(int(theme), int(number), seed))
            for theme, number in zip(themes, counts, strict=True)
        ]

    def _nearest(self, queries: Floats, pool: Integers) -> list[Truth]:
        kept = 2 * TOP
        best_scores = np.full((len(queries), kept), -np.inf, dtype=np.float32)
        best_rows = np.zeros((len(queries), kept), dtype=np.int64)
        for start in range(0, len(pool), CHUNK):
            rows = pool[start : start + CHUNK]
            scores = queries @ unit(self.vectors[rows].astype(np.float32)).T
            scores = np.concatenate([best_scores, scores], axis=1)
            numbers = np.concatenate([best_rows, np.broadcast_to(rows, (len(queries), len(rows)))], axis=1)
            order = np.argsort(-scores, axis=1)[:, :kept]
            best_scores = np.take_along_axis(scores, order, axis=1)
            best_rows = np.take_along_axis(numbers, order, axis=1)
        return [truth_of(rows, scores) for rows, scores in zip(best_rows, best_scores, strict=True)]

    def chunks(self) -> Iterator[range]:
        """The row numbers, in portions."""
        for start in range(0, self.rows, CHUNK):
            yield range(start, min(start + CHUNK, self.rows))

    def _make_vectors(self) -> None:
        random = self._random
        shared = unit(random.standard_normal((1, self.dim)).astype(np.float32))
        centres = unit(random.standard_normal((CLUSTERS, self.dim)).astype(np.float32)) + SHARED * shared
        self._basis: Floats = random.standard_normal((RANK, self.dim)).astype(np.float32)
        preferred = random.integers(0, CLUSTERS, size=(self.themes, OWN_CLUSTERS))
        for rows in self.chunks():
            count = len(rows)
            themes = self.theme_of[rows.start : rows.stop]
            own = preferred[themes, random.integers(0, OWN_CLUSTERS, size=count)]
            cluster = np.where(random.random(count) < 0.5, own, random.integers(0, CLUSTERS, size=count))
            low = unit(random.standard_normal((count, RANK)).astype(np.float32) @ self._basis)
            noise = unit(random.standard_normal((count, self.dim)).astype(np.float32))
            self.vectors[rows.start : rows.stop] = unit(centres[cluster] + 0.8 * low + 0.4 * noise)


def unit(rows: npt.NDArray[np.floating]) -> Floats:
    """Rows of length one."""
    normed: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return normed


@cache
def vocabulary() -> list[str]:
    """Made-up words, the commonest first."""
    random = np.random.default_rng(2)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(random.choice(_SYLLABLES, size=int(random.integers(2, 5))))] = None
    return list(words)


def common_questions(count: int) -> list[str]:
    """Queries of four of the commonest words each."""
    random = np.random.default_rng(4)
    words = vocabulary()[:COMMON]
    return [" ".join(random.choice(words, size=4, replace=False)) for _ in range(count)]


def truth_of(rows: Integers, scores: Floats) -> Truth:
    """The ten nearest of some rows, the nearest first; scores of places without a row are infinitely low."""
    count = min(TOP, int(np.isfinite(scores).sum()))
    last = scores[count - 1]
    sure = rows[scores > last + TIE]
    tied = rows[np.isfinite(scores) & (np.abs(scores - last) <= TIE)]
    return Truth(count, frozenset(sure.tolist()), frozenset(tied.tolist()))


def recall_at_ten(found: Sequence[Sequence[int]], truth: Sequence[Truth]) -> float:
    """The share of the true nearest rows that were found, averaged over the queries."""
    return float(np.mean([true.share(rows) for rows, true in zip(found, truth, strict=True)]))
