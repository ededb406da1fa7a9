"""`recall`: search the memory as an agent would."""

from __future__ import annotations

import argparse
import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import entries, explaining, options, reach, times
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError, UsageError
from hermes_memory_pgvector.setup import parts, terminal
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.engine.engine import Engine
    from hermes_memory_pgvector.values import Hit, Neighbour, Question

NAME = "recall"
HELP = "search memories and past turns, as an agent would"
GROUP = "see"
EXAMPLES = (
    ("recall 'what did we decide about the launch'", "search as an agent of this home would"),
    ("recall SKF-6203 --scope all --kind memories", "an exact token, in every theme"),
    ("recall 'when do we ship' --explain", "why these hits, in this order"),
    ("recall 'deploy' --since 2026-11-01 --context", "recent turns, with those around them"),
)

BUDGET_SECONDS = 30.0
SCOPES = ("current", "all", "session")
"""Scopes that are not the name of a theme."""
MOST_OTHERS = 5
KINDS: dict[str, tuple[str, ...]] = {
    "memories": ("recall_memory",),
    "turns": ("recall_conversation",),
    "both": ("recall_memory", "recall_conversation"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("query", metavar="QUERY", help="a question, keywords, or an exact token")
    parser.add_argument(
        "--theme", metavar="THEME", help="theme to search as (default: the theme of a chat in this home)"
    )
    parser.add_argument("--kind", choices=tuple(KINDS), default="both", help="what to search (default: both)")
    parser.add_argument("--scope", default="current", help="current (default), all, or the name of a theme")
    parser.add_argument("--limit", type=options.positive, default=5, metavar="N", help="hits of each kind, at most 20")
    times.add_range(parser)
    parser.add_argument(
        "--context", action="store_true", help="show the turn before and the turn after each turn found"
    )
    parser.add_argument("--explain", action="store_true", help="show how each hit was found, and what took the time")


def run(args: argparse.Namespace) -> int:
    """Search and show the hits."""
    from hermes_memory_pgvector.recall.tools import BadArgument, nothing_found

    home = options.home_of(args)
    with parts.open_engine(home) as engine:
        theme = theme_name(args.theme or "") or parts.profile_theme(home, engine.settings)
        try:
            questions = _questions(args, theme, engine.settings)
        except BadArgument as problem:
            raise UsageError(problem.sentence) from None
        deadline = Deadline.after(BUDGET_SECONDS)
        _warm_up(engine)
        if args.explain:
            return _explain(args, engine, theme, questions, deadline)
        started = time.perf_counter()
        answers = engine.search(questions, deadline)
        took = time.perf_counter() - started
        others: list[str] = []
        if not any(answer.hits for answer in answers):
            _require_theme(engine, args)
            if not args.theme and args.scope == "current" and all(answer.searched == 0 for answer in answers):
                others = _other_themes(engine, theme)
    hits = [hit for answer in answers for hit in answer.hits]
    degraded = next((answer.degraded for answer in answers if answer.degraded), None)
    if args.json:
        rows = [_row(hit) for hit in hits]
        document = {"theme": theme, "results": rows, "count": len(rows), "degraded": degraded}
        if not rows:
            document["note"] = nothing_found(list(zip(questions, answers, strict=True)))
        terminal.as_json(document)
        return 0
    terms = entries.terms_of(args.query)
    for hit in hits:
        entries.tell_hit(hit, terms)
    if hits:
        where = f"theme {theme}" if args.scope == "current" else f"scope {args.scope}"
        terminal.say(f"{terminal.count(len(hits), 'hit')} in {where}, {terminal.seconds(took)}")
    else:
        terminal.wrap([nothing_found(list(zip(questions, answers, strict=True)))], 2, first=[""])
    if others:
        terminal.bullet(
            "note",
            f"themes that hold something: {', '.join(others)}",
            "ask one with --theme NAME, all with --scope all",
        )
    if degraded:
        terminal.bullet("warning", degraded)
    return 0


def _warm_up(engine: Engine) -> None:
    """Load the model and connect, as an agent's process has done long ago: the time shown is that of the search."""
    deadline = Deadline.after(BUDGET_SECONDS)
    # Whatever is wrong, the search itself says so.
    with contextlib.suppress(MemoryPluginError):
        engine.embedder.info(deadline)
        engine.embedder.embed_query("ready", deadline)
    with contextlib.suppress(MemoryPluginError), engine.pool.connection(deadline):
        pass


def _require_theme(engine: Engine, args: argparse.Namespace) -> None:
    """Say that a theme which was named does not exist, instead of that it holds nothing."""
    named = args.scope if args.scope not in SCOPES else args.theme
    if named:
        reach.require_theme(engine.pool, theme_name(named))


def _other_themes(engine: Engine, theme: str) -> list[str]:
    """The largest shared themes, for whoever has not named one and has asked one that holds nothing."""
    from hermes_memory_pgvector.care import themes
    from hermes_memory_pgvector.values import is_private_theme

    with engine.pool.transaction(Deadline.after(BUDGET_SECONDS)) as connection:
        found = [each.theme for each in themes.overview(connection) if not is_private_theme(each.theme)]
    return [] if theme in found else [terminal.one_line(each) for each in found[:MOST_OTHERS]]


def _explain(
    args: argparse.Namespace, engine: Engine, theme: str, questions: list[Question], deadline: Deadline
) -> int:
    """Search and show how each hit was found."""
    from hermes_memory_pgvector.recall.explain import explain

    found = [explain(engine.recall, engine.pool, question, deadline) for question in questions]
    if not any(explanation.hits for explanation in found):
        _require_theme(engine, args)
    if args.json:
        rows = [
            {**_row(each.hit), "explain": explaining.hit_document(each)}
            for explanation in found
            for each in explanation.hits
        ]
        document = {"theme": theme, "results": rows, "count": len(rows)}
        terminal.as_json({**document, "explain": [explaining.document(each) for each in found]})
        return 0
    terms = entries.terms_of(args.query)
    for explanation in found:
        explaining.tell(explanation, tuple(terms))
    return 0


def _questions(args: argparse.Namespace, theme: str, settings: Settings) -> list[Question]:
    from hermes_memory_pgvector.recall.tools import parse
    from hermes_memory_pgvector.values import Session

    given = {name: getattr(args, name) for name in ("query", "scope", "limit", "context")}
    session = Session(theme, "", theme)
    questions = [
        parse(
            tool,
            given,
            session,
            scope_default="current",
            max_query_chars=settings.query_max_chars,
            cross_theme=settings.cross_theme,
        )
        for tool in KINDS[args.kind]
    ]
    return [replace(each, since=args.since, until=args.until) for each in questions]


def _row(hit: Hit) -> dict[str, Any]:
    own = {"target": hit.target} if hit.target else {"session_id": hit.session_id, "role": hit.role}
    return {
        "kind": hit.kind.value,
        "id": hit.id,
        "agent_identity": hit.theme,
        **own,
        "ts": hit.ts,
        "origin": hit.origin,
        "trust": hit.trust,
        "score": None if hit.score is None else round(hit.score, 4),
        "content": hit.content,
        **{side: _beside(turn) for side, turn in (("before", hit.before), ("after", hit.after)) if turn is not None},
    }


def _beside(turn: Neighbour) -> dict[str, Any]:
    return {"role": turn.role, "ts": turn.ts, "content": turn.content}
