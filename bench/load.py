"""Puts a corpus into each system's own tables, as its own migrations made them, by binary COPY."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from bench.corpus import Corpus
from bench.stage import Seat
from hermes_memory_pgvector.text.lexemes import memory_lexemes, turn_lexemes

POSTGRES_EPOCH = 946_684_800
START = 1_750_000_000
_HEADER = b"PGCOPY\n\xff\r\n\x00" + struct.pack(">ii", 0, 0)
Connection = psycopg.Connection[tuple[Any, ...]]


def theme_name(number: int) -> str:
    """What a theme is called."""
    return f"theme-{number:05d}"


def load(seat: Seat, turns: Corpus, memories: Corpus) -> float:
    """Fill both tables and bring indexes and statistics up to date; seconds it took."""
    begin = time.monotonic()
    with seat.connect() as connection:
        connection.execute("SET maintenance_work_mem = '4GB'")
        connection.execute("SET max_parallel_maintenance_workers = 2")
        if seat.system.name == "ours":
            _load_ours(connection, turns, memories)
        else:
            _load_peer(connection, turns, memories)
        connection.execute("VACUUM ANALYZE conversations")
        connection.execute("VACUUM ANALYZE memory_entries")
        if seat.system.name == "ours":
            # Like the peer's graph, the key is built over the finished table.
            connection.execute("REINDEX TABLE turn_vectors_1")
            connection.execute("REINDEX TABLE memory_vectors_1")
            connection.execute("VACUUM ANALYZE turn_vectors_1")
            connection.execute("VACUUM ANALYZE memory_vectors_1")
        connection.execute("CHECKPOINT")
    return time.monotonic() - begin


def size_of(seat: Seat) -> int:
    """Bytes of the database: tables, their indexes and their TOAST."""
    with seat.connect() as connection:
        return seat.count(connection, "SELECT pg_database_size(current_database())")


GIVEN_TURNS: LiteralString = """
CREATE TEMP TABLE given_turns (
    id int8, agent_identity text, session_id text, role text, content text, ts timestamptz, lexemes text,
    embedding halfvec)"""
GIVEN_MEMORIES: LiteralString = """
CREATE TEMP TABLE given_memories (
    id int8, agent_identity text, content text, ts timestamptz, lexemes text, embedding halfvec)"""
# What the package's own insert statements compute, for all rows at once.
OUR_TURNS: LiteralString = """
INSERT INTO conversations (id, agent_identity, session_id, role, content, ts, digest, ordinal, lexemes)
SELECT id, agent_identity, session_id, role, content, ts, hermes_turn_digest(role, content), 1, lexemes::tsvector
FROM given_turns ORDER BY id;
INSERT INTO turn_vectors_1 (agent_identity, id, chunk, ts, content_hash, embedding)
SELECT agent_identity, id, 0, ts, hermes_content_hash(content), l2_normalize(embedding) FROM given_turns ORDER BY id;
DROP TABLE given_turns;
SELECT setval('conversations_id_seq', (SELECT max(id) FROM conversations))"""
OUR_MEMORIES: LiteralString = """
INSERT INTO memory_entries (id, agent_identity, target, content, created_at, updated_at, lexemes)
SELECT id, agent_identity, 'memory', content, ts, ts, lexemes::tsvector FROM given_memories ORDER BY id;
INSERT INTO memory_vectors_1 (agent_identity, id, chunk, ts, target, embedding)
SELECT agent_identity, id, 0, ts, 'memory', l2_normalize(embedding) FROM given_memories ORDER BY id;
DROP TABLE given_memories;
SELECT setval('memory_entries_id_seq', (SELECT max(id) FROM memory_entries))"""


def make_index(seat: Seat, *which: str) -> float:
    """An index of the package's own, made by its command as an administrator would; seconds it took."""
    begin = time.monotonic()
    command = [str(seat.system.python), "-m", "hermes_memory_pgvector.cli", "index", "create", *which]
    subprocess.run(
        [*command, "--memory", "4096", "--admin-dsn", seat.owner_dsn, "--hermes-home", str(seat.home)],
        check=True, timeout=3600, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return time.monotonic() - begin


def _load_ours(connection: Connection, turns: Corpus, memories: Corpus) -> None:
    with without_indexes(connection, "gin"):
        connection.execute(GIVEN_TURNS)
        _copy(connection, b"given_turns", turns, _our_turn)
        connection.execute(OUR_TURNS)
        connection.execute(GIVEN_MEMORIES)
        _copy(connection, b"given_memories", memories, _our_memory)
        connection.execute(OUR_MEMORIES)


def _load_peer(connection: Connection, turns: Corpus, memories: Corpus) -> None:
    # Its graph is built over the finished table: faster than row by row, and if anything better connected.
    with without_indexes(connection, "hnsw"), without_indexes(connection, "gin"):
        _copy(
            connection,
            b"conversations (session_id, agent_identity, role, content, ts, embedding)",
            turns,
            _peer_turn,
        )
        _copy(connection, b"memory_entries (agent_identity, target, content, created_at, updated_at, embedding)",
              memories, _peer_memory)  # fmt: skip


class without_indexes:  # noqa: N801 - used as a with-statement, reads as one
    """Drops the indexes of a kind on the two text tables and makes them again, word for word, at the end."""

    def __init__(self, connection: Connection, method: str) -> None:
        self._connection = connection
        self._method = method

    def __enter__(self) -> None:
        self._made: list[str] = []
        rows = self._connection.execute(
            "SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_class AS c JOIN pg_am AS m ON m.oid = c.relam"
            " JOIN pg_index AS i ON i.indexrelid = c.oid WHERE m.amname = %s"
            " AND i.indrelid IN ('conversations'::regclass, 'memory_entries'::regclass)",
            (self._method,),
        ).fetchall()
        for name, definition in rows:
            self._made.append(definition)
            self._connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))

    def __exit__(self, *_: object) -> None:
        for definition in self._made:
            self._connection.execute(definition.encode())


