"""The check of the read replica."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.setup import replica_report
from hermes_memory_pgvector.setup.checks.finding import Finding, ok, warning

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings


def check(home: Path, settings: Settings) -> Iterator[Finding]:
    """Whether the replica answers, and how far it is behind; recall goes on without it."""
    if settings.read_dsn and not settings.dsn:
        hint = "hermes-pgvector config unset read_dsn"
        yield warning("replica", "read_dsn is ignored: the embedded server has no replica", hint)
        return
    found = replica_report.report(home, settings)
    if found is None:
        return
    if found.is_used:
        yield ok("replica", str(found))
    elif found.problem:
        yield warning("replica", str(found), "check it and read_dsn: hermes-pgvector config get read_dsn")
    else:
        yield warning("replica", str(found), "see pg_stat_replication on the primary")
