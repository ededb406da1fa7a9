"""`mute`: hide memories and turns from every recall without deleting them, and bring them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_memory_pgvector.errors import CareError, UsageError
from hermes_memory_pgvector.ops.memory import Memory, NamedRow
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Plan, command
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.values import NAMED_ORIGINS, Kind

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.store.hidden import Bounds, Hiding, Key

SAMPLES = 5
NOUNS = {Kind.MEMORY: "memories", Kind.TURN: "turns"}


@dataclass(frozen=True, slots=True)
class Muting(Plan):
    """What is hidden or shown again; the rule's number takes it back."""

    rule: int | None = None
    themes: dict[str, int] = field(default_factory=dict)
    """How many rows of each theme."""
    unchanged: tuple[str, ...] = ()
    """Rows that were hidden before."""


def mute(
    memory: Memory,
    *,
    ids: Sequence[RecordName],
    session: str | None,
    origin: str | None,
    since: datetime | None,
    until: datetime | None,
    theme: str | None,
    reason: str | None,
    undo: str | None,
    execute: bool,
) -> Muting:
    """Hide the rows that are named, or those within bounds; or take a rule back."""
    from hermes_memory_pgvector.store.hidden import Bounds

    bounds = Bounds(theme, session, origin, since, until)
    if bool(ids) + bounds.are_given + (undo is not None) != 1 or (ids and until is not None):
        raise UsageError("name rows (m12, t34), or say which with --session, --origin or --since, or --undo a rule")
    if undo is not None and (until or reason):
        raise UsageError("--undo takes nothing else")
    if since is not None and until is not None and since >= until:
        raise UsageError("--since lies after --until, so nothing lies between them")
    with memory.changing(theme) as connection:
        if undo is not None:
            return _take_back(memory, connection, undo, theme, execute=execute)
        if ids:
            return _hide(memory, connection, _named(connection, ids, theme), None, reason or "", execute=execute)
        return _hide_within(memory, connection, bounds, reason or "", execute=execute)


def _hide_within(memory: Memory, connection: Connection, bounds: Bounds, reason: str, *, execute: bool) -> Muting:
    from hermes_memory_pgvector.store import gate, hidden

    if execute:
        # Whoever stores a row now has not seen the rule; the next one will.
        gate.close(connection)
    bounds = hidden.bounds_ending_now(bounds)
    return _hide(memory, connection, hidden.within(connection, bounds), bounds, reason, execute=execute)


def _hide(
    memory: Memory, connection: Connection, found: dict[Key, bool], bounds: Bounds | None, reason: str, *, execute: bool
) -> Muting:
    from hermes_memory_pgvector.store import hidden

    wanted = [key for key, is_hidden in found.items() if not is_hidden]
    rule, notes = None, _notes_on_files(connection, wanted)
    samples = _samples(connection, wanted)
    if execute and (wanted or bounds is not None):
        actor = memory.actor
        rules = hidden.mute(connection, actor.name, reason, actor.home_id, bounds, wanted)
        rule = rules[0]
        _note(memory, connection, "mute", rule, wanted)
        notes.append(Note("note", f"rule {rule}; to bring them back", then=command("mute", "--undo", str(rule))))
    return Muting(
        "hide", "hidden", _counts(wanted), samples, rule is not None, notes, rule=rule, themes=_themes(wanted),
        unchanged=tuple(name_of(key) for key, is_hidden in found.items() if is_hidden),
    )  # fmt: skip


def _take_back(memory: Memory, connection: Connection, undo: str, theme: str | None, *, execute: bool) -> Muting:
    from hermes_memory_pgvector.postgres import buckets
    from hermes_memory_pgvector.store import gate, hidden

    name = parse.record_name(undo)
    number = parse.positive(undo) if name is None else _rule_of(connection, name, theme)
    rule = hidden.find(connection, number)
    if rule is None:
        raise CareError(f"there is no rule {number}; `list hidden` shows them")
    if rule.undone_at is not None:
        raise CareError(f"rule {number} was taken back at {rule.undone_at:%Y-%m-%d %H:%M} UTC")
    rules = [number] if name is not None else hidden.twins(connection, number)
    keys = [key for each in rules for key in hidden.by_rule(connection, each)]
    if name is not None and len(keys) > 1:
        _refuse_part_of_a_rule(rule, name)
        keys = [key for key in keys if name_of(key) == str(name)]
    else:
        gate.close(connection)
    wants = memory.parsed.settings.embed_on_write
    # A dry run does it and takes it back: only then is it known which rows another rule keeps hidden.
    with connection.transaction(force_rollback=not execute):
        if name is not None and len(keys) < rule.turns + rule.memories:
            shown = [
                key
                for here in buckets.apart(connection, keys, lambda key: key.theme)
                for key in hidden.show(connection, here, wants_vectors=wants)
            ]
        else:
            shown = [
                key
                for _ in buckets.within(connection)
                for each in rules
                for key in hidden.end(connection, each, wants_vectors=wants)
            ]
    if execute:
        _note(memory, connection, "mute undo", number, shown)
    notes = []
    if len(shown) < len(keys):
        stays = f"{len(keys) - len(shown)} of them {'stay' if execute else 'would stay'} hidden by another rule"
        notes.append(Note("warning", stays, "see", command("list", "hidden")))
    return Muting(
        "bring back", "brought back", _counts(shown), _samples(connection, shown), execute, notes, rule=number,
        themes=_themes(shown),
    )  # fmt: skip


