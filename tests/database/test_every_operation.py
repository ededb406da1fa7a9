"""What holds for every operation there is: the same document by command and by request, and no other door.

An operation that the page offers and that is not called here fails; others have tests of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector import command_line
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.ops.catalogue import OPERATIONS
from hermes_memory_pgvector.ops.memory import memory_of
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store import memories
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.terminal import program
from hermes_memory_pgvector.terminal.operation import answer
from hermes_memory_pgvector.values import AddMemory, Moment
from testing.command import Commands, with_password
from testing.postgres import MODEL, Database, new_database
from testing.stored import Stored
from testing.unchanged import nothing_changes

AT = 1_772_000_000_000_000
CALLS: dict[str, tuple[tuple[str, ...], ...]] = {
    "list": (
        (), ("memories", "--theme", "market"), ("turns", "--limit", "1"), ("themes",), ("sessions",), ("events",),
        ("audit",), ("hidden",), ("rejected",), ("receipts",), ("--since", "2026-01-01", "--origin", "user"),
    ),
    "show": (("t101",), ("m1",), ("e1",), ("d1",), ("s1", "--theme", "market")),
    "edit": (("m1", "--text", "Prices fall in autumn"), ("m1", "--text", "Prices rise in spring")),
    "undo": (("e1",), ("--to", "2026-03-05T12:00", "--theme", "market")),
    "mute": (("t101",), ("m1", "t101"), ("--session", "s1", "--theme", "market")),
    "forget": (("m1", "t101"), ("--match", "pilot boat", "--theme", "market"), ("--session", "s1"), ("--secrets",)),
    "theme": (("rename", "market", "harbour"), ("merge", "garden", "market")),
    "activity": ((), ("--theme", "market")),
    "status": ((),),
    "metrics": ((),),
    "why": (
        ("--theme", "market"), ("--query", "prices", "--theme", "market"),
        ("m1", "--query", "prices", "--theme", "market"),
    ),
    "doctor": ((), ("--all",)),
    "recall": (("where do we moor",), ("prices", "--theme", "market", "--kind", "memories")),
}  # fmt: skip
"""For every operation: how to call it."""
MOST_LISTED = 28
PASSING = {"milliseconds", "value", "processes", "now", "server_time", "bytes", "text"}
"""What is measured anew each time."""


@pytest.fixture(scope="module")
def filled(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    with new_database(postgres_server, template=migrated_template.name) as database:
        letter = codec.encode([AddMemory("market", "memory", "Never stored", Moment(AT, AT), "home-b")])
        with psycopg.connect(database.owner_dsn) as owner:
            owner.execute(
                "INSERT INTO conversations (agent_identity, id, session_id, role, content, ts) VALUES"
                " ('market', 101, 's1', 'user', 'Where do we moor the pilot boat?', '2026-03-05 10:00Z'),"
                " ('garden', 105, 's1', 'user', 'When do we cut the roses?', '2026-03-04 08:00Z')"
            )
            adding = AddMemory("market", "memory", "Prices rise in spring", Moment(AT, AT), "home-b")
            memories.store(owner, [Placed(adding, "writer", 1, 0)])
            owner.execute(
                "INSERT INTO dead_letters (writer, position, payload, reason) VALUES ('w', 1, %s, 'x')", (letter,)
            )
        yield database


@pytest.fixture
def commands(filled: Database, tmp_path: Path) -> Commands:
    runtime, password = with_password(filled.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_model=MODEL, embed_url="http://127.0.0.1:9/", ttl_days="history=0")
    return made


def parsed(line: tuple[str, ...]) -> Any:
    parser = program.Parser(prog="hermes-pgvector")
    command_line.configure(parser)
    return parser.parse_args(line)


def written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def steady(document: Any) -> Any:
    """A document without what is another number a moment later."""
    if isinstance(document, dict):
        return {name: steady(value) for name, value in document.items() if name not in PASSING}
    return [steady(each) for each in document] if isinstance(document, list) else document


def test_names_are_unique_and_every_operation_is_called_here() -> None:
    names = [each.name for each in OPERATIONS]
    listed = [each.name for each in command_line.EVERY]
    aliases = [alias for each in command_line.EVERY for alias in each.aliases]
    assert len({*listed, *aliases}) == len([*listed, *aliases])
    assert len([each for each in command_line.EVERY if each.is_listed]) <= MOST_LISTED
    assert set(names) == {*CALLS, *(each.name for each in OPERATIONS if not each.on_page or each.acts)}


@pytest.mark.parametrize(
    ("name", "words"), [(name, words) for name, calls in CALLS.items() for words in calls], ids=str
)
def test_a_command_and_a_request_answer_the_same(
    commands: Commands, filled: Database, name: str, words: tuple[str, ...]
) -> None:
    operation = next(each for each in OPERATIONS if each.name == name)
    with nothing_changes(Stored(filled.owner_dsn)):
        told, asked = commands.call(name, *words), commands.call(name, *words, "--json")
        assert told.code == asked.code == (2 if name == "doctor" else 0), (told, asked)
        given = program.given(operation, parsed((name, *words)))
        request = {
            option.key: [str(each) for each in value]
            if isinstance(value := given[option.key], list)
            else written(value)
            for option in operation.options
            if option.on_page and option.typed(given[option.key])
        }
        status, document = answer(OPERATIONS, memory_of(commands.home), operation.method, name, request)
    document.pop("digest", None)
    assert status == 200
    assert steady(json.loads(json.dumps(document))) == steady(asked.json)
    assert told.out.strip()
    assert "\x1b" not in told.out


def test_what_changes_is_a_dry_run_until_it_is_executed() -> None:
    for operation in OPERATIONS:
        assert ("execute" in [each.key for each in operation.all_options]) == operation.changes
