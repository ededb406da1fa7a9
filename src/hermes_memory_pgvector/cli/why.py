"""`why`: what recall gave a session, and what it held back."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import entries, explaining, options, reach, rows, times
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.explain.recall import KINDS
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_memory_pgvector.care.why import Why

NAME = "why"
HELP = "show what recall gave a session lately, or how a question is answered"
GROUP = "see"
EXAMPLES = (
    ("why", "the session that asked last"),
    ("why --query 'when do we ship'", "which rows answer that, and why in this order"),
    ("why --session 20261116_0712_ab12 --caller prefetch", "what was injected there"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--query", metavar="QUERY", help="how this question is answered now: each hit with its reasons")
    parser.add_argument("--kind", choices=tuple(KINDS), default="both", help="of --query: what to search")
    parser.add_argument("--session", metavar="SESSION", help="the session (default: the one that asked last)")
    parser.add_argument("--theme", metavar="THEME", help="its theme (default: the theme of a chat in this home)")
    parser.add_argument("--caller", choices=("prefetch", "tool"), help="only what was injected, or only what was asked")
    parser.add_argument("--limit", type=options.positive, default=5, metavar="N", help="answers (default: 5)")


def run(args: argparse.Namespace) -> int:
    """Show the last answers, or how a question is answered."""
    from hermes_memory_pgvector.care import why

    home = options.home_of(args)
    if args.query is not None:
        return _explain(args, home)
    settings = load(home).settings
    theme = args.theme or parts.profile_theme(home, settings)
    with reach.reading(args) as connection:
        found = why.why(connection, theme, session_id=args.session, caller=args.caller, limit=args.limit)
    if args.json:
        terminal.as_json(_document(found))
        return 0
    if not found.answers:
        hint = "" if settings.recall_log != "off" else "; recall_log is off"
        terminal.say(f"Recall was not asked there, as far as the log goes back{hint}.")
        return 0
    _tell(found)
    return 0


def _explain(args: argparse.Namespace, home: Path) -> int:
    """Search and show how each hit was found."""
    from hermes_memory_pgvector.recall.explain import explain
    from hermes_memory_pgvector.recall.tools import BadArgument, parse
    from hermes_memory_pgvector.values import Session

    with parts.open_engine(home) as engine:
        theme = theme_name(args.theme or "") or parts.profile_theme(home, engine.settings)
        most = engine.settings.query_max_chars
        asked = {"query": args.query, "limit": args.limit}
        session = Session(theme, "", theme)
        try:
            questions = [
                parse(tool, asked, session, scope_default="current", max_query_chars=most) for tool in KINDS[args.kind]
            ]
        except BadArgument as problem:
            raise UsageError(problem.sentence) from None
        deadline = Deadline.after(reach.READ_SECONDS)
        found = [explain(engine.recall, engine.pool, question, deadline) for question in questions]
        if args.theme and not any(explanation.hits for explanation in found):
            reach.require_theme(engine.pool, theme)
    if args.json:
        hits = [explaining.hit_document(each) for explanation in found for each in explanation.hits]
        told = [explaining.document(each) for each in found]
        terminal.as_json({"agent_identity": theme, "results": hits, "count": len(hits), "explain": told})
        return 0
    for explanation in found:
        explaining.tell(explanation, tuple(entries.terms_of(args.query)))
    return 0


def _document(found: Why) -> dict[str, Any]:
    return {
        "agent_identity": found.theme,
        "session_id": found.session_id,
        "answers": [
            {
                "number": answer.id, "at": answer.at, "caller": answer.caller, "kind": answer.kind.value,
                "scope": answer.scope, "query": answer.query, "degraded": answer.degraded,
                "milliseconds": answer.milliseconds,
                "hits": [
                    {
                        "kind": hit.kind.value, "id": hit.id, "agent_identity": hit.theme, "score": hit.score,
                        "rank": hit.rank, "outcome": hit.outcome, "content": found.contents.get((hit.kind, hit.id)),
                    }
                    for hit in answer.hits
                ],
            }
            for answer in found.answers
        ],
    }  # fmt: skip


def _tell(found: Why) -> None:
    from hermes_memory_pgvector.care.ids import name_of

    terminal.say(f"Session {terminal.one_line(found.session_id or '–')} of theme {terminal.one_line(found.theme)}")
    for answer in found.answers:
        asked = f": {rows.line(answer.query, 80)}" if answer.query else ""
        what = "memories" if answer.kind.value == "memory" else "turns"
        terminal.say()
        terminal.say(f"{times.shown(answer.at)}  {answer.caller}, {what}, {answer.milliseconds:.0f} ms{asked}")
        if answer.degraded:
            terminal.bullet("warning", answer.degraded)
        if not answer.hits:
            terminal.say("  nothing was near enough")
            continue
        terminal.table(
            ("id", "score", "rank", "outcome", "text"),
            [
                (
                    name_of(hit.kind, hit.id),
                    "words" if hit.score is None else f"{hit.score:.2f}",
                    f"{hit.rank:.2f}",
                    hit.outcome,
                    rows.line(found.contents.get((hit.kind, hit.id), "(no longer stored)"), 100),
                )
                for hit in answer.hits
            ],
            right=(1, 2),
        )
