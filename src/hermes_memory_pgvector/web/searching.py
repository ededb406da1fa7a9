"""Searching as agents do, and the way to one hit: how near it is, which words it has, and what a hit must reach."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes_memory_pgvector.care import themes
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.recall.explain import Explanation, explain
from hermes_memory_pgvector.text.clean import clean
from hermes_memory_pgvector.values import NAMED_ORIGINS, TARGETS, Hit, Kind, Question, Scope, Target
from hermes_memory_pgvector.web import access, documents
from hermes_memory_pgvector.web.asked import MISSING, Asked, Document, Refused, plain

HITS = 10
MOST = 20
FILTERED = 60
"""So many hits are looked at when only those of one role or origin are wanted."""
ROLES = ("any", "user", "assistant", "tool", "system")
WHAT = ("all", "memories", "memory", "user", "turns")


def search(asked: Asked) -> Document:
    """The best hits of each kind, with how near each is and which words it has."""
    return _searched(asked)


def why(asked: Asked) -> Document:
    """How one hit of such a search was found: `name` in the theme `within`."""
    name, within = asked.needed("name"), asked.needed("within")
    found = _searched(asked)
    for group in found["groups"]:
        for each in group["hits"]:
            if (each["name"], each["theme"]) == (name, within):
                return {"hit": each, "group": {**group, "hits": []}, "terms": found["terms"]}
    raise Refused("this search no longer finds it: what is stored has changed; search again", MISSING)


def _searched(asked: Asked) -> Document:
    engine = access.engine_of(asked.home)
    questions = _questions(asked, engine.settings.query_max_chars)
    deadline = Deadline.after(access.SECONDS)
    theme = questions[0].theme
    if theme:
        with access.reading(asked.home) as connection:
            themes.require(connection, theme)
    found = [explain(engine.recall, engine.pool, question, deadline) for question in questions]
    role, origin = asked.one_of("role", *ROLES), _origin(asked)
    limit = _limit(asked)
    return {
        "groups": [_group(each, role, origin, limit) for each in found],
        "degraded": next((each.degraded for each in found if each.degraded), None),
        "terms": [plain(term) for term in next((each.terms for each in found if each.terms), ())],
    }


def _questions(asked: Asked, most_chars: int) -> list[Question]:
    text = clean(asked.text("q"))[:most_chars].strip()
    if not text:
        raise Refused("give a question, some words, or an exact token to look for")
    what, theme = asked.one_of("what", *WHAT), asked.text("theme")
    role = asked.one_of("role", *ROLES)
    kinds: list[Kind] = []
    if what in ("all", "memories", *TARGETS) and role == "any":
        kinds.append(Kind.MEMORY)
    if what in ("all", "turns"):
        kinds.append(Kind.TURN)
    if not kinds:
        raise Refused("memories have no role; search turns, or any role")
    targets: tuple[Target, ...] = tuple(each for each in TARGETS if what in ("all", "memories", each))
    return [
        Question(
            text=text,
            kind=kind,
            theme=theme,
            scope=Scope.CURRENT if theme else Scope.ALL,
            targets=targets or TARGETS,
            limit=FILTERED if role != "any" or _origin(asked) != "any" else _limit(asked),
            since=asked.moment("since"),
            until=asked.moment("until", at_end=True),
            now=datetime.now(UTC),
        )
        for kind in kinds
    ]


def _origin(asked: Asked) -> str:
    return asked.one_of("origin", "any", *NAMED_ORIGINS)


def _limit(asked: Asked) -> int:
    return asked.whole("limit", HITS, 1, MOST)


def _group(found: Explanation, role: str, origin: str, limit: int) -> Document:
    kept = [
        hit
        for hit in found.hits
        if (role == "any" or hit.role in (None, role))
        and (origin == "any" or origin in (hit.origin, hit.trust, *hit.tools))
    ]
    period, model = found.wording.period, found.model
    return {
        "kind": found.question.kind.value,
        "hits": [_hit(hit) for hit in kept[:limit]],
        "model": None if model is None else model.name,
        "bar": found.bar,
        "bar_by_meaning": found.bar_by_meaning,
        "asks_when": found.wording.asks_when,
        "speaker": found.wording.speaker,
        "period": None if period is None else {"start": plain(period.start), "end": plain(period.end)},
        "milliseconds": dict(found.milliseconds),
    }


def _hit(hit: Hit) -> Document:
    return {
        **documents.hit(hit),
        "rank": round(hit.rank, 4),
        "similarity": None if hit.score is None else round(hit.score, 4),
        "meaning": None if hit.meaning is None else round(hit.meaning, 2),
        "words": list(hit.words),
        "words_share": hit.words_share,
    }
