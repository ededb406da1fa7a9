"""Write items as journal payloads and back.

A payload is one JSON object, {"v": 1, "items": [...]}, then a line feed, then the words of its turns one after the
other; the object holds only their lengths. Decoding raises ValueError for anything that is not ours, which the writer
turns into a dead letter: an unreadable record is kept, never guessed at. A record that a newer version of this package
has made raises NewerRecord instead: it waits for a process that knows it. So whoever changes the meaning of a field
raises VERSION; a new kind of item does not need that.

Journals outlive the version that wrote them, so the bytes are a data format: what an older version wrote must decode.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any, TypeVar, assert_never, cast, get_args

from hermes_memory_pgvector.values import (
    TARGETS,
    AddMemory,
    AddTurn,
    ForgetTail,
    ForgetTurns,
    JudgeMemories,
    Moment,
    Origin,
    RecordDelegation,
    RemoveMemory,
    ReplaceMemory,
    Role,
    RowOrigin,
    Trust,
    WriteItem,
)

VERSION = 1
KINDS = frozenset({"turn", "add", "replace", "remove", "forget", "tail", "trim", "delegation", "judge"})
ROLES: tuple[Role, ...] = get_args(Role)
MAX_ORDINAL = 2**31 - 1
MAX_MICROSECONDS = 253_370_764_800_000_000
"""The year 9999, where dates end."""
RECORD_ITEMS = 64
RECORD_CHARS = 256 * 1024
_Word = TypeVar("_Word", bound=str)
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class NewerRecord(ValueError):
    """A record of a version or a kind that only a newer version of this package can know."""


def portions(items: Sequence[WriteItem]) -> list[list[WriteItem]]:
    """The items, dealt out to records of moderate size."""
    found: list[list[WriteItem]] = [[]]
    size = 0
    for item in items:
        length = len(getattr(item, "content", ""))
        if found[-1] and (len(found[-1]) >= RECORD_ITEMS or size + length > RECORD_CHARS):
            found.append([])
            size = 0
        found[-1].append(item)
        size += length
    return found


def encode(items: Sequence[WriteItem]) -> bytes:
    """The payload for one journal record."""
    words: list[bytes] = []
    record = {"v": VERSION, "items": [_to_dict(item, words) for item in items]}
    # Lone surrogates never get here from a hook, but a dead letter must show what its record held.
    return _to_json(record).encode("utf-8", "surrogatepass") + b"\n" + b"".join(words)


def decode(payload: bytes) -> list[WriteItem]:
    """The items of one journal record; ValueError when it is not one of ours, NewerRecord when it will be."""
    head, _, words = payload.partition(b"\n")
    try:
        record = json.loads(head)
        version = record["v"]
        if isinstance(version, int) and version > VERSION:
            raise NewerRecord("the record's version is not known")
        if version != VERSION:
            raise ValueError("the record's version is not known")
        source = io.BytesIO(words)
        items = [_from_dict(raw, source) for raw in record["items"]]
    except (KeyError, TypeError, AttributeError, RecursionError, IndexError, OverflowError) as error:
        raise ValueError(f"not a record of this program ({type(error).__name__})") from error
    if source.tell() != len(words):
        raise ValueError("the record holds more words than it names")
    return items


def _to_dict(item: WriteItem, words: list[bytes]) -> dict[str, Any]:
    """An item as JSON; a turn's words are added to `words` instead."""
    when = (item.when.wall_us, item.when.order_us)
    match item:
        case AddTurn():
            content = item.content.encode("utf-8", "surrogatepass")
            words.append(content)
            return {
                "k": "turn", "t": item.theme, "s": item.session_id, "p": item.parent_session_id, "r": item.role,
                "c": len(content), "n": item.ordinal, "w": when, "l": item.is_live, "m": dict(item.metadata),
                **({"d": item.digest} if item.digest else {}),
                **_given(h=item.home_id, b=item.origin, u=item.trust),
                **({} if item.is_dated is item.is_live else {"a": item.is_dated}),
            }  # fmt: skip
        case AddMemory():
            return _memory("add", item, {"c": item.content})
        case ReplaceMemory():
            return _memory("replace", item, {"c": item.content, "o": item.old_text, "e": item.previous})
        case RemoveMemory():
            return _memory("remove", item, {"o": item.old_text, "e": item.previous})
        case ForgetTurns():
            return {"k": "forget", "t": item.theme, "s": item.session_id, "x": item.turns, "w": when}
        case ForgetTail():
            return {
                "k": "tail", "t": item.theme, "s": item.session_id, "n": item.exchanges, "x": item.kept, "w": when,
            }  # fmt: skip
        case RecordDelegation():
            return {
                "k": "delegation", "t": item.theme, "s": item.session_id, "d": item.child_session_id, "c": item.task,
                "o": item.result, "w": when, "m": dict(item.metadata), **_given(h=item.home_id),
            }  # fmt: skip
        case JudgeMemories():
            return {
                "k": "judge", "t": item.theme, "s": item.session_id, "x": item.calls, "u": item.trust.value,
                "y": item.tools, "w": when,
            }  # fmt: skip
        case _:
            assert_never(item)


