"""The block for this turn: what is relevant to the current question and not yet shown to the session."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Sequence
from datetime import UTC, datetime

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.recall.fence import harmless
from hermes_memory_pgvector.recall.log import RecallLog
from hermes_memory_pgvector.recall.recall import Search
from hermes_memory_pgvector.recall.shown import ShownHits
from hermes_memory_pgvector.store.recall_log import Outcome
from hermes_memory_pgvector.text.clean import clean
from hermes_memory_pgvector.text.everyday import worth_asking
from hermes_memory_pgvector.text.excerpt import excerpt, one_line
from hermes_memory_pgvector.values import Hit, Kind, Question, Session

SURE_TURNS = 3
"""So many past turns are offered however they compare; further ones must be nearly as good as the best."""
NEARLY_AS_GOOD = 0.7
LINE_CHARS = 310
HEADING = "Relevant memories:"
TURNS_HEADING = "From earlier conversations:"


def block(
    query: str,
    session: Session,
    settings: Settings,
    shown: ShownHits,
    *,
    search: Search,
    floor: float | None,
    shown_by_host: Container[str],
    log: RecallLog,
) -> str:
    """Text to inject before this turn; nothing rather than noise."""
    # Cut before it is cleaned: a question of megabytes is not read to its end.
    question = query.lstrip()[: 2 * settings.query_max_chars] if isinstance(query, str) else ""
    text = clean(question).strip()[: settings.query_max_chars]
    if not text or not worth_asking(text):
        return ""
    wants_turns = settings.prefetch_sources == "both" and settings.prefetch_turns > 0
    kinds = [Kind.MEMORY, Kind.TURN] if wants_turns else [Kind.MEMORY]
    questions = [_question(text, kind, session, settings, floor) for kind in kinds]
    started = time.perf_counter()
    answers = log.counting("prefetch", search)(questions)
    took = time.perf_counter() - started
    memories = [hit for hit in answers[0].hits if hit.content not in shown_by_host]
    hits = shown.new(session, memories)[: settings.prefetch_limit]
    for answer in answers[1:]:
        earlier = [hit for hit in answer.hits if hit.session_id != session.session_id]
        hits += worth_a_line(shown.new(session, earlier), settings.prefetch_turns)
    lines, included = rendered(hits, settings.prefetch_max_chars)

    def judge(hit: Hit) -> Outcome:
        if hit in included:
            return "given"
        if hit.kind is Kind.MEMORY and hit.content in shown_by_host:
            return "in the prompt already"
        if hit.kind is Kind.TURN and hit.session_id == session.session_id:
            return "of this session"
        if not shown.new(session, [hit]):
            return "shown before"
        return "no room" if hit in hits else "beyond the limit"

    for question_asked, answer in zip(questions, answers, strict=True):
        log.note("prefetch", session, question_asked, answer, took, judge)
    log.count_given("prefetch", len(included))
    shown.add(session, included)
    return lines


def _question(text: str, kind: Kind, session: Session, settings: Settings, floor: float | None) -> Question:
    return Question(
        text=text,
        kind=kind,
        theme=session.theme,
        session_id=session.session_id,
        # Some of the best hits may have been shown before: ask for more than will be used.
        limit=min(50, 3 * (settings.prefetch_limit if kind is Kind.MEMORY else settings.prefetch_turns)),
        now=datetime.now(UTC),
        min_similarity=floor,
        is_ambient=True,
        trusted_only=settings.prefetch_trust == "trusted",
    )


def worth_a_line(turns: Sequence[Hit], most: int) -> list[Hit]:
    """The turns, best first, that a block may show."""
    good = NEARLY_AS_GOOD * max((hit.rank for hit in turns), default=0.0)
    return [hit for place, hit in enumerate(turns[:most]) if place < SURE_TURNS or hit.rank >= good]


def rendered(hits: Iterable[Hit], max_chars: int) -> tuple[str, list[Hit]]:
    """The block within its budget, each line around the words of the question, and the hits that fitted into it."""
    lines: list[str] = []
    included: list[Hit] = []
    used = 0
    heading = ""
    for hit in hits:
        wanted = HEADING if hit.kind is Kind.MEMORY else TURNS_HEADING
        line = _line(hit)
        cost = len(line) + 1 + (len(wanted) + 1 if wanted != heading else 0)
        if used + cost > max_chars:
            continue
        if wanted != heading:
            lines.append(wanted)
            heading = wanted
        lines.append(line)
        included.append(hit)
        used += cost
    return "\n".join(lines), included


def _line(hit: Hit) -> str:
    text = harmless(excerpt(one_line(hit.content), hit.words, LINE_CHARS))
    if hit.kind is Kind.MEMORY:
        return f"- {text}" if hit.target != "user" else f"- (user) {text}"
    return f"- {hit.ts:%Y-%m-%d} {hit.role}: {text}"
