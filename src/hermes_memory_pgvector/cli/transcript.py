"""`transcript`: what was said in a session, readable."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import entries, options, reach, times
from hermes_memory_pgvector.setup import terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.care.see import Transcript
    from hermes_memory_pgvector.store.browse import Said

NAME = "transcript"
HELP = "show what was said in a session"
GROUP = "see"
EXAMPLES = (("transcript 20261116_0712_ab12 --theme marketing", "a session that `sessions` lists"),)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("session", metavar="SESSION", help="the session's id")
    parser.add_argument("--theme", metavar="THEME", help="the theme, where sessions of several have this id")
    parser.add_argument("--limit", type=options.positive, default=200, metavar="N", help="turns a page (default: 200)")
    parser.add_argument("--page", metavar="PLACE", help="the next page, as the one before names it")


def run(args: argparse.Namespace) -> int:
    """Show the session."""
    from hermes_memory_pgvector.care import see

    with reach.reading(args, theme=args.theme) as connection:
        found = see.transcript(connection, args.session, theme=args.theme, page=args.page, limit=args.limit)
    if args.json:
        terminal.as_json(_document(found))
        return 0
    _tell(found)
    return 0


def _document(found: Transcript) -> dict[str, Any]:
    return {
        "agent_identity": found.theme,
        "session_id": found.session_id,
        "turns": [
            {
                "id": turn.id, "ts": turn.at, "role": turn.role, "content": turn.content, "muted_at": turn.muted_at,
                "origin": turn.origin, "trust": turn.trust,
                "delegated_to": turn.metadata.get("delegated_to"),
            }
            for turn in found.turns
        ],
        "delegated_to": [asdict(edge) for edge in found.children],
        "delegated_from": [asdict(edge) for edge in found.parents],
        "next": found.following,
    }  # fmt: skip


def _tell(found: Transcript) -> None:
    terminal.say(f"Session {terminal.one_line(found.session_id)} of theme {terminal.one_line(found.theme)}")
    before = next((turn.parent_session_id for turn in found.turns if turn.parent_session_id), None)
    if before:
        terminal.say(f"  continues session {terminal.one_line(before)}")
    for edge in found.parents:
        terminal.say(f"  worked for session {terminal.one_line(edge.session_id)}")
    day: str | None = None
    for at, item in _in_order(found):
        if f"{at:%Y-%m-%d}" != day:
            day = f"{at:%Y-%m-%d}"
            terminal.say()
            terminal.say(f"{day} (UTC)")
        if isinstance(item, str):
            terminal.say(f"  {at:%H:%M:%S}  → subagent: {terminal.command('transcript', terminal.one_line(item))}")
        else:
            _tell_turn(at, item)
    if found.following:
        terminal.say(f"  next page: --page {found.following}")


def _in_order(found: Transcript) -> list[tuple[datetime, Said | str]]:
    """Turns and the subagents that finished between them; without a turn on this page, all subagents."""
    last = found.turns[-1].at if found.following else None
    items: list[tuple[datetime, Said | str]] = [(turn.at, turn) for turn in found.turns]
    items += [(edge.at, edge.child_session_id) for edge in found.children if last is None or edge.at <= last]
    return [(times.utc(at), item) for at, item in sorted(items, key=lambda pair: pair[0])]


def _tell_turn(at: datetime, turn: Said) -> None:
    mark = " (muted)" if turn.muted_at else ""
    role = f"{turn.role}{mark}"
    terminal.say(
        f"  {at:%H:%M:%S}  ", terminal.styled(f"{role:<18}", "strong"), terminal.styled(f"t{turn.id}", "faint")
    )
    entries.tell_text(turn.content, indent=6)
