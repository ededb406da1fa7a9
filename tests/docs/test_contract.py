"""Every promise has its tests, and none is dropped."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "tests" / "contract.md"
PROMISES = 98
"""At least so many lines; a new promise raises it, and nothing lowers it."""
ID = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
LINES = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of the tests in a file, without importing it; none when there is no such file."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
    return frozenset(each.name for each in functions if each.name.startswith("test_"))


def test_no_promise_is_dropped() -> None:
    assert len(LINES) >= PROMISES
    assert len(set(LINES)) == len(LINES)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[2:50])
def test_a_promise_names_tests_that_exist_or_what_it_waits_for(line: str) -> None:
    promise, dash, proof = line[2:].partition(" — ")
    assert promise, line
    assert dash, line
    if proof.startswith("not built: "):
        return
    named = ID.findall(proof)
    assert named, f"no test: {line}"
    assert [f"{file}::{name}" for file, name in named if name not in names_in(file)] == []
