"""The watchdog cuts whichever socket is due first, also while it sleeps for a later one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.watchdog import Watchdog

PATIENCE = 10.0


@pytest.fixture
def watchdog() -> Watchdog:
    return Watchdog()


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A connection whose other end says nothing."""
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    with ours, theirs:
        yield ours


def test_a_silent_connection_is_cut_at_its_deadline(watchdog: Watchdog, silent: socket.socket) -> None:
    with watchdog.watching(silent.fileno(), Deadline.after(0.1)):
        assert silent.recv(1) == b""


def test_an_earlier_deadline_is_kept_while_it_sleeps_for_a_later_one(watchdog: Watchdog, silent: socket.socket) -> None:
    with socket.socket() as other, watchdog.watching(other.fileno(), Deadline.after(10 * PATIENCE)):
        # The first of these wakes it from the long sleep, the second comes while it sleeps for the first.
        with watchdog.watching(other.fileno(), Deadline.after(0.3)):
            pass
        with watchdog.watching(silent.fileno(), Deadline.after(0.1)):
            assert silent.recv(1) == b""


def test_a_later_deadline_is_kept_without_waking_it(watchdog: Watchdog, silent: socket.socket) -> None:
    with socket.socket() as other, watchdog.watching(other.fileno(), Deadline.after(0.1)):
        pass
    with watchdog.watching(silent.fileno(), Deadline.after(0.3)):
        assert silent.recv(1) == b""
