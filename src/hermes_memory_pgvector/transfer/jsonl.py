"""`import jsonl`: lines of an export of ours, each stored once, through the same statements as live traffic.

Lines of one kind that follow each other are stored together, a few hundred in one transaction. Whoever is killed starts
again from the first line and finds what is stored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, NoReturn, get_args

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.postgres.conventions import EARLIEST, LATEST
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import carried, gate, hidden, memories, taking_along, turns, vectors
from hermes_memory_pgvector.store.carried import Alias, CarriedReceipt, CarriedTombstone
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.store.gate import Gate
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.taking_along import Edge, MemoryVector, TurnVector
from hermes_memory_pgvector.text.clean import DIGEST_CHARS, clean, turn_digest
from hermes_memory_pgvector.text.names import bounded
from hermes_memory_pgvector.text.secrets import KEY_IN_METADATA, Masker, masker_for
from hermes_memory_pgvector.transfer import line_file
from hermes_memory_pgvector.transfer.export import FORMAT, HEADER
from hermes_memory_pgvector.transfer.intake import STORE_SECONDS, Transaction, storing
from hermes_memory_pgvector.transfer.tally import ALIASES, FORGOTTEN, NAME_IN_USE, RECEIPTS, Tally
from hermes_memory_pgvector.values import (
    MEMORY_ORIGINS,
    TARGETS,
    TURN_ORIGINS,
    AddMemory,
    AddTurn,
    EmbeddingModel,
    Kind,
    MemoryOperation,
    Moment,
    Origin,
    RemoveMemory,
    ReplaceMemory,
    Role,
    RowOrigin,
    Trust,
)
from hermes_memory_pgvector.writer.chunks import wants_vector

PORTION_LINES = 500
PORTION_CHARS = 2_000_000
MOST_ORDINAL = 2**31 - 1
WRITER = "import"
"""Where operations come from that stand for a memory without a history."""
NO_KIND = "it has no 'kind', so it is no line of `export`; if another service wrote it, say which with --from"
OTHER_MODEL = "vectors of another model than this database's: these rows are embedded anew"

Line = tuple[int, dict[str, Any]]


def import_lines(
    lines: Iterable[Line],
    pool: Pool,
    settings: Settings,
    *,
    name: str,
    is_dry: bool,
    progress: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Store what is not stored yet; `progress` learns how many lines have been dealt with."""
    tally = Tally()
    with pool.connection(Deadline.after(STORE_SECONDS)) as connection:
        model = current_model(connection)
    masker = masker_for(settings)
    bare = ((number, _without_secrets(document, masker)) for number, document in lines)
    with storing(pool, is_dry=is_dry) as transaction:
        work = _Import(transaction, settings, tally, model)
        for portion in _portions(bare, name):
            work.take(portion)
            progress(len(portion))
        work.finish()
    return tally


@dataclass(frozen=True, slots=True)
class _Read:
    """A line that was understood."""

    kind: str
    value: Any
    document: Mapping[str, Any]


