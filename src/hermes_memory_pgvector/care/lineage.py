"""Which sessions go on from which, and who worked for whom: sessions as trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermes_memory_pgvector.store import browse
from hermes_memory_pgvector.store.browse import Relative, SessionRow
from hermes_memory_pgvector.store.pool import Connection

MOST = 200
"""So many sessions of one theme are shown together."""
BEGINNING_CHARS = 80
LOOSE = frozenset({"resume", "new"})
"""The session before is only the one that was left: nothing goes on from it."""
DELEGATION = "delegation"
CONTINUES = "continues"


@dataclass(frozen=True, slots=True)
class Branch:
    """A session with all that came of it."""

    theme: str
    session_id: str
    via: str
    """How it came from the one above: branch, compression, delegation, or continues where nobody said how."""
    after: str
    """The session that was left for this one, if it goes on from none."""
    turns: int
    first: datetime | None
    last: datetime | None
    begins_with: str
    children: tuple[Branch, ...]

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "agent_identity": self.theme,
            "session_id": self.session_id,
            "via": self.via or None,
            "after": self.after or None,
            "turns": self.turns,
            "first": self.first,
            "last": self.last,
            "begins_with": self.begins_with,
            "children": [each.document() for each in self.children],
        }


def trees(connection: Connection, rows: Sequence[SessionRow]) -> list[Branch]:
    """The trees that these sessions stand in, in the order of the sessions."""
    found: list[Branch] = []
    for theme in dict.fromkeys(row.theme for row in rows):
        named = [row.session_id for row in rows if row.theme == theme]
        found += grown(theme, browse.family(connection, theme, named, MOST, BEGINNING_CHARS))
    places = {(row.theme, row.session_id): place for place, row in enumerate(rows)}
    return sorted(found, key=lambda tree: min(_places(tree, places), default=len(places)))


def grown(theme: str, relatives: Sequence[Relative]) -> list[Branch]:
    """Trees of what belongs together; whatever goes in a circle is cut where it begins."""
    known = {each.session_id: each for each in relatives}
    above: dict[str, tuple[str, str]] = {}
    for each in relatives:
        parent, via = _parent(each)
        if parent in known and not _is_above(each.session_id, parent, above):
            above[each.session_id] = (parent, via)
    below: dict[str, list[str]] = {}
    for child, (parent, _) in above.items():
        below.setdefault(parent, []).append(child)
    made: dict[str, Branch] = {}
    roots = [each.session_id for each in relatives if each.session_id not in above]
    for name in _leaves_first(roots, below):
        each = known[name]
        made[name] = Branch(
            theme, name, above[name][1] if name in above else "",
            each.parent if each.parent and each.kind in LOOSE else "",
            each.turns, each.first, each.last, each.begins_with or "",
            tuple(made[child] for child in below.get(name, ())),
        )  # fmt: skip
    return [made[name] for name in roots]


def _parent(each: Relative) -> tuple[str, str]:
    if each.parent and each.kind not in LOOSE:
        return each.parent, each.kind or CONTINUES
    return (each.delegated_by, DELEGATION) if each.delegated_by else ("", "")


def _is_above(name: str, other: str, above: dict[str, tuple[str, str]]) -> bool:
    """Whether a session is the other one, or stands somewhere above it."""
    while other != name:
        if other not in above:
            return False
        other = above[other][0]
    return True


def _leaves_first(roots: Iterable[str], below: dict[str, list[str]]) -> list[str]:
    """Children before their parents; a chain may be longer than Python's stack."""
    order: list[str] = []
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        order.append(name)
        waiting += below.get(name, ())
    return order[::-1]


def _places(tree: Branch, places: dict[tuple[str, str], int]) -> list[int]:
    found = []
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        if (each.theme, each.session_id) in places:
            found.append(places[each.theme, each.session_id])
        waiting += each.children
    return found
