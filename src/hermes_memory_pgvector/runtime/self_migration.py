"""Migrates a new embedded database when a writer finds no tables. The operator migrates a Postgres of their own."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

logger = logging.getLogger(__name__)

MIGRATE_SECONDS = 120.0
VECTORS_WAIT = 3
"""The exit code of `migrate` when the embedder did not answer."""


class SelfMigration:
    """Runs `migrate` once, as the owner and in another process, so that this one can never change tables."""

    def __init__(self, home: Path, *, is_ours: bool) -> None:
        self._home = home
        self._is_due = is_ours

    def run(self) -> bool:
        """Migrate, unless that was tried before or the database is not ours; True when it worked."""
        if not self._is_due:
            return False
        self._is_due = False
        command = [sys.executable, "-m", "hermes_memory_pgvector.command", "migrate", "--hermes-home", str(self._home)]
        try:
            done = subprocess.run(  # noqa: S603 - this package's own command
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=MIGRATE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            logger.warning("the embedded database could not be migrated (%s)", type(error).__name__)
            return False
        # Without an embedder, `migrate` makes all tables except those for vectors.
        return done.returncode in (0, VECTORS_WAIT)