def _memory(kind: str, item: AddMemory | ReplaceMemory | RemoveMemory, own: dict[str, Any]) -> dict[str, Any]:
    return {
        "k": kind, "t": item.theme, "g": item.target, "w": (item.when.wall_us, item.when.order_us), "h": item.home_id,
        "f": item.origin.value, "m": dict(item.metadata), **own, **_given(b=item.written_by, u=item.trust),
    }  # fmt: skip


def _given(**values: str | None) -> dict[str, str]:
    """What is known; a record without it is one of an older version, or nobody knew."""
    return {name: str(value) for name, value in values.items() if value}


def _from_dict(raw: dict[str, Any], words: io.BytesIO) -> WriteItem:
    kind = _text(raw["k"])
    if kind not in KINDS:
        raise NewerRecord("the record's kind is not known")
    when = Moment(_bounded(raw["w"][0], MAX_MICROSECONDS), _bounded(raw["w"][1], MAX_MICROSECONDS))
    theme = _text(raw["t"])
    if kind == "turn":
        # What says nothing of its date is as sure of it as it is live.
        is_live = bool(raw["l"])
        return AddTurn(
            theme, _text(raw["s"]), _one_of(raw["r"], ROLES), _words(raw["c"], words),
            _bounded(raw["n"], MAX_ORDINAL), when, is_live, _text(raw["p"]), dict(raw["m"]),
            _text(raw.get("d", "")),
            home_id=_text(raw.get("h", "")), origin=_origin(raw), trust=_trust(raw),
            is_dated=bool(raw.get("a", is_live)),
        )  # fmt: skip
    if kind in ("add", "replace", "remove"):
        target = _one_of(raw["g"], TARGETS)
        common: dict[str, Any] = {"when": when, "home_id": _text(raw["h"]), "origin": Origin(raw["f"])}
        common |= {"metadata": dict(raw["m"]), "written_by": _origin(raw), "trust": _trust(raw)}
        if kind == "add":
            return AddMemory(theme, target, _text(raw["c"]), **common)
        previous = None if raw["e"] is None else _text(raw["e"])
        if kind == "replace":
            return ReplaceMemory(theme, target, _text(raw["c"]), _text(raw["o"]), previous=previous, **common)
        return RemoveMemory(theme, target, _text(raw["o"]), previous=previous, **common)
    if kind in ("forget", "tail", "trim"):
        turns = tuple((bytes.fromhex(digest).hex(), _bounded(ordinal, MAX_ORDINAL)) for digest, ordinal in raw["x"])
        session_id = _text(raw["s"])
        if kind == "tail":
            return ForgetTail(theme, session_id, _bounded(raw["n"], MAX_ORDINAL), turns, when)
        # "trim" named what stays instead of what goes, so it takes nothing back.
        return ForgetTurns(theme, session_id, turns if kind == "forget" else (), when)
    if kind == "judge":
        calls, tools = (tuple(map(_text, raw[name])) for name in ("x", "y"))
        return JudgeMemories(theme, _text(raw["s"]), calls, Trust(raw["u"]), tools, when)
    return RecordDelegation(
        theme, _text(raw["s"]), _text(raw["d"]), _text(raw["c"]), _text(raw["o"]), when, dict(raw["m"]),
        _text(raw.get("h", "")),
    )  # fmt: skip


def _origin(raw: dict[str, Any]) -> RowOrigin | None:
    # A word that only a newer version knows is no reason to lose the row.
    return next((each for each in RowOrigin if each.value == raw.get("b")), None)


def _trust(raw: dict[str, Any]) -> Trust | None:
    return next((each for each in Trust if each.value == raw.get("u")), None)


def _words(length: Any, words: io.BytesIO) -> str:
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise TypeError
    content = words.read(length)
    if len(content) != length:
        raise ValueError("words of the record are missing")
    return content.decode("utf-8", "surrogatepass")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _bounded(value: Any, most: int) -> int:
    number = int(value)
    if not 0 <= number <= most:
        raise ValueError("a number of the record is out of bounds")
    return number


def _one_of(value: Any, known: tuple[_Word, ...]) -> _Word:
    if value not in known:
        raise ValueError("a word of the record is not known")
    return cast(_Word, value)
