"""Which sayings of a session are not stored yet, whoever stored the others and under which number. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hermes_memory_pgvector.transfer.own_words import Said

MAX_REPEATS = 100
"""Words said more often than this are paired in their order instead of by time."""


class StoredKey(NamedTuple):
    """A stored turn without its text."""

    digest: str
    ordinal: int
    at_us: int


def missing(said: Sequence[Said], stored: Sequence[StoredKey]) -> list[Said]:
    """The sayings that are not stored, each with an ordinal that is free.

    Live traffic may have stored a saying in other words of the same message, or under another ordinal because it did
    not see the whole session. A stored row stands for the saying nearest to it in time.
    """
    rows: dict[str, list[StoredKey]] = defaultdict(list)
    for row in stored:
        rows[row.digest].append(row)
    taken = _paired(said, rows)
    used = {(row.digest, row.ordinal) for row in stored}
    found = []
    for place, each in enumerate(said):
        if place in taken:
            continue
        ordinal = each.ordinal
        while (each.line.key, ordinal) in used:
            ordinal += 1
        used.add((each.line.key, ordinal))
        found.append(replace(each, ordinal=ordinal))
    return found


def _paired(said: Sequence[Said], rows: dict[str, list[StoredKey]]) -> set[int]:
    """The places of sayings that a stored row stands for."""
    wanting: dict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(said):
        for digest in each.line.digests:
            if digest in rows:
                wanting[digest].append(place)
    taken: set[int] = set()
    pairs: list[tuple[int, int, StoredKey]] = []
    for digest, places in wanting.items():
        if len(places) <= len(rows[digest]):
            taken.update(places)
        elif len(places) > MAX_REPEATS:
            taken.update(places[: len(rows[digest])])
        else:
            pairs += [(abs(row.at_us - said[place].line.at_us), place, row) for place in places for row in rows[digest]]
    used: set[StoredKey] = set()
    for _, place, row in sorted(pairs):
        if place not in taken and row not in used:
            taken.add(place)
            used.add(row)
    return taken
