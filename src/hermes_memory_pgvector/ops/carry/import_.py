"""`import`: bring in what was kept elsewhere. What kind of source it is, is seen."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from hermes_memory_pgvector.config.home import has_profile, home_id, pseudonym_key, root_of
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.errors import ConfigError, UsageError
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.carry import file
from hermes_memory_pgvector.ops.carry.ends import is_dsn, shown
from hermes_memory_pgvector.ops.carry.export import named_theme
from hermes_memory_pgvector.ops.host_past import HostPast, reading, tables
from hermes_memory_pgvector.ops.memory import Memory, memory_of
from hermes_memory_pgvector.runtime import refusals
from hermes_memory_pgvector.server.folder import has_data
from hermes_memory_pgvector.terminal import parse, progress
from hermes_memory_pgvector.terminal.amounts import count
from hermes_memory_pgvector.terminal.ask import confirm
from hermes_memory_pgvector.terminal.fields import column
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Plan, command
from hermes_memory_pgvector.terminal.progress import Bar
from hermes_memory_pgvector.values import is_private_theme

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.ops.carry.intake import RowIntake, Tally

READ_SECONDS = 24 * 3600.0
STATE, HOLOGRAPHIC = "state.db", "memory_store.db"
SQLITE = b"SQLite format 3\x00"
MOST_NAMED: Final = 10
WORDS: Final = {
    "state": STATE, "files": "", "holographic": HOLOGRAPHIC, "jsonl": None, "json": None, "peer": None,
    "postgres": None,
}  # fmt: skip
"""What may stand before a source, and which file of the home it means alone."""


Kind = Literal["state", "files", "holographic", "lines", "database"]


@dataclass(frozen=True, slots=True)
class ImportedTheme:
    """What was found for a theme."""

    theme: str = column("theme")
    stored: int = column("new", right=True, default=0)
    known: int = column("already there", right=True, default=0)


@dataclass(frozen=True, slots=True)
class Imported(Plan):
    """What an import stores, and what stays out."""

    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportSource:
    """A source, and what somebody says of it."""

    home: Path
    settings: Settings
    source: str
    theme: str = ""
    since: datetime | None = None

    @property
    def path(self) -> Path:
        """The source, where it is a file or a folder."""
        return Path(self.source).expanduser().absolute()

    @property
    def name(self) -> str:
        """The source in words, without a password."""
        from hermes_memory_pgvector.postgres.conninfo import brief

        return brief(self.source) if is_dsn(self.source) else self.source

    @property
    def own_theme(self) -> str:
        """The theme of what names none."""
        return self.theme or parts.profile_theme(self.home, self.settings)


def import_(memory: Memory, *, source: list[str], theme: str | None, since: datetime | None, execute: bool) -> Plan:
    """Bring in what is not stored yet."""
    named = _named(memory.home, source)
    wanted = ImportSource(memory.home, memory.parsed.settings, named, theme or "", since)
    kind = _kind(wanted)
    if since is not None and kind != "state":
        raise UsageError(f"--since is for hermes' own chats, a {STATE}")
    return _plan(memory, wanted, kind, execute=execute)


IMPORT = Operation(
    "import",
    "bring in what was kept elsewhere: hermes' own chats, files, other memories, an export",
    (
        Option(
            "source", f"a {STATE}, a folder with MEMORY.md, a file of JSON, a file of Holographic, postgres://…; "
            "`state` alone: the chats of this home", many=True, required=True, show=shown,
            metavar="SOURCE",
        ),
        Option("--theme", "theme of what names none (default: the profile's own); of a database: only this one",
               named_theme, metavar="THEME"),
        Option("--since", f"of {STATE}: only from then on; {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
    ),
    import_,
    (
        ("import state", "count what hermes has kept of your chats, theme by theme: a dry run"),
        ("import ~/.hermes/state.db --since 2026-01-01 --execute", "this year's chats"),
        ("import memory.jsonl.gz --execute", "what `export` has written"),
        ("import mem0.jsonl --theme marketing --execute", "the memories of another service"),
        ("import postgresql://reader@old.example/memory --execute", "another database, ours or the published one's"),
    ),
    group="move",
    changes=True,
    on_page=False,
)  # fmt: skip


def size(path: Path) -> tuple[int, int]:
    """How many messages a host's store holds, and in how many sessions."""
    with reading(path) as store:
        return HostPast(store).size()


def _named(home: Path, words: list[str]) -> str:
    """The source that the words name; a word before it says of what kind it is, which is seen anyway."""
    first, *rest = words
    if first in WORDS and len(words) < 3:
        alone = WORDS[first]
        if rest or alone is not None:
            return rest[0] if rest else str(home / alone if alone else home / "memories")
        raise UsageError(f"import {first} needs the {'connection string' if 'p' in first else 'file'}")
    if rest:
        raise UsageError(f"one source at a time, not {' '.join(words)!r}")
    return first


