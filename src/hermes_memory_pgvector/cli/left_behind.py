"""Rows that a home leaves behind when it changes its database: `up` brings them along, or says what would."""

from __future__ import annotations

import shlex
from pathlib import Path

from hermes_memory_pgvector.cli import import_
from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal


def server_in_use(home: Path) -> Path | None:
    """The folder of the embedded server that a home uses; None when it uses another database, or none yet."""
    settings = load(home).settings
    if settings.dsn or settings.hold or not parts.has_embedded_data(home, settings):
        return None
    return parts.server_folder(home, settings)


def offer(home: Path, before: Path | None, *, yes: bool, quiet: bool) -> bool:
    """Bring along what a home has in the embedded server it used before, after a question; True when that was done.

    A root home brings everything. A profile brings its own theme: nothing says whose the others are.
    """
    if before is None or before == server_in_use(home):
        return False
    theme = None if root_of(home) == home else parts.profile_theme(home, load(home).settings)
    try:
        return _offer(home, before, theme, yes=yes, quiet=quiet)
    except MemoryPluginError as error:
        if not quiet:
            what = f"theme {theme} is" if theme else "memories are"
            terminal.bullet("problem", f"{what} still in {before}: {error}", f"to copy: {command(home, before, theme)}")
        return False


def _offer(home: Path, before: Path, theme: str | None, *, yes: bool, quiet: bool) -> bool:
    from hermes_memory_pgvector.ops.setup import moving_in

    found = [each for each in moving_in.themes_in(before) if theme in (None, each.theme)]
    if not found or not moving_in.bring(before, home, theme, is_dry=True).new:
        return False
    memories, turns = sum(each.memories for each in found), sum(each.turns for each in found)
    counted = f"{terminal.count(memories, 'memory', 'memories')} and {terminal.count(turns, 'turn')}"
    what = f"{counted} of {f'theme {theme}' if theme else terminal.count(len(found), 'theme')}"
    if not (yes if quiet else terminal.confirm(f"{what} are in the embedded server in {before}. Copy them?", yes=yes)):
        if not quiet:
            stay = f"{what} stay in the embedded server in {before}"
            terminal.bullet("note", stay, f"to copy them: {command(home, before, theme)}")
        return False
    with terminal.progress("copying", unit="row", quiet=quiet) as bar:
        tally = moving_in.bring(before, home, theme, bar.advance, is_dry=False)
    import_.note(home, tally)
    if not quiet:
        terminal.bullet("ok", f"{terminal.count(tally.new, 'row')} copied; the old data is kept in {before}")
        if theme is not None:
            terminal.bullet(
                "note",
                "other themes of this profile, such as chats in messengers, stay where they are",
                f"to copy one: {command(home, before, 'THEME')}",
            )
    return True


def command(home: Path, before: Path, theme: str | None) -> str:
    """What brings the rows along."""
    named = f" --theme {shlex.quote(theme)}" if theme else ""
    return (
        f"hermes-pgvector import peer embedded --home {shlex.quote(str(before.parent))}{named}"
        f" --hermes-home {shlex.quote(str(home))}"
    )
