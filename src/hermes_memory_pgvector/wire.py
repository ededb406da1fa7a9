"""Write items as journal payloads and back.

A payload is one JSON object: {"v": 1, "items": [...]}. Decoding raises ValueError for anything that is not ours, which
the writer turns into a dead letter: an unreadable record is kept, never guessed at.
"""

from __future__ import annotations

import json
from typing import Any, assert_never, cast

from hermes_memory_pgvector.model import (
    AddMemory,
    AddTurn,
    ForgetTurns,
    Moment,
    Origin,
    RecordDelegation,
    RemoveMemory,
    ReplaceMemory,
    Role,
    Target,
    TrimSession,
    WriteItem,
)

VERSION = 1
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def encode(items: list[WriteItem]) -> bytes:
    """The payload for one journal record."""
    return _encode({"v": VERSION, "items": [_to_dict(item) for item in items]}).encode("utf-8")


def decode(payload: bytes) -> list[WriteItem]:
    """The items of one journal record; ValueError when it is not one of ours."""
    try:
        record = json.loads(payload)
        if record["v"] != VERSION:
            raise ValueError(f"record version {record['v']!r} is not known")
        return [_from_dict(raw) for raw in record["items"]]
    except (KeyError, TypeError, AttributeError, RecursionError, IndexError) as error:
        raise ValueError(f"not a record of this program ({type(error).__name__})") from error


def _to_dict(item: WriteItem) -> dict[str, Any]:
    when = (item.when.wall_us, item.when.order_us)
    match item:
        case AddTurn():
            return {
                "k": "turn", "t": item.theme, "s": item.session_id, "r": item.role, "c": item.content,
                "n": item.ordinal, "w": when, "l": item.is_live, "p": item.parent_session_id, "m": item.metadata,
            }  # fmt: skip
        case AddMemory():
            return _memory("add", item, {"c": item.content})
        case ReplaceMemory():
            return _memory("replace", item, {"c": item.content, "o": item.old_text, "e": item.previous})
        case RemoveMemory():
            return _memory("remove", item, {"o": item.old_text, "e": item.previous})
        case ForgetTurns():
            return {"k": "forget", "t": item.theme, "s": item.session_id, "x": item.turns, "w": when}
        case TrimSession():
            return {"k": "trim", "t": item.theme, "s": item.session_id, "x": item.kept, "w": when}
        case RecordDelegation():
            return {
                "k": "delegation", "t": item.theme, "s": item.session_id, "d": item.child_session_id, "c": item.task,
                "o": item.result, "w": when, "m": item.metadata,
            }  # fmt: skip
        case _:
            assert_never(item)


def _memory(kind: str, item: AddMemory | ReplaceMemory | RemoveMemory, own: dict[str, Any]) -> dict[str, Any]:
    return {
        "k": kind, "t": item.theme, "g": item.target, "w": (item.when.wall_us, item.when.order_us), "h": item.home_id,
        "f": item.origin.value, "m": item.metadata, **own,
    }  # fmt: skip


def _from_dict(raw: dict[str, Any]) -> WriteItem:
    when = Moment(int(raw["w"][0]), int(raw["w"][1]))
    theme = str(raw["t"])
    kind = raw["k"]
    if kind == "turn":
        return AddTurn(
            theme, str(raw["s"]), cast(Role, raw["r"]), str(raw["c"]), int(raw["n"]), when, bool(raw["l"]),
            str(raw["p"]), dict(raw["m"]),
        )  # fmt: skip
    if kind in ("add", "replace", "remove"):
        target = cast(Target, raw["g"])
        common: dict[str, Any] = {"when": when, "home_id": str(raw["h"]), "origin": Origin(raw["f"])}
        common["metadata"] = dict(raw["m"])
        if kind == "add":
            return AddMemory(theme, target, str(raw["c"]), **common)
        if kind == "replace":
            return ReplaceMemory(theme, target, str(raw["c"]), str(raw["o"]), previous=raw["e"], **common)
        return RemoveMemory(theme, target, str(raw["o"]), previous=raw["e"], **common)
    if kind in ("forget", "trim"):
        turns = tuple((str(digest), int(ordinal)) for digest, ordinal in raw["x"])
        session_id = str(raw["s"])
        if kind == "forget":
            return ForgetTurns(theme, session_id, turns, when)
        return TrimSession(theme, session_id, turns, when)
    if kind == "delegation":
        return RecordDelegation(theme, str(raw["s"]), str(raw["d"]), str(raw["c"]), str(raw["o"]), when, dict(raw["m"]))
    raise ValueError(f"record kind {kind!r} is not known")
