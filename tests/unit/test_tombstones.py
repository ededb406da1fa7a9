"""What a tombstone refuses: what was named, under the names it had, and nothing beside it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hermes_memory_pgvector.store import tombstones
from hermes_memory_pgvector.store.erasure import hashes_of_items
from hermes_memory_pgvector.store.selection import Selection, stamps_of, without_stamps
from hermes_memory_pgvector.store.tombstones import Tombstones
from hermes_memory_pgvector.text.clean import text_digest, turn_digest
from hermes_memory_pgvector.values import AddMemory, AddTurn, Moment, RecordDelegation, RemoveMemory, WriteItem

KEY = b"k" * 32
AT = datetime(2026, 6, 1, tzinfo=UTC)
BEFORE, AFTER = AT - timedelta(days=1), AT + timedelta(days=1)


def when(at: datetime) -> Moment:
    return Moment(tombstones.micros(at), tombstones.micros(at))


def turn(
    content: str = "The quay is closed", *, theme: str = "sales", session: str = "a", at: datetime = BEFORE
) -> AddTurn:
    return AddTurn(theme, session, "user", content, 1, when(at), True)


def memory(content: str, *, session: str = "", at: datetime = BEFORE) -> AddMemory:
    return AddMemory("sales", "memory", content, when(at), "home", metadata={"session_id": session} if session else {})


def forgotten(selection: Selection, *items: WriteItem, aliases: dict[str, str] | None = None) -> Tombstones:
    """What refuses whatever is brought after these items were forgotten by this selection."""
    hashes = hashes_of_items(KEY, AT, [(item, selection) for item in items])
    return Tombstones((KEY,), {each: until for until, found in hashes.items() for each in found}, aliases or {})


def test_a_scope_is_the_name_under_which_something_was_said_and_words_are_those_of_all_names() -> None:
    scope = {tombstones.of_scope(KEY, "marketing"): AT}
    known = Tombstones((KEY,), scope, {"sales": "marketing"})
    assert known.refuses(turn(theme="marketing"))
    assert not known.refuses(turn(theme="sales"))
    assert not known.refuses(turn(theme="marketing", at=AFTER))
    for said, brought in (("sales", "marketing"), ("marketing", "sales"), ("shop", "sales")):
        words = forgotten(
            Selection(match="quay"), turn(theme=said), aliases={"sales": "marketing", "shop": "marketing"}
        )
        assert words.refuses(turn(theme=brought))
        assert not words.refuses(turn(theme="trading"))


def test_what_is_dated_later_is_new_whether_or_not_it_is_live() -> None:
    known = forgotten(Selection(match="quay"), turn())
    assert known.refuses(replace(turn(), is_live=False))
    assert not known.refuses(replace(turn(at=AFTER), is_live=False))
    assert known.refuses(replace(turn(at=AFTER), is_live=False, is_dated=False))
    done = RecordDelegation("sales", "a", "c", "Find the quay", "Done", when(BEFORE))
    edges = forgotten(Selection(match="quay"), done)
    assert edges.refuses(done)
    assert not edges.refuses(replace(done, when=when(AFTER)))
    # An export has the digest of the task alone.
    digest = text_digest("Find the quay")
    assert edges.refuses(RecordDelegation("sales", "a", "c", "", digest, when(BEFORE)))


def test_a_row_or_a_speaker_is_one_occurrence_and_a_session_only_itself() -> None:
    second = replace(turn(), ordinal=2)
    for selection in (Selection(turn_ids=(7,)), Selection(authors=("anna",))):
        known = forgotten(selection, second)
        assert known.refuses(second)
        # A journal may have counted it otherwise: the same moment is the same turn.
        assert known.refuses(turn())
        assert not known.refuses(turn(at=BEFORE - timedelta(hours=1)))
        assert not known.refuses(replace(second, session_id="b"))
    session = forgotten(Selection(session_id="a"), turn(), memory("Likes tea", session="a"))
    assert session.refuses(turn(at=BEFORE - timedelta(hours=1)))
    assert not session.refuses(turn(session="c"))
    assert session.refuses(memory("Likes tea", session="a"))
    assert not session.refuses(memory("Likes tea", session="c"))
    row = forgotten(Selection(memory_ids=(7,)), memory("Likes tea"))
    assert row.refuses(memory("Likes tea", session="c"))
    assert not row.refuses(replace(memory("Likes tea"), target="user"))
    old = forgotten(Selection(before=BEFORE), memory("Likes tea", at=BEFORE - timedelta(days=9)))
    assert not old.refuses(memory("Likes tea"))


def test_a_turn_whose_words_were_changed_is_known_by_the_words_once_said() -> None:
    edited = replace(turn("Corrected"), digest=turn_digest("user", "The quay is closed"))
    known = forgotten(Selection(match="Corrected"), edited)
    assert known.refuses(turn())
    assert known.refuses(turn("Corrected"))


@pytest.mark.parametrize("text", ["a note on the QUAY wall", "quay", "Der Quay"])
def test_a_forgotten_text_is_found_in_others_and_only_there(text: str) -> None:
    length, own = tombstones.of_part(KEY, "Quay")
    known = Tombstones((KEY,), {}, {}, tombstones.parts_of([(KEY, length, own, AT)]))
    assert known.refuses(turn(text))
    assert known.refuses(memory(text))
    assert not known.refuses(turn(text, at=AFTER))
    assert not known.refuses(turn("qua yes"))
    assert known.forgets_entry(text) == AT
    assert known.quotes(RemoveMemory("sales", "memory", text, when(BEFORE), "home"))
    length, own = tombstones.of_part(KEY, "Quay", "trading")
    elsewhere = Tombstones((KEY,), {}, {}, tombstones.parts_of([(KEY, length, own, AT)]))
    assert not elsewhere.refuses(turn(text))
    assert elsewhere.refuses(turn(text, theme="trading"))


def test_metadata_lose_what_holds_the_text_and_keep_the_names_of_sessions() -> None:
    metadata = {"session_id": "anna-1", "author": {"name": "Anna"}, "platform": "telegram", "tags": ["x", "ANNA"]}
    assert without_stamps(metadata, "anna") == {"session_id": "anna-1", "platform": "telegram"}
    assert "anna-1" not in set(stamps_of(metadata))