class _Import:
    def __init__(
        self, transaction: Transaction, settings: Settings, tally: Tally, model: EmbeddingModel | None
    ) -> None:
        self._transaction = transaction
        self._settings = settings
        self._tally = tally
        self._model = model
        self._has_events = False
        self._brings_vectors = False
        self._fresh: set[tuple[str, int]] = set()
        """Theme and id of memories that this import has stored."""
        self._receipts: dict[int, int] = {}
        """The numbers that receipts of the source have here."""

    def take(self, portion: list[_Read]) -> None:
        """Store lines of one kind."""
        if portion[0].kind == HEADER:
            for each in portion:
                self._begin(each.document)
            return
        values, documents = [each.value for each in portion], [each.document for each in portion]
        with self._transaction() as connection:
            match portion[0].kind:
                case "event":
                    self._store_events(connection, values)
                case "memory":
                    self._store_memories(connection, values, documents)
                case "turn":
                    self._store_turns(connection, values, documents)
                case "delegation":
                    self._store_edges(connection, values)
                case "alias":
                    new, in_use = carried.store_aliases(connection, values)
                    self._tally.also[ALIASES] += new
                    self._tally.left_out[NAME_IN_USE] += in_use
                case "receipt":
                    self._store_receipts(connection, values, documents)
                case "tombstone":
                    self._store_tombstones(connection, values)

    def finish(self) -> None:
        """Everything has been read."""
        if self._receipts:
            with self._transaction() as connection:
                carried.seal(connection, self._receipts.values())

    def _store_receipts(
        self, connection: Connection, brought: list[CarriedReceipt], documents: list[Mapping[str, Any]]
    ) -> None:
        for each, document in zip(brought, documents, strict=True):
            number, is_new = carried.store_receipt(connection, each)
            self._receipts[int(document["receipt"])] = number
            self._tally.also[RECEIPTS] += is_new

    def _store_tombstones(self, connection: Connection, brought: list[tuple[int, bytes, datetime, int | None]]) -> None:
        unknown = {place for place, *_ in brought} - self._receipts.keys()
        if unknown:
            raise ConfigError(f"a tombstone names receipt {min(unknown)}, which does not stand before it")
        stones = [CarriedTombstone(own, self._receipts[place], at, length) for place, own, at, length in brought]
        carried.store_tombstones(connection, stones)

    def _begin(self, header: Mapping[str, Any]) -> None:
        if header["format"] > FORMAT:
            raise ConfigError(
                f"the file has format {header['format']}, this version reads {FORMAT}: upgrade the package"
            )
        self._has_events = bool(header.get("events"))
        theirs = header.get("model")
        ours = self._model
        self._brings_vectors = bool(theirs) and ours is not None and theirs == {"name": ours.name, "dim": ours.dim}
        if theirs and not self._brings_vectors:
            self._tally.left_out[OTHER_MODEL] += 1

    def _store_events(self, connection: Connection, operations: list[Placed]) -> None:
        self._apply(connection, operations)

    def _apply(self, connection: Connection, operations: list[Placed]) -> None:
        changed = memories.store(connection, operations)
        if self._settings.embed_on_write:
            vectors.enqueue(connection, [(theme, Kind.MEMORY.value, row_id) for theme, row_id in changed])
        self._fresh.update(changed)

    def _store_memories(
        self, connection: Connection, values: list[list[Placed]], documents: list[Mapping[str, Any]]
    ) -> None:
        opened = gate.enter(connection)
        # By the names that themes have now; what is stored goes in by its own, under which it may have been forgotten.
        keys = [_memory_key(each, opened) for each in values]
        known = taking_along.held(connection, keys)
        missing = [each for place, each in enumerate(values) if place not in known]
        if missing and not self._has_events:
            # With events, an entry that is missing here has been removed since.
            self._apply(connection, [placed for each in missing for placed in each])
            known = taking_along.held(connection, keys)
        for place, (theme, _, _) in enumerate(keys):
            is_new = (theme, known.get(place, 0)) in self._fresh
            self._tally.themes[theme].new += is_new
            self._tally.themes[theme].known += not is_new and place in known
        made = [
            MemoryVector(*key, each["chunk"], json.dumps(each["values"]))
            for key, document in zip(keys, documents, strict=True)
            for each in self._vectors(document)
        ]
        if made and self._model is not None:
            taking_along.store_memory_vectors(connection, self._model, made)
        marks = [(key[0], known.get(place), _hidden_since(documents[place])) for place, key in enumerate(keys)]
        brought = [(hidden.Key(Kind.MEMORY, theme, row_id), at) for theme, row_id, at in marks if row_id and at]
        hidden.bring(connection, brought)

    def _store_turns(self, connection: Connection, made: list[AddTurn], documents: list[Mapping[str, Any]]) -> None:
        opened = gate.enter(connection)
        refused = opened.tombstones(connection, made)
        wanted = [turn for turn in made if not refused.refuses(turn)]
        self._tally.left_out[FORGOTTEN] += len(made) - len(wanted)
        made = [opened.renamed(turn) for turn in made]
        admitted = [opened.renamed(turn) for turn in wanted]
        stored = turns.insert(
            connection,
            wanted,
            retry_window=self._settings.turn_retry_window,
            wants_vector=partial(wants_vector, self._settings),
        )
        for turn in admitted:
            self._tally.themes[turn.theme].known += 1
        for theme, _ in stored:
            self._tally.themes[theme].known -= 1
            self._tally.themes[theme].new += 1
        brought = [
            TurnVector(
                turn.theme, turn.session_id, _digest(turn), turn_digest(turn.role, turn.content), turn.ordinal,
                each["chunk"], json.dumps(each["values"]),
            )
            for turn, document in zip(made, documents, strict=True)
            for each in self._vectors(document)
        ]  # fmt: skip
        if brought and self._model is not None:
            taking_along.store_turn_vectors(connection, self._model, brought)
        marks = [(turn, at) for turn, at in zip(made, map(_hidden_since, documents), strict=True) if at]
        keys = [(turn.theme, turn.session_id, _digest(turn), turn.ordinal) for turn, _ in marks]
        known = taking_along.held_turns(connection, keys) if keys else {}
        found = [(row_id, *marks[place]) for place, row_id in known.items()]
        hidden.bring(connection, [(hidden.Key(Kind.TURN, turn.theme, row_id), at) for row_id, turn, at in found])

    def _store_edges(self, connection: Connection, edges: list[Edge]) -> None:
        taking_along.store_edges(connection, edges)

    def _vectors(self, document: Mapping[str, Any]) -> list[Any]:
        return list(document.get("vectors") or ()) if self._brings_vectors else []


