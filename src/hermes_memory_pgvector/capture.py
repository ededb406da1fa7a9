"""What is worth keeping, and in which form: pure functions from whatever the host hands us to clean text.

Nothing here raises, whatever its arguments: an unusable value is None or empty, with a reason where a caller needs one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from hermes_memory_pgvector.model import TARGETS, Role, Target

_ACKNOWLEDGEMENTS = (
    "ok", "okay", "thanks", "thank you", "thx", "ty", "np", "yes", "no", "sure", "got it", "done", "cool", "nice",
    "great", "continue", "please", "exit", "cancel", "stop", "quit", "yeah", "yep", "nope", "alright",
)  # fmt: skip
_FIRST_LETTERS = frozenset(word[0] for word in _ACKNOWLEDGEMENTS)
_ACKNOWLEDGEMENT = re.compile(rf"(?:{'|'.join(re.escape(word) for word in _ACKNOWLEDGEMENTS)})[\s.!?]*", re.IGNORECASE)
_INJECTED = re.compile(r"<memory-context>.*?</memory-context>", re.IGNORECASE | re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_HOST_NOTES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_MERGED_NOTE = "COMPACTION SUMMARY BELOW]"
DELIMITER = "\n§\n"
METADATA_MAX_CHARS = 4096
METADATA_MAX_DEPTH = 6
TEXT_MAX_DEPTH = 8
ID_MAX_CHARS = 256
MAX_INTEGER = 2**63 - 1
DIGEST_CHARS = 32
REMEMBERED_CHARS = 8192
_sha256 = hashlib.sha256


class Said(NamedTuple):
    """One turn of a transcript, as clean text; a tuple, because whole transcripts are compared with each turn."""

    role: Role
    content: str

    @property
    def digest(self) -> str:
        """Hex of what identifies these words within a session; the same function exists in SQL."""
        return turn_digest(self.role, self.content)


def turn_digest(role: str, content: str) -> str:
    """Hex digest of a role's words."""
    return _sha256(f"{role}:{content}".encode()).hexdigest()[:DIGEST_CHARS]


def clean(value: str) -> str:
    """Text that Postgres and JSON can hold: no NUL, no lone surrogates."""
    if "\x00" in value:
        value = value.replace("\x00", "")
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        value = _SURROGATE.sub("\ufffd", value)
    return value


def text_of(value: Any, depth: int = TEXT_MAX_DEPTH) -> str:
    """The text within a message's content: a string, a list of parts, or nothing; stripped."""
    if isinstance(value, str):
        return clean(value).strip()
    if isinstance(value, bytes | bytearray):
        return clean(bytes(value).decode("utf-8", "replace")).strip()
    if depth <= 0:
        return ""
    if isinstance(value, Mapping):
        inner = value.get("text", value.get("content"))
        return text_of(inner, depth - 1) if isinstance(inner, str | list | tuple) else ""
    if isinstance(value, list | tuple):
        parts = [text_of(part, depth - 1) for part in value[:1000] if isinstance(part, str | Mapping)]
        return "\n".join(part for part in parts if part)
    return ""


def id_of(value: Any) -> str:
    """A session's id in the form it is stored: one that is too long to be indexed is told apart by its digest."""
    text = text_of(value)
    if len(text) <= ID_MAX_CHARS:
        return text
    return f"{text[: ID_MAX_CHARS - 33]}~{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def capped(content: str, max_chars: int) -> str:
    """The content, cut at the cap with a marker that says how much is missing."""
    if len(content) <= max_chars:
        return content
    marker = f"\n[cut: the first {max_chars} of {len(content)} characters are stored]"
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
    # Nearly all that is said is a plain string, and an agent waits: it spares itself the calls that look closer.
    is_plain = type(value) is str and value.isascii() and "\x00" not in value
    content = value.strip() if is_plain else text_of(value)
    if "<memory-context" in content:
        # What was recalled is not what was said; storing it would feed memory with itself.
        content = _INJECTED.sub("", content).strip()
    if len(content) > max_chars:
        content = capped(content, max_chars)
    return tuple.__new__(Said, (role, content)) if content else None


def _spoken_before(role: Role, value: Any, max_chars: int) -> Said | None:
    """The same for a message of a transcript, which is seen again with every turn that follows it."""
    if isinstance(value, str) and len(value) <= REMEMBERED_CHARS:
        return _remembered(role, value, max_chars)
    return spoken(role, value, max_chars)


@lru_cache(maxsize=4096)
def _remembered(role: Role, value: str, max_chars: int) -> Said | None:
    return spoken(role, value, max_chars)


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
    if not isinstance(messages, Iterable) or isinstance(messages, str | bytes | Mapping):
        return []
    found = []
    for message in list(messages):
        if not isinstance(message, Mapping) or _is_host_text(message):
            continue
        role = message.get("role")
        said_at = message.get("timestamp")
        if role not in ("user", "assistant") or message.get("tool_calls"):
            continue
        if isinstance(said_at, int | float) and not isinstance(said_at, bool) and said_at < not_before:
            continue
        content = message.get("content")
        if role == "user" and clean_user is not None:
            typed = text_of(content)
            content = clean_user(typed) if typed else ""
        said = _spoken_before(role, content, max_chars)
        if said is not None:
            found.append(said)
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
    word = value.strip().lower() if isinstance(value, str) else ""
    return word if word in TARGETS else None


def metadata_of(value: Any) -> dict[str, Any]:
    """Metadata that is sure to be JSON of bounded size; what is not is shown as text or dropped."""
    if not isinstance(value, Mapping):
        return {}
    if len(value) <= 16 and all(_is_plain(key) and _is_plain(item) for key, item in value.items()):
        # What the host gives: a few short words, which need no further look.
        return dict(value)
    kept = {_name(key): _jsonable(item, METADATA_MAX_DEPTH) for key, item in list(value.items())[:64]}
    if len(json.dumps(kept, ensure_ascii=False)) <= METADATA_MAX_CHARS:
        return kept
    small = {key: item for key, item in kept.items() if isinstance(item, str | int | float | bool) or item is None}
    small = {key: item[:256] if isinstance(item, str) else item for key, item in small.items()}
    while len(json.dumps(small, ensure_ascii=False)) > METADATA_MAX_CHARS:
        small.popitem()
    return small


def _is_plain(value: Any) -> bool:
    return type(value) is str and len(value) <= 100 and value.isascii() and value.isprintable()


def _name(key: Any) -> str:
    if isinstance(key, str):
        return clean(key)[:128]
    is_short = key is None or isinstance(key, bool | float) or (isinstance(key, int) and abs(key) <= MAX_INTEGER)
    return str(key) if is_short else type(key).__name__


def _jsonable(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -MAX_INTEGER <= value <= MAX_INTEGER else "int"
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, str):
        return clean(value)
    if depth <= 0:
        return None
    if isinstance(value, Mapping):
        return {_name(key): _jsonable(item, depth - 1) for key, item in list(value.items())[:64]}
    if isinstance(value, list | tuple | set | frozenset):
        return [_jsonable(item, depth - 1) for item in list(value)[:64]]
    return type(value).__name__
