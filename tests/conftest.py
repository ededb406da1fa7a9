"""Fixtures for every test, as plugins, and a header that says which servers the run is about."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from hermes_memory_pgvector.server.binaries import installed_binaries

pytest_plugins = ["testing.postgres", "testing.hermes", "testing.agent"]

# A busy machine is no failure, and examples may share a home: none depends on what another left there.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("house")


def pytest_report_header() -> str:
    """Name the Postgres versions that the database tests run on."""
    return "postgres: " + ", ".join(f"{each.version} ({each.package})" for each in installed_binaries())
