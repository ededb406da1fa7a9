"""Background work with one start/stop contract, on at most two daemon threads per name, however many the homes.

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

MOST_THREADS = 2
"""Of one name: whoever waits for a database that hangs keeps nobody from the other ones."""


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
    """Work that is done whenever it is woken or its interval is over; services of one name share threads.

    Of those with one database only one runs at a time, so that a database that hangs holds up one thread. The same is
    true of one home's: who follows there begins when the one before has let go.
    """

    def __init__(self, name: str, *, database: str = "", home: str | None = None, first_wait: float = 0.0) -> None:
        self.name = name
        self.database = database
        self._home = home
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
            loop.look()

    @property
    def is_running(self) -> bool:
        """Whether it will be run again."""
        loop = self._loop
        return loop is not None and loop.has(self)

    @property
    def is_stopping(self) -> bool:
        """Whether it is to end."""
        return self._is_stopping

    def end(self) -> None:
        """Have no further run; nobody waits for the present one."""
        self._is_stopping = True
        loop = self._loop
        if loop is not None:
            loop.look()

    def collides_with(self, other: Service) -> bool:
        """Whether the two must not run at the same time."""
        return self.database == other.database or (self._home is not None and self._home == other._home)

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
    """The threads of one name, and the services they run in turn: the one that has waited longest first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._condition = threading.Condition()
        self._due: dict[Service, float] = {}
        self._running: dict[Service, threading.Thread] = {}
        self._threads: dict[threading.Thread, threading.Event] = {}
        """Each with what wakes it: whoever wakes a service, as hooks do, waits for no lock that a thread holds."""

    def add(self, service: Service, wait: float) -> None:
        with self._condition:
            self._due[service] = time.monotonic() + wait
            self._threads = {thread: event for thread, event in self._threads.items() if thread.is_alive()}
            if len(self._threads) < self._wanted():
                event = threading.Event()
                try:
                    self._threads[start_thread(lambda: self._run(event), self._name)] = event
                except ThreadUnavailable:
                    if not self._threads:
                        del self._due[service]
                        raise
        self.look()

    def look(self) -> None:
        """Have every thread that waits look again what is due."""
        for event in tuple(self._threads.values()):
            event.set()

    def has(self, service: Service) -> bool:
        return service in self._due and any(each.is_alive() for each in tuple(self._threads))

    def remove(self, service: Service, deadline: Deadline) -> bool:
        with self._condition:
            if self._running.get(service) is threading.current_thread():
                return True
            is_idle = self._condition.wait_for(lambda: service not in self._running, deadline.remaining())
            if is_idle:
                self._due.pop(service, None)
        self.look()
        return is_idle

    def _wanted(self) -> int:
        """How many threads can have something to do at the same time."""
        return min(MOST_THREADS, len({each.database for each in self._due}))

    def _next(self, event: threading.Event) -> Service | None:
        """The next service that is due, once there is one; None when this thread has to end."""
        while True:
            # What comes after this is not missed.
            event.clear()
            with self._condition:
                for each in [each for each in self._due if each.is_stopping and each not in self._running]:
                    del self._due[each]
                if len(self._threads) > self._wanted():
                    del self._threads[threading.current_thread()]
                    return None
                service, seconds = self._soonest()
                if service is not None and seconds <= 0:
                    service.woken_at = math.inf
                    self._running[service] = threading.current_thread()
                    return service
            event.wait(None if service is None else seconds)

    def _soonest(self) -> tuple[Service | None, float]:
        """The service to run next, and in how many seconds; None while all of them have to wait for one that runs."""
        free = {
            each: min(at, each.woken_at)
            for each, at in self._due.items()
            if not any(each.collides_with(other) for other in self._running)
        }
        service = min(free, key=free.__getitem__, default=None)
        return service, 0.0 if service is None else free[service] - time.monotonic()

    def _run(self, event: threading.Event) -> None:
        while (service := self._next(event)) is not None:
            try:
                pause = service.run_once()
            except BaseException as error:  # noqa: BLE001 - a service outlives a library's panic, too
                pause = service.on_crash(error)
            with self._condition:
                del self._running[service]
                if service in self._due:
                    self._due[service] = time.monotonic() + pause
                self._condition.notify_all()
            self.look()


class _Loops:
    """The loops of this process, by name."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        renew_after_fork(self)

    def add(self, service: Service, wait: float) -> _Loop:
        with self._guard:
            loop = self._by_name.setdefault(service.name, _Loop(service.name))
        loop.add(service, wait)
        return loop

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
        self._by_name: dict[str, _Loop] = {}


_loops = _Loops()
