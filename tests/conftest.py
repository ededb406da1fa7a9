"""Fixtures for every test, as plugins, and a header that says which servers the run is about."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hermes_memory_pgvector.server.binaries import installed_binaries
from testing.cases import PROFILE, examples

pytest_plugins = ["testing.postgres", "testing.hermes", "testing.agent"]

# A busy machine is no failure, and examples may share a home: none depends on what another left there.
# Every run of `make test` tries the same examples, so that it fails only for what was changed; `make test-full` and
# `make faults` search for new ones. `make quick` tries the first few.
COMMON = settings(
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("quick", COMMON, derandomize=True, max_examples=examples(100))
settings.register_profile("ci", COMMON, derandomize=True)
settings.register_profile("search", COMMON, derandomize=False)
settings.load_profile(PROFILE)

TESTS = Path(__file__).parent
# A cluster needs an installation that nobody has by chance: `make test-citus PGINSTALL=FOLDER` names it.
collect_ignore = [] if "PGINSTALL" in os.environ else ["citus"]
UNIT = TESTS / "unit"
SLOWEST_FIRST = ["citus", "browser", "host", "docs", "faults", "database", "property", "unit"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--buckets 4` has tests that use `database` run on four buckets; not all of them can."""
    parser.addoption("--buckets", type=int, default=1, choices=(1, 4))


def pytest_sessionstart() -> None:
    """Let Ctrl-C reach the programs that tests start: whatever a shell runs in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever uses a server's fixture, so that `make quick` leaves it out; unit tests use none.

    Files that take long come first, so that no worker is left alone with one at the end.
    """
    places = {name: place for place, name in enumerate(SLOWEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.relative_to(TESTS).parts[0], 0))
    for item in items:
        needed = getattr(item, "fixturenames", ())
        if {"postgres_server", "postgres_without_contrib"}.isdisjoint(needed):
            continue
        if UNIT in item.path.parents:
            raise pytest.UsageError(f"{item.nodeid} needs a Postgres: it belongs in tests/database")
        item.add_marker("postgres")


def pytest_collection_finish() -> None:
    """What was imported for the tests stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> str:
    """Name the Postgres versions that the database tests run on."""
    return "postgres: " + ", ".join(f"{each.version} ({each.package})" for each in installed_binaries())
