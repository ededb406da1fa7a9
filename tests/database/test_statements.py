"""Every SQL file says what it answers, is used, is valid, and keeps to its theme."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from fixtures.postgres import Database, new_database

import hermes_memory_pgvector
from hermes_memory_pgvector.server import ConnectionInfo
from hermes_memory_pgvector.store.statements import model_statement

PACKAGE = Path(hermes_memory_pgvector.__file__).parent
QUERIES = sorted((PACKAGE / "sql" / "queries").glob("*.sql"))
TENANT = re.compile(
    r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(conversations|memory_entries|memory_sources|\{turn_vectors\}|\{memory_vectors\})"
)
# Statements that walk over themes on purpose: reached only by upkeep, by an administrator, or by a scope that says so.
ACROSS_THEMES = {
    "mirror_homes": "how many rows each home holds, for `homes list`; no content",
    "mirror_held": "rows of this home, whichever theme wrote them",
    "overview_similarities": "distances between random pairs, for doctor; no content",
    "memory_guessed_elsewhere": "rows of this home that the mirror put into another theme",
}


@pytest.fixture(scope="module")
def statement_database(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """One database for all checks: nothing is changed in it."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        yield database


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_a_statement_says_what_it_does_and_is_used(file: Path) -> None:
    first = file.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("-- ")
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    stem = file.stem
    used = any(f'"{stem}"' in text or f'"{stem.rpartition("_")[0]}_' in text for text in sources)
    assert used or any(stem.startswith(f"{prefix}") for prefix in ("search_",)), f"{file.name} is not used"


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_a_statement_on_tenant_rows_names_the_theme(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    if TENANT.search(text) and file.stem not in ACROSS_THEMES:
        assert re.search(r"agent_identity\s*=|\(agent_identity|theme", text), file.name


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_a_statement_is_valid_for_the_runtime_role(file: Path, statement_database: Database) -> None:
    """PREPARE checks names, types and rights without running anything."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match.group(1) not in names:
            names.append(match.group(1))
        return f"${names.index(match.group(1)) + 1}"

    with psycopg.connect(statement_database.runtime_dsn) as connection:
        text = file.read_text(encoding="utf-8")
        if "_vectors}" in text:
            text = model_statement(file.stem, 1).as_string(connection)
        body = re.sub(r"%\((\w+)\)[sbt]", number, text).replace("%%", "%").strip().rstrip(";")
        connection.execute(f"PREPARE checked AS {body}")
