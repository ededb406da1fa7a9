"""A program on a real terminal: what it shows, and a user who types."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Session:
    """A program that has ended, and all that the terminal showed."""

    code: int
    shown: str


def on_terminal(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    folder: Path,
    answers: Mapping[str, str] | None = None,
) -> Session:
    """Run a program to its end; each answer is typed when its prompt appears. `\\x03` is Ctrl-C."""
    waiting = dict(answers or {})
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=dict(environment), cwd=folder,
        preexec_fn=_take_terminal,
    )  # fmt: skip
    os.close(theirs)
    shown, seen = b"", 0
    # The end of a terminal is an error on Linux.
    with contextlib.suppress(OSError):
        while part := os.read(ours, 4096):
            shown += part
            text = shown[seen:].decode("utf-8", "replace")
            for prompt in [each for each in waiting if each in text]:
                seen = len(shown)
                os.write(ours, waiting.pop(prompt).encode())
    os.close(ours)
    return Session(process.wait(), shown.decode("utf-8", "replace").replace("\r\n", "\n"))


def _take_terminal() -> None:
    """In the child: become the leader of a session whose terminal this is, so that Ctrl-C arrives."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
