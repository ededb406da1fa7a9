"""`show`: one memory, turn, event or rejected record with all that is known of it; a session as it was said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.ops.browse.shapes import FILES, EventRow, event_of
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import amounts, parse
from hermes_memory_pgvector.terminal.fields import aside, body, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, command
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.values import MCP_HOLDER

if TYPE_CHECKING:
    from hermes_memory_pgvector.ops.row import Shown
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.store.browse import StoredMemory, StoredTurn


def _exactly(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S UTC}"


@dataclass(frozen=True, slots=True)
class RowFacts(Facts):
    """All that is known of a memory or a turn."""

    kind: str = column("what")
    id: str = column("id")
    agent_identity: str = column("theme")
    target: str | None = column("file", rare=True, show=FILES.get)
    session_id: str | None = column("session", rare=True)
    role: str | None = column("said by", rare=True)
    ts: datetime | None = column("said", rare=True, show=_exactly)
    created_at: datetime | None = column("written", rare=True, show=_exactly)
    updated_at: datetime | None = column("changed", rare=True, show=_exactly)
    held_by: str = column("held by", rare=True, is_aside=True)
    parent_session_id: str | None = column("continues", rare=True)
    told_origin: str = column("origin", is_aside=True)
    vector: Mapping[str, Any] | None = column("vector", show=lambda vector: vector["state"])
    hidden_by: int | None = column("hidden by rule", rare=True)
    metadata: Mapping[str, Any] | None = column("metadata", rare=True)
    content: str = body()
    history: tuple[EventRow, ...] = ()
    homes: Mapping[str, str] | None = None
    origin: str = ""
    untrusted: bool = False
    home_id: str | None = None
    notes: tuple[Note, ...] = aside(())


@dataclass(frozen=True, slots=True)
class EventFacts(Facts):
    """One change of a memory, with both wordings whole."""

    id: str = column("event")
    agent_identity: str = column("theme")
    action: str = column("what")
    target: str = column("file", show=FILES.get)
    ts: datetime | None = column("when", rare=True, show=_exactly)
    by: str = column("by")
    session_id: str | None = column("session", rare=True)
    home: str | None = column("home", rare=True, is_aside=True)
    old_text: str | None = column("before", rare=True)
    content: str | None = column("after", rare=True)
    kind: str = "event"
    home_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    notes: tuple[Note, ...] = aside(())


@dataclass(frozen=True, slots=True)
class RejectedItem:
    """What a rejected record holds: a turn, or a change of a memory."""

    kind: str = column("what")
    agent_identity: str = column("theme")
    characters: int = column("characters", right=True, default=0)
    content: str = column("text", text=True)


@dataclass(frozen=True, slots=True)
class RejectedFacts(Facts):
    """A record that Postgres has refused, and what it holds."""

    id: str = column("record")
    at: datetime | None = column("rejected", rare=True, show=_exactly)
    reason: str = column("reason")
    size: int = column("size", default=0, show=amounts.size)
    kind: str = "rejected"
    writer: str = ""
    position: int = 0
    items: tuple[RejectedItem, ...] = ()
    notes: tuple[Note, ...] = aside(())


@dataclass(frozen=True, slots=True)
class SaidLine:
    """A turn of a session, or a subagent that ended between two of them."""

    id: str = column("id")
    ts: datetime | None = column("when (UTC)")
    role: str = column("who")
    state: str = column("state", rare=True)
    content: str = column("", text=True, whole=True)
    origin: str = ""
    untrusted: bool = False
    hidden_by: int | None = None
    delegated_to: str | None = None


@dataclass(frozen=True, slots=True)
class SessionFacts(Facts):
    """A session in order, with the sessions it worked with."""

    session_id: str = column("session")
    agent_identity: str = column("theme")
    continues: str | None = column("continues", rare=True)
    works_for: tuple[str, ...] = column("worked for", rare=True, default=())
    turns: tuple[SaidLine, ...] = ()
    delegated_to: tuple[Mapping[str, Any], ...] = ()
    delegated_from: tuple[Mapping[str, Any], ...] = ()
    kind: str = "session"
    next: str | None = None
    notes: tuple[Note, ...] = aside(())


def show(memory: Memory, *, name: str, theme: str | None, page: str | None, limit: int) -> Facts:
    """What a name means: a row, an event, a rejected record, or a session."""
    found = parse.record_name(name)
    if found is None and name.strip().isdecimal():
        found = RecordName("", int(name.strip()))
    with memory.reading(theme) as connection:
        if found is None:
            return _session(connection, name, theme, page, limit)
        try:
            return _record(memory, connection, found, theme)
        except CareError:
            # A session may have any name.
            from hermes_memory_pgvector.store import browse

            if not browse.session_themes(connection, name):
                raise
            return _session(connection, name, theme, page, limit)


def _record(memory: Memory, connection: Connection, name: RecordName, theme: str | None) -> Facts:
    from hermes_memory_pgvector.ops import row

    if name.letter == "e":
        return _event(memory, connection, name, theme)
    if name.letter == "d":
        return _rejected(connection, name)
    return _row(memory, row.show(connection, name, theme))


def _row(memory: Memory, shown: Shown) -> RowFacts:
    from hermes_memory_pgvector.store.browse import StoredMemory

    row = shown.row
    own: dict[str, Any] = (
        {
            "target": row.target,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
            "homes": dict(row.homes),
            "held_by": _holders(memory, row.homes),
        }
        if isinstance(row, StoredMemory)
        else {"session_id": row.session_id, "role": row.role, "ts": row.at, "parent_session_id": row.parent_session_id}
    )
    return RowFacts(
        "memory" if isinstance(row, StoredMemory) else "turn", shown.name, row.theme, content=row.content,
        hidden_by=row.hidden_by, metadata=dict(row.metadata), origin=row.origin, untrusted=row.untrusted,
        home_id=row.home_id, told_origin=_origin_told(memory, row), notes=tuple(_advice(shown)),
        history=tuple(map(event_of, shown.history)),
        vector={"model": shown.model, "vectors": shown.vectors, "state": _vector_state(shown)}, **own,
    )  # fmt: skip


def _event(memory: Memory, connection: Connection, name: RecordName, theme: str | None) -> EventFacts:
    from hermes_memory_pgvector.store import history

    place = history.find(connection, name.number, theme)
    if place is None:
        raise CareError(f"there is no event {name}; `list events` shows them")
    events = history.of_theme(connection, *place)
    row = event_of(next(each for each in events if each.id == name.number))
    told = {key: value for key, value in asdict(row).items() if key != "told"}
    home = None if row.home_id is None else memory.named_home(row.home_id)
    return EventFacts(**told, home=home, notes=(Note("note", "to take it back", then=command("undo", str(name))),))


def _rejected(connection: Connection, name: RecordName) -> RejectedFacts:
    from hermes_memory_pgvector.store import dead_letters

    found = dead_letters.find(connection, name.number)
    if found is None:
        raise CareError(f"there is no rejected record {name}; `list rejected` shows them")
    letter, payload = found
    advice = Note("note", "once its cause is mended", then=command("journal", "retry", str(name)))
    return RejectedFacts(
        str(name), letter.at, letter.reason, letter.size, writer=letter.writer, position=letter.position,
        items=tuple(_items(payload)), notes=(advice,),
    )  # fmt: skip


def _items(payload: bytes) -> Iterator[RejectedItem]:
    """The items of a record; one that cannot be read is shown as it is."""
    from hermes_memory_pgvector.journal import codec

    try:
        items = codec.decode(payload)
    except ValueError:
        yield RejectedItem("unreadable", "", len(payload), payload.decode("utf-8", "replace"))
        return
    for item in items:
        content = getattr(item, "content", "") or getattr(item, "task", "")
        yield RejectedItem(type(item).__name__, item.theme, len(content), content)


def _session(connection: Connection, name: str, theme: str | None, page: str | None, limit: int) -> SessionFacts:
    """A session in order; sessions of the same name in several themes must be told apart."""
    from hermes_memory_pgvector.ops.browse.lists import place_of
    from hermes_memory_pgvector.store import browse

    themes = browse.session_themes(connection, name)
    if theme is None and len(themes) > 1:
        raise CareError(f"session {name} is in several themes; add --theme {' or --theme '.join(themes)}")
    if not themes or theme not in (None, *themes):
        where = f" in theme {theme}" if theme is not None else ""
        raise CareError(f"there is no session {name}{where}; `list sessions` shows them")
    inside = theme or themes[0]
    turns = browse.transcript(connection, inside, name, place_of(connection, page, theme), limit + 1)
    edges = browse.delegations(connection, inside, name)
    children = [edge for edge in edges if edge.session_id == name]
    parents = [edge for edge in edges if edge.child_session_id == name]
    return SessionFacts(
        name, inside, next((turn.parent_session_id for turn in turns[:limit] if turn.parent_session_id), None),
        tuple(edge.session_id for edge in parents), tuple(map(_said, turns[:limit])),
        tuple(map(asdict, children)), tuple(map(asdict, parents)),
        next=f"t{turns[limit - 1].id}" if len(turns) > limit else None,
        notes=tuple(Note("note", "subagent", then=command("show", edge.child_session_id)) for edge in children),
    )  # fmt: skip


def _said(turn: StoredTurn) -> SaidLine:
    return SaidLine(
        f"t{turn.id}", turn.at, turn.role, "hidden" if turn.hidden_by else "", turn.content, turn.origin,
        turn.untrusted, turn.hidden_by, turn.metadata.get("delegated_to"),
    )  # fmt: skip


def _origin_told(memory: Memory, row: StoredMemory | StoredTurn) -> str:
    """Where a row comes from, in words."""
    tools = row.metadata.get("tools")
    read = f" ({', '.join(map(str, tools))})" if isinstance(tools, list) and tools else ""
    told = [
        row.origin.replace("_", " "),
        f"untrusted: its exchange read a stranger's text{read}" if row.untrusted else "",
        memory.named_home(row.home_id) if row.home_id else "",
    ]
    return ", ".join(filter(None, told))


def _holders(memory: Memory, homes: Mapping[str, str]) -> str:
    held = [
        "other agents (mcp)" if home == MCP_HOLDER else f"{memory.named_home(home)} (by {origin})"
        for home, origin in sorted(homes.items())
    ]
    return ", ".join(held) or "no home: it stands in no MEMORY.md"


def _advice(shown: Shown) -> list[Note]:
    hiding = shown.hiding
    if hiding is None:
        return []
    why = f": {hiding.reason}" if hiding.reason else ""
    told = f"{hiding.rule} by {hiding.actor}, no recall finds it{why}"
    return [Note("warning", told, "to bring it back", command("mute", "--undo", str(hiding.id)))]


def _vector_state(shown: Shown) -> str:
    if shown.row.hidden_by is not None:
        return "none while hidden"
    if shown.vectors:
        return f"{shown.model}, {amounts.count(shown.vectors, 'piece')}"
    if shown.model is None:
        return "none: there is no model yet"
    if shown.row.pending_attempts is not None:
        return f"waiting for {shown.model}, tried {amounts.count(shown.row.pending_attempts, 'time')}"
    return f"none of {shown.model}; `reembed` makes it"


SHOW = Operation(
    "show",
    "show one memory, turn, event or session, and all about it",
    (
        Option("name", "m12 a memory, t34 a turn, e5 an event, d3 a rejected record; or a session", required=True,
               metavar="ID|SESSION"),
        Option("--theme", "look into this theme only", metavar="THEME"),
        Option("--limit", "of a session: turns a page (default: 200)", parse.positive, 200, metavar="N"),
        Option("--page", "of a session: the next page, as the one before names it", metavar="ID"),
    ),
    show,
    (
        ("show m12", "memory 12, as `list` names it"),
        ("show t345 --theme marketing", "turn 345"),
        ("show 20261116_0712_ab12", "what was said in a session that `list sessions` names"),
    ),
)  # fmt: skip