Packed = Callable[[Corpus, int], list[bytes]]


def _copy(connection: Connection, target: bytes, corpus: Corpus, packed: Packed) -> None:
    with connection.cursor() as cursor, cursor.copy(b"COPY " + target + b" FROM STDIN (FORMAT binary)") as copy:
        copy.write(_HEADER)
        for part in _parts(corpus, packed):
            copy.write(part)
        copy.write(struct.pack(">h", -1))


def _parts(corpus: Corpus, packed: Packed) -> Iterator[bytes]:
    for rows in corpus.chunks():
        buffer = []
        for row in rows:
            fields = packed(corpus, row)
            buffer.append(struct.pack(">h", len(fields)))
            for field in fields:
                buffer += (struct.pack(">i", len(field)), field)
            if len(buffer) > 10_000:
                yield b"".join(buffer)
                buffer = []
        yield b"".join(buffer)


def _when(row: int) -> bytes:
    return struct.pack(">q", (START + row - POSTGRES_EPOCH) * 1_000_000)


def _vector(corpus: Corpus, row: int, form: str) -> bytes:
    numbers: bytes = corpus.vectors[row].astype(form).tobytes()
    return struct.pack(">HH", corpus.dim, 0) + numbers


def _half(corpus: Corpus, row: int) -> bytes:
    return _vector(corpus, row, ">f2")


def _single(corpus: Corpus, row: int) -> bytes:
    return _vector(corpus, row, ">f4")


def _theme(corpus: Corpus, row: int) -> str:
    return theme_name(int(corpus.theme_of[row]))


def _session(row: int) -> bytes:
    # One each: ours lets further hits of the same session give way a little, which is not what is measured here.
    return f"session-{row}".encode()


def _our_turn(corpus: Corpus, row: int) -> list[bytes]:
    theme, content = _theme(corpus, row), corpus.content(row)
    lexemes = turn_lexemes(theme, content, [])
    role = b"assistant" if row % 2 else b"user"
    return [struct.pack(">q", row + 1), theme.encode(), _session(row), role, content.encode(), _when(row),
            lexemes.encode(), _half(corpus, row)]  # fmt: skip


def _our_memory(corpus: Corpus, row: int) -> list[bytes]:
    theme, content = _theme(corpus, row), corpus.content(row)
    return [struct.pack(">q", row + 1), theme.encode(), content.encode(), _when(row),
            memory_lexemes(theme, content).encode(), _half(corpus, row)]  # fmt: skip


def _peer_turn(corpus: Corpus, row: int) -> list[bytes]:
    role = b"assistant" if row % 2 else b"user"
    return [_session(row), _theme(corpus, row).encode(), role, corpus.content(row).encode(), _when(row),
            _single(corpus, row)]  # fmt: skip


def _peer_memory(corpus: Corpus, row: int) -> list[bytes]:
    return [_theme(corpus, row).encode(), b"memory", corpus.content(row).encode(), _when(row), _when(row),
            _single(corpus, row)]  # fmt: skip
