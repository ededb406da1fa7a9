"""What is worth keeping, and in which form: pure functions from whatever the host hands us to clean text.

Nothing here raises, whatever its arguments: an unusable value is None or empty, with a reason where a caller needs one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from hermes_memory_pgvector.values import TARGETS, Role, Target

_ACKNOWLEDGEMENTS = (
    "ok", "okay", "thanks", "thank you", "thx", "ty", "np", "yes", "no", "sure", "got it", "done", "cool", "nice",
    "great", "continue", "please", "exit", "cancel", "stop", "quit", "yeah", "yep", "nope", "alright",
)  # fmt: skip
_FIRST_LETTERS = frozenset(word[0] for word in _ACKNOWLEDGEMENTS)
_ACKNOWLEDGEMENT = re.compile(rf"(?:{'|'.join(re.escape(word) for word in _ACKNOWLEDGEMENTS)})[\s.!?]*", re.IGNORECASE)
_FENCE = re.compile(r"<(/?)memory-context>", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACED = "\ufffd"
_HOST_NOTES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_MERGED_NOTE = "COMPACTION SUMMARY BELOW]"
DELIMITER = "\n§\n"
METADATA_MAX_CHARS = 4096
METADATA_MAX_DEPTH = 6
METADATA_MAX_VALUES = 256
TEXT_MAX_DEPTH = 8
TEXT_MAX_PARTS = 1000
TEXT_MAX_CHARS = 1_000_000
"""No text is read further than this, whoever sends it: an agent waits while it is read."""
MEMORY_CHARS = 256 * 1024
"""The same for what the memory tool writes; what lies beyond is found in the file."""
BESIDE_CHARS = 100_000
"""How much may stand in a message beside what was said, so that what was said is still found."""
ID_MAX_CHARS = 256
MAX_INTEGER = 2**63 - 1
DIGEST_CHARS = 32


class Said(NamedTuple):
    """One turn of a transcript, as clean text."""

    role: Role
    content: str

    @property
    def digest(self) -> str:
        """Hex of what identifies these words within a session; the same function exists in SQL."""
        return turn_digest(self.role, self.content)


def turn_digest(role: str, content: str) -> str:
    """Hex digest of a role's words."""
    return hashlib.sha256(f"{role}:{content}".encode()).hexdigest()[:DIGEST_CHARS]


class Line(NamedTuple):
    """One message of a transcript by user or assistant."""

    said: Said | None
    """None when nothing was said, or the host wrote it itself."""
    is_user: bool
    """Whether an undo can cut the transcript here."""
    is_note: bool
    """Whether it is the host's summary of turns that are no longer in the transcript."""
    is_reloaded: bool
    """Whether an earlier process has reported it."""


def clean(value: str) -> str:
    """Text that Postgres and JSON can hold: no NUL, no lone surrogates."""
    if "\x00" in value:
        value = value.replace("\x00", "")
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        if _REPLACED in value:
            return _SURROGATE.sub(_REPLACED, value)
        # The same, many times faster: the three bytes of a surrogate are three that cannot be read.
        value = value.encode("utf-8", "surrogatepass").decode("utf-8", "replace").replace(3 * _REPLACED, _REPLACED)
    return value


def text_of(value: Any, most: int = TEXT_MAX_CHARS, depth: int = TEXT_MAX_DEPTH) -> str:
    """The text within a message's content: a string, a list of parts, or nothing; stripped, no more than `most`."""
    if isinstance(value, str):
        return clean(value[:most]).strip()
    if isinstance(value, bytes | bytearray):
        return clean(bytes(value[: 4 * most]).decode("utf-8", "replace")[:most]).strip()
    if depth <= 0:
        return ""
    if isinstance(value, Mapping):
        inner = value.get("text", value.get("content"))
        return text_of(inner, most, depth - 1) if isinstance(inner, str | list | tuple) else ""
    if isinstance(value, list | tuple):
        parts = []
        for part in value[:TEXT_MAX_PARTS]:
            text = text_of(part, most, depth - 1) if isinstance(part, str | Mapping) else ""
            if text:
                parts.append(text)
                most -= len(text) + 1
            if most <= 0:
                break
        return "\n".join(parts)
    return ""