def _portions(lines: Iterable[Line], name: str) -> Iterator[list[_Read]]:
    """Lines of one kind that follow each other, a few at a time; those before a bad line come before its error."""
    portion: list[_Read] = []
    chars = 0
    try:
        for number, document in lines:
            read = _understood(document, number, name)
            is_full = len(portion) >= PORTION_LINES or chars >= PORTION_CHARS
            if portion and (is_full or read.kind != portion[0].kind):
                yield portion
                portion, chars = [], 0
            portion.append(read)
            chars += len(document.get("content") or "")
    except ConfigError:
        if portion:
            yield portion
        raise
    if portion:
        yield portion


def _without_secrets(document: dict[str, Any], masker: Masker) -> dict[str, Any]:
    """A line with its secrets masked; the vectors of such a row hold them too, and it is embedded anew."""
    if document.get("kind") not in ("event", "memory", "turn", "delegation"):
        return document
    counts: Counter[str] = Counter()
    parts = ("content", "old_text", "previous", "metadata")
    masked = {part: masker.mask_all(document[part], counts) for part in parts if part in document}
    if not counts:
        return document
    if document["kind"] == "turn" and isinstance(document["content"], str) and not document.get("digest"):
        masked["digest"] = turn_digest(str(document.get("role")), document["content"])
    metadata = masked.get("metadata")
    if metadata is None or isinstance(metadata, dict):
        masked["metadata"] = {**(metadata or {}), KEY_IN_METADATA: dict(counts)}
    return {name: value for name, value in {**document, **masked}.items() if name != "vectors"}


