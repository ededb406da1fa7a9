"""Which entry another agent means by a part of its text, and whether it is one that agents here may change. Pure.

MEMORY.md and USER.md win: what only a home's file holds is changed there, or the mirror would bring it back. Other
agents change what they have remembered themselves, and what no home holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes_memory_pgvector.recall.fence import harmless
from hermes_memory_pgvector.recall.tools import BadArgument
from hermes_memory_pgvector.store.memories import Holding
from hermes_memory_pgvector.text.names import printable
from hermes_memory_pgvector.values import MCP_HOLDER, Target

FILES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}


def meant(found: Sequence[Holding], text: str, theme: str) -> Holding:
    """The one entry that a text means: it is the text, or the only one with it; BadArgument says why there is none."""
    if not found:
        raise BadArgument(
            f"No entry of theme '{harmless(printable(theme))}' contains that text. Nothing was changed; find the entry "
            "with recall_memory and copy a part of it."
        )
    named = [each for each in found if each.content == text] or list(found)
    ours = [each for each in named if not each.homes or MCP_HOLDER in each.homes]
    if len(ours) == 1:
        return ours[0]
    if not ours and len(named) == 1:
        raise BadArgument(f"That entry {_stands(named[0])} and is changed there only. Nothing was changed.")
    if not ours:
        raise BadArgument(
            f"{len(named)} entries contain that text, and all of them stand in a MEMORY.md or USER.md, where alone they"
            " are changed. Nothing was changed."
        )
    raise BadArgument(
        f"{len(ours)} entries contain that text. Nothing was changed; give more of the one you mean, or its target."
    )


def remains(entry: Holding) -> str:
    """A sentence about an entry that stays because a home holds it as well; empty when none does."""
    return f"It also {_stands(entry)}, so it stays there." if _others(entry) else ""


def _stands(entry: Holding) -> str:
    homes = _others(entry)
    named = " and ".join(home[:8] for home in homes[:3]) + (" and others" if len(homes) > 3 else "")
    return f"stands in the {FILES[entry.target]} of hermes home {named}"


def _others(entry: Holding) -> list[str]:
    return [home for home in entry.homes if home != MCP_HOLDER]
