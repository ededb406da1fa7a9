"""One theme: its memories and turns in pages, single rows with their history, sessions as transcripts, delegations."""

from __future__ import annotations

from hermes_memory_pgvector.care import activity, changes, ids, see, themes
from hermes_memory_pgvector.store import browse
from hermes_memory_pgvector.values import NAMED_ORIGINS, Kind
from hermes_memory_pgvector.web import access, documents
from hermes_memory_pgvector.web.asked import MISSING, Asked, Document, Refused, plain

PAGE = 25
MOST = 100
TRANSCRIPT = 100
EDGES = 200


def theme(asked: Asked) -> Document:
    """How much a theme holds, how it grew, and which homes hold it."""
    name = asked.needed("theme")
    with access.reading(asked.home) as connection:
        themes.require(connection, name)
        found = themes.one(connection, name)
        if found is None:
            raise Refused(f"nothing is left of theme {name}", MISSING)
        grown = activity.growth(connection, [name])
    return {**plain(found), "growth": grown.days[name], "homes": grown.homes[name]}


def names(asked: Asked) -> Document:
    """The names of the themes, for a field that completes them."""
    needle, limit = asked.text("find").casefold(), asked.whole("limit", 20, 1, MOST)
    with access.reading(asked.home) as connection:
        found = [name for name in browse.theme_names(connection) if needle in name.casefold()]
    return {"names": found[:limit], "count": len(found)}


def rows(asked: Asked) -> Document:
    """Memories, turns or hidden rows of a theme, newest first."""
    which = asked.one_of("kind", "memory", "turn", "hidden")
    name, limit = asked.needed("theme"), asked.whole("limit", PAGE, 1, MOST)
    with access.reading(asked.home) as connection:
        found = see.rows(
            connection,
            kinds=see.BOTH if which == "hidden" else (Kind(which),),
            theme=name,
            page=asked.text("page") or None,
            limit=limit,
            origin=asked.one_of("origin", "", *NAMED_ORIGINS) or None,
            is_hidden=True if which == "hidden" else None,
        )
    return {
        "rows": [documents.row(each) for each in found.rows],
        "next": found.following,
    }


def row(asked: Asked) -> Document:
    """Everything about one memory or turn."""
    name, within = ids.parse_row(asked.needed("name")), asked.text("theme") or None
    with access.reading(asked.home) as connection:
        found = see.show(connection, name, within)
    return {
        "name": found.name,
        "kind": "memory" if found.name.startswith("m") else "turn",
        "row": documents.stored(found.row),
        "model": found.model,
        "vectors": found.vectors,
        "history": [documents.event(each) for each in found.history],
    }


def history(asked: Asked) -> Document:
    """What happened to a theme's memories, the last first."""
    name, page = asked.needed("theme"), asked.text("page")
    limit = asked.whole("limit", PAGE, 1, MOST)
    with access.reading(asked.home) as connection:
        before = ids.parse_event(page) if page else None
        found = changes.history(connection, theme=name, before=before, limit=limit)
    return {"events": [documents.event(each) for each in found.events], "next": found.following}


def sessions(asked: Asked) -> Document:
    """The sessions of a theme, last used first."""
    name, limit = asked.needed("theme"), asked.whole("limit", PAGE, 1, MOST)
    with access.reading(asked.home) as connection:
        found = see.sessions(connection, name, page=asked.text("page") or None, limit=limit)
    return {"sessions": plain(found.rows), "next": found.following}


def transcript(asked: Asked) -> Document:
    """A session in order, with the sessions around it."""
    name, session = asked.needed("theme"), asked.needed("session")
    limit = asked.whole("limit", TRANSCRIPT, 1, 2 * TRANSCRIPT)
    with access.reading(asked.home) as connection:
        found = see.transcript(
            connection,
            session,
            theme=name,
            page=asked.text("page") or None,
            limit=limit,
            showing=ids.parse_row(asked.text("turn")) if asked.text("turn") else None,
        )
    return {
        "theme": found.theme,
        "session_id": found.session_id,
        "turns": [documents.said(each) for each in found.turns],
        "children": plain(found.children),
        "parents": plain(found.parents),
        "next": found.following,
        "begins_later": found.begins_later,
    }


def delegations(asked: Asked) -> Document:
    """Which sessions of a theme worked for which, the newest first."""
    with access.reading(asked.home) as connection:
        found = see.delegations(connection, asked.needed("theme"), limit=EDGES + 1)
    return {"edges": plain(found[:EDGES]), "is_cut": len(found) > EDGES}
