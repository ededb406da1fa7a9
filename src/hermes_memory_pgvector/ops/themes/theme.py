"""`theme rename` and `theme merge`: everything of a theme goes to another name, in one transaction.

Writers wait in their journals meanwhile; what is written to the old name from then on goes to the new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Plan
from hermes_memory_pgvector.text.names import theme_name
from hermes_memory_pgvector.values import is_private_theme

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.postgres.pool import Connection

TURNS_A_SECOND: Final = 4000
WORTH_SAYING_SECONDS: Final = 10


def theme(memory: Memory, *, what: str, old: str | None, new: str | None, execute: bool) -> Plan:
    """Say what would be moved, or move it."""
    from hermes_memory_pgvector.ops import audit
    from hermes_memory_pgvector.store import merging

    old, new = theme_name(old or ""), theme_name(new or "")
    if not old or not new:
        raise ConfigError("name two themes: the one that goes, and the one that gets everything")
    with progress.shown(f"theme {what}"), memory.rewriting(execute=execute) as connection:
        _check(connection, what, old, new)
        held = merging.contents(connection, old, new)
        counts = held
        if execute:
            counts = merging.merge(connection, old, new)
            subject = f"from {old}"[:200]
            audit.record(connection, memory.actor, f"theme {what}", theme=new, subject=subject,
                         counts=counts)  # fmt: skip
    seconds = held["turns"] / TURNS_A_SECOND
    wait = (
        [Note("note", f"this takes about {seconds:,.0f} seconds; what is said meanwhile waits in the journals")]
        if not execute and seconds >= WORTH_SAYING_SECONDS
        else []
    )
    return Plan(
        f"{what} {old} to {new}, with",
        f"{what}d, {old} to {new}",
        counts,
        executed=execute,
        notes=(*wait, *_notes(old, new, memory.parsed.settings)),
    )


def _check(connection: Connection, what: str, old: str, new: str) -> None:
    from hermes_memory_pgvector.ops import known_themes
    from hermes_memory_pgvector.postgres import buckets
    from hermes_memory_pgvector.store import gate, merging

    if old == new:
        raise ConfigError("the two themes are the same")
    there = gate.theme_names(connection)
    known_themes.require(connection, old)
    beyond = gate.look(connection).aliases.get(new)
    if beyond is not None and beyond != old:
        raise ConfigError(f"theme {new!r} was merged into {beyond!r}; name that one")
    if what == "rename" and new in there:
        raise ConfigError(f"there is a theme {new!r} already; to put both together: theme merge {old} {new}")
    layout = buckets.layout(connection)
    if new in there and layout.of(old) != layout.of(new):
        raise ConfigError(
            f"{old!r} lies in bucket {layout.of(old)} and {new!r} in bucket {layout.of(new)}: themes of one bucket can "
            f"be put together; export {old!r}, give its lines the other name, and import them"
        )
    if layout.of(old) != layout.of(new) and merging.is_referred_to(connection, new):
        raise ConfigError(f"theme {new!r} was in use before, in another bucket; name another")


def _notes(old: str, new: str, settings: Settings) -> Iterator[Note]:
    yield Note("note", f"what is written to {old} from then on goes to {new}")
    if is_private_theme(old) and not is_private_theme(new):
        yield Note("warning", f"{old} is private: in {new} everybody who searches all themes finds it")
    if is_private_theme(new) and not is_private_theme(old):
        yield Note("warning", f"{new} is private: nobody else finds there what they now find in {old}")
    rules = dict(settings.days_of_themes)
    if old in rules and rules[old] != rules.get(new, settings.turn_days):
        yield Note("warning", f"the settings say how long {old} keeps its turns", f"name {new} there instead")


THEME: Final = Operation(
    "theme",
    "give everything of a theme another name, or to another theme",
    (
        Option("what", "rename: NEW does not exist yet; merge: it gets what OLD has, too", choices=("rename", "merge"),
               required=True),
        Option("old", "the theme that goes", metavar="OLD", also="--old"),
        Option("new", "the theme that gets everything", metavar="NEW", also="--new"),
    ),
    theme,
    (
        ("theme rename sales marketing", "what would be renamed: a dry run"),
        ("theme merge sales marketing --execute", "marketing gets everything; what is said to sales follows"),
    ),
    group="correct",
    changes=True,
    aliases={"remap": {"what": "merge"}},
)  # fmt: skip
