"""Write items as journal payloads and back.

A payload is one JSON object, {"v": 1, "items": [...]}; an item is the name of its class and those of its fields that
are not as by default. So a new kind of item, or a new field, needs nothing here. Decoding raises ValueError for
anything that is not ours, which the writer turns into a dead letter: an unreadable record is kept, never guessed at.
One with a version, a kind or a field that only a newer version of this package can know raises NewerRecord instead: it
waits for a process that knows it. Whoever changes the meaning of a field raises VERSION.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hermes_memory_pgvector.values import Moment, WriteItem

VERSION = 1
MAX_NUMBER = 2**31 - 1
MAX_MICROSECONDS = 253_370_764_800_000_000
"""The year 9999, where dates end."""
RECORD_ITEMS = 64
RECORD_CHARS = 256 * 1024


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
    raw = []
    for item in items:
        values: dict[str, Any] = {"k": type(item).__name__}
        for name, default, _ in _FIELDS[type(item).__name__]:
            value = getattr(item, name)
            if value != default:
                values[name] = value
        raw.append(values)
    # Lone surrogates never get here from a hook, but a dead letter must show what its record held.
    return _to_json({"v": VERSION, "items": raw}).encode("utf-8", "surrogatepass")


def decode(payload: bytes) -> list[WriteItem]:
    """The items of one journal record; ValueError when it is not one of ours, NewerRecord when it will be."""
    try:
        record = json.loads(payload)
        version = record["v"]
        if version != VERSION:
            error = NewerRecord if isinstance(version, int) and version > VERSION else ValueError
            raise error("the record's version is not known")
        return [_item(dict(raw)) for raw in record["items"]]
    except (KeyError, TypeError, AttributeError, RecursionError, IndexError, OverflowError) as error:
        raise ValueError(f"not a record of this program ({type(error).__name__})") from error


def _item(raw: dict[str, Any]) -> WriteItem:
    kind = _text(raw.pop("k"))
    if kind not in _FIELDS:
        raise NewerRecord("the record's kind is not known")
    values = {name: read(raw.pop(name)) for name, default, read in _FIELDS[kind] if default is MISSING or name in raw}
    if raw:
        raise NewerRecord("a field of the record is not known")
    made: WriteItem = _KINDS[kind](**values)
    return made


_Read = Callable[[Any], Any]


def _reader(hint: Any) -> _Read:
    """What makes a value of this type of what JSON holds; ValueError or TypeError for anything else."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Moment:
        return lambda raw: Moment(*(_number(each, MAX_MICROSECONDS) for each in raw))
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return lambda raw: _one_of(raw, inner)
    if origin in (Union, types.UnionType):
        (known,) = (_reader(each) for each in inner if each is not type(None))
        return lambda raw: None if raw is None else known(raw)
    if origin is tuple and inner[-1] is Ellipsis:
        each_of = _reader(inner[0])
        return lambda raw: tuple(map(each_of, _list(raw)))
    if origin is tuple:
        parts = [_reader(each) for each in inner]
        return lambda raw: tuple(read(each) for read, each in zip(parts, _list(raw), strict=True))
    if origin is Mapping:
        return dict
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda raw: hint(_one_of(raw, tuple(hint)))
    raise TypeError(f"a journal cannot hold {hint}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any, most: int = MAX_NUMBER) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError("a number of the record is out of bounds")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _one_of(value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise NewerRecord("a word of the record is not known")
    return value


_PLAIN: dict[Any, _Read] = {str: _text, int: _number, bool: _flag}


def _defaults(kind: type[Any]) -> list[tuple[str, Any, _Read]]:
    """Of each field its name, its value where nothing is said, and what reads it."""
    hints = get_type_hints(kind)
    found = []
    for field in fields(kind):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        found.append((field.name, default, _reader(hints[field.name])))
    return found


# A mapping that is not a dict is one all the same.
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(WriteItem)}
_FIELDS = {name: _defaults(kind) for name, kind in _KINDS.items()}
