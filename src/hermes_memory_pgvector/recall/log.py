"""Remembers what recall answered until upkeep stores it: a hook only puts it down here, and never waits."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hermes_memory_pgvector.meters import (
    DEGRADED_RECALLS,
    EMPTY_RECALLS,
    FAILED_RECALLS,
    HITS,
    INJECTED,
    RECALLS,
    Meters,
)
from hermes_memory_pgvector.recall.recall import Answer, Search
from hermes_memory_pgvector.store.recall_log import Caller, LoggedAnswer, LoggedHit, Outcome
from hermes_memory_pgvector.text.secrets import NOTHING, Masker
from hermes_memory_pgvector.values import Hit, Kind, Question, Scope, Session

MAX_WAITING = 1000
"""While the database is out of reach, so many answers wait; older ones go."""
MAX_READ = 200
"""So many themes that tools read are counted by name until they are stored; the model may name anything."""
EVERYWHERE = "all"
FURTHER = "(further themes)"
NO_THEME = "(no such theme)"
"""Stands where the model named a theme that does not exist: what it made up is nobody's to keep."""

Judge = Callable[[Hit], Outcome]
MAX_ROWS = 500
"""So many rows of other themes are named for each reader until they are stored."""


@dataclass(frozen=True, slots=True)
class CrossRead:
    """What a theme has read of others."""

    questions: int = 0
    hits: int = 0
    rows: tuple[tuple[str, str], ...] = ()
    """Theme and name of each row that was given, once."""

    def plus(self, more: CrossRead) -> CrossRead:
        """Both together."""
        rows = tuple(dict.fromkeys((*self.rows, *more.rows)))[:MAX_ROWS]
        return CrossRead(self.questions + more.questions, self.hits + more.hits, rows)


CrossReads = dict[tuple[str, str], CrossRead]
"""By reader and what was read (a theme, or "all")."""


class RecallLog:
    """Answers that wait to be stored, and how often tools read other themes."""

    def __init__(
        self,
        *,
        is_wanted: bool,
        with_text: bool,
        masker: Masker = NOTHING,
        meters: Meters | None = None,
        on_asked: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_asked` hears of the theme of everybody who asks."""
        self._meters = meters or Meters()
        self._on_asked = on_asked
        self._is_wanted = is_wanted
        self._with_text = with_text
        self._masker = masker
        self._waiting: deque[LoggedAnswer] = deque(maxlen=MAX_WAITING)
        self._reads: CrossReads = {}
        self._taking = threading.Lock()
        """Upkeep takes what waits, and so does whoever ends an agent; a hook that puts something down does not wait."""

    def note(
        self, caller: Caller, session: Session, question: Question, answer: Answer, seconds: float, judge: Judge
    ) -> None:
        """Put down one answer."""
        if not self._is_wanted:
            return
        self._waiting.append(
            LoggedAnswer(
                theme=session.theme,
                at=datetime.now(UTC),
                session_id=session.session_id,
                caller=caller,
                kind=question.kind,
                scope=question.theme if question.scope is Scope.NAMED else question.scope.value,
                query=self._masker.mask(question.text).text if self._with_text else None,
                degraded=answer.degraded,
                hits=tuple(
                    LoggedHit(
                        hit.kind,
                        hit.id,
                        hit.theme,
                        None if hit.score is None else round(hit.score, 4),
                        round(hit.rank, 4),
                        judge(hit),
                    )
                    for hit in answer.hits
                ),
                milliseconds=round(1000 * seconds, 1),
            )
        )

    def listening(self, session: Session, search: Search) -> Search:
        """A search whose answers a tool gives to the model as they are."""

        def logged(questions: Sequence[Question]) -> list[Answer]:
            started = time.perf_counter()
            answers = self.counting("tool", session, search)(questions)
            took = time.perf_counter() - started
            self.count_given("tool", sum(len(answer.hits) for answer in answers))
            for question, answer in zip(questions, answers, strict=True):
                self.note("tool", session, question, answer, took, lambda _: "given")
                self._count(session, question, answer)
            return answers

        return logged

    def counting(self, caller: Caller, session: Session, search: Search) -> Search:
        """A search whose questions are counted, and those that got no answer or only a part of it."""

        def counted(questions: Sequence[Question]) -> list[Answer]:
            self._meters.count(RECALLS, of=caller)
            self._on_asked(session.theme)
            try:
                answers = search(questions)
            except BaseException:
                self._meters.count(FAILED_RECALLS, of=caller)
                raise
            if any(answer.degraded for answer in answers):
                self._meters.count(DEGRADED_RECALLS, of=caller)
            return answers

        return counted

    def count_given(self, caller: Caller, hits: int, characters: int = 0) -> None:
        """Count what the model was given: so many hits, and so many characters that it had not asked for."""
        self._meters.count(HITS, hits, caller)
        if not hits:
            self._meters.count(EMPTY_RECALLS, of=caller)
        if characters:
            self._meters.count(INJECTED, characters)

    def take(self, *, with_reads: bool = True) -> tuple[list[LoggedAnswer], CrossReads]:
        """What waits to be stored; it no longer waits here."""
        with self._taking:
            answers = [self._waiting.popleft() for _ in range(len(self._waiting))]
            reads = {key: self._reads.pop(key) for key in (list(self._reads) if with_reads else [])}
        return answers, reads

    def give_back(self, answers: Sequence[LoggedAnswer], reads: CrossReads) -> None:
        """It could not be stored: it waits again, as far as there is room."""
        for answer in reversed(answers[-(MAX_WAITING - len(self._waiting)) :] if answers else []):
            self._waiting.appendleft(answer)
        for key, read in reads.items():
            self._reads[key] = read.plus(self._reads.get(key, CrossRead()))

    @staticmethod
    def without_made_up_themes(
        answers: Sequence[LoggedAnswer], reads: CrossReads, themes: Collection[str]
    ) -> tuple[list[LoggedAnswer], CrossReads]:
        """The same with NO_THEME in place of every name that is not among these themes."""
        plain = {*themes, *(scope.value for scope in Scope), EVERYWHERE, FURTHER}
        told = [each if each.scope in plain else replace(each, scope=NO_THEME) for each in answers]
        summed: CrossReads = {}
        for (reader, named), read in reads.items():
            key = (reader, named if named in plain else NO_THEME)
            summed[key] = summed.get(key, CrossRead()).plus(read)
        return told, summed

    def _count(self, session: Session, question: Question, answer: Answer) -> None:
        if question.scope is Scope.ALL:
            key = (session.theme, EVERYWHERE)
        elif question.scope is Scope.NAMED and question.theme != session.theme:
            key = (session.theme, question.theme)
        else:
            return
        if key not in self._reads and len(self._reads) >= MAX_READ:
            key = (session.theme, FURTHER)
        given = [hit for hit in answer.hits if hit.theme != session.theme]
        rows = tuple((hit.theme, f"{'m' if hit.kind is Kind.MEMORY else 't'}{hit.id}") for hit in given)
        self._reads[key] = self._reads.get(key, CrossRead()).plus(CrossRead(1, len(given), rows))
