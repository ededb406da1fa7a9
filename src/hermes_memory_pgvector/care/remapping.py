"""Merging one theme into another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hermes_memory_pgvector.care import audit
from hermes_memory_pgvector.care.actor import Actor
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.store import gate, named_rows, remap
from hermes_memory_pgvector.store.remap import Contents, Moved
from hermes_memory_pgvector.values import is_private_theme

STEP_SECONDS = 120.0
GATE_SECONDS = 70.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be moved."""

    old: str
    new: str
    contents: Contents
    is_new: bool
    """Whether the other theme holds nothing yet, so that this is a rename."""
    is_begun: bool
    """Whether a move was begun before and not finished."""
    becomes_public: bool
    """Whether a private theme becomes one that others can search."""
    becomes_private: bool
    """Whether a theme that others can search becomes a private one."""


def plan(connection: Connection, old: str, new: str) -> Plan:
    """Look, and change nothing; ConfigError when it cannot be done."""
    if old == new:
        raise ConfigError("the two themes are the same")
    known = remap.alias_of(connection, old)
    there = named_rows.themes(connection)
    is_begun = known is not None and known[0] == new and known[1] is None
    if old not in there and not is_begun:
        if known is not None:
            raise ConfigError(f"theme {old!r} was merged into {known[0]!r} already")
        from hermes_memory_pgvector.care.themes import require

        require(connection, old)
    beyond = remap.alias_of(connection, new)
    if beyond is not None and beyond[0] != old:
        raise ConfigError(f"theme {new!r} was merged into {beyond[0]!r}; name that one")
    return Plan(
        old,
        new,
        remap.contents(connection, old, new),
        new not in there,
        is_begun,
        becomes_public=is_private_theme(old) and not is_private_theme(new),
        becomes_private=is_private_theme(new) and not is_private_theme(old),
    )


def carry_out(
    pool: Pool, wanted: Plan, actor: Actor, progress: Callable[[Moved], None] = lambda _: None
) -> dict[str, int]:
    """Move everything; whoever is killed meanwhile runs it again, and it goes on."""
    moved = Moved()
    with pool.transaction(Deadline.after(STEP_SECONDS), lock_seconds=GATE_SECONDS) as connection:
        gate.close(connection)
        remap.begin(connection, wanted.old, wanted.new)
    more = True
    while more:
        with pool.transaction(Deadline.after(STEP_SECONDS), lock_seconds=GATE_SECONDS) as connection:
            gate.close(connection)
            more = remap.step(connection, wanted.old, wanted.new, moved)
            if not more:
                remap.finish(connection, wanted.old)
                audit.record(
                    connection,
                    actor,
                    "remap",
                    theme=wanted.new,
                    subject=f"from {wanted.old}"[:200],
                    counts=moved.counts,
                )
        progress(moved)
    return moved.counts
