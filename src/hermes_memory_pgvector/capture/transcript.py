"""The host's transcripts and messages as turns: what is worth keeping, and in which form. Pure.

Nothing here raises, whatever its arguments: an unusable value becomes None or empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from hermes_memory_pgvector.text import masks
from hermes_memory_pgvector.text.clean import capped, clean, text_of, turn_digest
from hermes_memory_pgvector.text.names import MAX_NAME_CHARS
from hermes_memory_pgvector.values import TARGETS, Role, Target

_ACKNOWLEDGEMENTS = (
    "ok", "okay", "thanks", "thank you", "thx", "ty", "np", "yes", "no", "sure", "got it", "done", "cool", "nice",
    "great", "continue", "please", "exit", "cancel", "stop", "quit", "yeah", "yep", "nope", "alright",
)  # fmt: skip
_FIRST_LETTERS = frozenset(word[0] for word in _ACKNOWLEDGEMENTS)
_ACKNOWLEDGEMENT = re.compile(rf"(?:{'|'.join(re.escape(word) for word in _ACKNOWLEDGEMENTS)})[\s.!?]*", re.IGNORECASE)
_FENCE = re.compile(r"<(/?)memory-context>", re.IGNORECASE)
_HOST_NOTES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_MERGED_NOTE = "COMPACTION SUMMARY BELOW]"
METADATA_MAX_CHARS = 4096
METADATA_MAX_DEPTH = 6
METADATA_MAX_VALUES = 256
MEMORY_CHARS = 256 * 1024
"""How much of a memory tool's write is read while the agent waits; the mirror finds the rest in the file."""
BESIDE_CHARS = 100_000
"""How much injected text a message may hold before the part that was said."""
MAX_INTEGER = 2**63 - 1
CleanUser = Callable[[str], str | None]
"""Recovers what a user typed from what the host made of it."""


class Turn(NamedTuple):
    """One side of an exchange: who said it, and the words as they are stored."""

    role: Role
    content: str

    @property
    def digest(self) -> str:
        """Hex digest that identifies these words within a session."""
        return turn_digest(self.role, self.content)

    @property
    def outline(self) -> str:
        """Hex digest of the words without what a host may hide in them."""
        return turn_digest(self.role, masks.outline(self.content))


class TranscriptLine(NamedTuple):
    """One message of a transcript by user or assistant."""

    turn: Turn | None
    """None when the message is empty, or the host wrote it itself."""
    is_loaded: bool
    """Whether it comes from the host's store: only there messages carry their time."""
    is_reloaded: bool
    """Whether an earlier process has reported it."""


def turn_of(role: Role, value: Any, max_chars: int) -> Turn | None:
    """A message's content in the form it is stored, or None when nothing is left of it."""
    most = 2 * max_chars + BESIDE_CHARS
    content = text_of(value, most)
    unread = max(0, len(value) - most) if isinstance(value, str) else 0
    if "<" in content:
        content = _without_recalled(content, was_cut=unread > 0)
    content = capped(content, max_chars, unread=unread)
    return Turn(role, content) if content else None


def _without_recalled(content: str, *, was_cut: bool) -> str:
    """The content without the recalled memories that the host injected: storing those would feed memory with itself.

    Each fence is looked at once, however many there are. A fence that is never closed counts as text, unless its end
    may be in the part that was not read.
    """
    kept: list[str] = []
    end = 0
    opened: int | None = None
    for fence in _FENCE.finditer(content):
        closes = bool(fence[1])
        if opened is None and not closes:
            opened = fence.start()
        elif opened is not None and closes:
            kept.append(content[end:opened])
            end, opened = fence.end(), None
    kept.append(content[end : opened if was_cut and opened is not None else len(content)])
    return "".join(kept).strip() if len(kept) > 1 or was_cut else content


def is_noise(content: str, min_chars: int) -> bool:
    """Whether a turn is too short or a bare acknowledgement."""
    stripped = content.strip()
    if len(stripped) < min_chars:
        return True
    return stripped[:1].lower() in _FIRST_LETTERS and _ACKNOWLEDGEMENT.fullmatch(stripped) is not None


