"""Which cases of a test run every time, and which only with `make test-full`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")

IS_SEARCH = os.environ.get("HYPOTHESIS_PROFILE") == "search"


def examples(number: int) -> int:
    """How many examples to try of one property; ten times as many where new ones are looked for."""
    return 10 * number if IS_SEARCH else number


def some_of(cases: Mapping[str, T], *everyday: str) -> list[ParameterSet]:
    """Every case under its name; those that are not named here are marked `large` and run by `make test-full`."""
    unknown = set(everyday) - set(cases)
    assert not unknown, f"no such cases: {unknown}"
    return [
        pytest.param(case, id=name, marks=[] if name in everyday else [pytest.mark.large])
        for name, case in cases.items()
    ]
