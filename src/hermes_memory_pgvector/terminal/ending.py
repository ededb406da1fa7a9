"""What goes on until somebody ends it: Ctrl-C and the system's request are its regular end, without a word."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def in_peace() -> Iterator[None]:
    """A block that Ctrl-C or SIGTERM ends."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
