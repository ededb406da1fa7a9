"""`why-not`: the stage of recall that loses a memory or turn."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from datetime import UTC, datetime

from hermes_memory_pgvector.cli import options, times
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.text.names import theme_name

NAME = "why-not"
HELP = "say why recall does not find a memory or turn"
GROUP = "see"
EXAMPLES = (
    ("why-not m12 --query 'when do we ship'", "as the recall tools would search"),
    ("why-not t345 --query 'when do we ship' --prefetch --session 20261116_0712", "as prefetch would for that session"),
)

BUDGET_SECONDS = 60.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("id", metavar="ID", help="m12 for a memory, t34 for a turn")
    parser.add_argument("--query", metavar="QUERY", required=True, help="the question that should have found it")
    parser.add_argument(
        "--theme", metavar="THEME", help="theme to search as (default: the theme of a chat in this home)"
    )
    parser.add_argument("--scope", choices=("current", "all"), default="current", help="current (default) or all")
    parser.add_argument("--limit", type=options.positive, metavar="N", help="hits asked for (default: 5)")
    parser.add_argument(
        "--prefetch", action="store_true", help="judge as prefetch does, which offers less than it finds"
    )
    parser.add_argument("--session", metavar="SESSION", help="a session that may have been shown it before")
    times.add_range(parser)


def run(args: argparse.Namespace) -> int:
    """Search again, and name the stage."""
    from hermes_memory_pgvector.care import ids
    from hermes_memory_pgvector.care.why_not import why_not
    from hermes_memory_pgvector.store.search import similarity
    from hermes_memory_pgvector.store.search_statement import MEANING_WEIGHT, SEARCHED
    from hermes_memory_pgvector.values import Hit, Kind, Question, Scope

    home = options.home_of(args)
    with parts.open_engine(home) as engine:
        settings = engine.settings
        deadline = Deadline.after(BUDGET_SECONDS)
        question = Question(
            text=args.query.strip()[: settings.query_max_chars],
            kind=Kind.MEMORY,
            theme=theme_name(args.theme or "") or parts.profile_theme(home, settings),
            scope=Scope(args.scope),
            limit=args.limit or (settings.prefetch_limit if args.prefetch else 5),
            since=args.since,
            until=args.until,
            is_ambient=args.prefetch,
            trust=settings.prefetch_trust if args.prefetch and settings.prefetch_trust != "all" else None,
            now=datetime.now(UTC),
        )

        if args.prefetch:
            question = replace(question, min_similarity=engine.similarity_floor())

        def search(asked: Question) -> list[Hit]:
            return list(engine.search([asked], deadline)[0].hits)

        with engine.pool.transaction(deadline) as connection:

            def nearness(asked: Question, theme: str, row_id: int) -> tuple[float | None, float]:
                ready = engine.recall.prepare(asked, deadline)
                needed = float(SEARCHED[asked.kind].bar) / MEANING_WEIGHT
                if ready.meaning is None:
                    return None, needed
                near = similarity(connection, ready.meaning, asked.kind, theme, row_id)
                return (None if near is None else ready.meaning.model.deviations(near)), needed

            found = why_not(connection, search, nearness, ids.parse_row(args.id), question, session_id=args.session)
    if args.json:
        terminal.as_json(asdict(found))
        return 0
    terminal.bullet("ok" if found.stage == "found" else "note", f"{found.name}: {found.stage}")
    terminal.wrap([found.sentence], 3)
    return 0
