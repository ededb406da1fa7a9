"""Every SQL file says what it answers, is used, is valid, keeps to its theme, and touches no row that is not named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psycopg
import pytest

import hermes_memory_pgvector
from hermes_memory_pgvector.postgres.statements import model_statement
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store.search_statement import search_statement
from hermes_memory_pgvector.values import Kind
from testing.postgres import DIM, Database, new_database
from testing.sql_files import Statement, areas, statements_of
from testing.sql_rules import TENANT_TABLES, changes
from testing.theme_rule import mutants, unnamed

PACKAGE = Path(hermes_memory_pgvector.__file__).parent
SEARCHES = [
    Statement(
        f"queries/search/{kind}{' everywhere' if is_everywhere else ''}{' by words' if model_id is None else ''}",
        "-- composed\n" + search_statement(kind, model_id, is_everywhere=is_everywhere).as_string(None),
    )
    for kind in Kind
    for model_id in (1, None)
    for is_everywhere in (False, True)
]
"""The eight searches that are composed of the parts in queries/search.sql."""
PARTS = {
    f"queries/search/{name}" for name in ("search", "near", "near_everywhere", "near_nothing", "similarity", "bounds")
}
QUERIES = [
    statement for area in areas("queries") for statement in statements_of(area) if statement.name not in PARTS
] + SEARCHES


def name_of(query: Statement) -> str:
    """A statement's name, as statement() takes it."""
    return query.name.removeprefix("queries/")


CHANGING = [
    query
    for query in QUERIES
    if any(change.table in TENANT_TABLES and change.verb != "UPSERT" for change in changes(query.text))
]
ARGUMENT = re.compile(r"%\((\w+)\)[sbt]((?:::[\w]+(?: precision)?(?:\[\])?)?)")
NAMED = {
    "theme": "'mine'", "session_id": "'s'", "home_id": "'home'", "at": "'infinity'", "now": "'2026-01-01'",
    "exchanges": "1000",
}  # fmt: skip
# Statements that walk over themes on purpose: reached only by upkeep, by an administrator, or by a scope that says so.
ACROSS_THEMES = {
    "browse/last_numbers": "numbers, for `tail`; no content",
    "history/due": "which themes have old history, for upkeep; no content",
    "overview/missing_vectors": "how many rows have no vector; no content",
    "vectors/missing_of_memories": "keys of rows without a vector, for `reembed`; no content",
    "vectors/missing_of_turns": "keys of rows without a vector, for `reembed`; no content",
    "vectors/typed_memories": "keys of rows that somebody typed into the table, for upkeep; no content",
    "vectors/typed_turns": "keys of rows that somebody typed into the table, for upkeep; no content",
    **{
        f"search/{kind} everywhere{how}": "what every theme may see, and the asker's own"
        for kind in Kind
        for how in ("", " by words")
    },
    "vectors/due": "keys of rows that are due for a vector, for upkeep; no content",
    "vectors/count_pending": "how many rows are due for a vector; no content",
    "vectors/given_up": "how many rows get no vector, by reason; no content",
    "vectors/seconds_until_next": "when the next row is due for a vector; no content",
    "mirror/held": "rows of this home, whichever theme wrote them",
    "carry/published_count": "how many rows another database has, for `import`; no content",
    "carry/published_rows": "another database's rows, for `import`",
    "overview/similarities": "distances between random pairs, for doctor; no content",
    "overview/redacted": "how many secrets were masked, for status; no content",
    "memories/held_elsewhere": "rows of this home that the mirror put into another theme",
}
# Commands of an operator, who names one theme or none for all; an agent's question never comes here.
ONE_THEME_OR_ALL = frozenset(
    (
        "expire/memories",
        "forget/entries",
        "forget/events",
        "forget/recalls",
        "forget/stamps_of_entries",
        "forget/stamps_of_events",
        "forget/stamps_of_turns",
        "forget/turns",
        "forget/verify_entries",
        "forget/verify_events",
        "forget/verify_turns",
        "history/find",
        "history/list",
        "recall_log/days",
    )
)
# Comparisons that only narrow further what is compared with a theme anyhow.
NARROWING = {(f"expire/{name}", "turn.agent_identity = ANY (%(homeless)s") for name in ("count", "turns")}
# Changes of all that a theme has, by its name alone: it becomes another one.
WHOLE_THEMES = {
    "themes/move_entries",
    "themes/move_history",
    "themes/move_turns",
    "themes/move_waiting",
}
FEWEST_MUTANTS = 120


