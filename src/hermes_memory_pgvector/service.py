"""Background work with one start/stop contract, on one daemon thread per name and database, however many the homes.

A Service may be stopped without having been started, and stopped twice. Nothing happens in its constructor.
Durability never depends on a Service being stopped: daemon threads die with the interpreter.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ThreadUnavailable, outline
from hermes_memory_pgvector.fork import renew_after_fork

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
    """Work that is done whenever it is woken or its interval is over; services of one name and database share a thread.

    Whoever waits for a database that hangs keeps nobody from another one.
    """

    def __init__(self, name: str, *, database: str = "", first_wait: float = 0.0) -> None:
        self.name = name
        self.database = database
        self._first_wait = first_wait
        self._is_stopping = False
        self._loop: _Loop | None = None
        self.woken_at = math.inf
        """Since when somebody asks for a run; never while nobody does."""

    @abstractmethod
    def run_once(self) -> float:
        """Do what is due; return the seconds to wait before the next run unless woken."""

    def on_crash(self, error: BaseException) -> float:
        """Note an unexpected error and return the seconds to wait before going on."""
        logger.error("%s goes on after %s", self.name, outline(error))
        return 5.0

    def start(self) -> None:
        """Begin, unless it runs already; after a ThreadUnavailable it may be called again."""
        self._is_stopping = False
        if not self.is_running:
            # Whoever starts the service is in a hurry; the service is not.
            self._loop = _loops.add(self, self._first_wait)

    def wake(self) -> None:
        """Ask for a run as soon as possible."""
        if self.woken_at == math.inf:
            self.woken_at = time.monotonic()
        loop = self._loop
        if loop is not None:
            loop.event.set()

    @property
    def is_running(self) -> bool:
        """Whether it will be run again."""
        loop = self._loop
        return loop is not None and loop.has(self)

    @property
    def is_stopping(self) -> bool:
        """Whether it is to end."""
        return self._is_stopping

    def end(self, then: Callable[[], object] = lambda: None) -> None:
        """Have no further run; `then` is called once the present one is over, which nobody waits for."""
        loop = self._loop
        self._is_stopping = True
        if loop is None or not loop.leave(self, then):
            then()

    def stop(self, deadline: Deadline) -> bool:
        """Ask it to end and wait for that until the deadline; True when it does nothing any more."""
        self._is_stopping = True
        loop = self._loop
        if loop is None:
            return True
        return loop.remove(self, deadline)

    def after_fork_in_child(self) -> None:
        """The thread does not exist in a forked child: be as if never started."""
        self._loop = None
        self._is_stopping = False
        self.woken_at = math.inf


class _Loop:
    """One thread, and the services it runs in turn: the one that has waited longest first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.event = threading.Event()
        self._condition = threading.Condition()
        self._due: dict[Service, float] = {}
        self._leaving: dict[Service, Callable[[], object]] = {}
        self._running: Service | None = None
        self._thread: threading.Thread | None = None

    def add(self, service: Service, wait: float) -> None:
        with self._condition:
            self._due[service] = time.monotonic() + wait
            if self._thread is None or not self._thread.is_alive():
                try:
                    self._thread = start_thread(self._run, self._name)
                except ThreadUnavailable:
                    del self._due[service]
                    raise
        self.event.set()

    def has(self, service: Service) -> bool:
        thread = self._thread
        return service in self._due and thread is not None and thread.is_alive()

    def leave(self, service: Service, then: Callable[[], object]) -> bool:
        """Have a service's last run followed by something else; False when it has none."""
        with self._condition:
            if not self.has(service):
                return False
            self._leaving[service] = then
        self.event.set()
        return True

    def remove(self, service: Service, deadline: Deadline) -> bool:
        with self._condition:
            if self._thread is threading.current_thread():
                return True
            is_idle = self._condition.wait_for(lambda: self._running is not service, deadline.remaining())
            if is_idle:
                self._due.pop(service, None)
                self._leaving.pop(service, None)
        self.event.set()
        return is_idle

    def _let_go(self) -> None:
        """Forget the services that have ended."""
        with self._condition:
            gone = [each for each in self._due if each.is_stopping]
            for each in gone:
                del self._due[each]
            after = [then for then in map(self._leaving.pop, gone, [None] * len(gone)) if then is not None]
        for then in after:
            then()

    def _next(self) -> tuple[Service, float] | None:
        """Which service is the next, and in how many seconds; None when there is none, and the thread ends."""
        self._let_go()
        with self._condition:
            if not self._due:
                self._thread = None
                return None
            service = min(self._due, key=lambda each: min(self._due[each], each.woken_at))
            seconds = min(self._due[service], service.woken_at) - time.monotonic()
            self._running = service if seconds <= 0 else None
            return service, seconds

    def _run(self) -> None:
        while True:
            self.event.clear()
            found = self._next()
            if found is None:
                return
            service, seconds = found
            if seconds > 0:
                self.event.wait(seconds)
                continue
            service.woken_at = math.inf
            try:
                pause = service.run_once()
            except Exception as error:  # noqa: BLE001 - a service outlives whatever one run meets
                pause = service.on_crash(error)
            with self._condition:
                self._running = None
                if service in self._due:
                    self._due[service] = time.monotonic() + pause
                self._condition.notify_all()


class _Loops:
    """The loops of this process, by name and database."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        renew_after_fork(self)

    def add(self, service: Service, wait: float) -> _Loop:
        with self._guard:
            loop = self._by_key.setdefault((service.name, service.database), _Loop(service.name))
        loop.add(service, wait)
        return loop

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
        self._by_key: dict[tuple[str, str], _Loop] = {}


_loops = _Loops()
