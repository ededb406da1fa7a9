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

from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal import progress as live
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
        try:
            yield shown
        finally:
            use("auto", is_document=False)


def test_columns_are_aligned_also_with_wide_and_combining_signs(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.table(("theme", "turns"), [("日本", "1"), ("e\u0301t\u00e9", "1,200"), ("plain", "20")], right=(1,))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["  theme  turns", "  日本       1", "  e\u0301té    1,200", "  plain     20"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert terminal.one_line("a\x1b[31mb\nc\x07\u202ed") == "a [31mb c  d"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ms"), (0.0004, "<1 ms"), (0.0006, "1 ms"),
        (0.042, "42 ms"), (0.0999, "0.1 s"), (12.34, "12.3 s"), (600, "10 min"), (7200, "2 h"),
        (864000, "10 days"),
    ],
)  # fmt: skip
def test_time_in_a_unit_that_reads_well(value: float, text: str) -> None:
    assert terminal.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (256_000_000, "256 MB"), (3 * 10**15, "3000 TB")]
)
def test_sizes_in_a_unit_that_reads_well(value: int, text: str) -> None:
    assert terminal.size(value) == text


def test_a_step_that_fails_says_so_and_lets_the_error_through(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError), terminal.step("work"):
        raise ValueError
    assert capsys.readouterr().out.strip() == "✗ work"


