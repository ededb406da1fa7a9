"""Compares what is stored after the fault battery with what was acknowledged; knows nothing of the code under test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from .writer import MEMORY_EVERY, THEMES, Life, Shared, memory_write


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the table."""

    what: str
    figure: str
    held: bool

    def line(self) -> str:
        return f"{self.what:<92} {self.figure:>26}  {'held' if self.held else 'BROKEN'}"


def check(dsn: str, lives: Sequence[Life], shared: Shared, memory_log: Path, killed: int) -> list[Verdict]:
    """Every invariant of the battery."""
    with psycopg.connect(dsn) as connection:
        acknowledged = {life.number: shared.get(life.number) for life in lives}
        total = sum(acknowledged.values())
        verdicts = [Verdict("writes acknowledged over kill -9", f"{total:,} over {killed}", killed == len(lives))]
        verdicts += _turns(connection, acknowledged)
        operations = _operations(connection)
        verdicts += _announced(operations, acknowledged, memory_log)
        verdicts.append(_state(connection, operations))
        letters = _one(connection, "SELECT count(*) FROM dead_letters")
        verdicts.append(Verdict("no record is refused by the database", f"{letters} dead letters", letters == 0))
    return verdicts


def _one(connection: psycopg.Connection[Any], statement: str) -> int:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return int(row[0])


def _turns(connection: psycopg.Connection[Any], acknowledged: dict[int, int]) -> list[Verdict]:
    rows = connection.execute(
        "SELECT split_part(content, ' ', 2)::integer, count(*), count(DISTINCT split_part(content, ' ', 4)::integer),"
        " max(split_part(content, ' ', 4)::integer) FROM conversations GROUP BY 1"
    ).fetchall()
    found = {life: (count, distinct, last) for life, count, distinct, last in rows}
    lost = doubled = unasked = 0
    for life, upto in acknowledged.items():
        count, distinct, last = found.get(life, (0, 0, 0))
        doubled += count - distinct
        # The write under way when the process was killed may have arrived, or not.
        unasked += max(0, last - upto - 1)
        arrived = distinct - (1 if last == upto + 1 else 0)
        lost += upto - upto // MEMORY_EVERY - arrived
    return [
        Verdict("every acknowledged turn is stored", f"{lost} lost", lost == 0),
        Verdict("no turn is stored twice", f"{doubled} twice", doubled == 0),
        Verdict("nothing is stored that was not said", f"{unasked} unasked", unasked == 0),
    ]


def _operations(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT agent_identity, action, content, old_text, order_us, (metadata->>'life')::integer,"
        " (metadata->>'write')::integer FROM memory_operations ORDER BY order_us, writer, seq, part"
    ).fetchall()


def _announced(operations: list[tuple[Any, ...]], acknowledged: dict[int, int], log: Path) -> list[Verdict]:
    times = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        life, write, before, after = map(int, line.split())
        times[life, write] = (before, after)
    stored = [(life, write) for *_, life, write in operations]
    wanted = {
        (life, write) for life, upto in acknowledged.items() for write in range(MEMORY_EVERY, upto + 1, MEMORY_EVERY)
    }
    lost, doubled = len(wanted - set(stored)), len(stored) - len(set(stored))
    changed = sum(
        (theme, action, content, old) != (told.theme, told.action, told.content, told.old_text)
        for theme, action, content, old, _, life, write in operations
        for told in [memory_write(life, write)]
    )
    # One clock for all processes: the place of an operation lies between the start and the end of its hook.
    offsets = [(order - times[key][1], order - times[key][0]) for *_, order, life, write in operations
               if (key := (life, write)) in times]  # fmt: skip
    agrees = not offsets or max(low for low, _ in offsets) <= min(high for _, high in offsets)
    return [
        Verdict("every acknowledged memory operation is stored once", f"{len(wanted):,}: {lost} lost, {doubled} twice",
                lost == 0 and doubled == 0),
        Verdict("every operation is stored as announced", f"{changed} changed", changed == 0),
        Verdict("operations are ordered by the moment of their hook, across processes", f"{len(offsets):,} compared",
                agrees),
    ]  # fmt: skip


def _state(connection: psycopg.Connection[Any], operations: list[tuple[Any, ...]]) -> Verdict:
    """Apply the contract to the operations in their order, and compare with the rows."""
    entries: dict[str, list[str]] = {theme: [] for theme in THEMES}
    for theme, action, content, old, *_ in operations:
        held = entries[theme]
        matching = [entry for entry in held if old and old in entry]
        meant = matching[0] if len(matching) == 1 else None
        if action != "add" and meant is not None:
            held.remove(meant)
        if action != "remove" and content not in held:
            held.append(content)
    rows = connection.execute("SELECT agent_identity, content FROM memory_entries").fetchall()
    found = {theme: sorted(content for name, content in rows if name == theme) for theme in THEMES}
    same = found == {theme: sorted(held) for theme, held in entries.items()}
    return Verdict("the memories equal the model", f"{len(rows):,} entries", same and bool(rows))
