"""Output that reads well and cannot steer a terminal."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import pytest

from hermes_memory_pgvector.terminal import amounts, ask, render, sink
from hermes_memory_pgvector.terminal import progress as live
from hermes_memory_pgvector.terminal.operation import Note
from hermes_memory_pgvector.terminal.sink import has_colours, use

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Screen(io.StringIO):
    """A terminal that keeps what it is sent."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """What people see, without colours and blanks at the end."""
        return [line.rstrip() for line in COLOUR.sub("", self.getvalue()).splitlines()]


@contextmanager
def watched(typed: str = "") -> Iterator[Screen]:
    """Standard output is a terminal of 60 columns with colours, and somebody types."""
    shown = Screen()
    variables = {"COLUMNS": "60", "TERM": "xterm-256color"}
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(shown):
        patch.setattr("sys.stdin", Screen(typed))
        for name, value in variables.items():
            patch.setenv(name, value)
        for name in ("NO_COLOR", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        # Whatever command ran in this process before.
        use("auto", is_document=False)
        try:
            yield shown
        finally:
            use("auto", is_document=False)


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert render.one_line("a\x1b[31mb\nc\x07\u202ed") == "a [31mb c  d"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ms"), (0.0004, "<1 ms"), (0.0006, "1 ms"),
        (0.042, "42 ms"), (0.0999, "0.1 s"), (12.34, "12.3 s"), (600, "10 min"), (7200, "2 h"),
        (864000, "10 days"),
    ],
)  # fmt: skip
def test_time_in_a_unit_that_reads_well(value: float, text: str) -> None:
    assert amounts.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (256_000_000, "256 MB"), (3 * 10**15, "3000 TB")]
)
def test_sizes_in_a_unit_that_reads_well(value: int, text: str) -> None:
    assert amounts.size(value) == text


def test_counting_nouns() -> None:
    assert [amounts.count(n, "memory", "memories") for n in (0, 1, 2000)] == [
        "0 memories",
        "1 memory",
        "2,000 memories",
    ]


def test_colours_follow_the_option_then_the_environment_then_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched():
        assert has_colours()
        assert not has_colours(io.StringIO())
        monkeypatch.setenv("NO_COLOR", "1")
        assert not has_colours()
        use("always", is_document=False)
        assert has_colours()
        assert has_colours(io.StringIO())
        use("never", is_document=False)
        monkeypatch.delenv("NO_COLOR")
        assert not has_colours()
        use("auto", is_document=False)
        monkeypatch.setenv("TERM", "dumb")
        assert not has_colours()
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert has_colours(io.StringIO())


def test_a_sign_has_the_colour_of_its_meaning() -> None:
    with watched() as screen:
        render.tell(Note("ok", "text"))
        render.tell(Note("warning", "text"))
        render.tell(Note("problem", "text"))
        shown = screen.getvalue()
        assert "\x1b[32m✓" in shown
        assert "\x1b[33m!" in shown
        assert "\x1b[1;31m✗" in shown


def test_a_command_at_the_end_of_an_error_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as screen:
        monkeypatch.setattr(sys, "stderr", sys.stdout)
        render.complain("no theme 3f0c9a1 holds memories here; see: hermes-pgvector themes --json")
    assert screen.lines == [
        "hermes-pgvector: no theme 3f0c9a1 holds memories here; see:", "  hermes-pgvector themes --json",
    ]  # fmt: skip


def test_text_is_never_read_as_markup_and_cannot_send_escapes() -> None:
    with watched() as screen:
        use("never", is_document=False)
        render.tell(Note("ok", "[bold]x[/bold] :smile: \x1b[31m", "[red]y[/red]\x1b]0;title\x07"))
        out = screen.getvalue()
        assert "\x1b" not in out
        assert "[bold]x[/bold] :smile:" in out
        assert "[red]y[/red]" in out


def test_progress_appears_after_a_while_with_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as screen:
        monkeypatch.setattr(live, "PATIENCE_SECONDS", 0.01)
        with live.shown("embedding", total=400, unit="row") as bar:
            bar.update(100)
            until = time.monotonic() + 10
            while "100 of 400 rows" not in screen.getvalue() and time.monotonic() < until:
                threading.Event().wait(0.02)
            sink.write("a line above it")
            bar.phase("second half")
            bar.advance(300)
        out = COLOUR.sub("", screen.getvalue())
        assert re.search(r"embedding .*100 of 400 rows, [\d,]+/s, .* left", out)
        assert re.search(r"(?m)a line above it\s*$", out)
        sink.write("after")
        assert screen.lines[-1].endswith("after")


def test_quick_work_shows_no_progress() -> None:
    with watched() as screen:
        with live.shown("quick", total=2, unit="row") as bar:
            bar.advance(2)
        assert screen.getvalue() == ""


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (100, 400, "row", "100 of 400 rows, 10/s, 30.0 s left"),
        (1, 3, "row", "1 of 3 rows, 6/min, 20.0 s left"),
        (0, 3, "row", "0 of 3 rows"),
        (5000, None, "row", "5,000 rows, 500/s"),
        (0, None, "", "10.0 s"),
        (5_000_000, 20_000_000, "byte", "5.0 MB of 20.0 MB, 500 kB/s, 30.0 s left"),
    ],
)
def test_figures_beside_a_bar(done: float, total: float | None, unit: str, text: str) -> None:
    assert live.figures(done, total, unit, time.monotonic() - 10) == text


@pytest.mark.parametrize(
    ("typed", "default", "answer"),
    [("y\n", False, True), ("YES\n", False, True), ("\n", False, False), ("\n", True, True), ("", True, False),
     ("no\n", True, False), ("what\n", True, False)],
)  # fmt: skip
def test_a_question_takes_yes_no_or_the_default(typed: str, default: bool, answer: bool) -> None:
    with watched(typed):
        assert ask.confirm("Remove it?", default=default) is answer


def test_where_nobody_can_answer_it_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert not ask.confirm("Remove it?", default=True)
    assert ask.confirm("Remove it?", yes=True)
