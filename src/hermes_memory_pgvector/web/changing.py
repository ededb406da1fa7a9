"""What the page changes. Each change is asked for twice: first it says what it would do and gives that plan a digest;
then the digest comes back, and it is done only if the plan is still the same.
"""

from __future__ import annotations

from collections.abc import Callable

from hermes_memory_pgvector.care import changes, ids
from hermes_memory_pgvector.care.actor import operator
from hermes_memory_pgvector.care.changes import Correction, Hand
from hermes_memory_pgvector.care.forgetting import Forgetting, Plan, check_theme, waiting_themes
from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.runtime.engine import Engine
from hermes_memory_pgvector.store.selection import Selection
from hermes_memory_pgvector.values import Kind
from hermes_memory_pgvector.web import access, documents
from hermes_memory_pgvector.web.asked import CHANGED, Asked, Document, Refused, digest_of, plain

SAMPLES = 5
NOT_THE_SAME = "what is stored has changed since this was shown; look at it again and confirm anew"
Change = Callable[[Connection, bool], Document]


def undo(asked: Asked) -> Document:
    """Put back what an event changed."""
    number, theme, hand = ids.parse_event(asked.needed("event")), asked.needed("theme"), _hand(asked)

    def change(connection: Connection, execute: bool) -> Document:
        return _correction(changes.undo(connection, number, hand, execute=execute, theme=theme))

    return confirmed(asked, "undo", change)


def remove(asked: Asked) -> Document:
    """Take a memory out of the memory, so that it can be put back."""
    name, theme, hand = ids.parse_row(asked.needed("name")), asked.needed("theme"), _hand(asked)

    def change(connection: Connection, execute: bool) -> Document:
        done = _correction(changes.remove(connection, name, hand, execute=execute, theme=theme))
        if done["executed"]:
            newest = changes.history(connection, theme=theme, limit=1).events
            done["event"] = f"e{newest[0].id}"
        return done

    return confirmed(asked, "remove", change)


def forget(asked: Asked) -> Document:
    """Erase a row, a session or a theme for good, and leave a receipt."""
    engine = access.engine_of(asked.home)
    selection, named = _selection(asked)
    forgetting = Forgetting(engine.pool, asked.home, engine.settings, [selection], named)
    if selection.theme is not None and forgetting.unfinished() is None:
        with access.reading(asked.home) as connection:
            check_theme(connection, selection.theme, waiting_themes(asked.home))
    plan = forgetting.plan()
    # What a recall notes in the log meanwhile is no reason to ask again; what somebody said is.
    digest = digest_of(
        "forget",
        selection,
        [each.id for each in plan.memories],
        plan.themes,
        {name: plan.counts[name] for name in ("history", "delegations", "dead_letters")},
    )
    given = asked.text("confirm")
    if not given:
        return {"executed": False, "digest": digest, **_plan(plan)}
    if given != digest:
        raise Refused(NOT_THE_SAME, CHANGED, {"digest": digest, **_plan(plan)})
    done = forgetting.carry_out(operator(asked.home))
    return {
        "executed": True,
        "receipt": done.receipt.id,
        "counts": dict(done.receipt.counts),
        "unreached": list(done.receipt.unreached),
        "files": [f"{each.path}, line {each.line}" for each in done.standing],
        "host_messages": done.host_messages,
    }


def confirmed(asked: Asked, action: str, change: Change) -> Document:
    """The plan, or what was done; both in one transaction, so that nobody comes in between."""
    given = asked.text("confirm")
    with access.changing(asked.home) as connection:
        planned = change(connection, False)
        digest = digest_of(action, planned)
        if not given:
            return {**planned, "digest": digest}
        if given != digest:
            raise Refused(NOT_THE_SAME, CHANGED, {**planned, "digest": digest})
        done = change(connection, True)
    access.embed_soon(asked.home)
    return done


def _hand(asked: Asked) -> Hand:
    settings = _engine(asked).settings
    clock = Clock.of_home(data_folder(asked.home))
    return Hand(
        operator(asked.home), clock.now, settings.embed_on_write, settings.memory_max_chars, settings.history_days
    )


def _engine(asked: Asked) -> Engine:
    return access.engine_of(asked.home)


def _selection(asked: Asked) -> tuple[Selection, list[str]]:
    theme = asked.needed("theme")
    what = asked.one_of("what", "row", "session", "theme")
    if what == "row":
        name = ids.parse_row(asked.needed("name"))
        if name.kind is None:
            raise Refused("say which row is meant: m12 is a memory, t34 is a turn")
        is_memory = name.kind is Kind.MEMORY
        rows = (name.id,)
        return Selection(theme=theme, memory_ids=rows if is_memory else None, turn_ids=None if is_memory else rows), [
            "theme",
            "id",
        ]
    if what == "session":
        return Selection(theme=theme, session_id=asked.needed("session")), ["theme", "session"]
    return Selection(theme=theme), ["theme"]


def _correction(found: Correction) -> Document:
    return {
        "executed": found.executed,
        "theme": found.theme,
        "remove": [text for change in found.changes for text in change.remove],
        "restore": [text for change in found.changes for text in change.restore],
        "blocked": [
            {"file": "MEMORY.md" if change.target == "memory" else "USER.md", **plain(each)}
            for change in found.changes
            for each in change.blocked
        ],
    }


def _plan(plan: Plan) -> Document:
    return {
        "counts": {name: number for name, number in plan.counts.items() if number},
        "is_empty": plan.is_empty,
        "themes": plain(plan.themes),
        "samples": [
            *({"name": f"m{each.id}", **documents.cut(each.content)} for each in plan.memories[:SAMPLES]),
            *({"name": f"t{each.id}", **documents.cut(each.content)} for each in plan.sample),
        ],
        "files": [f"{each.path}, line {each.line}" for each in plan.standing],
        "host_messages": plan.host_messages,
    }
