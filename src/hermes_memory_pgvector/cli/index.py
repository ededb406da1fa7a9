"""`index`: manage the vector indexes as the tables' owner; they pay off only for very many vectors."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.setup import database, terminal
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.schema.index_progress import Progress
    from hermes_memory_pgvector.schema.vector_indexes import Done, Index, Survey, ThemeVectors, VectorIndexes

NAME = "index"
HELP = "list, create and drop the indexes for very large themes and scope 'all' (needs the owner's login)"
GROUP = "run"
EXAMPLES = (
    ("index", "which vector indexes there are, and whether one would pay off"),
    ("index create --theme workshop", "build the index of a very large theme"),
)

ACTIONS = ("list", "create", "drop", "rebuild")
WORDS = {
    "create": "an index would be faster, but slightly less exact",
    "rebuild": "unfinished: create it again",
    "drop": "no longer worth having: drop it",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        default="list",
        help="what to do (default: list); rebuild: compact the indexes that recall reads, after many deletions",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--all", action="store_true", dest="everywhere", help="the index over all themes, for scope 'all'"
    )
    what.add_argument("--theme", metavar="THEME", help="the index of one theme")
    parser.add_argument("--force", action="store_true", help="even for a theme too small to benefit")
    parser.add_argument(
        "--memory", type=options.positive, metavar="MB", help="memory a build may use (default: as needed, up to 1024)"
    )
    options.add_admin_dsn(parser)


def run(args: argparse.Namespace) -> int:
    """List, create or drop."""
    problem = _misuse(args)
    if problem:
        raise UsageError(problem)
    from hermes_memory_pgvector.schema.vector_indexes import LARGE, VectorIndexes

    home = options.home_of(args)
    dsn = database.admin_dsn(home, load(home).settings, args.admin_dsn, may_create=False)
    remedy = f"hermes-pgvector index {args.action} --admin-dsn OWNER_DSN"
    with database.explaining_denial(dsn, "create or drop indexes", remedy), VectorIndexes.open(dsn) as indexes:
        if args.action == "list":
            return _list(indexes.survey(large=LARGE), json=args.json)
        act = {"create": _create, "drop": _drop, "rebuild": _rebuild}[args.action]
        return act(args, indexes)


def advice_all(survey: Survey) -> str | None:
    """What to do about the index over all themes."""
    from hermes_memory_pgvector.schema.vector_indexes import LARGE

    if any(not index.is_valid and not index.is_building for index in survey.shared):
        return "rebuild"
    return "create" if not survey.shared and survey.public_vectors >= LARGE else None


def advice_theme(one: ThemeVectors, large: int) -> str | None:
    """What to do about one theme's index."""
    if one.index is None:
        return "create" if one.vectors >= large else None
    if not one.index.is_valid:
        return None if one.index.is_building else "rebuild"
    return "drop" if one.vectors < large // 2 else None


def _misuse(args: argparse.Namespace) -> str:
    if args.action in ("list", "rebuild"):
        only = [name for name, given in (("--all", args.everywhere), ("--theme", args.theme)) if given]
        return f"{only[0]} goes with create or drop" if only else ""
    if not args.everywhere and not (args.theme or "").strip():
        return f"{args.action} which index? give --all or --theme THEME"
    if args.force and (args.everywhere or args.action == "drop"):
        return "--force goes with create --theme"
    return ""


def _list(survey: Survey, *, json: bool) -> int:
    from hermes_memory_pgvector.schema.vector_indexes import LARGE, MOST_THEMES

    if json:
        terminal.as_json(
            {
                "model": {"id": survey.model.id, "name": survey.model.name, "dim": survey.model.dim},
                "large": LARGE,
                "most_themes": MOST_THEMES,
                "all": {
                    "vectors": survey.public_vectors,
                    "indexes": [_plain(index) for index in survey.shared],
                    "advice": advice_all(survey),
                },
                "themes": [
                    {
                        "theme": one.theme,
                        "vectors": one.vectors,
                        "index": _plain(one.index) if one.index else None,
                        "advice": advice_theme(one, LARGE),
                    }
                    for one in survey.themes
                ],
            }
        )
        return 0
    terminal.say(f"Model {survey.model.name}, {survey.model.dim} dimensions")
    rows = [
        (
            "(all themes)",
            terminal.number(survey.public_vectors),
            index.name,
            _state(index),
            terminal.size(index.size_bytes),
        )
        for index in survey.shared
    ] or [("(all themes)", terminal.number(survey.public_vectors), "–", "none", "–")]
    rows += [
        (
            one.theme,
            terminal.number(one.vectors),
            one.index.name if one.index else "–",
            _state(one.index) if one.index else "none",
            terminal.size(one.index.size_bytes) if one.index else "–",
        )
        for one in survey.themes
    ]
    terminal.table(("theme", "vectors", "index", "state", "size"), rows, right=(1, 4))
    _say_advice(survey, LARGE)
    return 0


