"""Whatever is stored, newest first. A page begins behind the row that the page before has named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from hermes_memory_pgvector.errors import CareError, UsageError
from hermes_memory_pgvector.ops import row
from hermes_memory_pgvector.ops.browse import shapes
from hermes_memory_pgvector.ops.browse.shapes import (
    EventRow,
    HiddenLine,
    RejectedLine,
    StoredRow,
)
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.store import audit_log, browse, dead_letters, hidden, history, receipts
from hermes_memory_pgvector.store.audit_log import AuditRow
from hermes_memory_pgvector.store.browse import ListPlace, SessionRow, StoredMemory, Theme
from hermes_memory_pgvector.store.receipts import Receipt
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.values import Kind

MANY: Final = 10_000
"""So many rejected records and receipts are looked through."""
Given = Mapping[str, Any]
NO_PAGE: Final = "{!r} is no page; take it from the end of the page before"


def page_of(connection: Connection, which: str, given: Given) -> tuple[list[Any], str | None]:
    """A page of a list, and what names the next one."""
    found, limit = LISTS[which](connection, given), given["limit"]
    return found[:limit], _name(found[limit - 1]) if len(found) > limit else None


def _name(line: Any) -> str:
    """What names a page that begins behind a line."""
    match line:
        case Theme():
            return line.theme
        case SessionRow():
            return row.name_of(Kind.TURN, line.last_id)
        case _:
            return str(line.id)


def place_of(
    connection: Connection, page: str | None, theme: str | None, until: datetime | None = None
) -> ListPlace | None:
    """The place of the row that a page stands behind; the first page begins where the list does."""
    if page is None:
        return None if until is None else ListPlace(until)
    name = parse.record_name(page)
    if name is None or name.letter not in "mt":
        raise UsageError(NO_PAGE.format(page))
    found = row.find(connection, name, theme)
    if isinstance(found, StoredMemory):
        return ListPlace(found.updated_at, found.id, Kind.MEMORY)
    return ListPlace(found.at, found.id, Kind.TURN)


# Each list has a row more than was asked for when another page follows.


def _stored(connection: Connection, given: Given, kinds: Sequence[Kind]) -> list[StoredRow]:
    before = place_of(connection, given["page"], given["theme"], given["until"])
    found = browse.rows(
        connection, kinds=kinds, theme=given["theme"], since=given["since"], before=before, limit=given["limit"] + 1,
        origin=given["origin"],
    )  # fmt: skip
    return [shapes.row_of(each) for each in found]


def _themes(connection: Connection, given: Given) -> list[Theme]:
    return _behind(browse.themes(connection, given["theme"]), given["page"])


def _sessions(connection: Connection, given: Given) -> list[SessionRow]:
    before = place_of(connection, given["page"], given["theme"], given["until"])
    return browse.sessions(connection, given["theme"], given["since"], before, given["limit"] + 1)


def _events(connection: Connection, given: Given) -> list[EventRow]:
    events = history.newest(
        connection, theme=given["theme"], since=given["since"], until=given["until"],
        before_id=parse.event_name(given["page"]).number if given["page"] else None, limit=given["limit"] + 1,
    )  # fmt: skip
    return [shapes.event_of(event) for event in events]


def _audit(connection: Connection, given: Given) -> list[AuditRow]:
    return audit_log.newest(
        connection, theme=given["theme"], action=given["action"], since=given["since"], until=given["until"],
        before_id=parse.positive(given["page"]) if given["page"] else None, limit=given["limit"] + 1,
    )  # fmt: skip


def _hidden(connection: Connection, given: Given) -> list[HiddenLine]:
    before = parse.positive(given["page"]) if given["page"] else None
    found = hidden.listed(connection, theme=given["theme"], before=before, limit=given["limit"] + 1)
    return [shapes.hidden_of(each) for each in found]


def _rejected(connection: Connection, given: Given) -> list[RejectedLine]:
    found = [
        RejectedLine(f"d{each.id}", each.at, each.size, each.reason, each.writer, each.position)
        for each in dead_letters.newest(connection, MANY)
    ]
    return _behind(found, given["page"])


def _receipts(connection: Connection, given: Given) -> list[Receipt]:
    return _behind(receipts.listed(connection, MANY), given["page"])


def _behind(found: list[Any], page: str | None) -> list[Any]:
    """What stands behind the line that names a page, in a list that is read whole."""
    names = [_name(each) for each in found]
    if page is not None and page not in names:
        raise CareError(NO_PAGE.format(page))
    return found if page is None else found[names.index(page) + 1 :]


LISTS: Final[Mapping[str, Callable[[Connection, Given], list[Any]]]] = {
    "rows": partial(_stored, kinds=tuple(Kind)),
    "memories": partial(_stored, kinds=(Kind.MEMORY,)),
    "turns": partial(_stored, kinds=(Kind.TURN,)),
    "themes": _themes,
    "sessions": _sessions,
    "events": _events,
    "audit": _audit,
    "hidden": _hidden,
    "rejected": _rejected,
    "receipts": _receipts,
}
