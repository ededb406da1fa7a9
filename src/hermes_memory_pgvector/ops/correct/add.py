"""`add`: put a memory into a theme at once, through the journal; it is held by no home, and no file is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.ops.correct.changing import one_entry, record
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option
from hermes_memory_pgvector.text.names import theme_name
from hermes_memory_pgvector.values import TARGETS, AddMemory, RowOrigin, Target

if TYPE_CHECKING:
    from hermes_memory_pgvector.runtime.engine import Engine

LOOK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Added(Facts):
    """A memory that was put in."""

    agent_identity: str
    target: str
    content: str
    id: str | None = None
    """Its name; None while it waits in the journal."""
    notes: tuple[Note, ...] = ()


def add(memory: Memory, *, text: str, theme: str | None, target: Target) -> Added:
    """Put a memory into a theme."""
    from hermes_memory_pgvector.ops.parts import profile_theme

    content = one_entry(memory, text)
    settings = memory.parsed.settings
    name = theme_name(theme or "") or profile_theme(memory.home, settings)
    name = dict(settings.identity_aliases).get(name, name)
    if settings.allowed_themes and name not in settings.allowed_themes:
        raise UsageError(f"{name!r} is not among allowed_themes: {', '.join(sorted(settings.allowed_themes))}")
    with memory.engine() as engine:
        item = AddMemory(
            name, target, content, engine.clock.now(), "", metadata={"command": "add", "actor": memory.actor.name},
            written_by=RowOrigin.OPERATOR,
        )  # fmt: skip
        if not record(engine, [item]):
            told = Note("warning", f"it waits in the journal, and arrives in {name} when the database answers")
            return Added(name, target, content, notes=(told,))
        found, row = _found(engine, name, target, content)
    told = Note("ok", f"{row} stored in {found}") if row else Note("problem", "it was taken out again at once")
    return Added(found, target, content, row, (told,))


def _found(engine: Engine, theme: str, target: Target, content: str) -> tuple[str, str | None]:
    """The theme it has gone to, and its name there."""
    from hermes_memory_pgvector.store import gate, memories

    with engine.pool.transaction(Deadline.after(LOOK_SECONDS)) as connection:
        name = gate.look(connection).aliases.get(theme, theme)
        entry = memories.entries(connection, name, target).get(content)
    return name, None if entry is None else f"m{entry.id}"


ADD: Final = Operation(
    "add",
    "put a memory into a theme, at once",
    (
        Option("text", "one fact, in a sentence or two", parse.filled, required=True, metavar="TEXT"),
        Option("--theme", "theme to put it into (default: the theme of a chat in this home)", parse.filled,
               metavar="THEME"),
        Option("--target", "memory: facts; user: what concerns the person", default="memory", choices=TARGETS),
    ),
    add,
    (
        ("add 'The lathe part number is SKF-6203'", "every chat of this home recalls it"),
        ("add 'Prefers tea' --theme workshop --target user", "a fact about the person"),
    ),
    group="correct",
    acts=True,
)  # fmt: skip
