"""`backfill`: embed rows that have no vector of the current model, now."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options, reach
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import EmbeddingUnavailable, SchemaError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.runtime.engine import Engine
    from hermes_memory_pgvector.store.vectors import Key
    from hermes_memory_pgvector.values import EmbeddingModel

NAME = "backfill"
HELP = "embed the rows that have no vector yet"
GROUP = "run"
EXAMPLES = (
    ("backfill", "embed the rows that have no vector yet"),
    ("backfill --theme workshop --limit 1000", "some of them"),
)

PAGE_ROWS = 500
DATABASE_SECONDS = 60.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only rows of this theme")
    parser.add_argument("--limit", type=options.positive, metavar="N", help="at most about this many rows")


def run(args: argparse.Namespace) -> int:
    """Queue the rows without a vector and embed them; exit code 3 when rows are left."""
    theme = None if args.theme is None else options.named("--theme", theme_name(args.theme))
    started = time.perf_counter()
    with parts.open_engine(options.home_of(args)) as engine:
        model = _usable_model(engine)
        queued, more = _enqueue(engine, model, theme, args.limit)
        _embed(engine, queued, quiet=args.json)
        remaining = _remaining(engine, theme)
        embedded = engine.backlog.status().embedded
        if theme is not None and not embedded and not remaining:
            reach.require_theme(engine.pool, theme)
    left = remaining > 0 or more
    if args.json:
        document = {"asked": queued, "embedded": embedded, "pending": remaining, "more": more, "model": model.name}
        terminal.as_json(document)
    else:
        took = terminal.seconds(time.perf_counter() - started)
        if embedded or left:
            terminal.bullet("ok", f"{terminal.count(embedded, 'row')} embedded with {model.name} in {took}")
        else:
            terminal.bullet("ok", f"nothing to do: every row that should have a vector of {model.name} has one")
        if left:
            waiting = f"{terminal.number(remaining)} waiting" if remaining else "more than the limit"
            terminal.bullet(
                "note", f"some rows still have no vector: {waiting}", "run it again: hermes-pgvector backfill"
            )
    return 3 if left else 0


def _usable_model(engine: Engine) -> EmbeddingModel:
    """The database's model; SchemaError unless it is the one we embed with."""
    from hermes_memory_pgvector.store import schema
    from hermes_memory_pgvector.store.current_model import current_model
    from hermes_memory_pgvector.writer.embed_pending import mismatch

    with engine.pool.connection(Deadline.after(DATABASE_SECONDS)) as connection:
        schema.verify(connection)
        model = current_model(connection)
    info = engine.embedder.info(Deadline.after(engine.settings.batch_embed_seconds))
    problem = mismatch(model, info)
    if problem or model is None:
        raise SchemaError(problem)
    return model


def _enqueue(engine: Engine, model: EmbeddingModel, theme: str | None, limit: int | None) -> tuple[int, bool]:
    """Queue rows without a vector for embedding; also returns whether the limit left some out."""
    from hermes_memory_pgvector.store import vectors

    asked = 0
    for page in _missing(engine, model, theme):
        wanted = page if limit is None else page[: limit - asked]
        with engine.pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            vectors.enqueue(connection, wanted)
        asked += len(wanted)
        if len(wanted) < len(page):
            return asked, True
    return asked, False


def _missing(engine: Engine, model: EmbeddingModel, theme: str | None) -> Iterator[list[Key]]:
    from hermes_memory_pgvector.store import overview
    from hermes_memory_pgvector.writer.chunks import SUBSTANTIVE_CHARS

    before: int | None = None
    while True:
        with engine.pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            memories = overview.missing_memories(connection, model, theme, before, PAGE_ROWS)
        if not memories:
            break
        yield memories
        before = memories[-1][2]
    policy = engine.settings.conversation_embed_policy
    shortest = SUBSTANTIVE_CHARS if policy == "substantive_only" else 0
    before = None
    while policy != "none":
        with engine.pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
            turns = overview.missing_turns(connection, model, theme, before, PAGE_ROWS)
        if not turns:
            break
        wanted = [key for key, length in turns if length >= shortest]
        if wanted:
            yield wanted
        before = turns[-1][0][2]


def _embed(engine: Engine, asked: int, *, quiet: bool) -> None:
    """Embed queued rows until none is due; other processes may be helping."""
    backlog = engine.backlog
    with terminal.progress("embedding", total=asked, unit="row", quiet=quiet) as bar:
        while backlog.is_due():
            backlog.run()
            status = backlog.status()
            if status.breaker.state != "closed":
                raise EmbeddingUnavailable(f"{status.breaker.reason}; the rows keep waiting, run backfill again later")
            if status.problem:
                raise SchemaError(status.problem)
            bar.update(min(status.embedded, asked))


def _remaining(engine: Engine, theme: str | None) -> int:
    from hermes_memory_pgvector.store import overview

    with engine.pool.transaction(Deadline.after(DATABASE_SECONDS)) as connection:
        return overview.count_pending(connection, theme)