def id_of(value: Any) -> str:
    """A session's id in the form it is stored: one that is too long to be indexed is told apart by its digest."""
    text = text_of(value)
    if len(text) <= ID_MAX_CHARS:
        return text
    return f"{text[: ID_MAX_CHARS - 33]}~{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def capped(content: str, max_chars: int, *, unread: int = 0) -> str:
    """The content, cut at the cap with a marker that says how much is missing; `unread` characters were cut before."""
    if len(content) <= max_chars and not unread:
        return content
    marker = f"\n[cut: the first {max_chars} of {len(content) + unread} characters are stored]"
    return content[: max_chars - len(marker)] + marker


def entries_of(text: str, max_chars: int) -> list[str]:
    """The distinct entries of MEMORY.md or USER.md, or of what the memory tool writes there, as they are stored.

    Read back from the file, any line ending is a plain one and a delimiter within an entry makes it two.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    parts = (capped(clean(part).strip(), max_chars) for part in lines.split(DELIMITER))
    return list(dict.fromkeys(part for part in parts if part))


def spoken(role: Role, value: Any, max_chars: int) -> Said | None:
    """One side of a turn in the form it is stored, or None when nothing was said."""
    most = 2 * max_chars + BESIDE_CHARS
    content = text_of(value, most)
    unread = max(0, len(value) - most) if isinstance(value, str) else 0
    if "<" in content:
        content = _without_recalled(content, was_cut=unread > 0)
    content = capped(content, max_chars, unread=unread)
    return Said(role, content) if content else None


def _without_recalled(content: str, *, was_cut: bool) -> str:
    """The content without what the host injected of our own: storing that would feed memory with itself.

    One look at each fence, however many there are. A fence that is never closed is taken for text, unless its end may
    be in the part that was not read.
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


def transcript(
    messages: Any,
    max_chars: int,
    *,
    clean_user: Callable[[str], str | None] | None = None,
    not_before: float = 0.0,
) -> list[Said]:
    """What user and assistant said, in order: without tool traffic, drafts before tool calls, or the host's own notes.

    `clean_user` recovers what a user typed from what the host made of it. Messages that carry a time before
    `not_before` were reloaded from an earlier process, which has reported them.
    """
    read = lines(messages, max_chars, clean_user=clean_user, not_before=not_before)
    return [line.said for line in read if line.said is not None and not line.is_reloaded]


def lines(
    messages: Any,
    max_chars: int,
    *,
    clean_user: Callable[[str], str | None] | None = None,
    not_before: float = 0.0,
) -> list[Line]:
    """A transcript's messages by user and assistant, in order, without tool traffic and drafts before tool calls."""
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
        is_note = _is_host_text(message)
        said = None
        if not is_note:
            content = message.get("content")
            if is_user and clean_user is not None:
                typed = text_of(content, 2 * max_chars + BESIDE_CHARS)
                instruction = clean_user(typed) if typed else ""
                content = content if instruction == typed else instruction
            said = spoken(role, content, max_chars)
        said_at = message.get("timestamp")
        is_reloaded = isinstance(said_at, int | float) and not isinstance(said_at, bool) and said_at < not_before
        found.append(Line(said, is_user, is_note, is_reloaded))
    return found


def _is_host_text(message: Mapping[Any, Any]) -> bool:
    """Whether the host wrote this message itself: the summary of a compressed past."""
    if message.get("_compressed_summary"):
        return True
    content = message.get("content")
    return isinstance(content, str) and (content.startswith(_HOST_NOTES) or _MERGED_NOTE in content)


def with_ordinals(turns: Iterable[Said]) -> list[tuple[Said, int]]:
    """Each turn with the count of its words so far: the n-th saying of the same words by the same role."""
    counts: dict[Said, int] = {}
    numbered = []
    for turn in turns:
        counts[turn] = counts.get(turn, 0) + 1
        numbered.append((turn, counts[turn]))
    return numbered


def target_of(value: Any) -> Target | None:
    """A known target, or None."""
    word = value[:ID_MAX_CHARS].strip().lower() if isinstance(value, str) else ""
    return word if word in TARGETS else None


def metadata_of(value: Any) -> dict[str, Any]:
    """Metadata that is sure to be JSON of bounded size; what is not is shown as text or dropped."""
    if not isinstance(value, Mapping):
        return {}
    if len(value) <= 16 and all(_is_plain(key) and _is_plain(item) for key, item in value.items()):
        # What the host gives: a few short words, which need no further look.
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
    """How many values may still be looked at: what is nested is many, however small each part of it looks."""

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
