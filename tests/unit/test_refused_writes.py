"""The queue of refused writes while what was forgotten is taken out of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes_memory_pgvector.capture.refusal_notes import FOLDER_NAME, SUFFIX
from hermes_memory_pgvector.capture.refused_writes import Refusals, noted_items
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseUnavailable
from hermes_memory_pgvector.journal import Urgency
from hermes_memory_pgvector.values import AddTurn, ForgetTurns, Moment, WriteItem


def turn(text: str) -> AddTurn:
    return AddTurn("marketing", "s1", "user", text, 1, Moment(1, 1), is_live=True)


UNDO = ForgetTurns("marketing", "s1", (("00" * 32, 1),), Moment(2, 2))


@pytest.fixture
def refusals(tmp_path: Path) -> Refusals:
    return Refusals(tmp_path, tmp_path, max_chars=65536)


def appended(refusals: Refusals) -> list[WriteItem]:
    found: list[WriteItem] = []
    refusals.recover(lambda items, _: found.extend(items))
    return found


def test_nobody_waits_while_entries_are_judged_and_what_comes_meanwhile_stays(
    refusals: Refusals, tmp_path: Path
) -> None:
    first, gone, undo, late = turn("first"), turn("gone"), UNDO, turn("late")
    for item in (first, gone, undo):
        refusals.note([item], Urgency.TURN)

    def rewrite(items: Sequence[WriteItem]) -> list[WriteItem | None]:
        if items[0] == first:
            hook = threading.Thread(target=lambda: refusals.holds_back([late]) and refusals.note([late], Urgency.TURN))
            hook.start()
            hook.join(10)
            assert not hook.is_alive()
        return [None if item == gone else item for item in items]

    assert refusals.redact(rewrite) == (1, True)
    assert list(noted_items(tmp_path, tmp_path, max_chars=65536)) == [first, undo, late]
    assert len(list((tmp_path / FOLDER_NAME).glob(f"*{SUFFIX}"))) == 1
    assert appended(refusals) == [first, undo, late]
    assert not refusals.holds_back([late, undo])


def test_a_process_that_ends_does_not_wait_for_whoever_judges(refusals: Refusals) -> None:
    first = turn("first")
    refusals.note([first], Urgency.TURN)
    taken: list[WriteItem] = []

    def rewrite(items: Sequence[WriteItem]) -> Sequence[WriteItem]:
        # Postgres takes its time; meanwhile the process is asked to end.
        ending = threading.Thread(
            target=lambda: refusals.recover(lambda items, _: taken.extend(items), hurry=Deadline.after(0.05))
        )
        ending.start()
        ending.join(10)
        assert not ending.is_alive()
        return items

    assert refusals.redact(rewrite) == (0, True)
    assert taken == []
    assert appended(refusals) == [first]


def test_judging_that_fails_leaves_the_queue_and_the_notes_as_they_were(refusals: Refusals, tmp_path: Path) -> None:
    items: list[WriteItem] = [turn("first"), turn("second"), UNDO]
    for item in items:
        refusals.note([item], Urgency.TURN)

    def rewrite(asked: Sequence[WriteItem]) -> Sequence[WriteItem]:
        if asked[0] == items[1]:
            raise DatabaseUnavailable("gone")
        return asked

    with pytest.raises(DatabaseUnavailable):
        refusals.redact(rewrite)
    assert list(noted_items(tmp_path, tmp_path, max_chars=65536)) == items
    assert len(list((tmp_path / FOLDER_NAME).glob(f"*{SUFFIX}"))) == 1
    assert appended(refusals) == items
