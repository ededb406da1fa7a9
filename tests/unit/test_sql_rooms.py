"""Only store, admin and server run SQL: import-linter sees who imports psycopg, this sees who calls execute."""

from __future__ import annotations

import ast
from pathlib import Path

import hermes_memory_pgvector

PACKAGE = Path(hermes_memory_pgvector.__file__).parent
SQL_ROOMS = {"store", "admin", "server"}
# Reads the host's own SQLite file.
EXCEPTIONS = {"capture/host_store.py"}


def test_only_the_rooms_of_sql_execute_statements() -> None:
    callers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany")
    }
    assert {name for name in callers if name.split("/")[0] not in SQL_ROOMS} == EXCEPTIONS