def _understood(document: Mapping[str, Any], number: int, name: str) -> _Read:
    kind = document.get("kind")
    try:
        match kind:
            case "event":
                value: Any = _event(document)
            case "memory":
                value = _additions(document)
            case "turn":
                value = _turn(document)
            case "delegation":
                value = _edge(document)
            case "alias":
                value = _alias(document)
            case "receipt":
                value = _receipt(document)
            case "tombstone":
                length = document.get("length")
                own = bytes.fromhex(document["hash"])
                value = (
                    int(document["receipt"]),
                    own,
                    _moment(document["at"]),
                    None if length is None else int(length),
                )
            case str() if kind == HEADER:
                value = int(document["format"])
            case _:
                value = _unknown(kind)
        _hidden_since(document)
        _check_vectors(document)
    except KeyError as error:
        reason = f"a {kind} has no {str(error.args[0])[:40]!r}"
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error)[:120]
    else:
        return _Read(str(kind), value, document)
    raise ConfigError(f"{name}, line {number}: {reason}; {line_file.BEFORE_IT}")


def _unknown(kind: Any) -> NoReturn:
    raise ValueError(NO_KIND if kind is None else f"unknown kind {str(kind)[:40]!r}")


def _memory_key(additions: list[Placed], opened: Gate) -> tuple[str, str, str]:
    operation = opened.renamed(additions[0].operation)
    assert isinstance(operation, AddMemory)
    return operation.theme, operation.target, operation.content


def _event(document: Mapping[str, Any]) -> Placed:
    theme, target = _theme(document), _target(document)
    content, old, given = _text(document, "content"), _text(document, "old_text"), document.get("previous")
    common: dict[str, Any] = {
        "when": Moment(_microseconds(document["at"]), int(document["order"])),
        "home_id": _text(document, "home"),
        "origin": Origin(document["origin"]),
        "metadata": _metadata(document),
        "written_by": _origin(document, "written_by"),
        "trust": _trust(document),
    }
    previous = None if given is None else _string(given, "previous")
    operation: MemoryOperation
    match document["action"]:
        case "add":
            operation = AddMemory(theme, target, content, **common)
        case "replace":
            operation = ReplaceMemory(theme, target, content, old, previous=previous, **common)
        case "remove":
            operation = RemoveMemory(theme, target, old, previous=previous, **common)
        case other:
            raise ValueError(f"unknown action {str(other)[:40]!r}")
    return Placed(operation, _text(document, "writer"), int(document["seq"]), int(document["part"]))


def _additions(document: Mapping[str, Any]) -> list[Placed]:
    """A memory without a history: added once, by each home that holds it."""
    at_us = _microseconds(document.get("created_at") or document["updated_at"])
    theme, target, content = _theme(document), _target(document), _text(document, "content")
    if not content:
        raise ValueError("a memory has no content")
    homes = document.get("homes") or {"": Origin.FILE}
    digest = int(turn_digest(theme, f"{target}:{content}")[:15], 16)
    return [
        Placed(
            AddMemory(
                theme, target, content, Moment(at_us, at_us), str(home), Origin(origin), _metadata(document),
                _origin(document), _trust(document),
            ),
            WRITER,
            digest,
            part,
        )
        for part, (home, origin) in enumerate(homes.items())
    ]  # fmt: skip


def _turn(document: Mapping[str, Any]) -> AddTurn:
    content = _text(document, "content")
    if document["role"] not in get_args(Role):
        raise ValueError(f"unknown role {str(document['role'])[:40]!r}")
    if not content:
        raise ValueError("a turn has no content")
    ordinal = int(document.get("ordinal") or 1)
    if not 0 < ordinal <= MOST_ORDINAL:
        raise ValueError("an ordinal is not the number of an occurrence")
    at_us = _microseconds(document["at"])
    return AddTurn(
        _theme(document),
        bounded(_text(document, "session")),
        document["role"],
        content,
        ordinal,
        Moment(at_us, at_us),
        is_live=False,
        parent_session_id=bounded(_text(document, "parent")),
        metadata=_metadata(document),
        digest=_given_digest(document),
        home_id=bounded(_text(document, "home")),
        origin=_origin(document),
        trust=_trust(document),
        is_dated=not document.get("undated"),
    )


