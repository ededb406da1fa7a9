"""What import-linter cannot see of the rooms: who runs SQL."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

PACKAGE = Path(str(resources.files("hermes_memory_pgvector")))
SQL_ROOMS = {"store", "admin", "server"}
OTHER_DATABASES = {"capture/host_store.py"}
"""Reads the host's own SQLite file, never Postgres."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def runs_sql(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany", "copy")
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("copy", "shutil"))
        for node in ast.walk(tree)
    )


def imports_psycopg(tree: ast.Module) -> bool:
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return any(name.partition(".")[0] == "psycopg" for name in imported)


def room_of(module: str) -> str:
    return module.partition("/")[0]


def test_only_store_admin_and_server_run_sql() -> None:
    found = {module for module, tree in modules() if runs_sql(tree) and room_of(module) not in SQL_ROOMS}
    assert found == OTHER_DATABASES


def test_only_store_admin_and_server_import_psycopg() -> None:
    assert {room_of(module) for module, tree in modules() if imports_psycopg(tree)} == SQL_ROOMS
