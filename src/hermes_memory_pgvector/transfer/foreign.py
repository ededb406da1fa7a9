"""What other memories export, one JSON object per line, as lines of our own. Pure.

Each shape is what that service's own interface answers with; unknown fields are left alone. A line may also hold a list
of such objects, or a page of an answer. An object without words, such as a document that is still being read, is
counted and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hermes_memory_pgvector.capture.transcript import metadata_of, turn_of
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.text.clean import capped, text_of, turn_digest
from hermes_memory_pgvector.text.names import session_name
from hermes_memory_pgvector.transfer import line_file
from hermes_memory_pgvector.values import Role, RowOrigin, Target

ASSISTANTS = ("agent", "ai", "assistant", "hermes")
"""What the peer is usually called that is not a person."""
_NO_TIME = "a time is neither a date nor a number of seconds"
_PAGES = ("results", "items", "memories", "documents", "messages", "facts")
NO_WORDS = "without any words"
Line = tuple[int, dict[str, Any]]


@dataclass(slots=True)
class Foreign:
    """Where foreign objects go, and what they leave open."""

    shape: str
    theme: str
    target: Target
    memory_chars: int
    turn_chars: int
    undated: datetime
    """The time of objects that have none."""
    assistants: frozenset[str] = frozenset(ASSISTANTS)
    left_out: Counter[str] = field(default_factory=Counter)
    """How many objects were not for storing, by reason."""
    _said: Counter[tuple[str, str]] = field(default_factory=Counter)

    def lines(self, given: Iterable[Line], name: str) -> Iterator[Line]:
        """Our lines for theirs."""
        for number, document in given:
            for each in _objects(document):
                try:
                    made = _SHAPES[self.shape](self, each)
                except (ValueError, OverflowError, OSError):
                    raise ConfigError(f"{name}, line {number}: {_NO_TIME}; {line_file.BEFORE_IT}") from None
                if made is None:
                    raise ConfigError(
                        f"{name}, line {number}: this is no object of {self.shape}'s; {line_file.BEFORE_IT}"
                    )
                if made["content"]:
                    yield number, made
                else:
                    self.left_out[NO_WORDS] += 1

    def memory(self, content: Any, created: Any, updated: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """A memory of ours."""
        at = self._time(created or updated)
        return {
            "kind": "memory",
            "theme": self.theme,
            "target": self.target,
            "content": capped(text_of(content), self.memory_chars),
            "created_at": at,
            "updated_at": at,
            "metadata": metadata_of({"imported_from": self.shape, **metadata}),
            "origin": RowOrigin.IMPORT.value,
        }

    def turn(self, session: Any, role: Role, content: Any, at: Any) -> dict[str, Any]:
        """A turn of ours; the n-th of these words in its session."""
        undated = {} if self._says_when(at) else {"undated": True}
        turn = turn_of(role, content, self.turn_chars)
        name = session_name(session) or self.shape
        words = "" if turn is None else turn.content
        key = (name, turn_digest(role, words))
        self._said[key] += 1
        return {
            "kind": "turn",
            "theme": self.theme,
            "session": name,
            "role": role,
            "content": words,
            "at": self._time(at),
            "ordinal": self._said[key],
            "metadata": {"imported_from": self.shape},
            **undated,
            "origin": RowOrigin.IMPORT.value,
        }

    @staticmethod
    def _says_when(value: Any) -> bool:
        if isinstance(value, str):
            # Some write the first moment of all times for none.
            return bool(value) and not value.startswith("0001-01-01")
        return bool(value) and isinstance(value, int | float) and not isinstance(value, bool)

    def _time(self, value: Any) -> str:
        if isinstance(value, str) and self._says_when(value):
            return value
        if self._says_when(value):
            # Some count milliseconds.
            seconds = value / 1000 if value > 1e11 else value
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        return self.undated.isoformat()


def _objects(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    page = next((document[name] for name in _PAGES if isinstance(document.get(name), list)), None)
    yield from (each for each in page if isinstance(each, dict)) if page is not None else (document,)


def _mem0(target: Foreign, given: Mapping[str, Any]) -> dict[str, Any] | None:
    if "memory" not in given:
        return None
    kept = {name: given[name] for name in ("id", "user_id", "agent_id", "run_id", "categories") if given.get(name)}
    more = given.get("metadata")
    return target.memory(
        given["memory"],
        given.get("created_at"),
        given.get("updated_at"),
        {**(more if isinstance(more, dict) else {}), **kept},
    )


def _honcho(target: Foreign, given: Mapping[str, Any]) -> dict[str, Any] | None:
    if "content" not in given or "peer_id" not in given:
        return None
    role: Role = "assistant" if str(given["peer_id"]).casefold() in target.assistants else "user"
    return target.turn(given.get("session_id"), role, given["content"], given.get("created_at"))


def _hindsight(target: Foreign, given: Mapping[str, Any]) -> dict[str, Any] | None:
    if "text" not in given:
        return None
    names = ("id", "type", "fact_type", "context", "occurred_start", "occurred_end", "entities", "tags")
    kept = {name: given[name] for name in names if given.get(name)}
    at = given.get("mentioned_at") or given.get("occurred_start") or given.get("date")
    return target.memory(given["text"], at, None, kept)


def _supermemory(target: Foreign, given: Mapping[str, Any]) -> dict[str, Any] | None:
    names = ("memory", "content", "summary")
    if not any(name in given for name in (*names, "customId", "containerTags")):
        return None
    words = next((given[name] for name in names if isinstance(given.get(name), str)), "")
    kept = {name: given[name] for name in ("id", "title", "containerTags", "customId") if given.get(name)}
    more = given.get("metadata")
    return target.memory(
        words,
        given.get("createdAt"),
        given.get("updatedAt"),
        {**(more if isinstance(more, dict) else {}), **kept},
    )


_SHAPES: dict[str, Callable[[Foreign, Mapping[str, Any]], dict[str, Any] | None]] = {
    "hindsight": _hindsight,
    "honcho": _honcho,
    "mem0": _mem0,
    "supermemory": _supermemory,
}
SHAPES = tuple(_SHAPES)
