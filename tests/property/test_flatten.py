"""A history without some of its words makes the same entries otherwise, and neither says nor quotes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_pgvector.store import flatten
from hermes_memory_pgvector.store.flatten import shape
from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.values import Origin

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("Likes tea", "Likes green tea", "Likes coffee", "Green tea is out", "Tea")
PARTS = (*WORDS, "tea", "Likes", "green", "out", "nothing of it", "")


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    made = []
    for number in range(1, draw(st.integers(1, 10)) + 1):
        action = draw(st.sampled_from(("add", "replace", "remove")))
        made.append(Event(
            "work", number, "memory", action, "" if action == "remove" else draw(st.sampled_from(WORDS)),
            "" if action == "add" else draw(st.sampled_from(PARTS)),
            None if action == "add" else draw(st.sampled_from((None, *WORDS))),
            draw(st.sampled_from(("here", "there"))),
            draw(st.sampled_from(tuple(Origin))), START + timedelta(minutes=number), {},
        ))  # fmt: skip
    return made


@settings(max_examples=400)
@given(histories(), st.sets(st.sampled_from(WORDS), max_size=2))
def test_what_is_left_makes_the_other_entries(events: list[Event], gone: set[str]) -> None:
    def quotes(text: str) -> bool:
        return any(text.strip() in content for content in gone)

    rest = flatten.without(events, gone, quotes).of(events)
    wanted = {content: homes for content, homes in shape(events).items() if content not in gone}
    assert shape(rest) == wanted
    assert not {event.content for event in rest if event.action != "remove"} & gone
    assert not any(quotes(text) for event in rest for text in (event.old_text, event.previous or "") if text)


@settings(max_examples=400)
@given(histories(), st.integers(0, 11))
def test_a_shorter_history_makes_the_same_entries(events: list[Event], minutes: int) -> None:
    before = START + timedelta(minutes=minutes)
    rest = flatten.shortened(events, before)
    assert shape(rest.of(events)) == shape(events)
    assert {event.id for event in events if event.at >= before} <= {event.id for event in rest.of(events)}


@settings(max_examples=400)
@given(histories())
def test_a_flat_history_is_one_add_for_each_entry_and_home(events: list[Event]) -> None:
    made = shape(events)
    rest = flatten.flattened(events, made).of(events)
    assert {event.action for event in rest} <= {"add"}
    assert shape(rest) == made
    assert len(rest) == sum(max(1, len(homes)) for homes in made.values())
