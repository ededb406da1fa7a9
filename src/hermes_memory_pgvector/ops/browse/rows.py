"""`list`: whatever is stored, newest first, in pages or as it comes."""

from __future__ import annotations

from typing import Any, Final

from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Operation, Option, Page, Stream
from hermes_memory_pgvector.values import NAMED_ORIGINS

KINDS: Final = ("memories", "turns", "themes", "sessions", "events", "audit", "hidden", "rejected", "receipts")
EMPTY: Final = {
    "events": "No memory was changed there at that time.",
    "audit": "Nothing is in the log for this.",
    "hidden": "Nothing is hidden.",
    "rejected": "No record was rejected.",
    "receipts": "Nothing was ever forgotten.",
}


def list_rows(memory: Memory, *, what: str | None, follow: bool = False, **given: Any) -> Page | Stream:
    """A page of what was asked for; without a word, memories and turns together."""
    from hermes_memory_pgvector.ops.browse import lists
    from hermes_memory_pgvector.ops.browse.follow import news

    which = what or "rows"
    _check(which, given, is_following=follow)
    if follow:
        return Stream(news(memory, which, given["theme"], given["limit"]), is_endless=True)
    with memory.reading(None if which in ("audit", "hidden") else given["theme"]) as connection:
        shown, following = lists.page_of(connection, which, given)
    return Page(shown, following, empty=EMPTY.get(which, "Nothing is stored for this."))


ROWS: Final = ("rows", "memories", "turns")
TAKES: Final = {
    "theme": ("rows", *KINDS[:7]),
    "origin": ROWS,
    "since": (*ROWS, "sessions", "events", "audit"),
    "until": (*ROWS, "sessions", "events", "audit"),
    "action": ("audit",),
}


def _check(which: str, given: dict[str, Any], *, is_following: bool) -> None:
    """Refuse options that would be ignored: whoever gives one takes the list for what it is not."""
    for name, lists in TAKES.items():
        if given[name] is not None and which not in lists:
            raise UsageError(f"list {which} does not go with --{name}")
    if is_following:
        if which not in (*ROWS, "events"):
            raise UsageError(f"list {which} does not go with --follow")
        for name in ("origin", "since", "until", "page"):
            if given[name] is not None:
                raise UsageError(f"--follow does not go with --{name}")


LIST = Operation(
    "list",
    "list memories, turns, sessions, events and more, newest first",
    (
        Option("what", "what to list (default: memories and turns)", choices=KINDS),
        Option("--theme", "only this theme (default: all)", metavar="THEME"),
        Option("--origin", "only what comes from there", str.lower, choices=NAMED_ORIGINS, metavar="ORIGIN"),
        Option("--since", f"only from then on: {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
        Option("--until", "only before then; a date includes its whole day", parse.end, metavar="TIME"),
        Option("--action", "of audit: only this command, for example forget", metavar="NAME"),
        Option("--limit", "rows a page (default: 20)", parse.positive, 20, metavar="N"),
        Option("--page", "the next page, as the one before names it", metavar="ID"),
        Option("--follow", "go on with what arrives, until Ctrl-C", is_flag=True, on_page=False),
    ),
    list_rows,
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
)  # fmt: skip
