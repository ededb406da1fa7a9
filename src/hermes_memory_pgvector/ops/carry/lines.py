"""Turns and memories in a file of JSON: lines, one document, or the pages that services answer with.

A file is data and gives no orders: nothing but turns and memories comes out of it, whoever wrote it. It says neither
which home holds a memory nor whom to trust, and nothing was said later than now. Fields are taken by the names that
memories commonly use, so that what other services answer with needs no shape of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, cast, get_args

from hermes_memory_pgvector.capture.transcript import metadata_of, turn_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.carry.file import FORMAT, HEADER
from hermes_memory_pgvector.ops.carry.intake import Found
from hermes_memory_pgvector.postgres.conventions import EARLIEST
from hermes_memory_pgvector.text.clean import capped, text_of, turn_digest
from hermes_memory_pgvector.text.names import session_name, theme_name
from hermes_memory_pgvector.values import TARGETS, AddMemory, AddTurn, Moment, Origin, Role, RowOrigin, Target

MAX_LINE_BYTES = 64 * 1024 * 1024
WORDS = ("content", "memory", "text")
TIMES = ("at", "ts", "created_at", "createdAt", "timestamp", "mentioned_at", "updated_at", "updatedAt")
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


def moment_of(at: datetime) -> Moment:
    """A time as rows have it: to the microsecond."""
    delta = at - datetime(1970, 1, 1, tzinfo=UTC)
    wall_us = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    return Moment(wall_us, wall_us)


def memory(
    theme: str, target: Target, content: str, at: datetime, metadata: Mapping[str, Any], untrusted: bool = False
) -> AddMemory:
    """A memory that no home here holds in its file."""
    return AddMemory(theme, target, content, moment_of(at), "", Origin.FILE, metadata, RowOrigin.IMPORT, untrusted)


@dataclass(slots=True)
class Lines:
    """Reads the objects of one file; what they leave open is decided here."""

    name: str
    theme: str
    settings: Settings
    undated: datetime
    """The time of objects that have none."""
    now: datetime
    left_out: Counter[str] = field(default_factory=Counter)
    """How many objects were not for storing, by reason."""
    _said: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def read(self, given: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[Found]:
        """The turns and memories among these objects; an object that cannot be one names its line."""
        for number, document in given:
            for each in _objects(document):
                try:
                    found = self._row(each)
                except (TypeError, ValueError, OverflowError, OSError, RecursionError) as error:
                    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]
                    raise ConfigError(f"{self.name}, line {number}: {reason}") from None
                if found is not None:
                    yield found

    def _row(self, given: Mapping[str, Any]) -> Found | None:
        kind = given.get("kind")
        if kind == HEADER:
            if int(given.get("format") or 0) > FORMAT:
                raise ValueError(f"the file has format {given['format']}, this version reads {FORMAT}: upgrade it")
            if given.get("redacted"):
                raise ValueError("the file was written with --redact, so its words are not what was said: export again")
            # Another export begins: what it says again is the same, not said once more.
            self._said.clear()
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
        is_turn = role is not None and kind in (None, "turn")
        # Somebody may be trusted less on the word of a file, and nobody more.
        untrusted = str(given.get("untrusted")).lower() in ("true", "yes", "1")
        item = self._turn(given, role, words, untrusted) if is_turn and role else self._memory(given, words, untrusted)
        if not item.content:
            self.left_out[NO_WORDS] += 1
            return None
        return Found(item, self._time(given["hidden"]) if given.get("hidden") else None)

    def _memory(self, given: Mapping[str, Any], words: Any, untrusted: bool) -> AddMemory:
        target = given.get("target") or "memory"
        if target not in TARGETS:
            raise ValueError(f"unknown target {str(target)[:40]!r}")
        content = capped(text_of(words), self.settings.memory_max_chars)
        at = self._said_at(given) or self.undated
        return memory(self._theme(given), target, content, at, _metadata(given), untrusted)

    def _turn(self, given: Mapping[str, Any], role: Role, words: Any, untrusted: bool) -> AddTurn:
        theme = self._theme(given)
        session = session_name(given.get("session") or given.get("session_id")) or UNNAMED_SESSION
        turn = turn_of(role, words, self.settings.turn_max_chars)
        content = "" if turn is None else turn.content
        key = (theme, session, turn_digest(role, content))
        self._said[key] += 1
        ordinal = int(given.get("ordinal") or self._said[key])
        if not 0 < ordinal <= MOST_ORDINAL:
            raise ValueError("an ordinal is not the number of an occurrence")
        at = self._said_at(given)
        return AddTurn(
            theme, session, role, content, ordinal, moment_of(at or self.undated), is_live=False,
            parent_session_id=session_name(given.get("parent")), metadata=_metadata(given), origin=RowOrigin.IMPORT,
            untrusted=untrusted, is_dated=at is not None,
        )  # fmt: skip

    def _theme(self, given: Mapping[str, Any]) -> str:
        named = given.get("theme")
        if named is not None and not isinstance(named, str):
            raise TypeError("theme is not a text")
        return theme_name(text_of(named)) if named else self.theme

    def _said_at(self, given: Mapping[str, Any]) -> datetime | None:
        """The first of the times that says when; None where none does."""
        # Some write the first moment of all times for none.
        said = (given.get(name) for name in TIMES)
        value = next((each for each in said if each and not str(each).startswith("0001-01-01")), None)
        return None if value is None else self._time(value)

    def _time(self, value: Any) -> datetime:
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
        return min(at.astimezone(UTC), self.now)


def _objects(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    pages = (document[name] for name in PAGES if "kind" not in document and isinstance(document.get(name), list))
    page = next(pages, None)
    yield from (document,) if page is None else (each for each in page if isinstance(each, dict))


def _role(given: Mapping[str, Any]) -> Role | None:
    told = given.get("role")
    if told is None and given.get("peer_id"):
        return "assistant" if str(given["peer_id"]).casefold() in ASSISTANTS else "user"
    if told is not None and told not in get_args(Role):
        raise ValueError(f"unknown role {str(told)[:40]!r}")
    return cast("Role | None", told)


def _metadata(given: Mapping[str, Any]) -> dict[str, Any]:
    more = given.get("metadata") or {}
    if not isinstance(more, dict):
        raise TypeError("metadata is not an object")
    kept = {name: given[name] for name in KEPT if given.get(name) and "kind" not in given}
    return metadata_of({**more, **kept})


def documents(stream: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line's number and object; a line may be a list of them, and the whole file one document."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES):
        number += 1
        if not line.strip():
            continue
        document = _parsed(line)
        if document is None and number == 1:
            # A document that was written for people has many lines.
            document = _parsed(line + stream.read(MAX_LINE_BYTES))
        found = document if isinstance(document, list) else [document]
        if not all(isinstance(each, dict) for each in found):
            raise ConfigError(f"{name}, line {number}: this is neither a JSON object nor a list of them")
        yield from ((number, each) for each in found)


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
