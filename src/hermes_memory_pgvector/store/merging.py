"""One theme becomes another, in one transaction: rows that both have are one afterwards."""

from __future__ import annotations

from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import one, run
from hermes_memory_pgvector.store import flatten, history, memories
from hermes_memory_pgvector.values import TARGETS

SAME_SECONDS = 600.0
"""The same words in one session, no further apart, are one saying that was reported under both names."""


def contents(connection: Connection, theme: str, other: str) -> dict[str, int]:
    """What a theme holds, and how many of its memories another one has, too."""
    nouns = ("turns", "memories", "events", "recalls", "duplicates")
    return dict(zip(nouns, one(connection, "themes/contents", theme=theme, other=other), strict=True))


def is_referred_to(connection: Connection, theme: str) -> bool:
    """Whether a theme without rows is what others are called now, or has rules of its own."""
    return bool(one(connection, "themes/is_referred_to", theme=theme)[0])


def merge(connection: Connection, old: str, new: str) -> dict[str, int]:
    """With the gate closed: give everything of a theme to another, and whatever is written to it from now on."""
    moved: dict[str, int] = {}
    for _ in buckets.apart(connection, [old], str):
        moved = _moved(connection, old, new)
    layout = buckets.layout(connection)
    if layout.of(new) != layout.of(old):
        run(connection, "themes/set_place", theme=new, bucket=layout.of(old))
        buckets.forget(connection)
    return moved


def _moved(connection: Connection, old: str, new: str) -> dict[str, int]:

    def move(name: str) -> int:
        return run(connection, name, theme=old, other=new, window=SAME_SECONDS).rowcount

    both = [target for target in TARGETS if history.of_theme(connection, new, target)]
    move("themes/share_homes")
    twins = move("themes/drop_entries") + move("themes/drop_turns")
    move("themes/drop_waiting")
    moved = {
        "memories": move("themes/move_entries"),
        "turns": move("themes/move_turns"),
        "events": move("themes/move_history"),
        "recalls": move("themes/move_recalls"),
        "duplicates": twins,
    }
    for name in ("themes/move_waiting", "themes/move_rules", "themes/move_aliases"):
        move(name)
    run(connection, "themes/drop_alias", theme=new)
    run(connection, "themes/insert_alias", old=old, new=new)
    for target in both:
        # The histories of two themes do not lead to the entries of both together: a part of a text that meant one entry
        # in its own theme may mean another one beside more of them.
        wanted = {text: frozenset(entry.homes) for text, entry in memories.entries(connection, new, target).items()}
        flatten.apply(connection, new, flatten.flattened(history.of_theme(connection, new, target), wanted))
    return moved
