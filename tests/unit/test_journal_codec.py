"""The bytes of a journal are a data format: what an older version has written is read for good."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.values import (
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
    RowOrigin,
    Trust,
    WriteItem,
)

WHEN = Moment(1770000000000001, 1770000000000002)
W = b'"w":[1770000000000001,1770000000000002]'

# Bytes as version 1 has always written them: never change a line, only add some.
WRITTEN: dict[str, tuple[bytes, list[WriteItem]]] = {
    "turns": (
        b'{"v":1,"items":[{"k":"turn","t":"hermes","s":"s1","p":"p1","r":"user","c":18,"n":1,' + W + b',"l":true,'
        b'"m":{"author":"Ann"}},{"k":"turn","t":"hermes","s":"s1","p":"","r":"assistant","c":10,"n":2,' + W + b","
        b'"l":false,"m":{}}]}\nPr\xc3\xbcfe "das"\nbitteGerne \xf0\x9f\x98\x80',
        [
            AddTurn("hermes", "s1", "user", 'Prüfe "das"\nbitte', 1, WHEN, True, "p1", {"author": "Ann"}),
            AddTurn("hermes", "s1", "assistant", "Gerne \U0001f600", 2, WHEN, False, is_dated=False),
        ],
    ),
    "a turn that was not reported live and is dated": (
        b'{"v":1,"items":[{"k":"turn","t":"hermes","s":"s1","p":"","r":"tool","c":4,"n":1,' + W + b',"l":false,'
        b'"m":{},"a":true}]}\nDone',
        [AddTurn("hermes", "s1", "tool", "Done", 1, WHEN, False)],
    ),
    "a lone surrogate": (
        b'{"v":1,"items":[{"k":"turn","t":"hermes","s":"s1","p":"","r":"user","c":5,"n":1,' + W + b',"l":true,'
        b'"m":{}}]}\na\xed\xa0\x80b',
        [AddTurn("hermes", "s1", "user", "a\ud800b", 1, WHEN, True)],
    ),
    "add": (
        b'{"v":1,"items":[{"k":"add","t":"hermes","g":"memory",' + W + b',"h":"home","f":"tool",'
        b'"m":{"tool":"memory"},"c":"likes tea"}]}\n',
        [AddMemory("hermes", "memory", "likes tea", WHEN, "home", metadata={"tool": "memory"})],
    ),
    "replace": (
        b'{"v":1,"items":[{"k":"replace","t":"hermes","g":"user",' + W + b',"h":"home","f":"file","m":{},'
        b'"c":"likes coffee","o":"tea","e":"likes tea"}]}\n',
        [ReplaceMemory("hermes", "user", "likes coffee", "tea", WHEN, "home", "likes tea", Origin.FILE)],
    ),
    "remove": (
        b'{"v":1,"items":[{"k":"remove","t":"hermes","g":"memory",' + W + b',"h":"home","f":"tool","m":{},'
        b'"o":"tea","e":null}]}\n',
        [RemoveMemory("hermes", "memory", "tea", WHEN, "home")],
    ),
    "forget": (
        b'{"v":1,"items":[{"k":"forget","t":"hermes","s":"s1","x":[["ab12",1],["cd34",0]],' + W + b"}]}\n",
        [ForgetTurns("hermes", "s1", (("ab12", 1), ("cd34", 0)), WHEN)],
    ),
    "tail": (
        b'{"v":1,"items":[{"k":"tail","t":"hermes","s":"s1","n":2,"x":[["ab12",1]],' + W + b"}]}\n",
        [ForgetTail("hermes", "s1", 2, (("ab12", 1),), WHEN)],
    ),
    "delegation": (
        b'{"v":1,"items":[{"k":"delegation","t":"hermes","s":"s1","d":"c1","c":"a task","o":"a result",' + W + b","
        b'"m":{"model":"m"}}]}\n',
        [RecordDelegation("hermes", "s1", "c1", "a task", "a result", WHEN, {"model": "m"})],
    ),
    "turn with its origin": (
        b'{"v":1,"items":[{"k":"turn","t":"hermes","s":"s1","p":"","r":"assistant","c":5,"n":1,' + W + b',"l":true,'
        b'"m":{"tools":["web"]},"h":"home","b":"assistant","u":"untrusted"}]}\nGerne',
        [
            AddTurn(
                "hermes", "s1", "assistant", "Gerne", 1, WHEN, True, metadata={"tools": ["web"]}, home_id="home",
                origin=RowOrigin.ASSISTANT, trust=Trust.UNTRUSTED,
            )
        ],
    ),
    "add with its origin": (
        b'{"v":1,"items":[{"k":"add","t":"hermes","g":"memory",' + W + b',"h":"home","f":"tool","m":{},'
        b'"c":"likes tea","b":"background_review","u":"exposed"}]}\n',
        [
            AddMemory(
                "hermes", "memory", "likes tea", WHEN, "home", written_by=RowOrigin.BACKGROUND_REVIEW,
                trust=Trust.EXPOSED,
            )
        ],
    ),
    "judge": (
        b'{"v":1,"items":[{"k":"judge","t":"hermes","s":"s1","x":["call_1"],"u":"untrusted","y":["web"],'
        + W + b"}]}\n",
        [JudgeMemories("hermes", "s1", ("call_1",), Trust.UNTRUSTED, ("web",), WHEN)],
    ),
    "delegation with its home": (
        b'{"v":1,"items":[{"k":"delegation","t":"hermes","s":"s1","d":"c1","c":"a task","o":"a result",' + W + b","
        b'"m":{},"h":"home"}]}\n',
        [RecordDelegation("hermes", "s1", "c1", "a task", "a result", WHEN, home_id="home")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_was_written_before_is_read(kind: str) -> None:
    payload, items = WRITTEN[kind]
    assert codec.decode(payload) == items


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_is_written_now_an_older_process_can_read(kind: str) -> None:
    payload, items = WRITTEN[kind]
    assert codec.encode(items) == payload


def test_many_items_are_dealt_out_to_records_of_moderate_size() -> None:
    def turn(content: str) -> AddTurn:
        return AddTurn("hermes", "s1", "user", content, 1, WHEN, True)

    items: list[Any] = [turn("short") for _ in range(codec.RECORD_ITEMS + 1)] + [turn("x" * codec.RECORD_CHARS)]
    dealt = codec.portions(items)
    assert [len(part) for part in dealt] == [codec.RECORD_ITEMS, 1, 1]
    assert [item for part in dealt for item in part] == items
