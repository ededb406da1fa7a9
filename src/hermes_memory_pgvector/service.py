"""Named daemon threads with one start/stop contract.

A Service may be stopped without having been started, and stopped twice. Nothing happens in its constructor.
Durability never depends on a Service being stopped: daemon threads die with the interpreter.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ThreadUnavailable, outline

logger = logging.getLogger(__name__)


def start_thread(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a daemon thread; raises ThreadUnavailable when there is none to be had, which passes by itself.

    Every caller handles that: it happens at a container's limit, and while the interpreter ends.
    """
    thread = threading.Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise ThreadUnavailable from None
    return thread


class Service(ABC):
    """One background thread that runs `run_once` whenever it is woken or its interval is over."""

    def __init__(self, name: str, *, first_wait: float = 0.0) -> None:
        self.name = name
        self._first_wait = first_wait
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    @abstractmethod
    def run_once(self) -> float:
        """Do what is due; return the seconds to wait before the next run unless woken."""

    def on_crash(self, error: BaseException) -> float:
        """Note an unexpected error and return the seconds to wait before going on."""
        logger.error("%s goes on after %s", self.name, outline(error))
        return 5.0

    def start(self) -> None:
        """Start the thread unless it runs already; after a ThreadUnavailable it may be called again."""
        with self._guard:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stopping.clear()
            self._thread = start_thread(self._loop, self.name)

    def wake(self) -> None:
        """Ask for a run as soon as possible."""
        self._wake.set()

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    @property
    def is_stopping(self) -> bool:
        """Whether the thread is to stop."""
        return self._stopping.is_set()

    def stop(self, deadline: Deadline) -> bool:
        """Ask the thread to end and wait for it until the deadline; True when it is gone."""
        self._stopping.set()
        self._wake.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(deadline.remaining())
        return not thread.is_alive()

    def after_fork_in_child(self) -> None:
        """The thread does not exist in a forked child: be as if never started."""
        self._thread = None
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._guard = threading.Lock()

    def _loop(self) -> None:
        if self._first_wait:
            # Whoever starts the service is in a hurry; the service is not.
            self._wake.wait(self._first_wait)
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                pause = self.run_once()
            except Exception as error:  # noqa: BLE001 - a service outlives whatever one run meets
                pause = self.on_crash(error)
            if pause > 0 and not self._stopping.is_set():
                self._wake.wait(pause)
