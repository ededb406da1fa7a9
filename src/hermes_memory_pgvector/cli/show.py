"""`show`: one memory or turn with all that is known of it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import entries, options, reach, rows, times
from hermes_memory_pgvector.setup import terminal
from hermes_memory_pgvector.values import MCP_HOLDER

if TYPE_CHECKING:
    from hermes_memory_pgvector.care.see import Shown

NAME = "show"
HELP = "show one memory or turn: text, origin, vector, history"
GROUP = "see"
EXAMPLES = (("show m12", "memory 12, as `list` names it"), ("show t345 --theme marketing", "turn 345"))


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("id", metavar="ID", help="m12 for a memory, t34 for a turn")
    parser.add_argument("--theme", metavar="THEME", help="look into this theme only")


def run(args: argparse.Namespace) -> int:
    """Show it."""
    from hermes_memory_pgvector.care import ids, see

    with reach.reading(args) as connection:
        shown = see.show(connection, ids.parse_row(args.id), args.theme)
    if args.json:
        terminal.as_json(_document(shown))
        return 0
    _tell(shown)
    return 0


def _document(shown: Shown) -> dict[str, Any]:
    from hermes_memory_pgvector.store.browse import StoredMemory

    row = shown.row
    vector = {"model": shown.model, "vectors": shown.vectors, "state": _state(shown)}
    common = {
        "id": row.id, "agent_identity": row.theme, "content": row.content, "muted_at": row.muted_at,
        "origin": row.origin, "trust": row.trust, "home_id": row.home_id, "quarantines": list(shown.quarantines),
    }  # fmt: skip
    if isinstance(row, StoredMemory):
        return {
            "kind": "memory", **common, "target": row.target, "created_at": row.created_at,
            "updated_at": row.updated_at, "homes": dict(row.homes), "metadata": dict(row.metadata), "vector": vector,
            "history": [rows.event_document(event) for event in shown.history],
        }  # fmt: skip
    return {
        "kind": "turn", **common, "session_id": row.session_id, "parent_session_id": row.parent_session_id,
        "role": row.role, "ts": row.at, "metadata": dict(row.metadata), "vector": vector,
    }  # fmt: skip


def _tell(shown: Shown) -> None:
    from hermes_memory_pgvector.store.browse import StoredMemory

    row = shown.row
    facts: list[tuple[str, Any]]
    if isinstance(row, StoredMemory):
        held = ", ".join(
            "other agents (mcp)" if home == MCP_HOLDER else f"home {home[:8]} (by {origin})"
            for home, origin in sorted(row.homes.items())
        )
        facts = [
            ("memory", shown.name),
            ("theme", f"{row.theme}, {'MEMORY.md' if row.target == 'memory' else 'USER.md'}"),
            ("written", f"{times.shown(row.created_at)} UTC"),
            ("changed", f"{times.shown(row.updated_at)} UTC"),
            ("held by", held or "no home: it stands in no MEMORY.md"),
        ]
    else:
        facts = [
            ("turn", shown.name),
            ("theme", row.theme),
            ("session", row.session_id),
            ("said", f"{times.shown(row.at)} UTC, by {row.role}"),
        ]
        if row.parent_session_id:
            facts.append(("continues", row.parent_session_id))
    facts.append(("origin", origin_told(row.origin, row.trust, row.metadata.get("tools"), row.home_id)))
    facts.append(("vector", _state(shown)))
    if shown.quarantines:
        batches = ", ".join(map(str, shown.quarantines))
        facts.append(("quarantine", f"batch {batches}; `quarantine --undo {shown.quarantines[0]}` brings it back"))
    if row.muted_at is not None:
        facts.append(("muted", f"since {times.shown(row.muted_at)} UTC; `unmute {shown.name}` brings it back"))
    if row.metadata:
        facts.append(("metadata", ", ".join(f"{name}: {value}" for name, value in row.metadata.items())))
    terminal.pairs(facts)
    terminal.say()
    entries.tell_text(row.content, indent=4)
    if shown.history:
        terminal.say()
        rows.tell_events(shown.history)


def origin_told(origin: str, trust: str | None, tools: Any, home_id: str | None) -> str:
    """Where a row comes from, in words."""
    words = {"exposed": "written after a stranger's text", "untrusted": "from a turn that read a stranger's text"}
    read = f" ({', '.join(map(str, tools))})" if isinstance(tools, list) and tools else ""
    told = [origin.replace("_", " "), words.get(trust or "", trust or "not judged") + read]
    return ", ".join([*told, f"home {home_id[:8]}"] if home_id else told)


def _state(shown: Shown) -> str:
    if shown.row.muted_at is not None:
        return "none while muted"
    if shown.vectors:
        return f"{shown.model}, {terminal.count(shown.vectors, 'piece')}"
    if shown.model is None:
        return "none: there is no model yet"
    if shown.row.pending_attempts is not None:
        return f"waiting for {shown.model}, tried {terminal.count(shown.row.pending_attempts, 'time')}"
    return f"none of {shown.model}; `backfill` makes it"
