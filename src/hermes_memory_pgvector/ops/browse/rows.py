"""`list`: whatever is stored, newest first, in pages or as it comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.errors import CareError, UsageError
from hermes_memory_pgvector.ops.browse.follow import follow
from hermes_memory_pgvector.ops.browse.shapes import (
    AuditLine,
    EventRow,
    HiddenLine,
    ReceiptLine,
    RejectedLine,
    SessionLine,
    StoredRow,
    ThemeLine,
    event_of,
    hidden_of,
    row_of,
)
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Operation, Option, Page, Stream
from hermes_memory_pgvector.values import NAMED_ORIGINS, Kind

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection

MANY: Final = 10_000
"""So many rejected records and receipts are looked through."""
Given = Mapping[str, Any]
EMPTY: Final = {
    "events": "No memory was changed there at that time.",
    "audit": "Nothing is in the log for this.",
    "hidden": "Nothing is hidden.",
    "rejected": "No record was rejected.",
    "receipts": "Nothing was ever forgotten.",
}


def list_rows(memory: Memory, *, what: str | None, follow_on: bool = False, **given: Any) -> Page | Stream:
    """A page of what was asked for; without a word, memories and turns together."""
    which = what or "rows"
    _check(which, given, is_following=follow_on)
    if follow_on:
        return Stream(follow(memory, which, given["theme"], given["limit"]))
    with memory.reading() as connection:
        rows, following = LISTS[which](connection, given)
    return Page(rows, following, empty=EMPTY.get(which, "Nothing is stored for this."))


def _stored(connection: Connection, given: Given, kinds: tuple[Kind, ...]) -> tuple[list[Any], str | None]:
    from hermes_memory_pgvector.ops.browse import pages

    rows, following = pages.rows(
        connection,
        kinds=kinds,
        theme=given["theme"],
        since=given["since"],
        until=given["until"],
        page=given["page"],
        limit=given["limit"],
        origin=given["origin"],
    )
    return [row_of(row) for row in rows], following


def _themes(connection: Connection, given: Given) -> tuple[list[Any], str | None]:
    from hermes_memory_pgvector.ops import known_themes
    from hermes_memory_pgvector.store import browse

    if given["theme"] is not None:
        known_themes.require(connection, given["theme"])
    found = [ThemeLine(**asdict(each)) for each in browse.themes(connection, given["theme"])]
    return _cut(found, given, lambda each: each.theme)


def _sessions(connection: Connection, given: Given) -> tuple[list[Any], str | None]:
    from hermes_memory_pgvector.ops.browse import pages

    found, following = pages.sessions(
        connection,
        given["theme"],
        since=given["since"],
        until=given["until"],
        page=given["page"],
        limit=given["limit"],
    )
    rows = [{name: value for name, value in asdict(row).items() if name != "last_id"} for row in found]
    return [SessionLine(**row) for row in rows], following


def _events(connection: Connection, given: Given) -> tuple[list[Any], str | None]:
    from hermes_memory_pgvector.ops import known_themes
    from hermes_memory_pgvector.store import history

    if given["theme"] is not None:
        known_themes.require(connection, given["theme"])
    events = history.newest(
        connection, theme=given["theme"], since=given["since"], until=given["until"],
        before_id=parse.event_name(given["page"]).number if given["page"] else None, limit=given["limit"] + 1,
    )  # fmt: skip
    shown = events[: given["limit"]]
    return [event_of(event) for event in shown], f"e{shown[-1].id}" if len(events) > len(shown) else None


def _audit(connection: Connection, given: Given) -> tuple[list[Any], str | None]:
    from hermes_memory_pgvector.store import audit_log

    own_login = connection.info.user
    rows = audit_log.newest(
        connection, theme=given["theme"], action=given["action"], since=given["since"], until=given["until"],
        before_id=parse.positive(given["page"]) if given["page"] else None, limit=given["limit"] + 1,
    )  # fmt: skip
    shown = rows[: given["limit"]]
    # Who it was is what somebody said; the login is what Postgres knows.
    lines = [
        AuditLine(who=each.actor if each.login == own_login else f"{each.actor} ({each.login})", **asdict(each))
        for each in shown
    ]
    return lines, str(shown[-1].id) if len(rows) > len(shown) else None


def _hidden(connection: Connection, given: Given) -> tuple[list[Any], str | None]:
    from hermes_memory_pgvector.store import hidden

    before = parse.positive(given["page"]) if given["page"] else None
    found = hidden.listed(connection, theme=given["theme"], before=before, limit=given["limit"] + 1)
    shown = found[: given["limit"]]
    return [hidden_of(each) for each in shown], str(shown[-1].id) if len(found) > len(shown) else None


def _rejected(connection: Connection, given: Given) -> tuple[list[Any], str | None]:
    from hermes_memory_pgvector.store import dead_letters

    found = [
        RejectedLine(f"d{each.id}", each.at, each.size, each.reason, each.writer, each.position)
        for each in dead_letters.newest(connection, MANY)
    ]
    return _cut(found, given, lambda each: each.id)


def _receipts(connection: Connection, given: Given) -> tuple[list[Any], str | None]:
    from hermes_memory_pgvector.store import receipts

    found = [ReceiptLine(**asdict(each)) for each in receipts.listed(connection, MANY)]
    return _cut(found, given, lambda each: str(each.id))


LISTS: Final[Mapping[str, Callable[[Connection, Given], tuple[list[Any], str | None]]]] = {
    "rows": lambda connection, given: _stored(connection, given, (Kind.MEMORY, Kind.TURN)),
    "memories": lambda connection, given: _stored(connection, given, (Kind.MEMORY,)),
    "turns": lambda connection, given: _stored(connection, given, (Kind.TURN,)),
    "themes": _themes,
    "sessions": _sessions,
    "events": _events,
    "audit": _audit,
    "hidden": _hidden,
    "rejected": _rejected,
    "receipts": _receipts,
}
TAKES: Final = {
    "theme": tuple(each for each in LISTS if each not in ("rejected", "receipts")),
    "origin": ("rows", "memories", "turns"),
    "since": ("rows", "memories", "turns", "sessions", "events", "audit"),
    "until": ("rows", "memories", "turns", "sessions", "events", "audit"),
    "action": ("audit",),
}


def _check(which: str, given: Given, *, is_following: bool) -> None:
    """Refuse options that would be ignored: whoever gives one takes the list for what it is not."""
    for name, lists in TAKES.items():
        if given[name] is not None and which not in lists:
            raise UsageError(f"list {which} does not go with --{name}")
    if is_following:
        if which not in ("rows", "memories", "turns", "events"):
            raise UsageError(f"list {which} does not go with --follow")
        for name in ("origin", "since", "until", "page"):
            if given[name] is not None:
                raise UsageError(f"--follow does not go with --{name}")


def _cut(found: list[Any], given: Given, name: Callable[[Any], str]) -> tuple[list[Any], str | None]:
    """A page of a list that is read whole; it begins behind the row that the page before has named."""
    begin = 0
    if given["page"] is not None:
        places = [place for place, each in enumerate(found) if name(each) == given["page"]]
        if not places:
            raise CareError(f"{given['page']!r} is no page; take it from the end of the page before")
        begin = places[0] + 1
    shown = found[begin : begin + given["limit"]]
    return shown, name(shown[-1]) if begin + len(shown) < len(found) else None


LIST = Operation(
    "list",
    "list memories, turns, sessions, events and more, newest first",
    (
        Option("what", "what to list (default: memories and turns)", choices=tuple(LISTS)[1:]),
        Option("--theme", "only this theme (default: all)", metavar="THEME"),
        Option("--origin", "only what comes from there", str.lower, choices=NAMED_ORIGINS, metavar="ORIGIN"),
        Option("--since", f"only from then on: {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
        Option("--until", "only before then; a date includes its whole day", parse.end, metavar="TIME"),
        Option("--action", "of audit: only this command, for example forget", metavar="NAME"),
        Option("--limit", "rows a page (default: 20)", parse.positive, 20, metavar="N"),
        Option("--page", "the next page, as the one before names it", metavar="ID"),
        Option("--follow", "go on with what arrives, until Ctrl-C", is_flag=True, on_page=False),
    ),
    lambda memory, *, follow, **given: list_rows(memory, follow_on=follow, **given),
    (
        ("list memories --theme marketing", "what a theme knows"),
        ("list turns --since 7d --limit 50", "what was said in the last week, in every theme"),
        ("list events --theme marketing", "how its memories changed"),
        ("list sessions --since 30d", "the conversations of the last month"),
        ("list --theme marketing --follow", "what arrives there, as it arrives"),
        ("list --origin web --since 7d", "what came out of turns that read the web"),
        ("list audit --since 30d --action forget", "what was forgotten lately, and by whom"),
    ),
    aliases={"history": {"what": "events"}},
    rows=(StoredRow, EventRow, ThemeLine, SessionLine, AuditLine, HiddenLine, RejectedLine, ReceiptLine),
)  # fmt: skip
