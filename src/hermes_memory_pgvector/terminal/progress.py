"""Displays that move while something works: how far a task is, or that a step is still going on.

Nothing is drawn in the first second, nor where nobody watches. While a display is on, other lines appear above it.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_memory_pgvector.terminal import render, sink
from hermes_memory_pgvector.terminal.amounts import seconds, size
from hermes_memory_pgvector.terminal.operation import Note

PATIENCE_SECONDS = 1.0
FRAME_SECONDS = 0.1
SIGNS = (("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "━", "─"), ("-\\|/", "#", "-"))
"""What turns, what is done and what is not; in letters where the terminal has no others."""
BAR_WIDTHS = (6, 24)
STEP_NAME = 17
BYTE = "byte"
"""The unit of what is told as a size."""
FIGURES_WIDTH = 64
"""What a description and its figures need beside the bar."""


class Bar:
    """The progress of one task, or of one step of several."""

    def __init__(self, text: str, total: int | None = None, unit: str = "") -> None:
        self._text, self._unit = text, unit
        self._total, self._done, self._phase, self._waits = total, 0, "", ""
        self._file: Path | None = None
        self._began = self._started = time.monotonic()
        self.said: list[str] = []
        """What came of the step."""
        self.took = 0.0

    def advance(self, amount: int = 1) -> None:
        """So much more is done."""
        self._done += amount

    def update(self, done: int, total: int | None = None) -> None:
        """This much is done, of so much if that is known by now."""
        self._done, self._total = done, self._total if total is None else total

    def phase(self, text: str) -> None:
        """What the task is doing now."""
        self._phase = text

    def waits_for(self, reason: str) -> None:
        """The task cannot go on for now; where no display shows it, a line says so, once."""
        if not self._waits and not sink.is_terminal():
            sink.write(f"{self._text} waits: {reason}", stream=sys.stderr)
        self._waits = f"waits: {reason}"

    def goes_on(self) -> None:
        """The task has nothing to wait for any more."""
        self._waits = ""

    def part(self, text: str, *, total: int | None = None, unit: str = "", file: Path | None = None) -> None:
        """A part of the task begins, which is counted for itself; the size of a `file` that it writes says how far."""
        self._phase, self._unit, self._file = text, BYTE if file else unit, file
        self._total, self._done, self._started = total, 0, time.monotonic()

    def end(self) -> None:
        """The time is over."""
        self.took = time.monotonic() - self._began

    @property
    def note(self) -> Note:
        """What came of the step, for people."""
        return Note("ok", f"{self._text:<{STEP_NAME}} {', '.join(self.said)}".rstrip(), took=self.took)

    def line(self, frame: int) -> str:
        """How far it is, as wide as the terminal."""
        turning, filled, empty = SIGNS[0 if sink.speaks_unicode() else 1]
        if self._file is not None and self._file.exists():
            self._done = self._file.stat().st_size
        room, bar = sink.width() or render.PIPE_WIDTH, ""
        if self._unit and self._total:
            least, most = BAR_WIDTHS
            width = min(most, max(least, room - FIGURES_WIDTH))
            done = min(width, width * self._done // self._total)
            bar = f"{filled * done}{empty * (width - done)} "
        phase = self._waits or self._phase
        text = f"{self._text}: {phase}" if phase else self._text
        told = figures(self._done, self._total, self._unit, self._started)
        shown = f"{turning[frame % len(turning)]} {render.one_line(text)} {bar}{told}"
        return render.shortened(shown, room - 1)


_display = threading.Lock()
"""Held by the one display that a terminal has room for."""


@contextmanager
def shown(text: str, *, total: int | None = None, unit: str = "") -> Iterator[Bar]:
    """The progress of a task; a step of several says with `note` what came of it, another nothing afterwards."""
    bar, over = Bar(text, total, unit), threading.Event()
    drawing = threading.Thread(target=_draw, args=(bar, over), daemon=True)
    is_watched = sink.is_terminal() and os.environ.get("TERM") != "dumb"
    if is_watched:
        drawing.start()
    try:
        yield bar
    finally:
        bar.end()
        over.set()
        if is_watched:
            drawing.join()


def _draw(bar: Bar, over: threading.Event) -> None:
    """Draw it until it is over, unless that is soon or another one is there."""
    if over.wait(PATIENCE_SECONDS) or not _display.acquire(blocking=False):
        return
    try:
        for frame in itertools.count():
            sink.draw(bar.line(frame))
            if over.wait(FRAME_SECONDS):
                break
    finally:
        sink.draw("")
        _display.release()


def figures(done: float, total: float | None, unit: str, started: float) -> str:
    """The numbers beside a bar, as people read them: done of total, rate, and time left; else the time taken."""
    took = max(0.001, time.monotonic() - started)
    if not unit:
        return seconds(took)
    rate = done / took
    left = f", {seconds((total - done) / rate)} left" if total and rate and done < total else ""
    if unit == BYTE:
        of = f" of {size(int(total))}" if total else ""
        return f"{size(int(done))}{of}, {size(int(rate))}/s{left}"
    of = f" of {total:,.0f}" if total else ""
    speed = f", {rate:,.0f}/s" if rate >= 1 else f", {rate * 60:,.0f}/min" if rate else ""
    return f"{done:,.0f}{of} {unit}s{speed}{left}"
