"""What the options of `forget` name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from hermes_memory_pgvector.capture import identity
from hermes_memory_pgvector.config.home import pseudonym_key
from hermes_memory_pgvector.errors import ConfigError, UsageError
from hermes_memory_pgvector.ops.forget.named import Named, Needle
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.text.names import session_name
from hermes_memory_pgvector.values import is_private_theme


def named_by(
    memory: Memory,
    ids: Sequence[RecordName],
    theme: str | None,
    session: str | None,
    user: str | None,
    match: str | None,
    before: datetime | None,
) -> list[Named]:
    """What is meant; a person is a theme, and whatever they said elsewhere."""
    if ids and (session or user or match or before):
        raise UsageError("m12, t34, e5 and d3 name rows by themselves: leave the other options out")
    if user and theme:
        raise UsageError("--user names a theme by itself; leave --theme out")
    if ids:
        return [Named(theme=theme, ids=tuple(ids))]
    base = Named(
        theme=theme, session_id=None if session is None else session_name(session), before=before,
        needle=None if match is None else Needle(match),
    )  # fmt: skip
    return [base] if user is None else list(_person(memory, user, base))


def _person(memory: Memory, who: str, base: Named) -> Iterator[Named]:
    """The theme of somebody's direct chat or room, and what they said in rooms that name the speaker."""
    given = who.strip().casefold()
    if is_private_theme(given):
        yield replace(base, theme=given)
        return
    key = pseudonym_key(memory.home)
    theme = identity.theme_of(given, memory.parsed.settings, lambda: key).theme
    if not is_private_theme(theme):
        raise ConfigError(
            f"{who!r} is neither a pseudonym (dm-…, group-…) nor a key of a messaging platform, such as "
            "agent:main:whatsapp:dm:4915112345678; for a theme use --theme, for a name --match"
        )
    yield replace(base, theme=theme)
    last = given.rpartition(":")[2]
    names = [name for name in dict.fromkeys((given, last, last.lstrip("+"))) if name]
    people = (identity.person(name, key) for name in names)
    yield replace(base, authors=tuple(dict.fromkeys(each for each in (*names, *people) if each)))
