"""The bytes of a journal are a data format: what one process has written, another one reads."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.values import AddMemory, AddTurn, Moment, Origin, ReplaceMemory, RowOrigin, WriteItem

WHEN = Moment(1770000000000001, 1770000000000002)
TURN = AddTurn("hermes", "s1", "user", 'Prüfe "das"\nbitte \U0001f600', 1, WHEN, True)
FULL_TURN = AddTurn(
    "hermes", "s1", "assistant", "Gerne", 2, WHEN, False, "p1", {"tools": ["web"]}, home_id="home",
    origin=RowOrigin.ASSISTANT, untrusted=True, is_dated=False,
)  # fmt: skip
SAMPLES: dict[str, Any] = {
    "str": "some words", "int": 3, "bool": True, "Moment": WHEN, "Target": "user", "Role": "tool",
    "Origin": Origin.FILE, "RowOrigin | None": RowOrigin.MCP,
    "Mapping[str, Any]": {"deep": {"er": [1, None]}}, "str | None": "before", "tuple[str, ...]": ("a", "b"),
    "tuple[tuple[str, int], ...]": (("ab12", 1), ("cd34", 0)),
}  # fmt: skip


def test_every_kind_of_item_comes_back_with_all_its_fields() -> None:
    for kind in get_args(WriteItem):
        item = kind(**{name: SAMPLES[str(hint)] for name, hint in kind.__annotations__.items()})
        assert codec.decode(codec.encode([item])) == [item]


def test_the_bytes_are_these() -> None:
    assert codec.encode([TURN, ReplaceMemory("hermes", "user", "coffee", "tea", WHEN, "home")]).decode() == (
        '{"v":1,"items":[{"k":"AddTurn","theme":"hermes","session_id":"s1","role":"user",'
        '"content":"Prüfe \\"das\\"\\nbitte \U0001f600","ordinal":1,'
        '"when":[1770000000000001,1770000000000002],"is_live":true},'
        '{"k":"ReplaceMemory","theme":"hermes","target":"user","content":"coffee","old_text":"tea",'
        '"when":[1770000000000001,1770000000000002],"home_id":"home"}]}'
    )


@pytest.mark.parametrize("item", [TURN, FULL_TURN, AddTurn("hermes", "s1", "user", "a\ud800b", 1, WHEN, True)])
def test_what_is_written_is_read(item: AddTurn) -> None:
    assert codec.decode(codec.encode([item, item])) == [item, item]


def changed(**values: Any) -> bytes:
    raw = json.loads(codec.encode([AddMemory("hermes", "memory", "likes tea", WHEN, "home")]))
    raw["items"][0].update(values)
    return json.dumps(raw).encode()


@pytest.mark.parametrize(
    "payload",
    [b'{"v":2,"items":[]}', changed(k="AddSong"), changed(colour="red"), changed(origin="song"), changed(target="x")],
)
def test_what_only_a_newer_version_knows_waits_for_it(payload: bytes) -> None:
    with pytest.raises(codec.NewerRecord):
        codec.decode(payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"{}", b"[]", b'{"v":"1","items":[]}', b'{"v":1}', b'{"v":1,"items":[3]}', b'{"v":1,"items":{}} x',
        b'{"v":1,"items":[{"k":"AddMemory"}]}', changed(k=3), changed(content=3), changed(when=3), changed(when=[1]),
        changed(when=[-1, 1]), changed(when=[10**18, 1]), changed(metadata=3), changed(theme=None), b"\xff\xfe",
        b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_not_ours_is_an_error_of_one_kind(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        codec.decode(payload)
    assert not isinstance(caught.value, codec.NewerRecord)


def test_many_items_are_dealt_out_to_records_of_moderate_size() -> None:
    def turn(content: str) -> AddTurn:
        return AddTurn("hermes", "s1", "user", content, 1, WHEN, True)

    items: list[Any] = [turn("short") for _ in range(codec.RECORD_ITEMS + 1)] + [turn("x" * codec.RECORD_CHARS)]
    dealt = codec.portions(items)
    assert [len(part) for part in dealt] == [codec.RECORD_ITEMS, 1, 1]
    assert [item for part in dealt for item in part] == items