def test_counting_nouns() -> None:
    assert [terminal.count(n, "memory", "memories") for n in (0, 1, 2000)] == [
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
        terminal.bullet("ok", "text")
        terminal.bullet("warning", "text")
        terminal.bullet("problem", "text")
        shown = screen.getvalue()
        assert "\x1b[32m✓" in shown
        assert "\x1b[33m!" in shown
        assert "\x1b[1;31m✗" in shown


def test_a_long_line_is_wrapped_below_its_text_and_a_command_stays_whole() -> None:
    with watched() as screen:
        command = "hermes-pgvector migrate --admin-dsn postgresql://owner@db.example.com/hermes"
        terminal.bullet("problem", "word " * 20, f"mend it with: {command}")
        assert screen.lines[:2] == [f" ✗ {'word ' * 11}".rstrip(), f"   {'word ' * 9}".rstrip()]
        assert screen.lines[2:] == ["   → mend it with:", f"     {command}"]


def test_the_first_line_has_the_room_that_it_has() -> None:
    with watched() as screen:
        terminal.bullet("ok", "embedder      " + "word " * 16, indent=17)
        terminal.wrap(["word " * 12], 2, first=["a long beginning: "])
    assert screen.lines == [
        " ✓ embedder      word word word word word word word word",
        " " * 17 + "word word word word word word word word",
        "a long beginning: word word word word word word word word", "  word word word word",
    ]  # fmt: skip


def test_in_a_pipe_nothing_is_wrapped_or_coloured(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.bullet("problem", "word " * 60, "mend it with: hermes-pgvector migrate")
    terminal.table(("name", "value"), [("a", "long " * 60), (terminal.styled("b", "problem"), "x")])
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 5
    assert "\x1b" not in out


def test_a_table_wraps_within_its_columns_when_it_is_wider_than_the_terminal() -> None:
    with watched() as screen:
        terminal.table(("setting", "value", "rows"), [("dsn", "one two " * 12, "1,200")], right=(2,))
        assert all(len(line) <= 60 for line in screen.lines)
        assert len(screen.lines) > 3
        assert screen.lines[1].endswith("1,200")
        assert screen.lines[2].startswith(" " * 11 + "one two")


def test_a_text_that_would_be_a_thin_strip_stands_below_its_row() -> None:
    with watched() as screen:
        row = ("e4", "2026-11-16 07:48:30", "workshop/memory", "replace", "The lathe has new bearings " * 4)
        terminal.table(("event", "when", "theme", "what", "text"), [row])
    lines = screen.lines
    assert lines[0] == "  event  when                 theme            what"
    assert lines[1] == "  e4     2026-11-16 07:48:30  workshop/memory  replace"
    assert " ".join(line.strip() for line in lines[2:]) == row[-1].strip()
    assert all(line.startswith("      ") for line in lines[2:])
    assert all(len(line) <= 60 for line in lines)


def test_columns_that_do_not_fit_either_stand_below_with_their_names() -> None:
    with watched() as screen:
        row = ("e4", "2026-11-16 07:48:30", "workshop/memory", "3f0c9a1e", "20261112_091500_a1b2c3", "The lathe " * 9)
        terminal.table(("event", "when", "theme", "home", "session", "text"), [row, (*row[:4], None, "Short")])
    lines = screen.lines
    assert lines[0] == "  event  when                 theme            home"
    assert lines[1] == "  e4     2026-11-16 07:48:30  workshop/memory  3f0c9a1e"
    assert lines[2] == "      session 20261112_091500_a1b2c3"
    assert lines[3].startswith("      The lathe")
    assert lines[-2:] == [lines[1], "      Short"]
    assert all(len(line) <= 60 for line in lines)


def test_numbers_that_do_not_fit_stand_below_instead_of_breaking_words() -> None:
    with watched() as screen:
        row = ("marketing", "api_server", "48 min ago", "48 min ago", "1", "106", "7")
        terminal.table(("agent", "kind", "first", "last", "sessions", "turns", "memories"), [row], right=(4, 5, 6))
    assert screen.lines == [
        "  agent      kind        first       last        sessions",
        "  marketing  api_server  48 min ago  48 min ago         1",
        "      turns 106, memories 7",
    ]  # fmt: skip


def test_a_command_at_the_end_of_an_error_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as screen:
        monkeypatch.setattr(sys, "stderr", sys.stdout)
        terminal.fail("no theme 3f0c9a1 holds memories here; see: hermes-pgvector themes --json")
    assert screen.lines == [
        "hermes-pgvector: no theme 3f0c9a1 holds memories here; see:", "  hermes-pgvector themes --json",
    ]  # fmt: skip


def test_text_is_never_read_as_markup_and_cannot_send_escapes() -> None:
    with watched() as screen:
        use("never", is_document=False)
        terminal.table(("a",), [("[bold]x[/bold] :smile: \x1b[31m",)])
        terminal.pairs([("b", "[red]y[/red]\x1b]0;title\x07")])
        out = screen.getvalue()
        assert "\x1b" not in out
        assert "[bold]x[/bold] :smile:" in out
        assert "[red]y[/red]" in out


def test_progress_appears_after_a_while_with_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as screen:
        monkeypatch.setattr(live, "PATIENCE_SECONDS", 0.01)
        with terminal.progress("embedding", total=400, unit="row") as bar:
            bar.update(100)
            until = time.monotonic() + 10
            while "of 400 rows" not in screen.getvalue() and time.monotonic() < until:
                threading.Event().wait(0.02)
            terminal.say("a line above it")
            bar.phase("second half")
            bar.advance(300)
        out = COLOUR.sub("", screen.getvalue())
        assert re.search(r"embedding .*100 of 400 rows, [\d,]+/s, .* left", out)
        assert re.search(r"(?m)a line above it\s*$", out)
        terminal.say("after")
        assert screen.lines[-1].endswith("after")


def test_quick_work_shows_no_progress() -> None:
    with watched() as screen:
        with terminal.progress("quick", total=2, unit="row") as bar:
            bar.advance(2)
        assert screen.getvalue() == ""


def test_in_a_pipe_each_phase_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress("index", unit="row") as bar:
        for phase in ("reading", "reading", "writing"):
            bar.phase(phase)
    assert capsys.readouterr().out == " · index: reading\n · index: writing\n"
    with terminal.progress("index", quiet=True) as bar:
        bar.phase("reading")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (100, 400, "row", "100 of 400 rows, 10/s, 30.0 s left"),
        (1, 3, "row", "1 of 3 rows, 6/min, 20.0 s left"),
        (0, 3, "row", "0 of 3 rows"),
        (5000, None, "row", "5,000 rows, 500/s"),
        (25, 100, "", "25%, 10.0 s, 30.0 s left"),
        (0, None, "", "10.0 s"),
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
        assert terminal.confirm("Remove it?", default=default) is answer


def test_where_nobody_can_answer_it_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert not terminal.confirm("Remove it?", default=True)
    assert terminal.confirm("Remove it?", yes=True)


def test_a_display_gives_way_to_a_question() -> None:
    with watched("blue\n") as screen:
        bar = live.Bar("work", None, "", shows=True, note=None)
        bar.start()
        try:
            assert terminal.ask("Which colour?", "red") == "blue"
        finally:
            bar.close()
        assert "Which colour? [red] " in COLOUR.sub("", screen.getvalue())
