"""What import-linter cannot see of the rooms: who runs SQL, and where it is written."""

from __future__ import annotations

import ast
from functools import cache
from importlib import resources
from pathlib import Path

from testing.sql_files import areas, statements_of

PACKAGE = Path(str(resources.files("hermes_memory_pgvector")))
SQL_ROOMS = {"store", "schema", "server", "postgres", "ops"}
DRIVER_ROOMS = SQL_ROOMS - {"ops"}
OTHER_DATABASES = {"capture/host_store.py", "capture/rewinds.py"}
"""They read SQLite files of the host, never Postgres."""
LONGEST_INLINE = 100
"""Characters up to which a statement may stand beside the code that runs it."""


@cache
def modules() -> list[tuple[str, ast.Module]]:
    return [
        (path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def runs_sql(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany", "copy")
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("copy", "shutil", "plan"))
        for node in ast.walk(tree)
    )


def imports_psycopg(tree: ast.Module) -> bool:
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return any(name.partition(".")[0] == "psycopg" for name in imported)


def room_of(module: str) -> str:
    return module.partition("/")[0]


def test_only_some_rooms_run_sql() -> None:
    found = {module for module, tree in modules() if runs_sql(tree) and room_of(module) not in SQL_ROOMS}
    assert found == OTHER_DATABASES


def test_only_some_rooms_import_psycopg() -> None:
    assert {room_of(module) for module, tree in modules() if imports_psycopg(tree)} == DRIVER_ROOMS


def test_a_statement_of_more_than_a_few_words_has_a_file() -> None:
    inline = {
        (module, argument.value)
        for module, tree in modules()
        if room_of(module) in SQL_ROOMS
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("execute", "SQL")
        for argument in node.args[:1]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert ("schema/owner.py", "SELECT current_schema()") in inline
    assert {each for each in inline if len(each[1]) > LONGEST_INLINE} == set()


def test_every_statement_of_the_owner_says_what_it_does_and_is_used() -> None:
    # Whether workers have the buckets is a question of doctor, too.
    files = [*(PACKAGE / "schema").glob("*.py"), PACKAGE / "store" / "overview.py"]
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    for statement in (each for area in areas("admin") for each in statements_of(area)):
        assert statement.text.startswith("-- "), statement
        assert f'"{statement.name.removeprefix("admin/")}"' in sources or f"'{statement.name}'" in sources, statement
