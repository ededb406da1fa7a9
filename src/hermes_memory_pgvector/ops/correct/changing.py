"""What `edit` and `undo` have in common: entries get other words, go or come back, in their files and as rows.

An entry that stands in a file of this installation is changed there, under the host's lock. What the file says then is
announced through the journal, as the memory tool announces what it writes; entries that stand in no file are changed by
the same records. So every change is an event of the history, and can be undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import CareError, MemoryPluginError
from hermes_memory_pgvector.journal import Urgency
from hermes_memory_pgvector.mirror import edit_file
from hermes_memory_pgvector.mirror.edit_file import Exchange, FileEdit, Standing
from hermes_memory_pgvector.mirror.memory_file import FILE_NAMES
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal.fields import column
from hermes_memory_pgvector.terminal.operation import Note, Plan
from hermes_memory_pgvector.text.clean import entries_of
from hermes_memory_pgvector.text.secrets import Masker, masker_for
from hermes_memory_pgvector.values import (
    MCP_HOLDER,
    AddMemory,
    MemoryOperation,
    Moment,
    RemoveMemory,
    ReplaceMemory,
    RowOrigin,
    Target,
)

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.runtime.engine import Engine
    from hermes_memory_pgvector.store.history import Event
    from hermes_memory_pgvector.store.memory_state import Entry, State

HEARD_DAYS: Final = 30
"""A home that nobody has heard of for so long does not come back to its file."""
STORE_SECONDS: Final = 5.0
NO_FILE: Final = "no file"


@dataclass(frozen=True, slots=True)
class ChangedEntry:
    """An entry that goes or comes."""

    sign: str = column("")
    where: str = column("in", is_aside=True)
    """The file's name and the line, for a table."""
    place: str = ""
    """The file and the line that it stands in; empty when it stands in none."""
    content: str = column("text", text=True, whole=True)
    agent_identity: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Correction(Plan):
    """Entries that go and come back."""

    theme: str = ""
    remove: tuple[str, ...] = ()
    restore: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewording:
    """An entry, and what takes its place: None where nothing was, or nothing comes."""

    target: Target
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Background:
    """What there is of a theme and target: its history, what it holds, and every entry there ever was."""

    events: Sequence[Event]
    now: State
    former: State

    @property
    def last(self) -> int:
        """The place of the newest operation."""
        return self.events[-1].order[0] if self.events else 0


def past(connection: Connection, theme: str, target: Target) -> Background:
    """What there is of a theme and target."""
    from hermes_memory_pgvector.store import history, memories

    events = history.of_theme(connection, theme, target)
    return Background(events, memories.entries(connection, theme, target), history.last_known(events))


class Drafter:
    """Works out what has to be done so that entries of a theme get other words."""

    def __init__(self, memory: Memory, connection: Connection, theme: str, metadata: Mapping[str, Any]) -> None:
        self.theme = theme
        self.memories = 0
        self.changes: list[ChangedEntry] = []
        self.exchanges: dict[Path, list[Exchange]] = {}
        self.operations: list[MemoryOperation] = []
        self.left: list[Note] = []
        self._memory = memory
        self._connection = connection
        self._metadata = metadata
        self._homes = memory.homes()
        self._files: dict[Path, list[Standing]] = {}

    def texts(self, sign: str) -> tuple[str, ...]:
        """What goes, or what comes."""
        return tuple(each.content for each in self.changes if each.sign == sign)

    def plan(self, *, executed: bool, notes: Sequence[Note] = ()) -> Correction:
        """It as an answer."""
        files = [Note("note", f"file: {path}") for path in self.exchanges]
        return Correction(
            "change", "changed", {"memories": self.memories}, self.changes, executed, [*files, *notes], self.left,
            theme=self.theme, remove=self.texts("-"), restore=self.texts("+"),
        )  # fmt: skip

    def change(self, past: Background, wanted: Iterable[Rewording]) -> None:
        """Add what these take, as far as nobody else's file is in the way."""
        now = Clock().now()
        # It comes after everything it answers to, whatever the clocks of other machines say.
        when = Moment(now.wall_us, max(now.order_us, past.last + 1))
        for each in wanted:
            entry = None if each.old is None else past.now[each.old]
            away = self._away(entry, each.target)
            if away:
                self.left += away
                continue
            self.memories += 1
            standing = self._standing(entry, each.target)
            places = sorted(standing.values(), key=lambda found: found.place)
            where = ", ".join(f"{found.path.name} line {found.line}" for found in places) or NO_FILE
            at = ", ".join(found.place for found in places)
            for sign, content in (("-", each.old), ("+", each.new)):
                if content is not None:
                    self.changes.append(ChangedEntry(sign, where, at, content, self.theme, each.target))
            for found in standing.values():
                self._exchange(found, each.new)
            self.operations += self._operations(each, entry, set(standing), past, when)

    def _operations(
        self, each: Rewording, entry: Entry | None, in_files: set[str], past: Background, when: Any
    ) -> Iterator[MemoryOperation]:
        common: dict[str, Any] = {"when": when, "written_by": RowOrigin.OPERATOR}
        theme, target = self.theme, each.target
        marks: dict[str, Any] = (
            {"metadata": self._metadata} if each.new is None else self._marks(past.former.get(each.new))
        )
        holders = [] if entry is None else list(entry.homes)
        # What a home here holds and its file does not say, its next comparison would take away.
        going = [home for home in holders if each.new is None or (home in self._homes and home not in in_files)]
        staying = [home for home in holders if home not in going]
        if each.new is not None and entry is not None:
            for home in staying or ([""] if not holders else []):
                yield ReplaceMemory(theme, target, each.new, "", home_id=home, previous=each.old, **marks, **common)
        for home in going or ([""] if each.new is None and not holders else []):
            yield RemoveMemory(theme, target, "", home_id=home, previous=each.old, metadata=self._metadata, **common)
        if each.new is not None and (entry is None or (holders and not staying)):
            yield AddMemory(theme, target, each.new, home_id="", **marks, **common)

    def _marks(self, former: Entry | None) -> dict[str, Any]:
        """What comes back is trusted no further than it was, and still comes from the session that wrote it."""
        if former is None:
            return {"metadata": self._metadata}
        kept = {name: former.metadata[name] for name in ("session_id", "tools") if name in former.metadata}
        return {"metadata": {**kept, **self._metadata}, "untrusted": former.untrusted}

    def _exchange(self, found: Standing, new: str | None) -> None:
        # The host takes a second copy for the same entry.
        is_there = any(each.content == new for each in self._files[found.path])
        self.exchanges.setdefault(found.path, []).append(Exchange(found, None if is_there else new))

    def _standing(self, entry: Entry | None, target: Target) -> dict[str, Standing]:
        """Where an entry stands in the files of homes here that hold it."""
        found: dict[str, Standing] = {}
        for home_id in () if entry is None else entry.homes:
            home = self._homes.get(home_id)
            if home is not None and entry is not None:
                lines = [each for each in self._lines(home, target) if each.content == entry.content]
                found |= {home_id: lines[0]} if lines else {}
        return found

    def _lines(self, home: Path, target: Target) -> list[Standing]:
        path = home / "memories" / FILE_NAMES[target]
        if path not in self._files:
            self._files[path] = edit_file.standing(path, *_reading(self._memory))
        return self._files[path]

    def _away(self, entry: Entry | None, target: Target) -> list[Note]:
        """The files elsewhere in which an entry stands: whoever compares them would bring it back."""
        from hermes_memory_pgvector.store import history

        elsewhere = [home for home in (() if entry is None else entry.homes) if home not in {*self._homes, MCP_HOLDER}]
        since = datetime.now(UTC) - timedelta(days=HEARD_DAYS)
        heard = history.heard_of(self._connection, elsewhere, since) if elsewhere else []
        return [
            Note("warning", f"it stands in {FILE_NAMES[target]} of home {home[:8]}, elsewhere: run this there")
            for home in heard
        ]