def unnamed_in(name: str, text: str) -> list[str]:
    """What the statement of that name takes without a word about its theme."""
    return unnamed(text, may_be_left_out=name in ONE_THEME_OR_ALL)


# What is read or changed in one theme; what only adds rows names the theme among its values.
NEAR = [
    query
    for query in QUERIES
    if (text := query.text)
    and name_of(query) not in ACROSS_THEMES
    and next(mutants(text), None) is not None
    and "INSERT INTO" not in text
]
OTHER = "other-"
GIVEN = {
    "theme": "'mine'", "other": "'empty'", "former": "'mine'", "session_id": "'s'", "home_id": "'home'",
    "target": "'memory'", "content": "'kept'", "role": "'user'", "id": "1", "entry_id": "1", "turn_id": "9",
    "limit": "1000", "pause": "1", "chars": "100", "exchanges": "1000",
    "horizon": "1000", "metadata": "'{}'", "before_id": "NULL", "before": "NULL",
    "at": "'2100-01-01'", "cut": "'2100-01-01'", "today": "'2100-01-01'", "updated_at": "'2100-01-01'",
    "until": "'2100-01-01'", "due_at": "'2100-01-01'", "now": "'2100-01-01'",
}  # fmt: skip
GIVEN_SETS = {
    "themes": "mine", "session_ids": "s", "targets": "memory", "contents": "kept", "kinds": "turn", "homes": "home",
    "home_ids": "home", "roles": "user", "digests": "00", "metadata": "{}", "holders": "{}",
}  # fmt: skip
GIVEN_TYPES = {
    "bigint": "1", "integer": "1", "smallint": "1", "real": "1", "double precision": "1", "boolean": "t", "bytea": "x",
    "timestamptz": "2100-01-01",
}  # fmt: skip


ROWS = """
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts, digest, ordinal)
    SELECT 'mine', n, 's', CASE WHEN n %% 2 = 1 THEN 'user' ELSE 'assistant' END, 'said ' || n,
           now() - n * interval '1 hour', hermes_turn_digest('user', 'said ' || n), 1 FROM generate_series(1, 9) AS n;
INSERT INTO memory_entries (agent_identity, id, target, content, homes)
    VALUES ('mine', 1, 'memory', 'kept', '{"home": {"o": "file", "s": 1}}');
INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, at)
    VALUES ('mine', 'memory', 1, 'w', 1, 0, 'add', now());
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


@pytest.fixture(scope="module")
def crowded(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """A database with the same rows in twenty themes; what a check changes, it takes back."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        with psycopg.connect(database.owner_dsn) as connection:
            connection.execute(ROWS)
            for number in range(1, 20):
                theme = f"{OTHER}{number}"
                rows = ROWS.replace("'mine'", f"'{theme}'").replace("'kept'", f"'kept in {theme}'")
                connection.execute(rows.replace("'said '", f"'said in {theme} '").encode())
        yield database


@pytest.mark.parametrize("query", QUERIES, ids=name_of)
def test_a_statement_says_what_it_does_and_is_used(query: Statement) -> None:
    assert query.text.startswith("-- ")
    if query in SEARCHES:
        return
    assert f'"{name_of(query)}"' in _sources(), f"{name_of(query)} is not used"


@pytest.mark.parametrize("query", [query for query in QUERIES if name_of(query) not in ACROSS_THEMES], ids=name_of)
def test_a_statement_compares_the_theme_of_all_that_it_reads(query: Statement) -> None:
    assert unnamed_in(name_of(query), query.text) == []


