"""Every statement is taken by a cluster, and what is about one theme goes to one shard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import hermes_memory_pgvector
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store.distributed import other_texts
from hermes_memory_pgvector.store.statements import Named, model_statement, search_statement, statement
from testing.postgres import DIM, Database, new_database

FOLDER = Path(hermes_memory_pgvector.__file__).parent / "sql" / "queries"
QUERIES = sorted(FOLDER.rglob("*.sql"))
ARGUMENT = re.compile(r"%\((\w+)\)[sbt]((?:::[\w]+(?: precision)?(?:\[\])?)?)")
VALUES = {
    "text": "'x'", "bigint": "1", "integer": "1", "smallint": "0", "boolean": "true", "real": "0.5",
    "double precision": "0.5", "timestamptz": "'2026-01-02T03:04:05Z'", "date": "'2026-01-02'", "jsonb": "'{}'",
    "bytea": "'\\x00'", "tsvector": "'a'", "halfvec": f"array_fill(0.125, ARRAY[{DIM}])",
}  # fmt: skip
NAMED = {
    "theme": "mine", "themes": "mine", "other": "theirs", "former": "theirs", "digests": "00", "digest": "00",
    "queries": "a", "own_queries": "a", "metadata": "{}", "hits": "[]", "kinds": "turn", "targets": "memory",
    "words": "00", "target": "memory", "home_ids": "h", "roles": "user", "action": "add", "actions": "add",
    "origins": "tool", "origin": "tool", "callers": "tool", "names": "hermes.purpose", "values": "operator",
    "role": "user", "kind": "turn", "tools": "{}", "entries": "[]", "counts": "{}", "payload": "x", "old": "mine",
    "new": "theirs", "since": "2026-01-02", "waits_for": "[]",
}  # fmt: skip
UNTYPED = {
    "id": "1", "seq": "1", "part": "1", "order_us": "1", "version": "1", "after_id": "1", "receipt": "1",
    "is_rule": "false", "before_id": "1", "limit": "5", "at": "'2026-01-02'", "until": "'2026-01-02'",
    "age": "1", "silent_seconds": "1", "ended_seconds": "1", "is_ended": "false",
}  # fmt: skip
BY_STATEMENT = {
    ("turns/insert", "origins"): "user", ("turns/insert", "trusts"): "trusted",
    ("turns/insert_later_occurrence", "origin"): "user", ("turns/insert_later_occurrence", "trust"): "trusted",
    ("memories/insert", "origins"): "operator", ("memories/insert", "trusts"): "trusted",
    ("memories/update", "origin"): "operator", ("memories/update", "trust"): "trusted",
    ("memories/judge_entries", "trust"): "trusted", ("memories/judge_operations", "trust"): "trusted",
}  # fmt: skip


def name_of(file: Path) -> str:
    """A statement's name, as statement() takes it."""
    return file.relative_to(FOLDER).with_suffix("").as_posix()


def named(name: str) -> list[Named]:
    """The statement, as the store makes it."""
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    if "{source}" in text:
        return [search_statement(name, model_id) for model_id in (1, None)]
    return [model_statement(name, 1) if "_vectors}" in text else statement(name)]


def sent(query: Named, connection: psycopg.Connection) -> list[str]:
    """The texts that a cluster gets, with values in the place of their arguments."""
    texts = [each.query for each in other_texts(query.name, query.names)] or [query]

    def value(match: re.Match[str]) -> str:
        name, kind = match.group(1), match.group(2).removeprefix("::")
        word = BY_STATEMENT.get((query.name, name), NAMED.get(name))
        if kind == "halfvec[]":
            return f"ARRAY[{VALUES['halfvec']}::halfvec]"
        if kind.endswith("[]"):
            one = VALUES[kind[:-2]] if word is None or kind not in ("text[]", "bytea[]", "tsvector[]") else f"'{word}'"
            return f"ARRAY[{one}]::{kind}"
        if kind in ("", "text") and word is not None:
            return f"'{word}'" + (f"::{kind}" if kind else "")
        if kind:
            return f"({VALUES[kind]})::{kind}"
        return UNTYPED.get(name, "'x'")

    return [ARGUMENT.sub(value, text.as_string(connection)).replace("%%", "%").strip().rstrip(";") for text in texts]


@pytest.fixture(scope="module")
def cluster(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """One database for all checks: what one changes, it takes back."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        with psycopg.connect(database.owner_dsn) as connection:
            connection.execute(ROWS)
        yield database


REFUSED = dict.fromkeys(
    ("reembed/count", "reembed/wanting_memories", "reembed/wanting_turns"),
    "a change of the model beside the one in use is refused: `migrate --switch-model` changes it at once",
)
NOT_ROUTED = {
    "browse/find_memory": "an operator's look, whose theme may be left out",
    "browse/find_turn": "an operator's look, whose theme may be left out",
    "browse/tail_turns": "an operator's look, whose theme may be left out",
    "quarantine/count_memories": "an operator's count, whose theme may be left out",
    "quarantine/count_turns": "an operator's count, whose theme may be left out",
    "search/verify": "compares with vectors of other themes, too",
    "transfer/memories": "an export, whose theme may be left out",
    "transfer/memories_with_vectors": "an export, whose theme may be left out",
    "transfer/turns": "an export, whose theme may be left out",
    "transfer/turns_with_vectors": "an export, whose theme may be left out",
    "overview/pending_vectors": "the queue is on the coordinator",
    "remap/move_pending": "the queue is on the coordinator",
    "erase/drop_agents": "the register of agents is on the coordinator",
    "fleet/agents": "the register of agents is on the coordinator",
    "remap/agents": "the register of agents is on the coordinator",
}
ROWS = """
INSERT INTO memory_entries (agent_identity, target, content) VALUES ('mine', 'memory', 'kept');
INSERT INTO erasure_receipts (forgotten_at, actor, named) VALUES (now(), 'test', '{}');
INSERT INTO quarantines (actor, is_rule) VALUES ('test', false);
"""


@pytest.mark.parametrize("name", [name_of(file) for file in QUERIES if name_of(file) not in REFUSED])
def test_a_cluster_takes_every_statement(name: str, cluster: Database) -> None:
    with psycopg.connect(cluster.runtime_dsn) as connection:
        for query in named(name):
            connection.execute("SELECT hermes_say(ARRAY['hermes.purpose'], ARRAY['operator'])")
            for text in sent(query, connection):
                connection.execute(text.encode())
            connection.rollback()


@pytest.mark.parametrize("name", [name_of(file) for file in QUERIES if name_of(file) not in {*REFUSED, *NOT_ROUTED}])
def test_what_is_about_one_theme_goes_to_one_shard(name: str, cluster: Database) -> None:
    with psycopg.connect(cluster.owner_dsn) as connection:
        for query in named(name):
            for text in sent(query, connection):
                if "agent_identity = 'mine'" in text:
                    plan = connection.execute(f"EXPLAIN (COSTS OFF) {text}".encode()).fetchall()
                    tasks = re.findall(r"Task Count: (\d+)", "\n".join(str(row[0]) for row in plan))
                    assert set(tasks) == {"1"}, (name, tasks)
            connection.rollback()
