"""`why`: what recall gave a session, how a question is answered, or what keeps a row out of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.ops.explain import lost
from hermes_memory_pgvector.ops.explain.recall import KINDS, HitLine, asked, line_of, require
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.recall.explain import Explanation
    from hermes_memory_pgvector.values import Hit

LISTS: Final = {"memory": "memories", "turn": "turns"}
GONE: Final = "(no longer stored)"


@dataclass(frozen=True, slots=True)
class GivenHit:
    """A row that an answer was about, and what became of it."""

    answer: int = column("answer", right=True)
    id: str = column("id")
    score: float | None = column("meaning", right=True, show=lambda score: "–" if score is None else f"{score:.2f}")
    rank: float = column("rank", right=True, default=0.0)
    outcome: str = column("outcome")
    content: str | None = column("text", text=True, show=lambda text: GONE if text is None else text)
    agent_identity: str = ""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer of recall."""

    number: int = column("answer", right=True)
    at: datetime | None = column("when (UTC)")
    caller: str = column("asked by")
    kind: str = column("what", show=LISTS.get)
    milliseconds: float = column("ms", right=True, default=0.0, show=lambda took: f"{took:.0f}")
    hits: int = column("hits", right=True, default=0)
    degraded: str | None = column("degraded", rare=True, below=True)
    query: str | None = column("question", rare=True, below=True)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Given(Facts):
    """The last answers of a session."""

    session_id: str | None = column("session")
    agent_identity: str = column("theme")
    answers: tuple[GivenAnswer, ...] = ()
    hits: tuple[GivenHit, ...] = ()
    notes: tuple[Note, ...] = aside(())


@dataclass(frozen=True, slots=True)
class ReasonedHit(HitLine):
    """A hit, and how it was found."""

    reasons: str = column("why", below=True, is_aside=True)
    rank: float = 0.0
    meaning: float | None = None
    words: tuple[str, ...] = ()
    words_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Search:
    """How one kind of row was searched."""

    kind: str
    bar: float
    model: dict[str, Any] | None
    terms: tuple[dict[str, Any], ...]
    period: dict[str, datetime] | None
    asks_when: bool
    speaker: str | None
    degraded: str | None
    milliseconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Reasons(Facts):
    """How a question is answered now."""

    agent_identity: str
    results: tuple[ReasonedHit, ...]
    count: int
    searches: tuple[Search, ...]
    notes: tuple[Note, ...] = aside(())


def why(
    memory: Memory, *, row: RecordName | None, query: str | None, theme: str | None, kind: str, session: str | None,
    caller: Any, limit: int | None, prefetch: bool,
) -> Facts:  # fmt: skip
    """The last answers, how a question is answered, or the stage that loses a row."""
    if row is not None and query is None:
        raise UsageError(f"say which question should have found {row}: --query QUESTION")
    if row is not None:
        return lost.lost(memory, row, str(query), theme, session, limit, prefetch=prefetch)
    if query is not None:
        return _reasons(memory, query, theme, kind, limit or 5)
    return _given(memory, theme, session, caller, limit or 5)


def _given(memory: Memory, theme: str | None, session: str | None, caller: Any, limit: int) -> Given:
    from hermes_memory_pgvector.ops import parts
    from hermes_memory_pgvector.ops.row import name_of
    from hermes_memory_pgvector.store import recall_log

    settings = memory.parsed.settings
    named, theme = theme, theme or parts.profile_theme(memory.home, settings)
    with memory.reading(named) as connection:
        found = recall_log.newest(connection, theme, session_id=session, caller=caller, limit=limit)
        if session is None and found:
            session = found[0].session_id
            found = recall_log.newest(connection, theme, session_id=session, caller=caller, limit=limit)
        texts = recall_log.contents(connection, [hit for answer in found for hit in answer.hits])
    answers = tuple(
        GivenAnswer(
            each.id, each.at, each.caller, each.kind.value, each.milliseconds, len(each.hits), each.degraded,
            each.query, each.scope,
        )
        for each in found
    )  # fmt: skip
    hits = tuple(
        GivenHit(
            each.id, name_of(hit.kind, hit.id), hit.score, hit.rank, hit.outcome, texts.get((hit.kind, hit.id)),
            hit.theme,
        )
        for each in found
        for hit in each.hits
    )  # fmt: skip
    off = "; recall_log is off" if settings.recall_log == "off" else ""
    nothing = () if found else (Note("note", f"recall was not asked there, as far as the log goes back{off}"),)
    return Given(session, theme, answers, hits, nothing)