def test_only_statements_that_need_it_are_free_of_their_theme() -> None:
    texts = {name_of(query): query.text for query in QUERIES}
    free = {name for name, text in texts.items() if unnamed(text)}
    assert free == (ONE_THEME_OR_ALL | set(ACROSS_THEMES)) & set(texts)


def test_whatever_comparison_of_a_theme_is_lost_is_noticed() -> None:
    lost = 0
    for query in QUERIES:
        name = name_of(query)
        for comparison, text in mutants(query.text):
            if name not in ACROSS_THEMES and (name, comparison) not in NARROWING:
                lost += 1
                assert unnamed_in(name, text), f"{name} without {comparison}"
    assert lost >= FEWEST_MUTANTS


@pytest.mark.parametrize("query", NEAR, ids=name_of)
def test_among_twenty_themes_a_statement_finds_and_changes_rows_of_its_own(query: Statement, crowded: Database) -> None:
    """All themes hold rows with the same ids, sessions and times; the database itself keeps none of them apart."""
    with psycopg.connect(crowded.owner_dsn) as connection:
        text = query.text
        if "_vectors}" in text:
            text = model_statement(name_of(query), 1).as_string(connection)
        connection.execute("SET session_replication_role = replica")
        before = [row for row in _rows(connection) if OTHER in row[1]]
        cursor = connection.execute(ARGUMENT.sub(_given, text).replace("%%", "%").encode())
        assert OTHER not in str(cursor.fetchall() if cursor.description else "")
        assert [row for row in _rows(connection) if OTHER in row[1]] == before
        connection.rollback()


@pytest.mark.parametrize("query", [each for each in CHANGING if name_of(each) not in WHOLE_THEMES], ids=name_of)
def test_no_keys_means_no_rows(query: Statement, populated: Database) -> None:
    """Whoever names a theme, a session and a moment, and of the rows none, changes none."""
    with psycopg.connect(populated.owner_dsn) as connection:
        text = query.text
        text = model_statement(name_of(query), 1).as_string(connection) if "_vectors}" in text else text
        before = _rows(connection)
        connection.execute(ARGUMENT.sub(_nothing, text).replace("%%", "%").encode())
        assert _rows(connection) == before
        connection.rollback()


def _given(argument: re.Match[str]) -> str:
    """An argument that means a row of the theme, or whatever there is."""
    name, kind = argument.group(1), argument.group(2) or ""
    if kind.endswith("[]"):
        return f"ARRAY['{GIVEN_SETS.get(name, GIVEN_TYPES.get(kind[2:-2], 'x'))}']{kind}"
    return GIVEN.get(name, "NULL") + kind


def _nothing(argument: re.Match[str]) -> str:
    """An argument that names a theme, a session or a moment; every set is empty, every key unknown."""
    name, kind = argument.group(1), argument.group(2) or ""
    if kind.endswith("[]"):
        return f"'{{}}'{kind}"
    return NAMED.get(name, "NULL") + kind


def _rows(connection: psycopg.Connection) -> list[tuple[str, str]]:
    tables = connection.execute(
        "SELECT DISTINCT c.relname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
        " WHERE a.attname = 'agent_identity' AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1"
    ).fetchall()
    assert len(tables) >= 7
    return [
        (name, row)
        for (name,) in tables
        for (row,) in connection.execute(f"SELECT t::text FROM {name} AS t ORDER BY 1".encode())
    ]


@pytest.mark.parametrize("query", QUERIES, ids=name_of)
def test_a_statement_is_valid_for_the_runtime_role(query: Statement, statement_database: Database) -> None:
    """PREPARE checks names, types and rights without running anything."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match.group(1) not in names:
            names.append(match.group(1))
        return f"${names.index(match.group(1)) + 1}"

    text = query.text
    with psycopg.connect(statement_database.runtime_dsn) as connection:
        texts = [text]
        if "_vectors}" in text:
            texts = [model_statement(name_of(query), 1).as_string(connection)]
        for number_of, each in enumerate(texts):
            body = re.sub(r"%\((\w+)\)[sbt]", number, each).replace("%%", "%").strip().rstrip(";")
            connection.execute(f"PREPARE checked_{number_of} AS {body}")
