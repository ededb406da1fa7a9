"""`import`: bring in a past that was kept elsewhere."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options, times
from hermes_memory_pgvector.config.home import has_profile, home_id, homes_of, pseudonym_key, root_of
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, current_provider, data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.runtime import refusals
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal import program as tree
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.transfer.jsonl import Line
    from hermes_memory_pgvector.transfer.state import Source
    from hermes_memory_pgvector.transfer.tally import Tally

NAME = "import"
HELP = "bring in what was kept elsewhere: hermes' own chats, files, other memories, an export"
GROUP = "move"
EXAMPLES = (
    ("import state --dry-run", "count what hermes has kept of your chats, theme by theme"),
    ("import state --all-profiles --since 2026-01-01", "this year's chats of every profile"),
    ("import jsonl memory.jsonl.gz", "what `export` has written"),
    ("import jsonl mem0.jsonl --theme marketing", "the memories of another service"),
)

READ_SECONDS = 30.0
READ_WHOLE_SECONDS = 24 * 3600.0
STATE = "state.db"
EMBEDDED = "embedded"
"""In place of a connection string: the embedded server of a home."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sources."""
    sources = tree.actions_of(parser, "import_source")
    state = tree.add_action(
        sources,
        "state",
        "the chats in hermes' own state.db, with their original times",
        example=("import state --dry-run", "count them, theme by theme"),
    )
    _add_common(state)
    _add_homes(state)
    state.add_argument("--since", type=times.moment, metavar="TIME", help=f"only from then on: {times.FORMS}; UTC")
    state.add_argument(
        "--api-theme",
        default="",
        metavar="THEME",
        help="theme of API sessions whose key hermes did not record (default: as stored, else they stay out)",
    )

    jsonl = tree.add_action(
        sources,
        "jsonl",
        "turns and memories in a file of `export` or of another service: JSON lines, plain, .gz or .zst",
        example=("import jsonl memory.jsonl.gz", "everything in it that is not here yet"),
    )
    _add_common(jsonl)
    jsonl.add_argument("file", metavar="FILE", help="the file; - for standard input")
    _add_theme(jsonl)
    jsonl.add_argument(
        "--target", choices=("memory", "user"), default="memory", help="what a memory is that says no target itself"
    )
    files = tree.add_action(
        sources, "files", "MEMORY.md and USER.md of any home", example=("import files --home ~/old", "another home's")
    )
    _add_common(files)
    _add_homes(files)
    _add_theme(files)
    holographic = tree.add_action(
        sources,
        "holographic",
        "the facts of the Holographic memory",
        example=("import holographic", "memory_store.db of the home"),
    )
    _add_common(holographic)
    holographic.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: memory_store.db of the home")
    _add_theme(holographic)
    peer = tree.add_action(
        sources,
        "peer",
        "another database of ours, or one of the published package; rows, and vectors of the same model",
        example=("import peer postgresql://reader@old.example/memory", "everything that is not here yet"),
    )
    _add_common(peer)
    peer.add_argument(
        "dsn",
        metavar="DSN",
        help=f"its connection string, where a login that may read is enough; or {EMBEDDED!r}: the server in a home",
    )
    peer.add_argument(
        "--home", type=Path, metavar="DIR", help=f"with {EMBEDDED!r}: whose server (default: this home's)"
    )
    peer.add_argument("--theme", metavar="THEME", help="only this theme")


def run(args: argparse.Namespace) -> int:
    """Import from the chosen source."""
    match args.import_source:
        case "state":
            return _state(args)
        case "jsonl":
            return _jsonl(args)
        case "files":
            return _files(args)
        case "holographic":
            return _holographic(args)
        case "peer":
            return _peer(args)
    args.import_source_parser.print_help()
    return 2


def _add_common(parser: argparse.ArgumentParser) -> None:
    options.add_common(parser)
    parser.add_argument("--dry-run", action="store_true", help="only count, theme by theme; store nothing")


def _add_homes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", type=Path, metavar="DIR", help="hermes home to read (default: the one written to)")
    parser.add_argument("--all-profiles", action="store_true", help="the root home and every profile")


