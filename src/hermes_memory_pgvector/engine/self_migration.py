"""The tables of a new embedded database, made when a writer misses them.

A Postgres of the operator's own is the operator's to migrate.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

logger = logging.getLogger(__name__)

MIGRATE_SECONDS = 120.0
VECTORS_WAIT = 3
"""What `migrate` exits with when the embedder could not be asked."""


class SelfMigration:
    """`migrate`, run once as the owner and in a process of its own: this one stays unable to change tables."""

    def __init__(self, home: Path, *, is_ours: bool) -> None:
        self._home = home
        self._is_due = is_ours

    def run(self) -> bool:
        """Migrate, unless it was tried before or the database is not ours; whether it has worked."""
        if not self._is_due:
            return False
        self._is_due = False
        command = [sys.executable, "-m", "hermes_memory_pgvector.cli", "migrate", "--hermes-home", str(self._home)]
        try:
            done = subprocess.run(  # noqa: S603 - this package's own command
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=MIGRATE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            logger.warning("the embedded database could not be migrated (%s)", type(error).__name__)
            return False
        # Without an embedder the tables are there all the same, but for those of the vectors.
        return done.returncode in (0, VECTORS_WAIT)
