"""Writes of the memory tool and finished subagents, as write items. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from hermes_memory_pgvector.capture.transcript import MEMORY_CHARS, metadata_of, target_of, turn_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.text.clean import capped, entries_of, plain_lines, text_of
from hermes_memory_pgvector.text.names import MAX_NAME_CHARS, session_name
from hermes_memory_pgvector.values import (
    AddMemory,
    AddTurn,
    FileSays,
    MemoryOperation,
    Moment,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
    Session,
    Target,
)


class MemoryFile(Protocol):
    """What this process knows of MEMORY.md and USER.md."""

    def has_mask(self, text: str) -> bool:
        """Whether something in a text is hidden."""

    def told(self, target: Target, entries: Iterable[str]) -> None:
        """A hook has told of these entries in clear words."""

    def take(self, target: Target, new: Sequence[str], old: Sequence[str]) -> FileSays | None:
        """What a hook has written; None when the file cannot be read."""


ACTIONS = ("add", "replace", "remove")
MEMORY_ENTRIES = 2000
"""If one write has more entries, the mirror picks up the rest from the file."""
_NOT_KEPT = frozenset({"old_text", "previous_content"})
_REVIEW = "background_review"


def memory_operations(
    action: Any,
    target: Any,
    content: Any,
    metadata: Any,
    *,
    session: Session,
    when: Moment,
    home_id: str,
    max_chars: int,
    file: MemoryFile,
) -> list[MemoryOperation]:
    """The operations behind a write of the memory tool; none for an unknown action or target, or an empty write.

    There are several when the content contains the file's own delimiter: the host reads it back as several entries. The
    file says what was written where the host does not, or hides some of it.
    """
    kind = target_of(target)
    verb = action[:MAX_NAME_CHARS].strip().lower() if isinstance(action, str) else ""
    if kind is None or verb not in ACTIONS:
        return []
    given: Mapping[Any, Any] = metadata if isinstance(metadata, Mapping) else {}
    most = max(MEMORY_CHARS, max_chars)
    texts = entries_of(text_of(content, most), max_chars)[:MEMORY_ENTRIES]
    # They name an entry as it is stored.
    old = plain_lines(text_of(given.get("old_text"), most))
    exact = capped(plain_lines(text_of(given.get("previous_content"), most)), max_chars) or None
    if verb == "remove":
        # Hosts that give no old text put the entry itself into the content.
        old, texts = old or (texts[0] if texts else ""), []
    if (verb != "remove" and not texts) or any(map(file.has_mask, (*texts, old, exact or ""))):
        says = file.take(kind, texts, [text for text in (exact, old) if text])
        if says is not None:
            # Words that hide something select no row; the file shows which entry is gone.
            texts = says.entries if verb != "remove" else []
            exact = says.previous or (None if file.has_mask(exact or "") else exact)
            old = "" if says.previous or file.has_mask(old) else old
    elif verb != "remove":
        file.told(kind, texts)
    theme = session.theme
    kept = metadata_of({key: value for key, value in given.items() if key not in _NOT_KEPT})
    common: dict[str, Any] = {
        "when": when,
        "home_id": home_id,
        "metadata": {**_told_by(session), **kept},
        "written_by": RowOrigin.BACKGROUND_REVIEW if kept.get("write_origin") == _REVIEW else RowOrigin.MEMORY_TOOL,
    }
    if verb == "remove":
        return [RemoveMemory(theme, kind, old, previous=exact, **common)] if old or exact else []
    made: list[MemoryOperation] = [AddMemory(theme, kind, text, **common) for text in texts]
    if verb == "replace" and texts:
        made[0] = ReplaceMemory(theme, kind, texts[0], old, previous=exact, **common)
    return made


def _told_by(session: Session) -> dict[str, Any]:
    """What the session tells where the host says nothing with the write itself."""
    told: dict[str, Any] = {"session_id": session.session_id, "platform": session.platform}
    if session.author:
        told["author"] = {"id": session.author}
    return {key: value for key, value in told.items() if value}


def delegation(
    task: Any,
    result: Any,
    child_session_id: Any,
    session: Session,
    when: Moment,
    settings: Settings,
    home_id: str = "",
) -> list[AddTurn]:
    """A subagent has finished: a turn that can be recalled, and names the session that did the work."""
    child = session_name(child_session_id)
    most = settings.turn_max_chars
    task_text, result_text = (capped(text_of(side, 2 * most), most) for side in (task, result))
    turn = turn_of("tool", f"Delegated: {task_text}\nResult: {result_text}", most)
    if not settings.sync_turns or turn is None or not (task_text or result_text):
        return []
    marks = {"delegated_to": child, **({"platform": session.platform} if session.platform else {})}
    return [
        AddTurn(
            session.theme, session.session_id, turn.role, turn.content, 0, when, True, metadata=marks,
            home_id=home_id, origin=RowOrigin.DELEGATION,
        )
    ]  # fmt: skip