def _add_theme(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--theme", metavar="THEME", help="theme of what names none (default: the profile's own)")


def _state(args: argparse.Namespace) -> int:
    home = options.home_of(args)
    source = (args.home or home).expanduser().absolute()
    homes = homes_of(source) if args.all_profiles else [source]
    found = [each for each in homes if (each / STATE).is_file()]
    if not found:
        raise ConfigError(f"there is no {STATE} in {source}; name the hermes home that has one with --home")
    since = args.since.timestamp() if args.since else 0.0
    document = []
    for each in found:
        document.append(_import_state(home, each, args, since))
    if args.json:
        terminal.as_json({"dry_run": args.dry_run, "homes": document})
    return 0


def _import_state(home: Path, source: Path, args: argparse.Namespace, since: float) -> dict[str, Any]:
    from hermes_memory_pgvector.transfer import state

    # A profile with a memory of its own keeps it; any other moves into the memory of the home named.
    into = source if args.all_profiles and current_provider(source) == PROVIDER_NAME else home
    settings = load(into).settings
    path = source / STATE
    messages, sessions = state.size(path)
    started = time.perf_counter()
    with _opened(into, settings) as pool:
        with terminal.progress(f"reading {path}", total=messages, unit="message", quiet=args.json) as bar:
            tally = state.import_state(
                _source(source, into, settings, args.api_theme, since),
                pool,
                settings,
                is_dry=args.dry_run,
                progress=bar.advance,
            )
        if tally.new and not args.dry_run:
            _note(pool, into, "state.db", tally)
        if not args.dry_run:
            refusals.settle(data_folder(into), since)
    seconds = time.perf_counter() - started
    if not args.json:
        terminal.say(
            f"{path}: {terminal.count(messages, 'message')} of {terminal.count(sessions, 'session')},"
            f" read in {terminal.seconds(seconds)}"
        )
        tell(tally, is_dry=args.dry_run)
    return {"home": str(source), "messages": messages, "sessions": sessions, "seconds": seconds, **_document(tally)}


def offer(home: Path, *, yes: bool) -> None:
    """Ask whether to bring in what hermes has kept of its chats, if there is anything that is not stored yet."""
    from hermes_memory_pgvector.capture.host_store import HostStoreUnreadable
    from hermes_memory_pgvector.transfer import state

    path = home / STATE
    if not path.is_file():
        return
    settings = load(home).settings
    source = _source(home, home, settings, "", 0.0)
    # A command without a home is completed with that of this run, which may be another one than the profile's.
    of_profile = f" --hermes-home {shlex.quote(str(home))}" if root_of(home) != home else ""
    command = f"hermes-pgvector import state{of_profile}"
    try:
        messages, sessions = state.size(path)
        with _opened(home, settings) as pool:
            if not messages or not state.import_state(source, pool, settings, is_dry=True).new:
                return
            found = f"{terminal.count(messages, 'message')} of {terminal.count(sessions, 'session')}"
            if not terminal.confirm(f"{found} found in {path}: import them?", default=True, yes=yes):
                terminal.bullet("note", f"{found} found in {path}", f"to import them: {command}")
                return
            with terminal.progress("importing", total=messages, unit="message") as bar:
                tally = state.import_state(source, pool, settings, is_dry=False, progress=bar.advance)
            _note(pool, home, "state.db", tally)
        tell(tally, is_dry=False)
    except HostStoreUnreadable as error:
        terminal.bullet("note", f"past chats are left alone: {error}", f"to try again: {command}")


def _jsonl(args: argparse.Namespace) -> int:
    from hermes_memory_pgvector.transfer import line_file
    from hermes_memory_pgvector.transfer.lines import Lines

    home = options.home_of(args)
    settings = load(home).settings
    with line_file.reading(args.file) as stream:
        reader = Lines(
            _theme(args, home, settings),
            args.target,
            settings.memory_max_chars,
            settings.turn_max_chars,
            _changed_at(args.file),
            datetime.now(UTC),
        )
        lines = reader.read(line_file.documents(stream, args.file), args.file)
        return _take(args, home, settings, lines, name=args.file, subject="jsonl", left_out=reader.left_out)


def _files(args: argparse.Namespace) -> int:
    from hermes_memory_pgvector.transfer import local_memories

    home = options.home_of(args)
    settings = load(home).settings
    source = (args.home or home).expanduser().absolute()
    lines: list[Line] = []
    for each in homes_of(source) if args.all_profiles else [source]:
        theme = _theme(args, each, settings)
        lines += local_memories.entries(each, theme, settings.memory_max_chars)
    if not lines:
        raise ConfigError(f"there is neither a MEMORY.md nor a USER.md in {source / 'memories'}")
    return _take(args, home, settings, lines, name=str(source), subject="files")


def _holographic(args: argparse.Namespace) -> int:
    from hermes_memory_pgvector.transfer import local_memories

    home = options.home_of(args)
    settings = load(home).settings
    path = (args.file or home / local_memories.HOLOGRAPHIC_NAME).expanduser()
    lines = local_memories.facts(path, _theme(args, home, settings), settings.memory_max_chars)
    return _take(args, home, settings, lines, name=str(path), subject="holographic")


def _peer(args: argparse.Namespace) -> int:
    if args.home is not None and args.dsn != EMBEDDED:
        raise ConfigError(f"--home is for `import peer {EMBEDDED}`; a connection string says itself where it leads")
    if args.dsn == EMBEDDED:
        return _embedded(args)
    from hermes_memory_pgvector.postgres.conninfo import brief
    from hermes_memory_pgvector.postgres.pool import Pool
    from hermes_memory_pgvector.store import taking_along
    from hermes_memory_pgvector.transfer import peer

    home = options.home_of(args)
    settings = load(home).settings
    other = Pool(lambda _: args.dsn, maximum=1, connect_seconds=settings.connect_timeout)
    try:
        with taking_along.snapshot(other, Deadline.after(READ_WHOLE_SECONDS)) as connection:
            theme = theme_name(args.theme) if args.theme else None
            lines = peer.lines(connection, theme)
            return _take(args, home, settings, lines, name=brief(args.dsn), subject="peer")
    finally:
        other.close()


def _embedded(args: argparse.Namespace) -> int:
    """Import from the embedded server of a home, which need not run and which no setting needs to name."""
    from hermes_memory_pgvector.ops.setup.moving_in import embedded_pool
    from hermes_memory_pgvector.server.folder import has_data
    from hermes_memory_pgvector.store import taking_along
    from hermes_memory_pgvector.transfer import peer

    home = options.home_of(args)
    settings = load(home).settings
    source = (args.home or home).expanduser().absolute()
    folder = next((data_folder(each) for each in (source, root_of(source)) if has_data(data_folder(each))), None)
    if folder is None:
        raise ConfigError(f"there is no embedded server in {source}")
    if not settings.dsn and parts.server_folder(home, settings) == folder:
        raise ConfigError(f"{home} uses the embedded server in {folder} itself; there is nothing to bring")
    theme = theme_name(args.theme) if args.theme else None
    with embedded_pool(folder) as other, taking_along.snapshot(other, Deadline.after(READ_WHOLE_SECONDS)) as connection:
        return _take(args, home, settings, peer.lines(connection, theme), name=str(folder), subject="peer")


def _take(
    args: argparse.Namespace,
    home: Path,
    settings: Settings,
    lines: Iterable[Line],
    *,
    name: str,
    subject: str,
    left_out: Mapping[str, int] | None = None,
) -> int:
    """Import lines, and say what came of it; `left_out` says at the end what never became a line."""
    from hermes_memory_pgvector.transfer import jsonl

    with _opened(home, settings) as pool:
        with terminal.progress(f"reading {name}", unit="line", quiet=args.json) as bar:
            tally = jsonl.import_lines(lines, pool, settings, name=name, is_dry=args.dry_run, progress=bar.advance)
        tally.left_out.update(left_out or {})
        if tally.new and not args.dry_run:
            _note(pool, home, subject, tally)
    if args.json:
        terminal.as_json({"dry_run": args.dry_run, **_document(tally)})
    else:
        tell(tally, is_dry=args.dry_run)
    return 0


def _theme(args: argparse.Namespace, home: Path, settings: Settings) -> str:
    return theme_name(args.theme) if args.theme else parts.profile_theme(home, settings)


def _changed_at(name: str) -> datetime:
    path = Path(name)
    return datetime.fromtimestamp(path.stat().st_mtime, UTC) if path.is_file() else datetime.now(UTC)


def _source(source: Path, into: Path, settings: Settings, api_theme: str, since: float) -> Source:
    from hermes_memory_pgvector.transfer.state import Source
    from hermes_memory_pgvector.transfer.state_themes import ThemeRules

    # Chats with a profile of this installation have the themes that its own agents give them. The chats of any other
    # home go on here, with the agents of the home that takes them over.
    whose = source if root_of(source) == root_of(into) else into
    rules = ThemeRules(
        settings if whose == into else load(whose).settings,
        lambda: _pseudonym_key(whose),
        source.name if source.parent.name == "profiles" else "default",
        lambda name: has_profile(source, name),
        api_theme,
    )
    return Source(source / STATE, rules, since, home_id(source))


def _pseudonym_key(home: Path) -> bytes:
    try:
        return pseudonym_key(home)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(f"the key behind private themes of {home} cannot be read ({reason})") from None


@contextmanager
def _opened(home: Path, settings: Settings) -> Iterator[Pool]:
    """Connections to a database that is ready."""
    from hermes_memory_pgvector.store import schema

    with parts.open_pool(home, settings) as pool:
        with pool.connection(Deadline.after(READ_SECONDS)) as connection:
            schema.verify(connection)
        yield pool


def note(home: Path, tally: Tally) -> None:
    """Leave a row in the audit log of a home's database."""
    with parts.open_pool(home, load(home).settings) as pool:
        _note(pool, home, "peer", tally)


def _note(pool: Pool, home: Path, subject: str, tally: Tally) -> None:
    """Leave a row in the audit log."""
    from hermes_memory_pgvector.care import actor, audit

    theme = next(iter(tally.themes)) if len(tally.themes) == 1 else ""
    counts = {"stored": tally.new, "known": tally.known}
    with pool.transaction(Deadline.after(READ_SECONDS)) as connection:
        audit.record(connection, actor.operator(home), "import", theme=theme, subject=subject, counts=counts)


def tell(tally: Tally, *, is_dry: bool) -> None:
    """Print what an import has stored, theme by theme, and what it has left out."""
    rows = sorted(tally.themes.items(), key=lambda each: (-each[1].new - each[1].known, each[0]))
    if rows:
        terminal.table(
            ("theme", "to be stored" if is_dry else "stored", "already there"),
            [(theme, terminal.number(each.new), terminal.number(each.known)) for theme, each in rows],
            right=(1, 2),
        )
    for what, number in sorted(tally.also.items()):
        if number and not is_dry:
            terminal.say(f"  came along: {terminal.number(number)} {what}")
    for reason, number in tally.left_out.most_common():
        if number:
            terminal.say(f"  left out: {terminal.count(number, 'item')} {reason}")
    if is_dry:
        terminal.bullet("note", "dry run: nothing was stored")
    elif not tally.new:
        terminal.bullet("ok", "nothing new: everything was there already" if tally.known else "nothing to import")
    else:
        terminal.bullet(
            "ok",
            f"{terminal.count(tally.new, 'row')} stored; agents add the vectors in the background",
            "to add them now: hermes-pgvector backfill",
        )


def _document(tally: Tally) -> dict[str, Any]:
    return {
        "stored": tally.new,
        "known": tally.known,
        "themes": {theme: {"stored": each.new, "known": each.known} for theme, each in sorted(tally.themes.items())},
        "left_out": {reason: number for reason, number in tally.left_out.items() if number},
        "also": {what: number for what, number in tally.also.items() if number},
    }
