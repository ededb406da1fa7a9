"""Fixtures for every test, as plugins, and a header that says which servers the run is about."""

from __future__ import annotations

from hermes_memory_pgvector.postgres_binaries import installed_binaries

pytest_plugins = ["fixtures.postgres", "fixtures.hermes", "fixtures.agent"]


def pytest_report_header() -> str:
    """Name the Postgres versions that the database tests run on."""
    return "postgres: " + ", ".join(f"{each.version} ({each.package})" for each in installed_binaries())
