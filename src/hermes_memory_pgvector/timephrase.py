"""Time in words: whether a text speaks of a time, and which days a question means. Pure and deterministic."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from hermes_memory_pgvector.stemmer import stem

MONTHS = ("january february march april may june july august september october november december").split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()

_TIME_LEXEMES = frozenset(
    map(
        stem,
        [
            *MONTHS, *WEEKDAYS, *"yesterday today tomorrow tonight weekend ago week month year day hour morning evening"
            " afternoon night spring summer autumn winter birthday anniversary recently last next since".split(),
        ],
    )
)  # fmt: skip
_YEAR = re.compile(r"(?:19|20)\d\d")


def speaks_of_time(lexemes: AbstractSet[str]) -> bool:
    """Whether a text with these lexemes names a day, a period or a time of day."""
    return not _TIME_LEXEMES.isdisjoint(lexemes) or any(_YEAR.match(lexeme) for lexeme in lexemes if lexeme[0] in "12")