def _given_digest(document: Mapping[str, Any]) -> str:
    digest = bytes.fromhex(_text(document, "digest")).hex()
    if digest and len(digest) != DIGEST_CHARS:
        raise ValueError("a digest has another length than ours")
    return digest


def _digest(turn: AddTurn) -> str:
    return turn.digest or turn_digest(turn.role, turn.content)


def _hidden_since(document: Mapping[str, Any]) -> datetime | None:
    at = document.get("hidden")
    return None if at is None else _moment(at)


def _check_vectors(document: Mapping[str, Any]) -> None:
    given = document.get("vectors") or []
    if not isinstance(given, list) or not all(
        isinstance(each, dict) and isinstance(each.get("chunk"), int) and isinstance(each.get("values"), list)
        for each in given
    ):
        raise TypeError("vectors are not a list of chunks with their values")


def _edge(document: Mapping[str, Any]) -> Edge:
    return Edge(
        _theme(document),
        bounded(_text(document, "session")),
        bounded(_text(document, "child")),
        bytes.fromhex(document["task_digest"]).hex(),
        _moment(document["at"]),
        _metadata(document),
        bounded(_text(document, "home")),
    )


def _alias(document: Mapping[str, Any]) -> Alias:
    old, new = (bounded(_string(document[name], name)) for name in ("old", "new"))
    if not old or not new or old == new:
        raise ValueError("another name of a theme needs two names")
    return Alias(old, new, _moment(document["since"]), _moment_or_none(document, "finished"))


def _receipt(document: Mapping[str, Any]) -> CarriedReceipt:
    counts = document.get("counts") or {}
    if not isinstance(counts, dict):
        raise TypeError("counts are not an object")
    key = bytes.fromhex(document["key"])
    if not key:
        raise ValueError("a receipt has an empty key")
    int(document["receipt"])
    return CarriedReceipt(
        _moment(document["at"]),
        _text(document, "actor"),
        _text(document, "home"),
        tuple(clean(str(each)) for each in document.get("named") or ()),
        _moment_or_none(document, "finished"),
        {clean(str(name)): int(count) for name, count in counts.items()},
        tuple(clean(str(each)) for each in document.get("unreached") or ()),
        key,
    )


def _moment_or_none(document: Mapping[str, Any], name: str) -> datetime | None:
    return None if document.get(name) is None else _moment(document[name])


def _origin(document: Mapping[str, Any], name: str = "origin") -> RowOrigin | None:
    told = _text(document, name)
    if not told:
        return None
    if told not in (TURN_ORIGINS if document["kind"] == "turn" else MEMORY_ORIGINS):
        raise ValueError(f"unknown {name} {told[:40]!r}")
    return RowOrigin(told)


def _trust(document: Mapping[str, Any]) -> Trust | None:
    told = _text(document, "trust")
    if told and told not in tuple(Trust):
        raise ValueError(f"unknown trust {told[:40]!r}")
    return Trust(told) if told else None


def _theme(document: Mapping[str, Any]) -> str:
    theme = bounded(_string(document["theme"], "theme"))
    if not theme:
        raise ValueError("a line has an empty theme")
    return theme


def _target(document: Mapping[str, Any]) -> Any:
    if document["target"] not in TARGETS:
        raise ValueError(f"unknown target {str(document['target'])[:40]!r}")
    return document["target"]


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return "" if value is None else _string(value, name)


def _string(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is not a text")
    return clean(value)


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    value = document.get("metadata") or {}
    if not isinstance(value, dict):
        raise TypeError("metadata is not an object")
    cleaned: Mapping[str, Any] = _cleaned(value)
    return cleaned


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


def _moment(value: Any) -> datetime:
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("a time is not in the form 2026-05-31T14:00:00+00:00") from None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    if not EARLIEST <= at <= LATEST:
        # Postgres would store it, and nobody could read it again.
        raise ValueError("a time is before the year 1 or after the year 9999")
    return at


def _microseconds(value: Any) -> int:
    delta = _moment(value) - turns.EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
