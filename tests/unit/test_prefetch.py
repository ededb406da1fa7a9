"""What is offered before a turn: relevant, new to the session, within its budget, and nothing rather than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hermes_memory_pgvector.config.settings import Settings, parse
from hermes_memory_pgvector.recall import prefetch
from hermes_memory_pgvector.recall.log import MAX_WAITING, RecallLog
from hermes_memory_pgvector.recall.recall import Answer
from hermes_memory_pgvector.recall.shown import MAX_HITS, MAX_SESSIONS, ShownHits
from hermes_memory_pgvector.values import Hit, Kind, Question, Scope, Session

SESSION = Session("marketing", "s1", "hermes")
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def memory(number: int, text: str | None = None) -> Hit:
    return Hit(Kind.MEMORY, number, "marketing", NOW, text or f"fact {number}", 0.9, 1.0, target="memory")


def turn(number: int, session_id: str = "old") -> Hit:
    return Hit(Kind.TURN, number, "marketing", NOW, f"said {number}", 0.9, 1.0, session_id=session_id, role="user")


def offer(
    hits: list[Hit],
    *,
    given: ShownHits | None = None,
    session: Session = SESSION,
    settings: Settings | None = None,
    by_host: frozenset[str] = frozenset(),
    query: str = "what about the facts?",
    log: RecallLog | None = None,
) -> str:
    def search(questions: Sequence[Question]) -> list[Answer]:
        assert all(question.theme == session.theme and question.is_ambient for question in questions)
        kinds = [[hit for hit in hits if hit.kind is question.kind][: question.limit] for question in questions]
        return [Answer(tuple(found), "keyword search only: a test") for found in kinds]

    return prefetch.block(
        query,
        session,
        settings or Settings(),
        given or ShownHits(),
        search=search,
        floor=0.3,
        shown_by_host=by_host,
        log=log or RecallLog(is_wanted=False, with_text=False),
    )


def test_the_log_says_what_became_of_each_hit() -> None:
    log, given = RecallLog(is_wanted=True, with_text=False), ShownHits()
    offer([memory(1)], given=given)
    hits = [memory(n) for n in range(1, 9)] + [turn(n) for n in range(20, 25)] + [turn(30, "s1")]
    offer(hits, given=given, by_host=frozenset({"fact 2"}), log=log)
    memories, turns = log.take()
    assert [(hit.id, hit.outcome) for hit in memories.hits] == [
        (1, "shown before"), (2, "in the prompt already"),
        *((n, "given") for n in range(3, 8)), (8, "beyond the limit"),
    ]  # fmt: skip
    assert [(hit.id, hit.outcome) for hit in turns.hits] == [
        *((n, "given") for n in range(20, 25)), (30, "of this session"),
    ]  # fmt: skip
    assert (memories.caller, memories.theme, memories.session_id, memories.query) == (
        "prefetch",
        "marketing",
        "s1",
        None,
    )
    assert log.take() == []


def test_the_log_forgets_nothing_it_is_given_back() -> None:
    log = RecallLog(is_wanted=True, with_text=True)

    def search(questions: Sequence[Question]) -> list[Answer]:
        other = replace(memory(2), theme="garden")
        return [Answer((memory(1), other)) for _ in questions]

    ask = log.listening(SESSION, search)
    for scope, theme in ((Scope.CURRENT, "marketing"), (Scope.ALL, "marketing"), (Scope.NAMED, "garden")):
        ask([Question("what?", Kind.MEMORY, theme, scope)])
    answers = log.take()
    assert [(answer.caller, answer.scope, answer.query) for answer in answers] == [
        ("tool", "current", "what?"), ("tool", "all", "what?"), ("tool", "garden", "what?"),
    ]  # fmt: skip
    log.give_back(answers)
    assert log.take() == answers


def test_the_log_is_bounded_and_can_be_turned_off() -> None:
    log, off = RecallLog(is_wanted=True, with_text=False), RecallLog(is_wanted=False, with_text=False)
    for _ in range(MAX_WAITING + 5):
        offer([memory(1)], log=log)
        offer([memory(1)], log=off)
    answers = log.take()
    assert len(answers) == MAX_WAITING
    log.give_back(answers)
    offer([memory(1)], log=log)
    assert len(log.take()) == MAX_WAITING
    assert off.take() == []


def test_one_line_per_memory_and_no_more_than_the_limit() -> None:
    text = offer([memory(n) for n in range(20)])
    assert text.splitlines() == ["Relevant memories:", *[f"- fact {n}" for n in range(5)]]


def test_nothing_relevant_is_nothing_at_all() -> None:
    assert offer([]) == ""
    assert offer([memory(1)], query="   ") == ""


def test_a_session_is_never_given_the_same_twice() -> None:
    given = ShownHits()
    hits = [memory(n) for n in range(8)]
    first, second, third = (offer(hits, given=given) for _ in range(3))
    assert "fact 0" in first
    assert "fact 0" not in second
    assert "fact 5" in second
    assert third == ""
    assert "fact 0" in offer(hits, given=given, session=Session("marketing", "other", "hermes"))


def test_after_compression_it_may_be_given_again() -> None:
    given = ShownHits()
    offer([memory(1)], given=given)
    given.clear(SESSION)
    assert "fact 1" in offer([memory(1)], given=given)


def test_what_the_host_shows_anyway_is_left_out() -> None:
    assert offer([memory(1), memory(2)], by_host=frozenset({"fact 1"})) == "Relevant memories:\n- fact 2"


def test_past_turns_are_dated_and_never_of_the_running_session() -> None:
    text = offer([turn(1), turn(2, session_id="s1")])
    assert text == "From earlier conversations:\n- 2026-05-01 user: said 1"
    assert offer([turn(1)], settings=parse({"f": {"prefetch_sources": "memories"}}).settings) == ""


@pytest.mark.parametrize("budget", [200, 500, 2000])
def test_the_budget_of_characters_is_hard(budget: int) -> None:
    block, included = prefetch.rendered([memory(n, "word " * 50) for n in range(30)], budget)
    assert len(block) <= budget
    assert len(included) == block.count("\n- ")


def test_what_found_no_room_is_not_marked_as_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ShownHits()
    monkeypatch.setattr(Settings, "prefetch_max_chars", 200)
    small = parse({}).settings
    hits = [memory(n, f"{n} " + "word " * 25) for n in range(3)]
    first = offer(hits, given=given, settings=small)
    second = offer(hits, given=given, settings=small)
    assert first != second
    assert second


def test_a_line_shows_the_words_that_were_asked_for() -> None:
    said = "filler " * 100 + "the zebra budget is 12,000 euros " + "filler " * 100
    text = offer([replace(memory(1, said), words=("zebra", "budget"))], query="zebra budget?")
    (line,) = text.splitlines()[1:]
    assert "the zebra budget is 12,000 euros" in line
    assert line.startswith("- …filler")
    assert line.endswith("filler…")
    assert len(line) <= len("- ") + prefetch.LINE_CHARS


@pytest.mark.parametrize("query", ["thanks!", "commit and push", "hi, how are you?", "mach bitte weiter", "ありがとう"])
def test_small_talk_is_not_even_searched_for(query: str) -> None:
    assert offer([memory(1, query)], query=query) == ""


def test_what_was_shown_is_remembered_for_so_many_sessions_and_hits() -> None:
    given = ShownHits()
    for number in range(MAX_SESSIONS + 1):
        given.add(Session("t", str(number), "t"), [memory(1)])
    assert given.new(Session("t", "0", "t"), [memory(1)]) == [memory(1)]
    assert given.new(Session("t", "1", "t"), [memory(1)]) == []
    given.add(SESSION, [memory(number) for number in range(MAX_HITS + 1)])
    assert given.new(SESSION, [memory(0), memory(1)]) == [memory(0)]


def test_turns_beyond_the_third_must_be_nearly_as_good_as_the_best() -> None:
    ranked = [replace(turn(number), rank=rank) for number, rank in enumerate((1.0, 0.4, 0.3, 0.7, 0.69, 0.71, 0.9))]
    assert [hit.id for hit in prefetch.worth_a_line(ranked, 6)] == [0, 1, 2, 3, 5]
    assert [hit.id for hit in prefetch.worth_a_line(ranked, 2)] == [0, 1]
    assert prefetch.worth_a_line([], 6) == []


def test_the_operator_decides_how_many_turns_are_offered() -> None:
    hits = [turn(number) for number in range(20)]
    for most in (0, 1, 4, 20):
        wanted = parse({"f": {"prefetch_turns": most}}).settings
        assert offer(hits, settings=wanted).count("\n- ") == min(most, 20)
