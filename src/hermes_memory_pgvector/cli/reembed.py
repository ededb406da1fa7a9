"""`reembed`: change the embedding model without an outage."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.errors import CareError, UsageError
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.ops.setup.checks.model import SILENT_SECONDS, share
from hermes_memory_pgvector.setup import reembedding
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.setup.reembedding import Aim, Outcome, State
    from hermes_memory_pgvector.store.reembedding import Change, StoredModel
    from hermes_memory_pgvector.values import EmbeddingModel
    from hermes_memory_pgvector.writer.reembed import Progress

NAME = "reembed"
HELP = "change the embedding model without an outage (needs the owner's login)"
GROUP = "run"
EXAMPLES = (
    ("reembed --url http://127.0.0.1:11434 --model bge-m3", "make new vectors beside the old, then switch everybody"),
    ("reembed", "continue after an interruption"),
    ("reembed --status", "how far it has got"),
    ("reembed --drop-old --execute", "drop the vectors of models that are no longer used"),
)

GO_ON = "hermes-pgvector reembed"
DROP = "hermes-pgvector reembed --drop-old"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--url", metavar="URL", help="endpoint of the new model (default: embed_url)")
    parser.add_argument("--model", metavar="MODEL", help="the new model (default: what embed_next or embed_model says)")
    parser.add_argument("--dim", metavar="N", help="dimension of its vectors, where the endpoint cannot be asked")
    parser.add_argument("--protocol", metavar="NAME", help="auto, openai, ollama, or local for the local model")
    parser.add_argument("--key-env", metavar="VAR", help="environment variable that holds the endpoint's key")
    parser.add_argument("--rate", type=_rate, default=0.0, metavar="N", help="embed at most this many rows per second")
    parser.add_argument("--no-switch", action="store_true", help="make the vectors, leave the switch to a later run")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--status", action="store_true", help="show how far it has got, and which models have vectors")
    what.add_argument("--cancel", action="store_true", help="keep the model in use; the vectors made so far stay")
    what.add_argument("--drop-old", action="store_true", help="drop the vectors of models that are not in use")
    parser.add_argument("--execute", action="store_true", help="with --drop-old: really do it")
    options.add_admin_dsn(parser)


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of rows above 0, not {text!r}")
    return value


def run(args: argparse.Namespace) -> int:
    """Change the model; exit code 3 while the switch is still to be made."""
    home = options.home_of(args)
    settings = load(home).settings
    names = ("url", "model", "dim", "protocol")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.key_env is not None:
        given["api_key_env"] = args.key_env
    problem = _misuse(args, given)
    if problem:
        raise UsageError(problem)
    if args.status:
        return _status(reembedding.read(home, settings), json=args.json)
    if args.drop_old:
        return _drop_old(home, settings, args)
    if args.cancel:
        return _cancel(home, settings, args)
    return _change(home, settings, args, given)


def _misuse(args: argparse.Namespace, given: dict[str, str]) -> str:
    if (args.status or args.cancel or args.drop_old) and (given or args.rate or args.no_switch):
        return "--status, --cancel and --drop-old take nothing that describes a model"
    if args.execute and not args.drop_old:
        return "--execute goes with --drop-old"
    return ""


def _change(home: Path, settings: Settings, args: argparse.Namespace, given: dict[str, str]) -> int:
    state = reembedding.read(home, settings)
    aimed = reembedding.aim(home, settings, given)
    if state.current is not None and _is(state.current, aimed):
        return _already(home, settings, state, aimed, json=args.json)
    _check_change(state.change, aimed)
    admin = database.admin_dsn(home, settings, args.admin_dsn, may_create=False)
    remedy = f"{GO_ON} --admin-dsn OWNER_DSN"
    if not args.json:
        _say_beginning(state, aimed)
    with database.explaining_denial(admin, "change the schema", remedy):
        told, problems = reembedding.announce(home, settings, aimed)
        if not args.json:
            _say_homes("knows the new embedder and uses it from the switch on", told, problems)
        with terminal.progress("reembed", unit="row", quiet=args.json) as bar:

            def watch(phase: str, progress: Progress | None) -> None:
                bar.phase(phase)
                if progress is not None:
                    bar.update(progress.done, progress.total)

            try:
                done = reembedding.run(
                    home, settings, admin, aimed, rate=args.rate, switches=not args.no_switch, watch=watch
                )
            except KeyboardInterrupt:
                terminal.complain(f"interrupted; recall goes on with the model in use. To go on: {GO_ON}")
                return 130
    changed, failed = reembedding.adopt(home, settings, aimed.described) if done.switched else ([], [])
    if args.json:
        terminal.as_json(_document(done, [*told, *changed], [*problems, *failed]))
    else:
        _say_end(settings, done)
        _say_homes("embeds with it from now on", changed, failed)
    return 0 if done.switched else 3


def _is(model: EmbeddingModel, aimed: Aim) -> bool:
    return (model.name, model.dim) == (aimed.info.name, aimed.info.dim)


def _check_change(change: Change | None, aimed: Aim) -> None:
    """Whoever resumes a change has to mean the same model."""
    if change is None or _is(change.model, aimed):
        return
    raise CareError(
        f"a change to {_named(change.model)} is under way, and this would be one to {aimed.info.name} "
        f"({aimed.info.dim}); go on with: {GO_ON} --url … --model {change.model.name}, or end it with: {GO_ON} --cancel"
    )


def _already(home: Path, settings: Settings, state: State, aimed: Aim, *, json: bool) -> int:
    """The database has the model: only the homes may still have to learn it."""
    changed, problems = ([], []) if aimed.is_configured else reembedding.adopt(home, settings, aimed.described)
    if json:
        document = {"model": _model(state.current), "switched": False, "embedded": 0}
        terminal.as_json({**document, "homes": _paths(changed), "problems": problems})
    else:
        terminal.bullet("ok", f"the database's vectors are of {aimed.info.name}, {aimed.info.dim} dimensions already")
        _say_homes("embeds with it from now on", changed, problems)
    return 0


def _say_beginning(state: State, aimed: Aim) -> None:
    current, change = state.current, state.change
    if current is None:
        return
    if change is None:
        text = f"from {_named(current)} to {aimed.info.name}, {aimed.info.dim} dimensions"
    else:
        text = f"going on with the change to {_named(change.model)}: {share(change)}"
    terminal.bullet("note", f"{text}; recall uses {current.name} until the switch")
    if aimed.is_configured:
        terminal.bullet(
            "warning",
            f"this home's settings name {aimed.info.name} already: until the switch it finds rows by keywords only",
            f"to avoid that, set the former model again and give the new one as options: {GO_ON} --url … --model …",
        )


def _say_homes(what: str, homes: list[Path], problems: list[str]) -> None:
    for each in homes:
        terminal.bullet("ok", f"{each} {what}")
    for problem in problems:
        terminal.bullet("warning", problem)


def _say_end(settings: Settings, done: Outcome) -> None:
    took = terminal.seconds(done.seconds)
    rows = terminal.count(done.embedded, "row")
    if not done.switched:
        terminal.bullet("ok", f"{rows} embedded with {done.model.name} in {took}; recall still uses {done.former.name}")
        terminal.bullet("note", "to embed what comes until then, and switch", GO_ON)
        return
    terminal.bullet("ok", f"{rows} embedded in {took}; recall uses {_named(done.model)} everywhere from now on")
    if done.without_vector:
        without = terminal.count(done.without_vector, "row")
        terminal.bullet("warning", f"{without} have no vector: the model gives none for their text; words find them")
    if settings.is_set("min_similarity"):
        terminal.bullet(
            "note",
            f"min_similarity is set to {settings.min_similarity:g}, which was chosen for the former model",
            "to leave it to the score, which every model shares: hermes-pgvector config unset min_similarity",
        )
    terminal.bullet(
        "note",
        f"homes on other machines follow once their settings name it; until then they use what {done.former.name} has",
        "whether a home does: hermes-pgvector doctor",
    )
    terminal.bullet("note", f"the vectors of {done.former.name} are kept; to drop them", f"{DROP} --execute")


def _status(state: State, *, json: bool) -> int:
    change = state.change
    if json:
        terminal.as_json(
            {
                "model": _model(state.current),
                "change": None if change is None else _change_document(change),
                "other_models": [_stored(each) for each in state.others],
            }
        )
        return 0
    terminal.pairs([("in use", _named(state.current) if state.current else "none yet; run: hermes-pgvector migrate")])
    if change is None:
        terminal.bullet("ok", "no change of the model is under way")
    else:
        terminal.pairs([("changing to", f"{_named(change.model)}: {share(change)}")])
        _say_pace(change)
    for each in state.others:
        terminal.bullet("note", f"{each.name}, {each.dim} dimensions: not in use, {terminal.size(each.bytes)}", DROP)
    return 0


def _say_pace(change: Change) -> None:
    if change.silent_seconds > SILENT_SECONDS:
        terminal.bullet("warning", f"nobody is at it; last seen {terminal.ago(change.seen_at)}", f"to go on: {GO_ON}")
    elif change.problem:
        terminal.bullet("warning", f"waiting: {change.problem}")
    else:
        left = change.seconds_left
        soon = "" if left is None else f", about {terminal.seconds(left)} left"
        terminal.bullet("ok", f"at work: {change.rate:,.0f} rows per second{soon}")


def _cancel(home: Path, settings: Settings, args: argparse.Namespace) -> int:
    from hermes_memory_pgvector.care.actor import operator
    from hermes_memory_pgvector.schema import reembedding as owner

    admin, who = database.admin_dsn(home, settings, args.admin_dsn, may_create=False), operator(home)
    with database.explaining_denial(admin, "cancel it", f"{GO_ON} --cancel --admin-dsn OWNER_DSN"):
        change = owner.cancel(admin, actor=who.name, home_id=who.home_id)
    homes = reembedding.withdraw(home, settings)
    if args.json:
        terminal.as_json({"cancelled": None if change is None else _change_document(change), "homes": _paths(homes)})
        return 0
    if change is None:
        terminal.bullet("ok", "no change of the model is under way")
    else:
        terminal.bullet("ok", f"cancelled: the change to {_named(change.model)}, {share(change)}")
        terminal.bullet("note", "the vectors made so far are kept, and used if you begin again; to drop them", DROP)
    _say_homes("no longer names a next embedder", homes, [])
    return 0


def _drop_old(home: Path, settings: Settings, args: argparse.Namespace) -> int:
    from hermes_memory_pgvector.care.actor import operator
    from hermes_memory_pgvector.schema import reembedding as owner

    state = reembedding.read(home, settings)
    if args.execute and state.others:
        admin, who = database.admin_dsn(home, settings, args.admin_dsn, may_create=False), operator(home)
        with database.explaining_denial(admin, "drop tables", f"{DROP} --execute --admin-dsn OWNER_DSN"):
            owner.drop(admin, [each.id for each in state.others], actor=who.name, home_id=who.home_id)
    if args.json:
        terminal.as_json({"executed": bool(args.execute), "models": [_stored(each) for each in state.others]})
        return 0
    if not state.others:
        terminal.bullet("ok", "nothing to drop: only the model in use has vectors")
    for each in state.others:
        text = f"{each.name}, {each.dim} dimensions: {terminal.size(each.bytes)}"
        terminal.bullet("ok" if args.execute else "warning", f"{'dropped' if args.execute else 'would drop'} {text}")
    if state.others and not args.execute:
        hint = f"{DROP} --execute"
        terminal.bullet("note", "homes that still embed with it will find rows by keywords only; to do it", hint)
    return 0


def _document(done: Outcome, homes: list[Path], problems: list[str]) -> dict[str, Any]:
    return {
        "former": _model(done.former),
        "model": _model(done.model),
        "switched": done.switched,
        "embedded": done.embedded,
        "without_vector": done.without_vector,
        "seconds": round(done.seconds, 3),
        "homes": _paths(homes),
        "problems": problems,
    }


def _change_document(change: Change) -> dict[str, Any]:
    left = change.seconds_left
    return {
        "model": _model(change.model),
        "started_at": change.started_at,
        "seen_at": change.seen_at,
        "is_at_work": change.silent_seconds <= SILENT_SECONDS,
        "done": change.done,
        "total": change.total,
        "rate": round(change.rate, 1),
        "seconds_left": None if left is None else round(left),
        "problem": change.problem or None,
    }


def _paths(homes: list[Path]) -> list[str]:
    return sorted({str(each) for each in homes})


def _model(model: EmbeddingModel | None) -> dict[str, Any] | None:
    return None if model is None else {"id": model.id, "name": model.name, "dim": model.dim}


def _stored(model: StoredModel) -> dict[str, Any]:
    return {"id": model.id, "name": model.name, "dim": model.dim, "bytes": model.bytes}


def _named(model: EmbeddingModel) -> str:
    return f"{model.name}, {model.dim} dimensions"
