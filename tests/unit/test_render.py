"""What answers look like: aligned, no wider than the reader has room, and nothing in them controls the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from hermes_memory_pgvector.terminal import render, sink
from hermes_memory_pgvector.terminal.fields import aside, body, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, Page, Plan, Stream, command

AT = datetime(2026, 11, 18, 9, 14, 7, 123456, tzinfo=UTC)
HOSTILE = "red \x1b[31m alert \u202egnp.exe\nsecond line"


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a list."""

    id: str = column("id")
    at: datetime | None = column("when (UTC)")
    count: int = column("turns", right=True)
    state: str = column("state", rare=True)
    content: str = column("text", text=True)


@dataclass(frozen=True, slots=True)
class Thing(Facts):
    """What is known of one thing."""

    name: str = column("name")
    changed: datetime | None = column("last changed")
    content: str = body()
    rows: tuple[Line, ...] = ()
    notes: tuple[Note, ...] = aside(())


def printed(answer: Any, room: int = 80, again: tuple[str, ...] = ()) -> list[str]:
    return [sink.plain(line) for line in render.lines(answer, room, again)]


def test_a_table_is_aligned_and_no_wider_than_the_room() -> None:
    rows = [Line("m1", AT, 12090, content="word " * 60), Line("m12", AT, 3, content="short")]
    for room in (80, 60, 40):
        shown = printed(Page(rows, "m12"), room)
        assert max(map(render.width_of, shown)) <= room, room
    head, first, second, following = printed(Page(rows, "m12"))
    assert head == "  id   when (UTC)         turns  text"
    assert first.startswith("  m1   2026-11-18 09:14  12,090  word word")
    assert first.endswith("…")
    assert second == "  m12  2026-11-18 09:14       3  short"
    assert following == "  next page: --page m12"


def test_a_column_that_nobody_fills_is_left_out_unless_it_is_said() -> None:
    assert "state" not in printed(Page([Line("m1", AT, 1, content="x")]))[0]
    assert "state" in printed(Page([Line("m1", AT, 1, "muted", "x")]))[0]


def test_what_has_no_room_stands_below_its_row() -> None:
    shown = printed(Page([Line("a-rather-long-name-of-a-session", AT, 7, "muted", "some words")]), 40)
    assert max(map(len, shown)) <= 40
    told = " ".join(" ".join(shown).split())
    assert "turns 7, state muted" in told
    assert "some words" in told


def test_nothing_from_outside_controls_the_terminal() -> None:
    for shape in (
        Page([Line(HOSTILE, None, 1, HOSTILE, HOSTILE)], HOSTILE),
        Thing(HOSTILE, AT, HOSTILE, (Line(HOSTILE, content=HOSTILE),), (Note("warning", HOSTILE, HOSTILE),)),
        Plan("remove", "removed", {"rows": 2}, [Line(HOSTILE, content=HOSTILE)], left=[Note("warning", HOSTILE)]),
    ):
        text = "".join(printed(shape))
        assert text.isprintable(), text
        assert "alert" in text


def test_facts_have_their_names_their_text_and_their_rows() -> None:
    thing = Thing("m44", AT, "first\n\tsecond", (Line("e5", AT, 1, content="added"),), (Note("ok", "all well"),))
    assert printed(thing) == [
        "  name          m44",
        "  last changed  2026-11-18 09:14",
        "",
        "    first",
        "        second",
        "",
        "  id  when (UTC)        turns  text",
        "  e5  2026-11-18 09:14      1  added",
        " ✓ all well",
    ]


def test_a_dry_run_ends_with_the_command_that_does_it() -> None:
    plan = Plan("forget", "forgotten", {"turns": 33, "memories": 0, "names": 1})
    assert printed(plan, again=("forget", "--match", "Anna Schmidt")) == [
        " ! dry run, nothing is changed: would forget 33 turns, 1 name",
        " · to do it: hermes-pgvector forget --match 'Anna Schmidt' --execute",
    ]
    done = Plan("forget", "forgotten", {"turns": 1}, executed=True, left=[Note("warning", "a copy is left")])
    assert printed(done) == [" ✓ forgotten: 1 turn", " ! a copy is left"]
    assert printed(Plan("forget", "forgotten", {"turns": 0})) == [" ✓ there is nothing to forget"]


def test_commands_are_those_of_the_reader_and_stand_whole() -> None:
    note = Note("problem", "a long sentence about what is wrong " * 4, "to see more of it", command("show", "m 1"))
    with render.spoken_to("hermes -p coder pgvector", "/home/ada/.hermes"):
        shown = printed(Page([], notes=[note]), 60)
    assert shown[-1].endswith("hermes -p coder pgvector show --hermes-home /home/ada/.hermes 'm 1'")


def test_wide_letters_and_words_without_end_fit() -> None:
    for text in ("漢字" * 60, "x" * 300, "e\u0301" * 90):
        shown = printed(Page([Line("m1", AT, 1, content=text)], empty=text), 50)
        assert max(map(render.width_of, shown)) <= 50
        assert max(map(render.width_of, printed(Page([], empty=text), 50))) <= 50


def test_a_stream_is_a_line_for_each_row_or_a_document_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[Line]:
        yield Line("t1", AT, 1, content="a")
        yield Line("t2", AT, 1, content="b")

    assert render.show(Stream(rows()), as_json=False) == 0
    assert capsys.readouterr().out.splitlines() == ["t1  2026-11-18 09:14  1  a", "t2  2026-11-18 09:14  1  b"]
    render.show(Stream(rows()), as_json=True)
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["t1", "t2"]
