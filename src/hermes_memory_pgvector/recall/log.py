"""Remembers what recall answered until upkeep stores it: a hook only puts it down here, and never waits."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

from hermes_memory_pgvector.meters import (
    DEGRADED_RECALLS,
    FAILED_RECALLS,
    HITS,
    RECALLS,
    Meters,
)
from hermes_memory_pgvector.recall.recall import Answer, Search
from hermes_memory_pgvector.store.recall_log import Caller, LoggedAnswer, LoggedHit, Outcome
from hermes_memory_pgvector.text.secrets import NOTHING, Masker
from hermes_memory_pgvector.values import Hit, Question, Scope, Session

MAX_WAITING = 1000
"""While the database is out of reach, so many answers wait; older ones go."""
NO_THEME = "(no such theme)"
"""Stands where the model named a theme that does not exist: what it made up is nobody's to keep."""

Judge = Callable[[Hit], Outcome]


class RecallLog:
    """Answers that wait to be stored."""

    def __init__(
        self,
        *,
        is_wanted: bool,
        with_text: bool,
        masker: Masker = NOTHING,
        meters: Meters | None = None,
    ) -> None:
        self._meters = meters or Meters()
        self._is_wanted = is_wanted
        self._with_text = with_text
        self._masker = masker
        self._waiting: deque[LoggedAnswer] = deque(maxlen=MAX_WAITING)
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
            answers = self.counting("tool", search)(questions)
            took = time.perf_counter() - started
            self.count_given("tool", sum(len(answer.hits) for answer in answers))
            for question, answer in zip(questions, answers, strict=True):
                self.note("tool", session, question, answer, took, lambda _: "given")
            return answers

        return logged

    def counting(self, caller: Caller, search: Search) -> Search:
        """A search whose questions are counted, and those that got no answer or only a part of it."""

        def counted(questions: Sequence[Question]) -> list[Answer]:
            self._meters.count(RECALLS, of=caller)
            try:
                answers = search(questions)
            except BaseException:
                self._meters.count(FAILED_RECALLS, of=caller)
                raise
            if any(answer.degraded for answer in answers):
                self._meters.count(DEGRADED_RECALLS, of=caller)
            return answers

        return counted

    def count_given(self, caller: Caller, hits: int) -> None:
        """Count what the model was given."""
        self._meters.count(HITS, hits, caller)

    def take(self) -> list[LoggedAnswer]:
        """What waits to be stored; it no longer waits here."""
        with self._taking:
            return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def give_back(self, answers: Sequence[LoggedAnswer]) -> None:
        """It could not be stored: it waits again, as far as there is room."""
        for answer in reversed(answers[-(MAX_WAITING - len(self._waiting)) :] if answers else []):
            self._waiting.appendleft(answer)

    @staticmethod
    def without_made_up_themes(answers: Sequence[LoggedAnswer], themes: Collection[str]) -> list[LoggedAnswer]:
        """The same with NO_THEME in place of every scope that is not among these themes."""
        plain = {*themes, *(scope.value for scope in Scope)}
        return [each if each.scope in plain else each._replace(scope=NO_THEME) for each in answers]