def carry_out(memory: Memory, draft: Drafter, action: str, subject: str) -> list[Note]:
    """Note who does it, change the files and record the operations; what is still to come, in words.

    Nothing is changed before the database has taken the note. Once the journal has the operations it is done, whatever
    becomes of the note.
    """
    from hermes_memory_pgvector.ops import audit

    edits = [FileEdit(path, exchanges, *_reading(memory)) for path, exchanges in draft.exchanges.items()]
    names = " and ".join(sorted({path.name for path in draft.exchanges}))
    done = f"changed in {names}" if names else "recorded"
    notes, is_done = [], False
    with memory.engine() as engine:
        engine.open_journal()
        try:
            with memory.changing(waits=True) as connection:
                audit.record(
                    connection, memory.actor, action, theme=draft.theme, subject=subject,
                    counts={"memories_removed": len(draft.texts("-")), "memories_restored": len(draft.texts("+"))},
                )  # fmt: skip
                with edit_file.edited(edits):
                    _append(engine, draft.operations)
                is_done = True
        except MemoryPluginError as error:
            if not is_done:
                raise
            notes.append(Note("warning", f"{done}, but the audit log has no row of it ({error})"))
        if not _has_arrived(engine):
            told = f"{done}; it waits in the journal, and arrives when the database takes it"
            notes.append(Note("warning", told))
    return notes


def record(engine: Engine, operations: Sequence[MemoryOperation]) -> bool:
    """Write operations to the journal, and wait a moment for their arrival; whether they have arrived."""
    _append(engine, operations)
    return _has_arrived(engine)


def _append(engine: Engine, operations: Sequence[MemoryOperation]) -> None:
    engine.append(list(operations), Urgency.MEMORY, Deadline.after(1.0))


def _has_arrived(engine: Engine) -> bool:
    return not engine.settings.hold and engine.writer.flush(Deadline.after(STORE_SECONDS))


def one_entry(memory: Memory, text: str) -> str:
    """A text as an entry; what would be cut or split is refused, because the operator can put it right."""
    most, masker = _reading(memory)
    found = entries_of(text, most)
    if not found:
        raise CareError("the text is empty; `forget` deletes, `mute` hides")
    if len(text.strip()) > most:
        raise CareError(f"the text has {len(text.strip()):,} characters, {most:,} are allowed")
    if len(found) > 1 or entries_of(found[0], most) != found:
        raise CareError("the text has a line with nothing but §, which would make it several entries")
    return masker.mask(found[0]).text


def _reading(memory: Memory) -> tuple[int, Masker]:
    """How the entries of files are read: as they are stored."""
    settings = memory.parsed.settings
    return settings.memory_max_chars, masker_for(settings.mask_secrets)
