"""One gateway for all tests that only chat."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.hermes import MakeHome
from testing.hermes_home import HermesHome
from testing.hermes_servers import Gateway

SEEDED = [
    "The customer Arbogast pays by bank transfer only",
    "Invoices are sent on the last working day of the month",
]


@pytest.fixture(scope="session")
def seeded_memories() -> list[str]:
    """What stands in MEMORY.md before the shared gateway starts."""
    return SEEDED


@pytest.fixture(scope="session")
def gateway_home(make_home: MakeHome, seeded_memories: list[str]) -> HermesHome:
    """The home of the shared gateway."""
    home = make_home()
    (home.path / "memories").mkdir()
    (home.path / "memories" / "MEMORY.md").write_text("\n§\n".join(seeded_memories), encoding="utf-8")
    return home


@pytest.fixture(scope="session")
def gateway(gateway_home: HermesHome) -> Iterator[Gateway]:
    """A gateway that tests share: each uses themes of its own."""
    with gateway_home.gateway() as running:
        yield running
