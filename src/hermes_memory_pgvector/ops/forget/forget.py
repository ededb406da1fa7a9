"""`forget`: what is named goes for good, and a receipt says what is left; or what is too old, or secret, or is left."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse, progress
from hermes_memory_pgvector.terminal.operation import Facts, Operation, Option, Plan
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.text.names import theme_name


def forget(
    memory: Memory,
    *,
    ids: Sequence[RecordName],
    theme: str | None,
    session: str | None,
    user: str | None,
    match: str | None,
    before: datetime | None,
    expired: bool,
    secrets: bool,
    verify: int | None,
    execute: bool,
) -> Plan | Facts:
    """Say what would be forgotten, forget it, or prove that it is."""
    from hermes_memory_pgvector.ops.forget import expired as expiring
    from hermes_memory_pgvector.ops.forget import masking, request, verification

    given = {"ids": bool(ids), "session": session, "user": user, "match": match, "before": before}
    others = [name for name, value in given.items() if value]
    theme = None if theme is None else theme_name(theme)
    modes = [expired, secrets, verify is not None]
    if sum(modes) > 1 or (any(modes) and [name for name in others if not (verify and name == "match")]):
        raise UsageError("--expired, --secrets and --verify say by themselves what is meant")
    if verify is not None:
        if execute:
            raise UsageError("--verify only looks")
        with progress.shown(f"looking for what receipt {verify} names"):
            return verification.verify(memory, verify, match, theme)
    if expired:
        with progress.shown("forget --expired"):
            return expiring.run(memory, theme, execute=execute)
    if secrets:
        with progress.shown("forget --secrets"):
            return masking.mask(memory, theme, execute=execute)
    options = ([] if theme is None else ["theme"]) + others
    if not options:
        raise UsageError(
            "say what to forget: m12, --theme, --session, --user, --match, --before, --expired or --secrets"
        )
    named = request.named_by(memory, ids, theme, session, user, match, before)
    with progress.shown("forget") as bar:
        return request.Request(memory, named, options, bar).run(execute=execute)


def record(text: str) -> RecordName:
    """The name of anything that can be forgotten."""
    found = parse.record_name(text)
    if found is None:
        raise UsageError(f"{text!r} names nothing: m12 is a memory, t34 a turn, e5 an event, d3 a rejected record")
    return found


FORGET: Final = Operation(
    "forget",
    "erase for good what you name, keep it out, and leave a receipt",
    (
        Option("ids", "m12 a memory, t34 a turn, e5 an event, d3 a rejected record", record, many=True, metavar="ID"),
        Option("--theme", "everything of a theme; with other options only in it", parse.filled, metavar="THEME"),
        Option("--session", "everything of a conversation", parse.filled, metavar="ID"),
        Option("--user", "a person or room: dm-…, group-…, or a platform key", parse.filled, metavar="KEY"),
        Option("--match", "whatever holds this text, however it is written", parse.filled, metavar="TEXT"),
        Option("--before", f"only what is older: {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
        Option("--expired", "what is older than the setting ttl_days keeps it", is_flag=True),
        Option("--secrets", "mask keys, tokens and passwords that are stored", is_flag=True),
        Option("--verify", "search for what is left of it; with --match for the text, too", parse.positive,
               metavar="RECEIPT", on_page=False),
    ),
    forget,
    (
        ("forget --match 'Anna Schmidt'", "whatever holds this name: a dry run"),
        ("forget m12 t34 --execute", "one memory and one turn, for good"),
        ("forget --theme trading --execute", "everything of a theme"),
        ("forget --user agent:main:whatsapp:dm:4915112345678", "a person, also in rooms that name the speaker"),
        ("forget --verify 3 --match 'Anna Schmidt'", "prove that receipt 3 left nothing"),
        ("forget --expired --execute", "what ttl_days no longer keeps"),
    ),
    group="erase",
    changes=True,
    aliases={"prune": {"expired": True}, "cleanup": {}, "scan": {"secrets": True}},
)  # fmt: skip