def _reasons(memory: Memory, query: str, theme: str | None, kind: str, limit: int) -> Reasons:
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.ops import parts
    from hermes_memory_pgvector.recall.explain import explain

    with memory.engine() as engine:
        own = theme_name(theme or "") or parts.profile_theme(memory.home, engine.settings)
        questions = asked(engine.settings, own, KINDS[kind], {"query": query, "limit": limit})
        deadline = Deadline.after(memory.seconds)
        found = [explain(engine.recall, engine.pool, question, deadline) for question in questions]
        if theme and not any(each.hits for each in found):
            require(memory, own)
    hits = tuple(_reasoned(hit) for each in found for hit in each.hits)
    told = tuple(Note("note", line) for each in found for line in _told(each))
    degraded = tuple(Note("warning", each.degraded) for each in found[:1] if each.degraded)
    return Reasons(own, hits, len(hits), tuple(map(_search, found)), (*told, *degraded))


def _reasoned(hit: Hit) -> ReasonedHit:
    near = "no vector" if hit.meaning is None else f"{hit.meaning:.1f} sd nearer than unrelated texts"
    words = f"{hit.words_share:.0%} of the question: {', '.join(hit.words)}" if hit.words else "none of its own words"
    meaning = None if hit.meaning is None else round(hit.meaning, 2)
    return line_of(
        hit, ReasonedHit, reasons=f"rank {hit.rank:.2f}, {near}, {words}", rank=round(hit.rank, 4),
        meaning=meaning, words=hit.words, words_share=hit.words_share,
    )  # fmt: skip


def _search(found: Explanation) -> Search:
    period, model = found.wording.period, found.model
    return Search(
        found.question.kind.value,
        found.bar,
        None if model is None else {
            "name": model.name, "unrelated_mean": model.unrelated_mean, "unrelated_sd": model.unrelated_sd,
        },
        tuple(term._asdict() for term in found.terms),
        None if period is None else {"start": period.start, "end": period.end},
        found.wording.asks_when,
        found.wording.speaker,
        found.degraded,
        dict(found.milliseconds),
    )  # fmt: skip


def _told(found: Explanation) -> Iterator[str]:
    """How a search went, in sentences."""
    wording, model = found.wording, found.model
    words = ", ".join(f"{term.word} {term.weight:.0%}{' (nowhere)' if term.is_absent else ''}" for term in found.terms)
    scale = "not by meaning" if model is None else (
        f"by meaning: to {model.name} unrelated texts are {model.unrelated_mean:.2f} ± {model.unrelated_sd:.2f} near"
    )  # fmt: skip
    took = ", ".join(f"{name} {took:.0f} ms" for name, took in found.milliseconds.items())
    yield f"{LISTS[found.question.kind.value]} {scale}; by words: {words or 'none to look for'}; {took}"
    either = f"{found.bar:.0%} of the question's words, or {found.bar_by_meaning:.1f} sd"
    yield f"a hit needs {either}, or both together; further hits half of that"
    if wording.period is not None:
        yield f"time named: {wording.period.start:%Y-%m-%d %H:%M} to {wording.period.end:%Y-%m-%d %H:%M} UTC"
    if wording.asks_when:
        yield "it asks when: rows that speak of a time come first"
    if wording.speaker is not None:
        yield f"it asks what was said by: {wording.speaker}"


WHY: Final = Operation(
    "why",
    "show what recall gave a session, or why it finds a row or not",
    (
        Option("row", "with --query: the memory or turn that it should have found", parse.row_name, metavar="ID"),
        Option("--query", "how this question is answered now: each hit with its reasons", metavar="QUERY"),
        Option("--theme", "theme to search as (default: the theme of a chat in this home)", metavar="THEME"),
        Option("--kind", "of --query: what to search (default: both)", default="both", choices=tuple(KINDS)),
        Option("--session", "the session (default: the one that asked last)", metavar="SESSION"),
        Option("--caller", "only what was injected, or only what was asked", choices=("prefetch", "tool")),
        Option("--prefetch", "of a row: judge as prefetch does, which offers less than it finds", is_flag=True),
        Option("--limit", "answers or hits (default: 5)", parse.positive, metavar="N"),
    ),
    why,
    (
        ("why", "what the session that asked last was given"),
        ("why --query 'when do we ship'", "which rows answer that, and why in this order"),
        ("why m12 --query 'when do we ship'", "what keeps memory 12 out of that answer"),
    ),
)  # fmt: skip
