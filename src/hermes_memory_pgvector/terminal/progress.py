"""Displays that move while something works: how far a task is, or that a step is still going on.

Nothing is drawn in the first second, nor where nobody watches. While a display is on, other lines appear above it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_memory_pgvector.terminal import sink
from hermes_memory_pgvector.terminal.amounts import seconds
from hermes_memory_pgvector.terminal.operation import Note

if TYPE_CHECKING:
    from rich.progress import Progress, Task
    from rich.text import Text

PATIENCE_SECONDS = 1.0
BAR_WIDTHS = (6, 24)
STEP_NAME = 17
FIGURES_WIDTH = 64
"""What a description and its figures need beside the bar."""


class Bar:
    """The progress of one task."""

    def __init__(self, text: str, total: int | None, unit: str, *, shows: bool) -> None:
        self._text = text
        self._unit = unit
        self._total = total
        self._done = 0
        self.is_watched = shows
        self._phase = ""
        self._lock = threading.RLock()
        self._progress: Progress | None = None
        self._closed = False

    def advance(self, amount: int = 1) -> None:
        """So much more is done."""
        self.update(self._done + amount)

    def update(self, done: int, total: int | None = None) -> None:
        """This much is done, of so much if that is known by now."""
        with self._lock:
            self._done = done
            self._total = total if total is not None else self._total
            if self._progress is not None:
                self._progress.update(self._progress.task_ids[0], completed=self._done, total=self._total)

    def phase(self, text: str) -> None:
        """What the task is doing now."""
        with self._lock:
            self._phase = text
            if self._progress is not None:
                self._progress.update(self._progress.task_ids[0], description=self._description())

    def start(self) -> None:
        """Draw it from now on."""
        with self._lock:
            if self._closed or not self.is_watched or self._progress is not None or sink.is_live():
                return
            self._progress = _progress(self._unit)
            # What was done before the display appeared counts for the rate as well.
            self._progress.add_task(self._description(), total=self._total)
            self._progress.update(self._progress.task_ids[0], completed=self._done)
            sink.set_live(self._progress)
            self._progress.start()

    def close(self) -> None:
        """Take the display away."""
        with self._lock:
            self._closed = True
            if self._progress is not None:
                self._progress.stop()
                sink.set_live(None)
                self._progress = None

    def _description(self) -> str:
        return f"{self._text}: {self._phase}" if self._phase else self._text


@contextmanager
def shown(text: str, *, total: int | None = None, unit: str = "") -> Iterator[Bar]:
    """The progress of an operation: it speaks through its answer, so nothing is said where nobody watches."""
    made = Bar(text, total, unit, shows=sink.is_terminal())
    with _after_a_while(made):
        yield made


class StepTaken:
    """One step of several: what came of it, and how long it took."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._started = time.perf_counter()
        self.said: list[str] = []
        self.took = 0.0

    def end(self) -> None:
        """The time is over."""
        self.took = time.perf_counter() - self._started

    @property
    def note(self) -> Note:
        """For people."""
        return Note("ok", f"{self._name:<{STEP_NAME}} {', '.join(self.said)}".rstrip(), took=self.took)


@contextmanager
def step(name: str) -> Iterator[StepTaken]:
    """A step that is shown while it takes long, and whose `note` tells of it afterwards."""
    made = StepTaken(name)
    with waiting(name):
        yield made
    made.end()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """That the block is still at work, and for how long."""
    with shown(text):
        yield


@contextmanager
def _after_a_while(shown: Bar) -> Iterator[None]:
    timer = threading.Timer(PATIENCE_SECONDS, shown.start)
    timer.daemon = True
    if shown.is_watched:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        shown.close()


def _progress(unit: str) -> Progress:
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
    from rich.table import Column

    started = time.monotonic() - PATIENCE_SECONDS

    class Figures(ProgressColumn):
        """Done of total, rate, and time left; the time taken where nothing is counted."""

        def render(self, task: Task) -> Text:
            return sink.text_of([sink.Styled(figures(task.completed, task.total, unit, started), "faint")])

    return Progress(
        SpinnerColumn(spinner_name="dots" if sink.speaks_unicode() else "line"),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        *([BarColumn(bar_width=_bar_width())] if unit else []),
        Figures(table_column=Column(no_wrap=True)),
        console=sink.console(),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _bar_width() -> int:
    least, most = BAR_WIDTHS
    return min(most, max(least, (sink.width() or 0) - FIGURES_WIDTH))


def figures(done: float, total: float | None, unit: str, started: float) -> str:
    """The numbers beside a bar, as people read them."""
    took = max(0.001, time.monotonic() - started)
    if unit in ("", "%"):
        share = f"{done / total:.0%}, " if total else ""
        left = f", {seconds(took * (total - done) / done)} left" if total and 0 < done < total else ""
        return f"{share}{seconds(took)}{left}"
    rate = done / took
    of = f" of {total:,.0f}" if total else ""
    left = f", {seconds((total - done) / rate)} left" if total and rate and done < total else ""
    speed = f", {rate:,.0f}/s" if rate >= 1 else f", {rate * 60:,.0f}/min" if rate else ""
    return f"{done:,.0f}{of} {unit}s{speed}{left}"