def _say_advice(survey: Survey, large: int) -> None:
    everywhere = advice_all(survey)
    if everywhere:
        text = f"all themes: {WORDS[everywhere]}" + (", if agents use scope 'all'" if everywhere == "create" else "")
        terminal.bullet("note", text, "hermes-pgvector index create --all")
    for one in survey.themes:
        advice = advice_theme(one, large)
        if advice:
            action = "drop" if advice == "drop" else "create"
            again = terminal.command("index", action, *options.again("--theme", one.theme))
            terminal.bullet("note", f"{terminal.one_line(one.theme)}: {WORDS[advice]}", again)
    if not everywhere and not any(advice_theme(one, large) for one in survey.themes):
        terminal.bullet("ok", f"nothing to do: an index pays off above {terminal.number(large)} vectors")


def _create(args: argparse.Namespace, indexes: VectorIndexes) -> int:
    with _showing_progress(quiet=args.json) as watch:
        if args.everywhere:
            done = indexes.create_all(memory_mb=args.memory, watch=watch)
        else:
            theme = theme_name(args.theme)
            done = [indexes.create_theme(theme, force=args.force, memory_mb=args.memory, watch=watch)]
    if args.json:
        terminal.as_json({"created": [_outcome(each) for each in done]})
        return 0
    for each in done:
        if each.replaced:
            terminal.bullet("note", f"{each.name}: dropped the unfinished index of an interrupted build")
        if each.is_new:
            took = terminal.seconds(each.seconds)
            terminal.bullet("ok", f"{each.name}: created in {took}, {terminal.size(each.size_bytes)}")
        else:
            terminal.bullet("ok", f"{each.name}: already there, {terminal.size(each.size_bytes)}")
    return 0


def _drop(args: argparse.Namespace, indexes: VectorIndexes) -> int:
    done = indexes.drop_all() if args.everywhere else [indexes.drop_theme(theme_name(args.theme))]
    if args.json:
        terminal.as_json({"dropped": [_outcome(each) for each in done]})
        return 0
    for each in done:
        terminal.bullet("ok", f"{each.name}: dropped, {terminal.size(each.size_bytes)} freed")
    if not done:
        terminal.bullet("ok", "no index to drop")
    return 0


def _rebuild(args: argparse.Namespace, indexes: VectorIndexes) -> int:
    with _showing_progress(quiet=args.json) as watch:
        done = indexes.rebuild_keys(watch=watch)
    if args.json:
        terminal.as_json({"rebuilt": [_outcome(each) for each in done]})
        return 0
    for each in done:
        terminal.bullet(
            "ok", f"{each.name}: rebuilt in {terminal.seconds(each.seconds)}, now {terminal.size(each.size_bytes)}"
        )
    return 0


@contextmanager
def _showing_progress(*, quiet: bool) -> Iterator[Any]:
    """Show the progress of a build: a bar on a terminal, else a line per phase."""
    with terminal.progress("index", unit="%", total=100, quiet=quiet) as bar:

        def watch(progress: Progress) -> None:
            bar.phase(f"{progress.name}, {progress.phase}")
            if progress.share is not None:
                bar.update(round(100 * progress.share))

        yield watch


def _state(index: Index) -> str:
    return "being built" if index.is_building else "in use" if index.is_valid else "unfinished"


def _plain(index: Index) -> dict[str, Any]:
    return {"name": index.name, "table": index.table, "state": _state(index), "bytes": index.size_bytes}


def _outcome(done: Done) -> dict[str, Any]:
    return {
        "name": done.name,
        "is_new": done.is_new,
        "seconds": round(done.seconds, 3),
        "bytes": done.size_bytes,
        "replaced": done.replaced,
    }
