"""Whether all rows that a statement reads or changes are of a theme that it names, checked on its text.

Every tenant table, under the name that a query gives it, is compared there with a bound value, with a column of
something that is no tenant table (a bound set, an earlier part of the statement, which is checked itself), or with
another of which that is true. Nothing else keeps the themes of a database apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from testing.sql_rules import without_comments

THEMED = frozenset(
    (
        "conversations", "memory_entries", "memory_operations", "pending_vectors",
        "recall_log", "theme_growth", "agents",
        "turn_vectors_1", "memory_vectors_1", "{turn_vectors}", "{memory_vectors}",
        "{vectors}", "{table}",
    )
)  # fmt: skip
"""The tables whose rows belong to themes; a placeholder stands for a model's vectors."""
_NO_ALIAS = (
    "from|on|where|set|using|join|left|cross|inner|order|group|limit|returning|union|offset|having|for|tablesample"
)
_RELATION = re.compile(
    r"(?:\b(?:FROM|JOIN|UPDATE|USING)\s|,)\s*(?:ONLY\s+)?(?P<table>\w+|\{\w+\})(?![\w.])"
    rf"(?:\s+(?:AS\s+)?(?!(?:{_NO_ALIAS})\b)(?P<alias>\w+))?",
    re.IGNORECASE,
)
_VALUE = r"(?:%\(\w+\)[sbt]|ANY\s*\(\s*%\(\w+\)[sbt]|coalesce\b|\w+\.\w+|theme\b)"
PREDICATE = re.compile(
    rf"\b(?:(?P<row>\w+)\.)?agent_identity\s*(?:\|\|\s*''\s*)?=\s*(?P<value>{_VALUE})|(?P<left>\w+\.theme)\s*=\s*(?P<right>\w+)\.agent_identity",
    re.IGNORECASE,
)
"""A comparison of a row's theme with something."""
_SET = re.compile(r"\bSET\b.*?(?=\bWHERE\b|\bFROM\b|\bRETURNING\b|$)", re.IGNORECASE | re.DOTALL)
_JOINED = re.compile(
    r"\b(LEFT\s+(?:OUTER\s+)?JOIN|JOIN|FROM|USING|WHERE)\b(?:\s+(?:LATERAL\s+)?(\S+)(?:\s+AS\s+(\w+))?)?", re.IGNORECASE
)
_QUERY = re.compile(r"\(\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_NOT_GIVEN = re.compile(r"^\(*\s*%\(\w+\)[sbt](?:::\w+(?:\[\])?)?\s+IS\s+NULL\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Query:
    """One SELECT or change without the queries in it, and the names of tenant tables that it can see."""

    text: str
    outer: _Query | None

    @property
    def own(self) -> list[str]:
        """What it calls the tenant tables it reads or changes."""
        named = _RELATION.finditer(self.text)
        return [each.group("alias") or each.group("table") for each in named if each.group("table") in THEMED]

    def place_of(self, name: str) -> tuple[_Query, str] | None:
        """The query that reads a tenant table under this name; None when it is no tenant table."""
        query: _Query | None = self
        while query is not None:
            if name in query.own:
                return query, name
            query = query.outer
        return None


def unnamed(text: str, *, may_be_left_out: bool = False) -> list[str]:
    """The tenant tables whose rows a statement takes without a word about their theme, as the statement calls them.

    `may_be_left_out`: a theme that the caller need not give counts as named, too.
    """
    queries = list(_queries(without_comments(text), None))
    open_ones = {(query, name) for query in queries for name in query.own}
    equal: list[tuple[tuple[_Query, str], tuple[_Query, str] | None]] = []
    for query in queries:
        for row, value in _comparisons(query, may_be_left_out=may_be_left_out):
            place, other = query.place_of(row), None
            if "." in value:
                relation, _, column = value.partition(".")
                other = query.place_of(relation) if column == "agent_identity" else None
            if place is not None and place[0] is query:
                equal.append((place, other))
    while found := {row for row, other in equal if row in open_ones and (other is None or other not in open_ones)}:
        open_ones -= found
    return sorted(name for _, name in open_ones)


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """The statement without one of its comparisons of a theme, for each in turn, and the comparison."""
    bare = without_comments(text)
    assigned = [match.span() for match in _SET.finditer(bare)]
    for match in PREDICATE.finditer(bare):
        if not any(start <= match.start() < end for start, end in assigned):
            yield match.group(), f"{bare[: match.start()]}TRUE{bare[match.end() :]}"


def _comparisons(query: _Query, *, may_be_left_out: bool) -> Iterator[tuple[str, str]]:
    """What must be equal for a row to be taken: the name of a tenant table, and a value."""
    text = _SET.sub(" ", query.text)
    for match in PREDICATE.finditer(text):
        if not _must_hold(text, match.start(), may_be_left_out=may_be_left_out):
            continue
        joined = _joined(text, match.start())
        row = match.group("row") or match.group("right") or (query.own[0] if len(query.own) == 1 else "")
        value = match.group("left") or match.group("value")
        if row and joined in ("", row):
            yield row, value
        if value.endswith(".agent_identity") and joined in ("", value.partition(".")[0]):
            yield value.partition(".")[0], f"{row}.agent_identity"


def _joined(text: str, place: int) -> str:
    """What is joined by a LEFT JOIN whose condition this is: it tells nothing of the rows before; otherwise empty."""
    last = None
    for last in _JOINED.finditer(text, 0, place):  # noqa: B007
        pass
    if last is None or not last.group(1).upper().startswith("LEFT"):
        return ""
    return str(last.group(3) or last.group(2))


def _must_hold(text: str, place: int, *, may_be_left_out: bool) -> bool:
    """Whether no OR lets a row through for which the comparison here fails; but for what the caller did not give."""
    start, end, depth = place, place, 0
    while start > 0 and depth <= 0:
        start -= 1
        depth += {"(": 1, ")": -1}.get(text[start], 0)
    depth = 0
    while end < len(text) and depth >= 0:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    clauses = re.split(r"\b(?:WHERE|ON|AND|HAVING)\b", text[start + 1 : place])
    before = re.split(r"\bOR\b", clauses[-1])[:-1]
    after = re.match(r"(?:[^()]|\([^()]*\))*?\b(AND|OR|WHERE|JOIN|LEFT|ORDER|GROUP|LIMIT|RETURNING)\b", text[place:end])
    is_or_after = after is not None and after.group(1).upper() == "OR"
    return (
        not is_or_after and (may_be_left_out or not before) and all(_NOT_GIVEN.match(each.strip()) for each in before)
    )


def _queries(text: str, outer: _Query | None) -> Iterator[_Query]:
    """The queries of a text, the ones within others too."""
    kept, inner, place = "", [], 0
    while match := _QUERY.search(text, place):
        end = _closing(text, match.start())
        kept += text[place : match.start()] + "()"
        inner.append((len(kept), text[match.start() + 1 : end]))
        place = end + 1
    kept += text[place:]
    start = 0
    for part in re.split(r"(\b(?:UNION(?:\s+ALL)?|EXCEPT|INTERSECT)\b)", kept, flags=re.IGNORECASE):
        query = _Query(part, outer)
        yield query
        for position, each in inner:
            if start <= position <= start + len(part):
                yield from _queries(each, query)
        inner = [(position, each) for position, each in inner if not start <= position <= start + len(part)]
        start += len(part)


def _closing(text: str, place: int) -> int:
    """Where the bracket that opens here is closed."""
    depth = 0
    for position in range(place, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)
