"""Which entry another agent means, and which it may not change."""

from __future__ import annotations

import pytest

from hermes_memory_pgvector.mcp.entries import meant, remains
from hermes_memory_pgvector.recall.tools import BadArgument
from hermes_memory_pgvector.store.memories import Holding

OURS = Holding("memory", "Tea is at four.", ("mcp",))
NOBODYS = Holding("memory", "Tea is green.", ())
HOMES = Holding("user", "Tea, no sugar.", ("0123456789abcdef",))
BOTH = Holding("memory", "Tea is hot.", ("0123456789abcdef", "mcp"))


@pytest.mark.parametrize(
    ("found", "text", "wanted"),
    [
        ([OURS], "four", OURS),
        ([NOBODYS], "green", NOBODYS),
        ([BOTH], "hot", BOTH),
        ([HOMES, OURS], "Tea", OURS),
        ([OURS, Holding("memory", "Tea is at four. Or five.", ("mcp",))], "Tea is at four.", OURS),
    ],
)
def test_the_only_entry_that_may_be_meant_is_meant(found: list[Holding], text: str, wanted: Holding) -> None:
    assert meant(found, text, "market") is wanted


@pytest.mark.parametrize(
    ("found", "text", "sentence"),
    [
        ([], "x", "No entry of theme 'market' contains that text."),
        ([OURS, NOBODYS], "Tea", "2 entries contain that text. Nothing was changed; give more"),
        ([HOMES], "sugar", "That entry stands in the USER.md of hermes home 01234567 and is changed there only."),
        ([HOMES, HOMES], "sugar", "all of them stand in a MEMORY.md or USER.md"),
        ([HOMES, OURS], "Tea, no sugar.", "stands in the USER.md of hermes home 01234567"),
        # The same words under both targets: neither is taken by chance.
        ([OURS, Holding("user", OURS.content, ("mcp",))], OURS.content, "or its target"),
    ],
)
def test_anything_else_is_refused_with_the_reason(found: list[Holding], text: str, sentence: str) -> None:
    with pytest.raises(BadArgument) as refused:
        meant(found, text, "market")
    assert sentence in refused.value.sentence
    assert "Nothing was changed" in refused.value.sentence


def test_an_entry_that_a_home_holds_as_well_is_said_to_remain() -> None:
    assert remains(BOTH) == "It also stands in the MEMORY.md of hermes home 01234567, so it stays there."
    assert remains(OURS) == remains(NOBODYS) == ""
