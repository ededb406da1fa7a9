"""retract_memory: an agent hides what is wrong in its own theme, at once, until the operator takes that back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.recall.tools import OUT_OF_REACH, BadArgument, error
from hermes_memory_pgvector.store import audit_log, gate, hidden
from hermes_memory_pgvector.store.hidden import MAX_REASON, Key
from hermes_memory_pgvector.terminal.parse import record_name
from hermes_memory_pgvector.text.clean import text_of
from hermes_memory_pgvector.text.secrets import Masker
from hermes_memory_pgvector.values import Kind, Session

RETRACT_TOOL: Final = "retract_memory"
FILES: Final = {"memory": "MEMORY.md", "user": "USER.md"}
KINDS: Final = {"m": Kind.MEMORY, "t": Kind.TURN}
MOST_ACTOR: Final = 200
Changing = Callable[[], AbstractContextManager[Connection]]
"""Lends a transaction."""


def schema() -> dict[str, Any]:
    """The tool as the host offers it to the model."""
    return {
        "name": RETRACT_TOOL,
        "description": "Hide a recalled memory or turn of your own theme that is wrong or out of date: it is not "
        "recalled again. The operator can bring it back.",
        "parameters": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The ref of a result, such as m12 or t34."},
                "reason": {"type": "string", "description": "What is wrong with it, in a sentence."},
            },
            "required": ["id", "reason"],
        },
    }


def answer(arguments: Any, session: Session, changing: Changing, masker: Masker, home_id: str) -> str:
    """The JSON answer to one call."""
    given: Mapping[str, Any] = arguments if isinstance(arguments, Mapping) else {}
    try:
        name, kind, number = _named(given.get("id"), session)
        reason = _reason(given.get("reason"), masker)
        with changing() as connection:
            note = _retract(connection, session, name, Key(kind, session.theme, number), reason, home_id)
    except BadArgument as problem:
        return error(str(problem))
    except MemoryPluginError:
        return error(OUT_OF_REACH)
    if note is None:
        return error(f"There is no {name} in your own theme; of other themes nothing can be retracted.")
    return json.dumps({"retracted": name, **({"note": note} if note else {})}, ensure_ascii=False)


def _named(value: Any, session: Session) -> tuple[str, Kind, int]:
    if not session.may_write:
        raise BadArgument("This session does not change the memory.")
    found = record_name(value[:100]) if isinstance(value, str) else None
    if found is None or found.letter not in KINDS:
        raise BadArgument("Give the ref of a result as its id, such as m12 or t34.")
    return str(found), KINDS[found.letter], found.number


def _reason(value: Any, masker: Masker) -> str:
    reason = masker.mask(text_of(value, MAX_REASON)).text
    if not reason:
        raise BadArgument("Say what is wrong with it, in a sentence.")
    return reason


def _retract(connection: Connection, session: Session, name: str, key: Key, reason: str, home_id: str) -> str | None:
    """Hide the row and those of the same words; None where the theme has no such row."""
    gate.enter(connection)
    found = hidden.same_words(connection, key)
    if not found.keys:
        return None
    if not found.is_hidden:
        actor = f"agent in session {session.session_id}"[:MOST_ACTOR]
        rule = hidden.add(connection, "retracted", actor, reason=reason, home_id=home_id)
        gone = hidden.hide(connection, rule, found.keys)
        counts = {"memories" if key.kind is Kind.MEMORY else "turns": len(gone)}
        theme = found.keys[0].theme
        audit_log.insert(
            connection, actor=actor, home_id=home_id, action="retract", theme=theme, subject=name, counts=counts
        )
    if not found.files:
        return ""
    told = " and ".join(FILES[target] for target in found.files)
    return f"It also stands in {told} and so in your prompt, until you remove it there with the memory tool."
