"""What happens around a fork: a child has none of the parent's threads, and must not use its locks, sockets or files.

Whatever holds such things registers here, once; it is held weakly.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Renewed(Protocol):
    """Something that a forked child cannot use as it is."""

    def after_fork_in_child(self) -> None:
        """Replace, without waiting, whatever another thread of the parent may have held at the fork."""


class ForkAware(Renewed, Protocol):
    """Something that must not be half done at the moment of a fork."""

    def before_fork(self) -> None:
        """Wait until nothing is half done, and keep it so."""

    def after_fork_in_parent(self) -> None:
        """Go on."""


_renewed: weakref.WeakSet[Renewed] = weakref.WeakSet()
_held: list[weakref.ref[ForkAware]] = []
_holding: list[ForkAware] = []
"""Those held by the fork under way, in the order they were taken."""
_registering = threading.Lock()
_one_fork = threading.Lock()


def renew_after_fork(part: Renewed) -> None:
    """Call `part.after_fork_in_child()` in every forked child."""
    _renewed.add(part)


def hold_during_fork(part: ForkAware) -> None:
    """Call `part.before_fork()` before every fork and one of its other methods after it.

    Parts registered later are held first: a journal takes its own lock before the lock of the lock files.
    """
    with _registering:
        _held[:] = [each for each in _held if each() is not None]
        _held.append(weakref.ref(part))


def _before() -> None:
    _one_fork.acquire()
    for reference in reversed(_held):
        part = reference()
        if part is not None:
            part.before_fork()
            _holding.append(part)


def _in_parent() -> None:
    while _holding:
        _holding.pop().after_fork_in_parent()
    _one_fork.release()


def _in_child() -> None:
    global _registering
    _registering = threading.Lock()
    while _holding:
        _holding.pop().after_fork_in_child()
    for part in list(_renewed):
        part.after_fork_in_child()
    _one_fork.release()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
