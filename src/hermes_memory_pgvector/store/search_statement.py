"""The one statement that searches, composed from the parts in queries/search.sql.

There are eight of them: for turns or memories, in a model's vectors or by words alone, in one theme or in all.
"""

from __future__ import annotations

import re
from functools import cache
from typing import LiteralString, NamedTuple

from psycopg import sql

from hermes_memory_pgvector.postgres.statements import text_of
from hermes_memory_pgvector.values import Kind


class SearchedKind(NamedTuple):
    """What differs between turns and memories, as the parts name it."""

    texts: LiteralString
    vectors: str
    ts: LiteralString
    place: LiteralString
    """The column that `narrow` filters by."""
    same: LiteralString
    """Equal for vectors of the same text."""
    role: LiteralString
    origin: LiteralString
    author: LiteralString
    """Who said a row: as the host tells, or as the text does, as `[Tim] …` or `Tim: …`."""
    unattended: LiteralString
    """Whether nobody was there who spoke: such a row is not offered unasked."""
    session_bits: LiteralString
    """The terms that the session of a row contains, where there are sessions."""
    bar: LiteralString
    """What the best row must reach, asked."""
    ambient_bar: LiteralString
    """What every row must reach, unasked."""


MEANING_WEIGHT = 0.06
"""What one standard deviation of meaning counts, in units of the share of the question's words; see the statement."""
SEARCHED = {
    Kind.TURN: SearchedKind(
        texts="conversations",
        vectors="turn_vectors",
        ts="ts",
        place="session_id",
        same="content_hash",
        role="r.role",
        origin="hermes_origin_of_turn(r.origin, r.role)",
        author=r"coalesce(r.metadata #>> '{author,name}', CASE WHEN starts_with(r.content, '[')"
        r" THEN substring(left(r.content, 100) FROM '^\[([^\[\]\n]+)\]\s')"
        r" ELSE substring(left(r.content, 100) FROM '^([[:upper:]][\w''.-]*(?: [[:upper:]][\w''.-]*){0,2}): ') END)",
        unattended="coalesce(r.metadata ->> 'platform' IN ('cron', 'subagent'), false)",
        session_bits="bit_or(m.bits) OVER (PARTITION BY m.agent_identity, m.place)",
        bar="0.28",
        ambient_bar="0.70",
    ),
    Kind.MEMORY: SearchedKind(
        texts="memory_entries",
        vectors="memory_vectors",
        ts="updated_at",
        place="target",
        same="id",
        role="NULL::text",
        origin="hermes_origin_of_memory(r.origin, r.metadata)",
        author="NULL::text",
        unattended="false",
        session_bits="0",
        bar="0.25",
        ambient_bar="0.40",
    ),
}

_PART = re.compile(r"\{(near|similarity|theme of (?:unindexed )?\w+|bounds of \w+|\w+)\}")
_IN_THEME: LiteralString = "x.agent_identity = here.theme"
_UNINDEXED: LiteralString = "x.agent_identity || '' = here.theme"
_EVERYWHERE: LiteralString = "(NOT hermes_is_private(x.agent_identity) OR x.agent_identity = here.theme)"
_MARKER: LiteralString = "hermes_quote_lexeme('~=' || named.theme)::tsquery"
_ALL_MARKERS: LiteralString = "CASE WHEN hermes_is_private(named.theme) THEN '~all'::tsquery || " + _MARKER
"""The markers of the rows that may be looked at: those of the theme, or those that scope `all` may see."""


@cache
def search_statement(kind: Kind, model_id: int | None, *, is_everywhere: bool = False) -> sql.SQL:
    """The search of a kind of row, in a model's vectors or by words alone, in one theme or in all."""
    one = SEARCHED[kind]
    near, similarity = "near_nothing", "NULL::double precision"
    if model_id is not None:
        near = "near_everywhere" if is_everywhere else "near"
        similarity = text_of("queries/search/similarity").rstrip(";")
    parts = {
        "near": text_of(f"queries/search/{near}"),
        "similarity": similarity,
        "vectors": f"{one.vectors}_{model_id}",
        "markers": _ALL_MARKERS + " ELSE '~all'::tsquery END" if is_everywhere else _MARKER,
        **{name: getattr(one, name) for name in SearchedKind._fields if name != "vectors"},
    }

    def part(found: re.Match[str]) -> str:
        name = found[1]
        about, _, row = name.rpartition(" of ")
        if not about:
            return _PART.sub(part, parts[name])
        if about == "bounds":
            # Vectors of memories, too, have their time under this name.
            text: str = text_of("queries/search/bounds").replace("x.{ts}", "x.ts" if row == "v" else f"x.{one.ts}")
        else:
            text = _EVERYWHERE if is_everywhere else _UNINDEXED if row.startswith("unindexed ") else _IN_THEME
        return _PART.sub(part, re.sub(r"\bx\.", f"{row.removeprefix('unindexed ')}.", text))

    return sql.SQL(_PART.sub(part, text_of("queries/search/search")))
