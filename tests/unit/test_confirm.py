"""Yes or no at a terminal: only somebody who answers can agree."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from testing.terminal import on_terminal

ASK = """
from hermes_memory_pgvector.terminal.ask import confirm
print("agreed" if confirm("Install it?", default=True) else "declined")
"""


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("\x04", "declined"), ("\n", "agreed"), ("y\n", "agreed"), ("n\n", "declined")],
    ids=["Ctrl-D", "Enter", "y", "n"],
)
def test_the_end_of_the_input_is_no_consent(tmp_path: Path, typed: str, expected: str) -> None:
    done = on_terminal(
        [sys.executable, "-c", ASK],
        environment={"PATH": os.defpath, "LANG": "C.UTF-8", "TERM": "xterm"},
        folder=tmp_path,
        answers={"[Y/n] ": typed},
    )
    assert done.shown.rstrip().endswith(expected), done.shown
