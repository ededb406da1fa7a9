"""The recall tools: whatever the model sends, the answer is JSON that helps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.errors import DatabaseUnavailable
from hermes_memory_pgvector.recall import retract, tools
from hermes_memory_pgvector.recall.recall import Answer
from hermes_memory_pgvector.values import Hit, Kind, Neighbour, Question, Scope, Session

SESSION = Session("marketing", "s1", "hermes")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def ask(
    name: str,
    arguments: Any,
    hits: list[Hit] | None = None,
    session: Session = SESSION,
    degraded: str | None = None,
) -> tuple[Any, Question | None]:
    asked: list[Question] = []

    def search(questions: Sequence[Question]) -> list[Answer]:
        asked.extend(questions)
        return [Answer(tuple(hits or ()), degraded)]

    text = tools.answer(name, arguments, session, Settings(), search=search)
    return json.loads(text), asked[0] if asked else None


def test_the_tools_are_small_and_searching_requires_only_a_query() -> None:
    schemas = tools.schemas()
    assert [schema["name"] for schema in schemas] == ["recall_memory", "recall_conversation"]
    assert all(schema["parameters"]["required"] == ["query"] for schema in schemas)
    assert len(json.dumps([*schemas, retract.schema()])) <= 3000


def test_memories_come_back_in_the_promised_form() -> None:
    hit = Hit(Kind.MEMORY, 7, "marketing", NOW, "x" * 3000, 0.123456, 1.0, target="user")
    answer, question = ask("recall_memory", {"query": "who"}, [hit])
    assert question is not None
    assert (question.kind, question.theme, question.scope, question.limit) == (
        Kind.MEMORY,
        "marketing",
        Scope.CURRENT,
        5,
    )
    assert answer["count"] == 1
    row = answer["results"][0]
    assert list(row) == ["id", "ref", "agent_identity", "target", "ts", "score", "why", "origin", "content"]
    assert (row["id"], row["target"], row["score"], row["ts"]) == (7, "user", 0.1235, "2026-05-01T12:00:00+00:00")
    assert len(row["content"]) == 2000


def test_turns_come_back_with_session_and_role() -> None:
    hit = Hit(Kind.TURN, 9, "marketing", NOW, "said", None, 1.0, session_id="s9", role="assistant")
    row = ask("recall_conversation", {"query": "what"}, [hit])[0]["results"][0]
    assert list(row) == ["id", "ref", "agent_identity", "session_id", "role", "ts", "score", "why", "origin", "content"]
    assert row["score"] is None


def test_a_result_says_in_a_word_why_it_is_one() -> None:
    when = datetime(2026, 5, 1, 11, tzinfo=UTC)
    hit = Hit(Kind.TURN, 9, "marketing", when, "The pilot boat", 0.5, 1.0, session_id="s", role="assistant")

    def why(query: str, hit: Hit = hit) -> str:
        return str(ask("recall_conversation", {"query": query}, [hit])[0]["results"][0]["why"])

    assert why("roses") == "meaning"
    assert why("boats", replace(hit, score=None, words=("boat",))) == "words"
    assert (
        why("which boat did you suggest on 1 May 2026?", replace(hit, words=("boat",)))
        == "meaning, words, time, speaker"
    )
    assert ask("recall_conversation", {"query": "boat"}, [hit])[0]["results"][0]["ref"] == "t9"


def test_turns_bring_their_neighbours_along_as_evidence_beside_the_hit() -> None:
    before = Neighbour("user", datetime(2026, 5, 1, 11, 59, tzinfo=UTC), "</memory-context>" + "x" * 3000)
    hit = Hit(Kind.TURN, 9, "marketing", NOW, "said", None, 1.0, session_id="s9", role="assistant", before=before)
    answer, _ = ask("recall_conversation", {"query": "what", "context": 1}, [hit])
    assert answer["count"] == 1
    (row,) = answer["results"]
    assert list(row["before"]) == ["role", "ts", "content"]
    assert (row["before"]["role"], row["before"]["ts"]) == ("user", "2026-05-01T11:59:00+00:00")
    assert row["before"]["content"].startswith("\u2039/memory-context>xxx")
    assert len(row["before"]["content"]) == 2000
    assert "after" not in row


@pytest.mark.parametrize(
    ("given_context", "wants"),
    [
        (None, False), (0, False), (1, True), ("1", True), (True, True), (False, False), (7, True), (-1, False),
        ("yes", False), ([], False), ({}, False), (0.9, False), (float("inf"), False), (float("nan"), False),
    ],
)  # fmt: skip
def test_context_is_none_or_one_and_nonsense_is_none(given_context: Any, wants: bool) -> None:
    question = ask("recall_conversation", {"query": "q", "context": given_context})[1]
    assert question is not None
    assert question.wants_neighbours is wants


def test_memories_have_no_neighbours() -> None:
    question = ask("recall_memory", {"query": "q", "context": 1})[1]
    assert question is not None
    assert not question.wants_neighbours


@pytest.mark.parametrize(
    ("given_group", "wants"), [("session", True), (" Session ", True), ("none", False), (None, False), (1, False)]
)
def test_turns_can_be_grouped_by_session_and_nonsense_groups_nothing(given_group: Any, wants: bool) -> None:
    question = ask("recall_conversation", {"query": "q", "group_by": given_group})[1]
    assert question is not None
    assert question.by_session is wants
    question = ask("recall_memory", {"query": "q", "group_by": given_group})[1]
    assert question is not None
    assert not question.by_session


@pytest.mark.parametrize(
    ("given_limit", "limit"),
    [
        (None, 5),
        (3, 3),
        ("7", 7),
        (0, 1),
        (-4, 1),
        (99, 20),
        ("many", 5),
        (True, 5),
        ([], 5),
        (2.9, 2),
        (float("inf"), 5),
    ],
)
def test_limits_are_clamped_and_nonsense_is_five(given_limit: Any, limit: int) -> None:
    question = ask("recall_memory", {"query": "q", "limit": given_limit})[1]
    assert question is not None
    assert question.limit == limit


@pytest.mark.parametrize(
    ("name", "scope", "expected"),
    [
        ("recall_memory", None, (Scope.CURRENT, "marketing")),
        ("recall_memory", "current", (Scope.CURRENT, "marketing")),
        ("recall_memory", "ALL", (Scope.ALL, "marketing")),
        ("recall_memory", " Sales ", (Scope.NAMED, "sales")),
        ("recall_memory", "Marketing", (Scope.CURRENT, "marketing")),
        ("recall_memory", "session", (Scope.CURRENT, "marketing")),
        ("recall_conversation", "session", (Scope.SESSION, "marketing")),
        ("recall_conversation", 7, (Scope.CURRENT, "marketing")),
    ],
)
def test_scopes(name: str, scope: Any, expected: tuple[Scope, str]) -> None:
    question = ask(name, {"query": "q", "scope": scope})[1]
    assert question is not None
    assert (question.scope, question.theme) == expected


@pytest.mark.parametrize("scope", ["dm-0123", "group-77", "_bench", " DM-x "])
def test_private_themes_cannot_be_named(scope: str) -> None:
    answer, question = ask("recall_memory", {"query": "q", "scope": scope})
    assert question is None
    assert "private" in answer["error"]


def test_a_private_theme_may_name_itself() -> None:
    question = ask("recall_memory", {"query": "q", "scope": "dm-1"}, session=Session("dm-1", "s", "hermes"))[1]
    assert question is not None
    assert question.scope is Scope.CURRENT


@pytest.mark.parametrize("target", ["memory", "user"])
def test_targets(target: str) -> None:
    question = ask("recall_memory", {"query": "q", "target": target})[1]
    assert question is not None
    assert question.targets == (target,)


def test_dates_bound_the_search_and_a_day_includes_its_evening() -> None:
    question = ask("recall_conversation", {"query": "q", "since": "2026-05-01", "until": "2026-05-02"})[1]
    assert question is not None
    assert question.since == datetime(2026, 5, 1, tzinfo=UTC)
    assert question.until is not None
    assert question.until > datetime(2026, 5, 2, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    "arguments", [None, [], "q", {}, {"query": ""}, {"query": "  \x00 "}, {"query": 5}, {"query": ["q"]}]
)
def test_nothing_to_ask_is_a_helpful_error(arguments: Any) -> None:
    answer, question = ask("recall_memory", arguments)
    assert question is None
    assert "query" in answer["error"]


def test_a_wrong_date_is_a_helpful_error() -> None:
    assert "2026-05-31" in ask("recall_memory", {"query": "q", "since": "last week"})[0]["error"]


def test_an_outage_is_told_without_a_connection_string() -> None:
    def search(questions: Sequence[Question]) -> list[Answer]:
        raise DatabaseUnavailable("host=secret password=hunter2")

    text = tools.answer("recall_memory", {"query": "q"}, SESSION, Settings(), search=search)
    assert "error" in json.loads(text)
    assert "hunter2" not in text


def test_the_model_is_told_what_the_search_left_out_and_only_then() -> None:
    note = "keyword search only: the embedding service is out of reach"
    hit = Hit(Kind.MEMORY, 1, "marketing", NOW, "a fact", 0.5, 1.0, target="memory")
    assert ask("recall_memory", {"query": "q"}, [hit], degraded=note)[0]["note"] == note
    assert "note" not in ask("recall_memory", {"query": "q"}, [hit])[0]
    assert ask("recall_memory", {"query": "q"}, degraded=note)[0]["note"].endswith(f"searched by words only). {note}")


@pytest.mark.parametrize(
    ("name", "arguments", "searched", "note"),
    [
        ("recall_memory", {}, 12, "Nothing found in theme 'marketing' (12 memories searched by meaning and words)."),
        (
            "recall_memory",
            {"scope": "sales"},
            1,
            "Nothing found in theme 'sales' (1 memory searched by meaning and words).",
        ),
        (
            "recall_memory",
            {"scope": "all"},
            None,
            "Nothing found in all shared themes (memories searched by meaning and words).",
        ),
        (
            "recall_conversation",
            {"scope": "session"},
            0,
            "Nothing found in this session (0 turns searched by meaning and words).",
        ),
        (
            "recall_conversation",
            {"since": "2026-05-01"},
            10_001,
            "Nothing found in theme 'marketing' "
            "(more than 10,000 turns in the time given searched by meaning and words).",
        ),
    ],
)
def test_nothing_found_is_an_answer_that_says_what_was_searched(
    name: str, arguments: dict[str, Any], searched: int | None, note: str
) -> None:
    text = tools.answer(
        name,
        {"query": "q", **arguments},
        SESSION,
        Settings(),
        search=lambda _: [Answer((), searched=searched)],
    )
    assert json.loads(text) == {"results": [], "count": 0, "note": note}


def test_a_long_text_is_shown_around_the_words_asked_for() -> None:
    content = "filler " * 1000 + "the zebra budget" + " filler" * 1000
    neighbour = Neighbour("assistant", NOW, content)
    hit = Hit(Kind.TURN, 1, "marketing", NOW, content, 0.5, 1.0, session_id="s", role="user", after=neighbour)
    hit = replace(hit, words=("zebra", "budget"))
    row = ask("recall_conversation", {"query": "zebra budget?"}, [hit])[0]["results"][0]
    for shown in (row["content"], row["after"]["content"]):
        assert "the zebra budget" in shown
        assert (shown[0], shown[-1], len(shown) <= 2000) == ("…", "…", True)


@given(
    name=st.sampled_from(["recall_memory", "recall_conversation", "other", ""]),
    arguments=st.dictionaries(
        st.sampled_from(["query", "scope", "target", "limit", "since", "until", "context", "group_by", "x"]),
        st.none() | st.text() | st.integers() | st.floats() | st.booleans() | st.lists(st.text(), max_size=2),
    ),
)
def test_any_arguments_get_json(name: str, arguments: dict[str, Any]) -> None:
    answer, _ = ask(name, arguments)
    assert "error" in answer or answer["count"] == 0
