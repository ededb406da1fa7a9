"""Which stage of recall loses a row: not stored, another theme, hidden, no vector, too far, cut off, shown before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, command
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.text.names import theme_name
from hermes_memory_pgvector.values import Kind, Question

if TYPE_CHECKING:
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.ops.row import Shown
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.runtime.engine import Engine
    from hermes_memory_pgvector.values import Hit

Stage = Literal[
    "not stored", "other theme", "hidden", "untrusted",
    "no vector yet", "below the bar", "same text",
    "beyond the limit", "already shown", "found",
]  # fmt: skip
WIDE: Final = 200
"""How many hits are looked at to find the place of one that the limit cuts off."""


@dataclass(frozen=True, slots=True)
class Lost(Facts):
    """Where a row was lost."""

    id: str = column("row")
    stage: Stage = column("stage")
    sentence: str = column("because")
    place: int | None = None
    """Its place among the hits, if it has one."""
    score: float | None = None
    notes: tuple[Note, ...] = aside(())


def lost(
    memory: Memory, name: RecordName, query: str, theme: str | None, session: str | None, limit: int | None, *,
    prefetch: bool,
) -> Lost:  # fmt: skip
    """Ask again, wider and wider, until the row appears; the stage that kept it away is the answer."""
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.ops import parts

    with memory.engine() as engine:
        settings = engine.settings
        question = Question(
            text=query.strip()[: settings.query_max_chars],
            kind=Kind.MEMORY if name.letter == "m" else Kind.TURN,
            theme=theme_name(theme or "") or parts.profile_theme(memory.home, settings),
            limit=limit or (settings.prefetch_limit if prefetch else 5),
            is_ambient=prefetch,
            trusted_only=prefetch and settings.prefetch_trust == "trusted",
            now=datetime.now(UTC),
        )
        if prefetch:
            question = replace(question, min_similarity=engine.settings.min_similarity or None)
        with memory.reading() as connection:
            search = _Search(engine, connection, Deadline.after(memory.seconds), question, name)
            return _stage(search, session)


@dataclass(frozen=True, slots=True)
class _Search:
    """A question, and the row it should have found."""

    engine: Engine
    connection: Connection
    deadline: Deadline
    question: Question
    name: RecordName

    def hits(self, *, is_ambient: bool | None = None) -> list[Hit]:
        """Many more hits than were asked for."""
        ambient = self.question.is_ambient if is_ambient is None else is_ambient
        wider = replace(self.question, limit=WIDE, is_ambient=ambient)
        return list(self.engine.search([wider], self.deadline)[0].hits)

    def place(self, hits: list[Hit], theme: str) -> int | None:
        """The place of the row among hits."""
        wanted = (theme, self.name.number)
        return next((n for n, hit in enumerate(hits, start=1) if (hit.theme, hit.id) == wanted), None)

    def lost(
        self, stage: Stage, sentence: str, place: int | None = None, score: float | None = None,
        then: str | None = None,
    ) -> Lost:  # fmt: skip
        """The answer, with the command that helps."""
        return Lost(
            str(self.name), stage, sentence, place, score, (Note("note", "to mend it", then=then),) if then else ()
        )


def _stage(search: _Search, session: str | None) -> Lost:
    from hermes_memory_pgvector.ops.row import AmbiguousName, show

    question = search.question
    try:
        shown = show(search.connection, search.name)
    except CareError as error:
        if isinstance(error, AmbiguousName):
            raise
        told = (
            "nothing is stored under this id: it was deleted, or never stored because it was noise (too short, a bare "
            "acknowledgement), refused, or is still in the journal"
        )
        return search.lost("not stored", told, then=command("status"))
    row = shown.row
    if row.hidden_by is not None:
        undo = command("mute", "--undo", str(row.hidden_by), "--execute")
        return search.lost("hidden", f"it is hidden by rule {row.hidden_by}", then=undo)
    if row.theme != question.theme:
        told = f"it belongs to theme {row.theme}, and {question.theme} was searched"
        return search.lost("other theme", told)
    before = None if session is None else _shown_before(search, session)
    if before is not None:
        return search.lost("already shown", f"session {session} was given it in answer {before}; it is not repeated")
    if question.trusted_only and row.untrusted:
        told = "it is untrusted, and prefetch_trust keeps that from being offered unasked; the tools find it"
        return search.lost("untrusted", told)
    return _looked_for(search, shown)


def _looked_for(search: _Search, shown: Shown) -> Lost:
    """Whether it is a hit after all, or the same words are; else how far it is from being one."""
    from hermes_memory_pgvector.ops.row import name_of

    row, wide = shown.row, search.hits()
    place = search.place(wide, row.theme)
    if place is not None:
        score, limit = wide[place - 1].score, search.question.limit
        if place <= limit:
            return search.lost("found", f"it is hit number {place}", place, score)
        return search.lost("beyond the limit", f"it is hit number {place}, and {limit} are asked for", place, score)
    double = next((hit for hit in wide if hit.theme == row.theme and hit.content == row.content), None)
    if double is not None:
        told = f"{name_of(double.kind, double.id)} says the same words and stands for it"
        return search.lost("same text", told, score=double.score)
    if not shown.vectors:
        told = "it has no vector yet, and its words do not match well enough"
        return search.lost("no vector yet", told, then=command("reembed"))
    return _too_far(search, row.theme)


def _too_far(search: _Search, theme: str) -> Lost:
    from hermes_memory_pgvector.store.search import similarity
    from hermes_memory_pgvector.store.search_statement import MEANING_WEIGHT, SEARCHED

    question = search.question
    meaning = search.engine.recall.prepare(question, search.deadline).meaning
    near = None
    if meaning is not None:
        near = similarity(search.connection, meaning, question.kind, theme, search.name.number)
    if meaning is None or near is None:
        told = "the question has no vector right now, and its words do not match well enough"
        return search.lost("below the bar", told)
    deviations, needed = meaning.model.deviations(near), float(SEARCHED[question.kind].bar) / MEANING_WEIGHT
    told = f"it is {deviations:.1f} sd nearer than unrelated texts"
    if deviations < needed:
        told = f"{told}, {needed:.1f} is needed; its words match too little"
        return search.lost("below the bar", told, score=deviations)
    if question.is_ambient and search.place(search.hits(is_ambient=False), theme):
        return search.lost("below the bar", f"{told}: prefetch, which nobody asked for, wants more", score=deviations)
    return search.lost("beyond the limit", f"{told}, and enough other rows are nearer", score=deviations)


def _shown_before(search: _Search, session: str) -> int | None:
    from hermes_memory_pgvector.store import recall_log

    question, number = search.question, search.name.number
    answers = recall_log.newest(
        search.connection, question.theme, session_id=session, caller="prefetch", limit=recall_log.KEPT_PER_THEME
    )
    for answer in answers:
        for hit in answer.hits:
            if (hit.kind, hit.id, hit.outcome) == (question.kind, number, "given"):
                return answer.id
    return None
