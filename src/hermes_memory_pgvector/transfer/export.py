"""Memories and turns as one JSON object per line, in an order that depends on nothing but the rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import carried, taking_along
from hermes_memory_pgvector.store.taking_along import Selection
from hermes_memory_pgvector.text.secrets import masked
from hermes_memory_pgvector.values import EmbeddingModel

FORMAT = 1
HEADER = "hermes-pgvector"


def rows(connection: Connection, wanted: Selection, *, is_redacted: bool) -> Iterator[dict[str, Any]]:
    """The lines of a file: memories and turns."""
    yield {"kind": HEADER, "format": FORMAT}
    hide: Callable[[str], str] = masked if is_redacted else _same
    if wanted.session_id is None:
        yield from (_memory(row, hide) for row in taking_along.memories(connection, wanted, None))
    for row in taking_along.turns(connection, wanted, None):
        # What the words once were stays here.
        yield {name: value for name, value in _turn(row, hide).items() if name != "digest"}


def documents(
    connection: Connection, theme: str | None, *, schema: int, model: EmbeddingModel | None, with_forgotten: bool
) -> Iterator[dict[str, Any]]:
    """Everything in a database or of a theme, for another one of the same people.

    Events come first, because memories are what they add up to; other names of themes last: whoever reads them stores
    the rows first, under the names they have. `model` brings along its vectors, `with_forgotten` what was forgotten, as
    keyed hashes.
    """
    wanted = Selection(theme)
    header: dict[str, Any] = {"kind": HEADER, "format": FORMAT, "schema": schema, "events": True}
    if model is not None:
        header["model"] = {"name": model.name, "dim": model.dim}
    yield header
    yield from (_event(row) for row in taking_along.events(connection, wanted))
    yield from (_memory(row, _same) for row in taking_along.memories(connection, wanted, model))
    yield from (_turn(row, _same) for row in taking_along.turns(connection, wanted, model))
    for row in taking_along.delegations(connection, wanted):
        theme, session_id, child, digest, at, metadata, home = row
        yield {
            "kind": "delegation", "theme": theme, "session": session_id, "child": child, "task_digest": digest,
            "at": time_text(at), "metadata": metadata, **_known(home=home),
        }  # fmt: skip
    for old, new, since, finished in carried.aliases(connection, wanted.theme):
        yield {"kind": "alias", "old": old, "new": new, "since": time_text(since), "finished": _time(finished)}
    if with_forgotten:
        yield from _forgotten(connection)


def _forgotten(connection: Connection) -> Iterator[dict[str, Any]]:
    for place, at, actor, home, named, finished, counts, unreached, key in carried.receipts_of(connection):
        yield {
            "kind": "receipt", "receipt": place, "at": time_text(at), "actor": actor, "home": home, "named": named,
            "finished": _time(finished), "counts": counts, "unreached": unreached, "key": bytes(key).hex(),
        }  # fmt: skip
    for place, own, at, length in carried.tombstones(connection):
        part = {} if length is None else {"length": length}
        yield {"kind": "tombstone", "receipt": place, "hash": bytes(own).hex(), "at": time_text(at), **part}


def time_text(at: datetime) -> str:
    """A time as it stands in an export."""
    return at.astimezone(UTC).isoformat()


def _time(at: datetime | None) -> str | None:
    return None if at is None else time_text(at)


def _event(row: Any) -> dict[str, Any]:
    theme, target, order, writer, seq, part, action, content, old_text, previous, home, *told = row
    origin, at, metadata, written_by, trust = told
    return {
        "kind": "event", "theme": theme, "target": target, "order": order, "writer": writer, "seq": seq, "part": part,
        "action": action, "content": content, "old_text": old_text, "previous": previous, "home": home,
        "origin": origin, "at": time_text(at), "metadata": metadata, **_known(written_by=written_by, trust=trust),
    }  # fmt: skip


def _memory(row: Any, hide: Callable[[str], str]) -> dict[str, Any]:
    theme, target, content, created, updated, metadata, hidden, origin, home, trust, homes, vectors = row
    return {
        "kind": "memory", "theme": theme, "target": target, "content": hide(content), "created_at": time_text(created),
        "updated_at": time_text(updated), "homes": homes, "metadata": _hidden(metadata, hide),
        **_known(origin=origin, home=home, trust=trust), **_since(hidden), **_vectors(vectors),
    }  # fmt: skip


def _turn(row: Any, hide: Callable[[str], str]) -> dict[str, Any]:
    theme, session_id, role, content, at, metadata, parent, ordinal, hidden, *told = row
    origin, home, trust, digest, vectors = told
    former = {} if digest is None else {"digest": digest}
    return {
        "kind": "turn", "theme": theme, "session": session_id, "role": role, "content": hide(content),
        "at": time_text(at), "ordinal": ordinal, "parent": parent, "metadata": _hidden(metadata, hide),
        **former, **_known(origin=origin, home=home, trust=trust), **_since(hidden), **_vectors(vectors),
    }  # fmt: skip


def _known(**values: str | None) -> dict[str, str]:
    """What is known of where a row comes from."""
    return {name: value for name, value in values.items() if value is not None}


def _since(at: datetime | None) -> dict[str, str]:
    return {} if at is None else {"hidden": time_text(at)}


def _vectors(vectors: list[str] | None) -> dict[str, Any]:
    if not vectors:
        return {}
    parts = (each.partition(" ") for each in vectors)
    return {"vectors": [{"chunk": int(chunk), "values": json.loads(values)} for chunk, _, values in parts]}


def _hidden(value: Any, hide: Callable[[str], str]) -> Any:
    if hide is _same:
        return value
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {key: _hidden(item, hide) for key, item in value.items()}
    return [_hidden(item, hide) for item in value] if isinstance(value, list) else value


def _same(text: str) -> str:
    return text
