"""What the host keeps itself: MEMORY.md and USER.md, edited under its lock, and state.db, which is not ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.capture.host_store import FILE_NAME
from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.mirror import edit_file
from hermes_memory_pgvector.mirror.edit_file import Exchange, FileEdit, Standing
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES
from hermes_memory_pgvector.ops.forget.named import Named
from hermes_memory_pgvector.ops.host_past import HostPast, reading
from hermes_memory_pgvector.ops.parts import profile_theme
from hermes_memory_pgvector.server.folder import REPLACED, SHELTER_NAME
from hermes_memory_pgvector.store import mirror_files
from hermes_memory_pgvector.terminal.operation import Note
from hermes_memory_pgvector.text.clean import text_of
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import Target

if TYPE_CHECKING:
    from hermes_memory_pgvector.ops.forget.rows import Findings
    from hermes_memory_pgvector.postgres.pool import Connection

READ_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class HostText:
    """A message in the host's store."""

    home: Path
    session_id: str
    text: str


def entries(home: Path) -> Iterator[tuple[Target, Standing]]:
    """The entries of both files of a home, as they are stored."""
    settings = load(home).settings
    for target, name in FILE_NAMES.items():
        for each in edit_file.standing(
            home / "memories" / name, settings.memory_max_chars, masker_for(settings.mask_secrets)
        ):
            yield target, each


def meant(
    connection: Connection, homes: Sequence[Path], named: Sequence[Named], found: Findings
) -> dict[Path, list[Standing]]:
    """By home, the entries of files that go: what says what is named, and what stands there of a memory that goes.

    An entry that the home holds in another theme, where it is not meant, stays.
    """
    going = {(theme, target, content) for (theme, _), (target, content) in found.entries.items()}
    gone = {(target, content) for _, target, content in going}
    gone |= {(target, content) for (_, target), contents in found.gone.items() for content in contents}
    told: dict[Path, list[Standing]] = {}
    for home in homes:
        themes = (None, profile_theme(home, load(home).settings))
        wide = [each for each in named if each.is_everywhere and each.theme in themes]
        held: dict[Target, set[str]] = {}
        for target, standing in entries(home):
            if target not in held:
                rows = mirror_files.held_entries(connection, home_id(home), target)
                held[target] = {row.content for row in rows if (row.theme, target, row.content) not in going}
            is_gone = (target, standing.content) in gone and standing.content not in held[target]
            if is_gone or any(each.says(standing.content) for each in wide):
                told.setdefault(home, []).append(standing)
    return told


def take_out(connection: Connection, found: dict[Path, list[Standing]]) -> None:
    """Take entries out of their files, out of all or none; CareError where a file has changed meanwhile.

    Whoever writes them there again afterwards says something new, also before anybody has compared the file.
    """
    edits = []
    for home, standing in found.items():
        settings = load(home).settings
        for path in dict.fromkeys(each.path for each in standing):
            changes = [Exchange(each, None) for each in standing if each.path == path]
            edits.append(FileEdit(path, changes, settings.memory_max_chars, masker_for(settings.mask_secrets)))
    with edit_file.edited(edits):
        for home, standing in found.items():
            for target, name in FILE_NAMES.items():
                gone = [each.content for each in standing if each.path.name == name]
                mirror_files.unsee(connection, home_id(home), target, gone)


def former(homes: Sequence[Path]) -> Iterator[Note]:
    """What a restore has kept aside in these homes, which still holds what is forgotten here."""
    for folder in (data_folder(home) for home in homes):
        for path in (*folder.glob(f"{REPLACED}*"), *(folder / SHELTER_NAME).glob(f"{REPLACED}*")):
            yield Note("warning", f"{path} is what a restore replaced: nothing is forgotten in it", "delete it")


def messages(homes: Sequence[Path], says: Callable[[str, str], bool]) -> list[HostText]:
    """The messages of the hosts' stores of which `says` is true, by session and text."""
    found: list[HostText] = []
    for home in homes:
        path = home / FILE_NAME
        if not path.is_file():
            continue
        with suppress(ConfigError), reading(path, READ_SECONDS) as store:
            past = HostPast(store)
            for session in past.sessions():
                texts = (text_of(each.content) for each in past.messages(session.id))
                found += [HostText(home, session.id, text) for text in texts if says(session.id, text)]
    return found
