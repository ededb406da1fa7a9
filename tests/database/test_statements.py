"""Every SQL file says what it answers, is used, is valid, keeps to its theme, and touches no row that is not named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psycopg
import pytest

import hermes_memory_pgvector
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store.statements import model_statement, search_statement
from testing.postgres import DIM, Database, new_database
from testing.sql_rules import TENANT_TABLES, changes, without_comments

PACKAGE = Path(hermes_memory_pgvector.__file__).parent
FOLDER = PACKAGE / "sql" / "queries"
QUERIES = sorted(FOLDER.rglob("*.sql"))


def name_of(file: Path) -> str:
    """A statement's name, as statement() takes it."""
    return file.relative_to(FOLDER).with_suffix("").as_posix()


CHANGING = [
    file
    for file in QUERIES
    if any(
        change.table in TENANT_TABLES and change.verb != "UPSERT"
        for change in changes(file.read_text(encoding="utf-8"))
    )
    and name_of(file) != "vectors/claim_pending"  # a lease on whatever is due, of any theme
]
ARGUMENT = re.compile(r"%\((\w+)\)[sbt]((?:::[\w]+(?: precision)?(?:\[\])?)?)")
NAMED = {"theme": "'mine'", "session_id": "'s'", "home_id": "'home'", "at": "'infinity'", "exchanges": "1000"}
TENANT = re.compile(
    r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(conversations|memory_entries|memory_sources|\{turn_vectors\}|\{memory_vectors\})"
)
THEME = re.compile(
    r"\bagent_identity\s*=|\bINSERT\s+INTO\s+\S+\s+\(agent_identity\b|\(\s*%\(theme\)s|NULL::\{\w+\}, %\(theme\)s"
)
# Statements that walk over themes on purpose: reached only by upkeep, by an administrator, or by a scope that says so.
ACROSS_THEMES = {
    "erase/homes": "which homes have delivered anything; no content",
    "mirror/homes": "how many rows each home holds, for `homes list`; no content",
    "mirror/held": "rows of this home, whichever theme wrote them",
    "overview/themes": "how many rows each theme has, for status; no content",
    "overview/theme_names": "the names of all themes, to find a session whose theme nobody recorded; no content",
    "transfer/peer_memories": "another database's rows, for `import peer`",
    "transfer/peer_turns": "another database's rows, for `import peer`",
    "overview/similarities": "distances between random pairs, for doctor; no content",
    "overview/redacted": "how many secrets were masked, for status; no content",
    "erase/themes": "the names of all themes; no content",
    "erase/left_turns": "counts what a receipt says is forgotten, wherever it is; no content",
    "erase/left_memories": "counts what a receipt says is forgotten, wherever it is; no content",
    "backup/theme_sums": "how many rows each theme has and their checksums, for `backup`; no content",
    "backup/vector_sums": "how many vectors each theme has and their checksums, for `backup`; no content",
    "backup/other_sums": "how many rows tables have and their checksums, for `backup`; no content",
    "memories/guessed_elsewhere": "rows of this home that the mirror put into another theme",
}


ROWS = """
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts, digest, ordinal)
    SELECT 'mine', n, 's', CASE WHEN n %% 2 = 1 THEN 'user' ELSE 'assistant' END, 'said ' || n,
           now() - n * interval '1 hour', hermes_turn_digest('user', 'said ' || n), 1 FROM generate_series(1, 9) AS n;
INSERT INTO memory_entries (agent_identity, id, target, content) VALUES ('mine', 1, 'memory', 'kept');
INSERT INTO memory_sources (agent_identity, entry_id, home_id, origin) VALUES ('mine', 1, 'home', 'file');
INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, at)
    VALUES ('mine', 'memory', 1, 'w', 1, 0, 'add', now());
INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest) VALUES ('mine', 's', 'c', '');
INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
    SELECT 'mine', n, now(), 1, array_fill(0.125, ARRAY[{DIM}])::halfvec FROM generate_series(1, 9) AS n;
INSERT INTO memory_vectors_1 (agent_identity, id, ts, target, embedding)
    VALUES ('mine', 1, now(), 'memory', array_fill(0.125, ARRAY[{DIM}])::halfvec);
INSERT INTO pending_vectors (agent_identity, kind, id) VALUES ('mine', 'turn', 1);
""".replace("{DIM}", str(DIM)).replace("%%", "%")


@cache
def _sources() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))


@pytest.fixture(scope="module")
def statement_database(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """One database for all checks: nothing is changed in it."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        yield database


@pytest.fixture(scope="module")
def populated(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """A database with rows of a theme in every table; what a check changes, it takes back."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        with psycopg.connect(database.owner_dsn) as connection:
            connection.execute(ROWS)
        yield database


@pytest.mark.parametrize("file", QUERIES, ids=name_of)
def test_a_statement_says_what_it_does_and_is_used(file: Path) -> None:
    assert file.read_text(encoding="utf-8").startswith("-- ")
    assert f'"{name_of(file)}"' in _sources(), f"{name_of(file)} is not used"


@pytest.mark.parametrize("file", QUERIES, ids=name_of)
def test_a_statement_that_reads_tenant_rows_compares_their_theme(file: Path) -> None:
    text = without_comments(file.read_text(encoding="utf-8"))
    if TENANT.search(text) and name_of(file) not in ACROSS_THEMES:
        assert THEME.search(text), name_of(file)


@pytest.mark.parametrize("file", CHANGING, ids=name_of)
def test_no_keys_means_no_rows(file: Path, populated: Database) -> None:
    """Whoever names a theme, a session and a moment, and of the rows none, changes none."""
    with psycopg.connect(populated.owner_dsn) as connection:
        text = file.read_text(encoding="utf-8")
        text = model_statement(name_of(file), 1).as_string(connection) if "_vectors}" in text else text
        before = _rows(connection)
        connection.execute(ARGUMENT.sub(_nothing, text).replace("%%", "%").encode())
        assert _rows(connection) == before
        connection.rollback()


def _nothing(argument: re.Match[str]) -> str:
    """An argument that names a theme, a session or a moment; every set is empty, every key unknown."""
    name, kind = argument.group(1), argument.group(2) or ""
    if kind.endswith("[]"):
        return f"'{{}}'{kind}"
    return NAMED.get(name, "NULL") + kind


def _rows(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    tables = connection.execute(
        "SELECT DISTINCT c.relname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
        " WHERE a.attname = 'agent_identity' AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1"
    ).fetchall()
    assert len(tables) >= 8
    return [
        (name, *connection.execute(f"SELECT t::text FROM {name} AS t ORDER BY 1".encode()).fetchall())
        for (name,) in tables
    ]


@pytest.mark.parametrize("file", QUERIES, ids=name_of)
def test_a_statement_is_valid_for_the_runtime_role(file: Path, statement_database: Database) -> None:
    """PREPARE checks names, types and rights without running anything."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match.group(1) not in names:
            names.append(match.group(1))
        return f"${names.index(match.group(1)) + 1}"

    text = file.read_text(encoding="utf-8")
    with psycopg.connect(statement_database.operator_dsn) as connection:
        texts = [text]
        if "_vectors}" in text:
            texts = [model_statement(name_of(file), 1).as_string(connection)]
        elif "{source}" in text:
            texts = [search_statement(name_of(file), model_id).as_string(connection) for model_id in (1, None)]
        for number_of, each in enumerate(texts):
            body = re.sub(r"%\((\w+)\)[sbt]", number, each).replace("%%", "%").strip().rstrip(";")
            connection.execute(f"PREPARE checked_{number_of} AS {body}")