def _rule_of(connection: Connection, name: RecordName, theme: str | None) -> int:
    from hermes_memory_pgvector.ops.row import find

    found = find(connection, name, theme).hidden_by
    if found is None:
        raise CareError(f"{name} is not hidden")
    return found


def _refuse_part_of_a_rule(rule: Hiding, name: RecordName) -> None:
    if rule.is_open:
        raise CareError(f"{name} is hidden by rule {rule.id} with all that lies within its bounds: take that rule back")


def _named(connection: Connection, names: Sequence[RecordName], theme: str | None) -> dict[Key, bool]:
    from hermes_memory_pgvector.ops.row import find
    from hermes_memory_pgvector.store.browse import StoredMemory
    from hermes_memory_pgvector.store.hidden import Key

    rows = [find(connection, name, theme) for name in names]
    kinds = [Kind.MEMORY if isinstance(row, StoredMemory) else Kind.TURN for row in rows]
    return {
        Key(kind, row.theme, row.id): row.hidden_by is not None for kind, row in zip(kinds, rows, strict=True)
    }  # fmt: skip


def _samples(connection: Connection, keys: Collection[Key]) -> list[NamedRow]:
    from hermes_memory_pgvector.ops.row import find

    few = list(keys)[:SAMPLES]
    rows = [find(connection, parse.row_name(name_of(key)), key.theme) for key in few]
    return [NamedRow(name_of(key), key.theme, row.content) for key, row in zip(few, rows, strict=True)]


def _notes_on_files(connection: Connection, keys: Collection[Key]) -> list[Note]:
    from hermes_memory_pgvector.store import hidden

    standing = hidden.in_files(connection, keys)
    if not standing:
        return []
    told = "1 memory of these stands" if standing == 1 else f"{standing} memories of these stand"
    return [Note("warning", f"{told} in a MEMORY.md or USER.md, which the host shows its agents by itself")]


def _note(memory: Memory, connection: Connection, action: str, rule: int, keys: Collection[Key]) -> None:
    from hermes_memory_pgvector.ops import audit

    themes = {key.theme for key in keys}
    audit.record(
        connection, memory.actor, action, theme=themes.pop() if len(themes) == 1 else "", subject=f"rule {rule}",
        counts=_counts(keys),
    )  # fmt: skip


def _counts(keys: Collection[Key]) -> dict[str, int]:
    counted = Counter(key.kind for key in keys)
    return {noun: counted[kind] for kind, noun in NOUNS.items()}


def _themes(keys: Collection[Key]) -> dict[str, int]:
    return dict(Counter(key.theme for key in keys).most_common())


def name_of(key: Key) -> str:
    """How people name a row."""
    from hermes_memory_pgvector.ops import row

    return row.name_of(key.kind, key.id)


MUTE = Operation(
    "mute",
    "hide memories and turns from every recall, or bring them back",
    (
        Option("ids", "m12 for a memory, t34 for a turn", parse.row_name, many=True, metavar="ID"),
        Option("--session", "what this session wrote, and what it writes from now on", parse.filled, metavar="ID"),
        Option("--origin", "what comes from there", str.lower, choices=NAMED_ORIGINS, metavar="ORIGIN"),
        Option("--since", f"what is from then on: {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
        Option("--until", "what is from before then; a date includes its whole day", parse.end, metavar="TIME"),
        Option("--theme", "only in this theme", parse.filled, metavar="THEME"),
        Option("--reason", "why, for whoever reads `list hidden`", metavar="TEXT"),
        Option("--undo", "take back the rule of this number, or show this row again", metavar="N|ID"),
    ),
    mute,
    (
        ("mute m12 t345", "show what would be hidden; --execute does it"),
        ("mute --session 20261116_065810_897385", "a session, and what it still says"),
        ("mute --origin web --since 2d --execute", "what came out of turns that read the web in two days"),
        ("mute --undo 3 --execute", "bring back what rule 3 of `list hidden` hides"),
    ),
    group="correct",
    changes=True,
)  # fmt: skip
