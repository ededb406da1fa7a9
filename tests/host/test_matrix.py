"""The versions that `make test-hosts` compares."""

from __future__ import annotations

import pytest
from host.matrix import PROFILES_FROM, numbers


@pytest.mark.parametrize("version", ["0.20.5", "0.20.5+local", "0.20.5.dev3+g4b860d8", "0.20rc1", "1"])
def test_a_checkout_may_call_itself_more_than_numbers(version: str) -> None:
    assert numbers(version) >= PROFILES_FROM
