"""`edit`: other words for a memory, in MEMORY.md or USER.md where it stands there."""

from __future__ import annotations

from typing import Final

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.ops.correct.changing import (
    Correction,
    Drafter,
    Rewording,
    carry_out,
    one_entry,
    past,
)
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Operation, Option
from hermes_memory_pgvector.terminal.parse import RecordName


def edit(memory: Memory, *, id: RecordName, text: str, theme: str | None, execute: bool) -> Correction:
    """Give a memory other words."""
    from hermes_memory_pgvector.ops.row import find
    from hermes_memory_pgvector.store.browse import StoredTurn

    new = one_entry(memory, text)
    with memory.reading(theme) as connection:
        row = find(connection, id, theme)
        if isinstance(row, StoredTurn):
            raise CareError(f"{id} is a turn, which was said as it was; `mute` hides it, `forget` erases it")
        if new == row.content:
            return Correction("change", "changed", theme=row.theme)
        known = past(connection, row.theme, row.target)
        if row.content not in known.now:
            raise CareError(f"{id} has changed meanwhile; look at it again")
        draft = Drafter(memory, connection, row.theme, {"command": "edit", "edits": row.id})
        draft.change(known, [Rewording(row.target, row.content, new)])
    executed = execute and bool(draft.operations)
    return draft.plan(executed=executed, notes=carry_out(memory, draft, "edit", str(id)) if executed else ())


EDIT: Final = Operation(
    "edit",
    "give a memory other words, also in MEMORY.md or USER.md",
    (
        Option("id", "a memory, such as m12", parse.row_name, required=True, metavar="ID"),
        Option("--text", "the new words", parse.filled, required=True, metavar="TEXT"),
        Option("--theme", "look into this theme only", parse.filled, metavar="THEME"),
    ),
    edit,
    (
        ("edit m12 --text 'Ships on Tuesday'", "show the file, the line and the words before and after"),
        ("edit m12 --text 'Ships on Tuesday' --execute", "change them"),
    ),
    group="correct",
    changes=True,
)  # fmt: skip
