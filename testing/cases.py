"""Which cases of a test run every time, and which only with `make test-full`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
SHARE = {"quick": 0.1, "ci": 1, "search": 10}
"""How many examples a run tries: a few after an edit, many where new ones are looked for."""


def examples(number: int) -> int:
    """How many examples of one property this run tries, when CI tries that many."""
    return max(1, round(number * SHARE[PROFILE]))


def some_of(cases: Mapping[str, T], *everyday: str) -> list[ParameterSet]:
    """Every case under its name; those that are not named here are marked `large` and run by `make test-full`."""
    unknown = set(everyday) - set(cases)
    assert not unknown, f"no such cases: {unknown}"
    return [
        pytest.param(case, id=name, marks=[] if name in everyday else [pytest.mark.large])
        for name, case in cases.items()
    ]
