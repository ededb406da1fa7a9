"""Memories, turns, events and hits as the page gets them: long texts cut, words searched for marked. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes_memory_pgvector.care.events import by, session_of
from hermes_memory_pgvector.care.ids import name_of
from hermes_memory_pgvector.store.browse import Row, Said, StoredMemory, StoredTurn
from hermes_memory_pgvector.store.history import Event
from hermes_memory_pgvector.text.excerpt import excerpt, matches
from hermes_memory_pgvector.values import Hit, Kind
from hermes_memory_pgvector.web.asked import Document, plain

LIST_CHARS = 700
"""How much of a text stands in a list."""
SAID_CHARS = 8_000
"""How much of a turn stands in a transcript: a hundred of them are one page."""
WHOLE_CHARS = 100_000
"""How much of a text a page shows at all."""


def cut(content: str, chars: int = LIST_CHARS) -> Document:
    """A text, or its beginning with the number of characters left out."""
    return {"content": content[:chars], "left_out": max(0, len(content) - chars)}


def row(each: Row) -> Document:
    """A memory or a turn in a list."""
    return {
        "name": name_of(each.kind, each.id),
        "kind": each.kind.value,
        "theme": each.theme,
        "at": plain(each.at),
        "target": each.whose if each.kind is Kind.MEMORY else None,
        "session_id": each.session_id,
        "role": each.whose if each.kind is Kind.TURN else None,
        "hidden_by": each.hidden_by,
        "origin": each.origin,
        "trust": each.trust,
        **cut(each.content),
    }


def stored(each: StoredMemory | StoredTurn) -> Document:
    """Everything about one row."""
    document: Document = {**plain(each), **cut(each.content, WHOLE_CHARS)}
    return document


def said(each: Said) -> Document:
    """A turn of a transcript."""
    document: Document = {**plain(each), "name": f"t{each.id}", **cut(each.content, SAID_CHARS)}
    return document


def event(each: Event) -> Document:
    """An event of the history."""
    return {
        "event": f"e{each.id}",
        "at": plain(each.at),
        "theme": each.theme,
        "target": each.target,
        "action": each.action,
        "by": by(each),
        "home_id": each.home_id,
        "session_id": session_of(each),
        "content": each.content[:LIST_CHARS],
        "before": (each.previous or each.old_text)[:LIST_CHARS],
    }


def hit(each: Hit) -> Document:
    """A hit with the part of its text that shows why, cut into parts: [text, is it a word searched for]."""
    shown = excerpt(each.content, each.words, LIST_CHARS)
    return {
        "name": name_of(each.kind, each.id),
        "kind": each.kind.value,
        "theme": each.theme,
        "at": plain(each.ts),
        "target": each.target,
        "session_id": each.session_id,
        "role": each.role,
        "origin": each.origin,
        "trust": each.trust,
        "count": each.count,
        "parts": marked(shown, each.words),
    }


def marked(text: str, words: Sequence[str]) -> list[list[Any]]:
    """The text as parts, each with whether it is a word searched for."""
    parts: list[list[Any]] = []
    at = 0
    for match in matches(text, words):
        if match.start >= at:
            parts += [[text[at : match.start], False], [text[match.start : match.end], True]]
            at = match.end
    return [part for part in [*parts, [text[at:], False]] if part[0]]
