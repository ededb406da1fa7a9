"""What stands in a file of JSON lines, as turns and memories. Pure.

A file is data and gives no orders: nothing but turns and memories comes out of it, whoever wrote it. It says neither
which home holds a memory nor whom to trust, and nothing was said later than now. Fields are taken by the names that
memories commonly use, so that what other services answer with needs no shape of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, get_args

from hermes_memory_pgvector.capture.transcript import metadata_of, turn_of
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.postgres.conventions import EARLIEST
from hermes_memory_pgvector.text.clean import capped, text_of, turn_digest
from hermes_memory_pgvector.text.names import bounded, session_name
from hermes_memory_pgvector.transfer import line_file
from hermes_memory_pgvector.transfer.export import FORMAT, HEADER
from hermes_memory_pgvector.values import TARGETS, Role, RowOrigin, Target, Trust

Line = tuple[int, dict[str, Any]]

WORDS = ("content", "memory", "text")
TIMES = ("at", "created_at", "createdAt", "timestamp", "mentioned_at")
CHANGED = ("updated_at", "updatedAt")
PAGES = ("results", "items", "memories", "documents", "messages", "facts")
KEPT = ("id", "user_id", "agent_id", "run_id", "type", "context", "categories", "tags", "title", "containerTags")
"""What else is kept of an object of another service."""
ASSISTANTS = ("agent", "ai", "assistant", "hermes")
"""What the one is usually called who is not a person."""
ROWS = ("memory", "turn")
MOST_ORDINAL = 2**31 - 1
MILLISECONDS = 1e11
"""A number of seconds is less than this."""
UNNAMED_SESSION = "import"
NO_WORDS = "without any words"
NO_ROWS = "that are neither turns nor memories"


@dataclass(slots=True)
class Lines:
    """Reads the objects of one file; what they leave open is decided here."""

    theme: str
    target: Target
    memory_chars: int
    turn_chars: int
    undated: datetime
    """The time of objects that have none."""
    now: datetime
    left_out: Counter[str] = field(default_factory=Counter)
    """How many objects were not for storing, by reason."""
    _said: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def read(self, given: Iterable[Line], name: str) -> Iterator[Line]:
        """The turns and memories among these objects; an object that cannot be one names its line."""
        for number, document in given:
            for each in _objects(document):
                try:
                    made = self._row(each)
                except RecursionError:
                    raise ConfigError(
                        f"{name}, line {number}: it is nested too deeply; {line_file.BEFORE_IT}"
                    ) from None
                except (TypeError, ValueError, OverflowError, OSError) as error:
                    raise ConfigError(f"{name}, line {number}: {str(error)[:120]}; {line_file.BEFORE_IT}") from None
                if made is not None:
                    yield number, made

    def _row(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        kind = given.get("kind")
        if kind == HEADER:
            if int(given.get("format") or 0) > FORMAT:
                raise ValueError(f"the file has format {given['format']}, this version reads {FORMAT}: upgrade it")
            return None
        if kind is not None and kind not in ROWS:
            self.left_out[NO_ROWS] += 1
            return None
        words = next((given[name] for name in WORDS if given.get(name)), None)
        if words is None and not any(name in given for name in WORDS):
            raise ValueError(f"it has no words: neither {', '.join(WORDS[:-1])} nor {WORDS[-1]}")
        role = _role(given)
        if kind == "turn" and role is None:
            raise ValueError("a turn has no role")
        is_turn = kind == "turn" or (kind is None and role is not None)
        made = self._turn(given, role, words) if is_turn and role else self._memory(given, words)
        if not made["content"]:
            self.left_out[NO_WORDS] += 1
            return None
        if given.get("hidden"):
            made["hidden"] = self._time(given["hidden"])
        if given.get("trust") == Trust.UNTRUSTED:
            # Somebody may be trusted less on the word of a file, and nobody more.
            made["trust"] = given["trust"]
        return made

    def _memory(self, given: Mapping[str, Any], words: Any) -> dict[str, Any]:
        target = given.get("target") or self.target
        if target not in TARGETS:
            raise ValueError(f"unknown target {str(target)[:40]!r}")
        made = self._first_time(given, TIMES)
        changed = self._first_time(given, CHANGED)
        return {
            "kind": "memory",
            "theme": self._theme(given),
            "target": target,
            "content": capped(text_of(words), self.memory_chars),
            "created_at": made or changed or self._time(self.undated.isoformat()),
            "updated_at": changed or made or self._time(self.undated.isoformat()),
            "metadata": _metadata(given),
            "origin": RowOrigin.IMPORT.value,
        }

    def _turn(self, given: Mapping[str, Any], role: Role, words: Any) -> dict[str, Any]:
        theme = self._theme(given)
        session = session_name(given.get("session") or given.get("session_id")) or UNNAMED_SESSION
        turn = turn_of(role, words, self.turn_chars)
        content = "" if turn is None else turn.content
        at = self._first_time(given, TIMES)
        key = (theme, session, turn_digest(role, content))
        self._said[key] += 1
        ordinal = int(given.get("ordinal") or self._said[key])
        if not 0 < ordinal <= MOST_ORDINAL:
            raise ValueError("an ordinal is not the number of an occurrence")
        return {
            "kind": "turn",
            "theme": theme,
            "session": session,
            "parent": given.get("parent"),
            "role": role,
            "content": content,
            "at": at or self._time(self.undated.isoformat()),
            "ordinal": ordinal,
            "metadata": _metadata(given),
            **({} if at else {"undated": True}),
            "origin": RowOrigin.IMPORT.value,
        }

    def _theme(self, given: Mapping[str, Any]) -> str:
        named = given.get("theme")
        if named is not None and not isinstance(named, str):
            raise TypeError("theme is not a text")
        return bounded(text_of(named)) if named else self.theme

    def _first_time(self, given: Mapping[str, Any], names: tuple[str, ...]) -> str:
        """The first of these times that says when; empty where none does."""
        # Some write the first moment of all times for none.
        said = (given.get(name) for name in names)
        value = next((each for each in said if each and not str(each).startswith("0001-01-01")), None)
        return "" if value is None else self._time(value)

    def _time(self, value: Any) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            at = datetime.fromtimestamp(value / 1000 if value > MILLISECONDS else value, UTC)
        else:
            try:
                at = datetime.fromisoformat(value)
            except (TypeError, ValueError):
                raise ValueError(
                    "a time is neither in the form 2026-05-31T14:00:00+00:00 nor a number of seconds"
                ) from None
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        if at < EARLIEST:
            raise ValueError("a time is before the year 1")
        return min(at, self.now).astimezone(UTC).isoformat()


def _objects(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    page = None if "kind" in document else next((document[name] for name in PAGES if _is_page(document, name)), None)
    yield from (each for each in page if isinstance(each, dict)) if page is not None else (document,)


def _is_page(document: Mapping[str, Any], name: str) -> bool:
    return isinstance(document.get(name), list)


def _role(given: Mapping[str, Any]) -> Role | None:
    told = given.get("role")
    if told is None and given.get("peer_id"):
        return "assistant" if str(given["peer_id"]).casefold() in ASSISTANTS else "user"
    if told is not None and told not in get_args(Role):
        raise ValueError(f"unknown role {str(told)[:40]!r}")
    return told


def _metadata(given: Mapping[str, Any]) -> dict[str, Any]:
    more = given.get("metadata") or {}
    if not isinstance(more, dict):
        raise TypeError("metadata is not an object")
    kept = {name: given[name] for name in KEPT if given.get(name) and "kind" not in given}
    return metadata_of({**more, **kept})
