"""Locks, sockets and waits in flight belong to the process that made them: a forked child starts with fresh ones."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class ForkAware(Protocol):
    """Something that holds threads' state."""

    def forget_parent(self) -> None:
        """Replace, without waiting, whatever another thread of the parent may have held at the fork."""


_aware: weakref.WeakSet[ForkAware] = weakref.WeakSet()


def renew_after_fork(part: ForkAware) -> None:
    """Call `part.forget_parent()` in every forked child for as long as the part lives."""
    _aware.add(part)


def _in_child() -> None:
    for part in list(_aware):
        part.forget_parent()


os.register_at_fork(after_in_child=_in_child)