def _kind(wanted: ImportSource) -> Kind:
    """What a source is; ConfigError when it is none."""
    path = wanted.path
    if is_dsn(wanted.source):
        return "database"
    if wanted.source == file.STANDARD:
        return "lines"
    if path.is_dir():
        if has_data(path):
            if not wanted.settings.dsn and parts.server_folder(wanted.home, wanted.settings) == path:
                raise ConfigError(f"{wanted.home} uses the embedded server in {path} itself; there is nothing to bring")
            return "database"
        if any((each / name).is_file() for name in FILE_NAMES.values() for each in (path, path / "memories")):
            return "files"
        raise ConfigError(f"there is neither a MEMORY.md nor a USER.md in {path}; chats are in its {STATE}")
    try:
        with path.open("rb") as stream:
            is_sqlite = stream.read(len(SQLITE)) == SQLITE
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror or type(error).__name__})") from None
    if path.name in (STATE, HOLOGRAPHIC) or is_sqlite:
        found = tables(path)
        if not found & {"messages", "facts"}:
            raise ConfigError(f"{path} has neither hermes' messages nor the facts of a Holographic memory")
        return "state" if "messages" in found else "holographic"
    return "lines"


def _plan(memory: Memory, wanted: ImportSource, kind: Kind, *, execute: bool) -> Imported:
    with progress.shown(f"reading {wanted.name}") as bar:
        tally = _run(memory, wanted, kind, bar, execute=execute)
    stored = tally.new.total()
    left_out = {reason: number for reason, number in tally.left_out.most_common() if number}
    themes = sorted({*tally.new, *tally.known}, key=lambda each: (-tally.new[each] - tally.known[each], each))
    counts = [ImportedTheme(each, tally.new[each], tally.known[each]) for each in themes]
    notes = [Note("note", f"left out: {number:,} {reason}") for reason, number in left_out.items()]
    private = [each for each in themes if is_private_theme(each) and tally.new[each]]
    if private and kind != "state":
        # Chats of hermes are given the themes of their partners here; any other source says so itself.
        rows = count(sum(tally.new[each] for each in private), "row")
        text = f"{rows} for private themes, as the source says: {', '.join(private[:MOST_NAMED])}"
        text += f" and {len(private) - MOST_NAMED:,} more" if len(private) > MOST_NAMED else ""
        notes.append(Note("warning", text, "whoever wrote it decides what is recalled in these chats"))
    if execute and stored:
        notes.append(Note("note", "agents add the vectors in the background; to add them now", then=command("reembed")))
    return Imported("store", f"stored, from {wanted.name}", {"rows": stored}, counts, execute, notes, (), left_out)


def _run(memory: Memory, wanted: ImportSource, kind: Kind, bar: Bar, *, execute: bool) -> Tally:
    from hermes_memory_pgvector.ops import audit
    from hermes_memory_pgvector.ops.carry import sources
    from hermes_memory_pgvector.ops.carry.intake import Tally, taking_in

    with memory.reading():
        pass
    tally = Tally()
    try:
        with (
            memory.pool() as pool,
            taking_in(pool, wanted.settings, tally, is_dry=not execute, advance=bar.advance) as intake,
        ):
            if kind == "state":
                bar.part("", unit="message", total=size(wanted.path)[0])
                _state(wanted, intake)
            else:
                for found in sources.KINDS[kind](wanted, tally.left_out, bar):
                    intake.add(found)
    finally:
        # What was stored before an error is stored.
        if execute and tally.new:
            theme = next(iter(tally.new)) if len(tally.new) == 1 else ""
            counts = {"stored": tally.new.total(), "known": tally.known.total()}
            with memory.changing() as connection:
                audit.record(connection, memory.actor, "import", theme=theme, subject=kind, counts=counts)
    if execute and kind == "state" and wanted.path == memory.home / STATE:
        refusals.settle(data_folder(memory.home), wanted.since.timestamp() if wanted.since else 0.0)
    return tally


def offer(home: Path, *, yes: bool) -> Iterator[Note]:
    """Ask whether to bring in what hermes has kept of its chats, if there is anything that is not stored yet."""
    path = home / STATE
    if not path.is_file():
        return
    memory, wanted = memory_of(home), ImportSource(home, load(home).settings, str(path))
    # A command without a home is completed with that of this run, which may be another one than the profile's.
    again = f"hermes-pgvector import {shlex.quote(str(path))} --hermes-home {shlex.quote(str(home))} --execute"
    try:
        messages, sessions = size(path)
        if not messages or not _run(memory, wanted, "state", Bar(""), execute=False).new:
            return
        found = f"{count(messages, 'message')} of {count(sessions, 'session')} found in {path}"
        if not confirm(f"{found}: import them?", default=True, yes=yes):
            yield Note("note", found, f"to import them: {again}")
            return
        stored = _plan(memory, wanted, "state", execute=True).counts["rows"]
    except ConfigError as error:
        yield Note("note", f"past chats are left alone: {error}", f"to try again: {again}")
    else:
        yield Note("ok", f"{count(stored, 'row')} stored; agents add the vectors in the background")


def _state(wanted: ImportSource, intake: RowIntake) -> None:
    from hermes_memory_pgvector.ops.carry.state import StateImport, ThemeRules

    source, home = wanted.path.parent, wanted.home
    # Chats with a profile of this installation have the themes that its own agents give them. The chats of any other
    # home go on here, with the agents of the home that takes them over.
    whose = source if root_of(source) == root_of(home) else home
    rules = ThemeRules(
        wanted.settings if whose == home else load(whose).settings,
        lambda: _pseudonym_key(whose),
        source.name if source.parent.name == "profiles" else "default",
        lambda name: has_profile(source, name),
        home_id(source),
        wanted.theme,
        wanted.since.timestamp() if wanted.since else 0.0,
    )
    with reading(wanted.path) as store:
        StateImport(HostPast(store), rules, intake).run()


def _pseudonym_key(home: Path) -> bytes:
    try:
        return pseudonym_key(home)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(f"the key behind private themes of {home} cannot be read ({reason})") from None