def lines(
    messages: Any,
    max_chars: int,
    *,
    clean_user: CleanUser | None = None,
    not_before: float = 0.0,
) -> list[TranscriptLine]:
    """A transcript's messages by user and assistant in order, without tool traffic and drafts before tool calls.

    Messages with a time before `not_before` were reloaded: an earlier process has reported them.
    """
    if not isinstance(messages, Iterable) or isinstance(messages, str | bytes | Mapping):
        return []
    found = []
    for message in list(messages):
        if not isinstance(message, Mapping):
            continue
        role = message.get("role")
        if role not in ("user", "assistant") or message.get("tool_calls"):
            continue
        is_user = role == "user"
        turn = None
        if not is_host_text(message):
            content = message.get("content")
            if is_user and clean_user is not None:
                typed = text_of(content, 2 * max_chars + BESIDE_CHARS)
                instruction = clean_user(typed) if typed else ""
                content = content if instruction == typed else instruction
            turn = turn_of(role, content, max_chars)
        sent_at = message.get("timestamp")
        sent_at = sent_at if isinstance(sent_at, int | float) and not isinstance(sent_at, bool) else None
        is_reloaded = sent_at is not None and sent_at < not_before
        found.append(TranscriptLine(turn, is_loaded=sent_at is not None, is_reloaded=is_reloaded))
    return found


def is_host_text(message: Mapping[Any, Any]) -> bool:
    """Whether the host wrote this message itself: the summary of a compressed past."""
    if message.get("_compressed_summary"):
        return True
    content = message.get("content")
    return isinstance(content, str) and (content.startswith(_HOST_NOTES) or _MERGED_NOTE in content)


def target_of(value: Any) -> Target | None:
    """A known target, or None."""
    word = value[:MAX_NAME_CHARS].strip().lower() if isinstance(value, str) else ""
    return word if word in TARGETS else None


def metadata_of(value: Any) -> dict[str, Any]:
    """Metadata as JSON of bounded size; other values become text or are dropped."""
    if not isinstance(value, Mapping):
        return {}
    if len(value) <= 16 and all(_is_plain(key) and _is_plain(item) for key, item in value.items()):
        # The usual case: a few short words that need no further look.
        return dict(value)
    budget = _Budget(METADATA_MAX_VALUES)
    kept = {_name(key): _jsonable(item, METADATA_MAX_DEPTH, budget) for key, item in islice(value.items(), 64)}
    if len(json.dumps(kept, ensure_ascii=False)) <= METADATA_MAX_CHARS:
        return kept
    small = {key: item for key, item in kept.items() if isinstance(item, str | int | float | bool) or item is None}
    small = {key: item[:256] if isinstance(item, str) else item for key, item in small.items()}
    while len(json.dumps(small, ensure_ascii=False)) > METADATA_MAX_CHARS:
        small.popitem()
    return small


def _is_plain(value: Any) -> bool:
    return type(value) is str and len(value) <= 100 and value.isascii() and value.isprintable()


@dataclass(slots=True)
class _Budget:
    """How many values may still be looked at: nested values add up, however small each level looks."""

    left: int

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


def _name(key: Any) -> str:
    if isinstance(key, str):
        return clean(key[:128])
    is_short = key is None or isinstance(key, bool | float) or (isinstance(key, int) and abs(key) <= MAX_INTEGER)
    return str(key) if is_short else type(key).__name__


def _jsonable(value: Any, depth: int, budget: _Budget) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -MAX_INTEGER <= value <= MAX_INTEGER else "int"
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, str):
        return clean(value[:METADATA_MAX_CHARS])
    if depth <= 0:
        return None
    if isinstance(value, Mapping):
        items = ((key, item) for key, item in islice(value.items(), 64) if budget.spend())
        return {_name(key): _jsonable(item, depth - 1, budget) for key, item in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_jsonable(item, depth - 1, budget) for item in islice(value, 64) if budget.spend()]
    return type(value).__name__
