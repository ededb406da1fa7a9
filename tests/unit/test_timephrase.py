"""Which days a question means, on a given clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.text.time_phrases import asks_about_now, asks_when, named_period

NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)  # a Sunday


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what did we say in May", "2026-05-01", "2026-05-31"),
        ("in December", "2025-12-01", "2025-12-31"),
        ("last november", "2025-11-01", "2025-11-30"),
        ("what did I say last Tuesday", "2026-11-10", "2026-11-10"),
        ("on Sunday", "2026-11-08", "2026-11-08"),
        ("two weeks ago", "2026-10-29", "2026-11-04"),
        ("3 days ago", "2026-11-12", "2026-11-12"),
        ("yesterday", "2026-11-14", "2026-11-14"),
        ("the day before yesterday", "2026-11-13", "2026-11-13"),
        ("on 3 June 2025", "2025-06-03", "2025-06-03"),
        ("June 3rd", "2026-06-03", "2026-06-03"),
        ("2025-06-03", "2025-06-03", "2025-06-03"),
        ("am 3.6.2025", "2025-06-03", "2025-06-03"),
        ("2025年6月3日", "2025-06-03", "2025-06-03"),
        ("5/6/24", "2024-05-06", "2024-05-06"),
        ("25/6/2024", "2024-06-25", "2024-06-25"),
        ("this week", "2026-11-09", "2026-11-15"),
        ("last week", "2026-11-02", "2026-11-08"),
        ("last weekend", "2026-11-07", "2026-11-08"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("last summer", "2026-06-01", "2026-08-31"),
        ("in 2023", "2023-01-01", "2023-12-31"),
        ("in the last 3 days", "2026-11-12", "2026-11-15"),
    ],
)
def test_a_phrase_means_these_days(question: str, first: str, last: str) -> None:
    period = named_period(question, NOW)
    assert period is not None
    assert period.start == datetime.combine(date.fromisoformat(first), datetime.min.time(), UTC)
    assert period.end == datetime.combine(date.fromisoformat(last), datetime.min.time(), UTC) + timedelta(days=1)


@pytest.mark.parametrize(
    "question",
    [
        "may I go",
        "march on",
        "the sun rises",
        "30/2/2020",
        "99/99",
        "99999 years ago",
        "version 1.2.3.4",
        "",
        "port 2024",
    ],
)
def test_no_period_where_none_is_meant(question: str) -> None:
    assert named_period(question, NOW) is None


@given(st.text(max_size=300))
def test_any_text_is_read_without_error(text: str) -> None:
    period = named_period(text, NOW)
    assert period is None or period.start < period.end


@given(
    st.sampled_from(
        ["{} days ago", "{} weeks ago", "{} months ago", "{} years ago", "last {} months", "{}/{}/{}", "{}.{}.{}"]
    ),
    st.integers(0, 9999),
)
def test_any_number_is_read_without_error(form: str, number: int) -> None:
    for clock in (
        NOW,
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 12, 31, tzinfo=UTC),
    ):
        period = named_period(form.format(number, number % 40, number), clock)
        assert period is None or period.start < period.end


def test_who_asks_when() -> None:
    assert asks_when("When did I buy the bike?")
    assert asks_when("how many weeks passed")
    assert not asks_when("where is the bike")


def test_a_question_about_how_things_are_asks_about_now() -> None:
    now = ("What is my current weight?", "do I still take it?", "where am I living these days", "Are there any left?")
    assert all(map(asks_about_now, now))
    assert not any(map(asks_about_now, ("Where did Anna live?", "what was the nowhere inn")))
