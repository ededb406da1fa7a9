"""Displays that move while something works: how far a task is, or that a step is still going on.

Nothing is drawn in the first second, nor where nobody watches. While a display is on, other lines appear above it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.terminal import sink
from hermes_memory_pgvector.terminal.amounts import seconds, size
from hermes_memory_pgvector.terminal.operation import Note

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

PATIENCE_SECONDS = 1.0
FRAMES_A_SECOND = 10
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
        self._total, self._done, self._phase = total, 0, ""
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

    def live(self) -> Live:
        """A display of it, which is not on yet."""
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots" if sink.speaks_unicode() else "line")
        return Live(
            get_renderable=lambda: self._drawn(spinner), console=sink.console(), refresh_per_second=FRAMES_A_SECOND,
            transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip

    def _drawn(self, spinner: object) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        least, most = BAR_WIDTHS
        width = min(most, max(least, (sink.width() or 0) - FIGURES_WIDTH))
        if self._file is not None and self._file.exists():
            self._done = self._file.stat().st_size
        bar = [ProgressBar(self._total, self._done, width, pulse=self._total is None)] if self._unit else []
        text = sink.text_of([f"{self._text}: {self._phase}" if self._phase else self._text])
        told = figures(self._done, self._total, self._unit, self._started)
        line = Table.grid(padding=(0, 1))
        for _ in range(3 + len(bar)):
            line.add_column(no_wrap=True)
        line.add_row(spinner, text, *bar, sink.text_of([sink.Styled(told, "faint")]))  # type: ignore[arg-type]
        return line


@contextmanager
def shown(text: str, *, total: int | None = None, unit: str = "") -> Iterator[Bar]:
    """The progress of a task; a step of several says with `note` what came of it, another nothing afterwards."""
    bar, lock, live = Bar(text, total, unit), threading.Lock(), None

    def appear() -> None:
        nonlocal live
        with lock:
            # A terminal has room for one.
            if not timer.finished.is_set() and sink.live() is None:
                live = bar.live()
                sink.set_live(live)
                live.start()

    timer = threading.Timer(PATIENCE_SECONDS, appear)
    timer.daemon = True
    if sink.is_terminal():
        timer.start()
    try:
        yield bar
    finally:
        bar.end()
        timer.cancel()
        with lock:
            if live is not None:
                live.stop()
                sink.set_live(None)


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
