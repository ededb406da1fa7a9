"""How a field of an answer is shown: as a column, as a text of its own, or only to people. Pure.

Rows of the database are declared with these, too, so this imports nothing of a command line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any


def column(
    head: str, *, right: bool = False, show: Callable[[Any], Any] | None = None, rare: bool = False, text: bool = False,
    whole: bool = False, below: bool = False, is_aside: bool = False, default: Any = None,
) -> Any:  # fmt: skip
    """A field with a heading: a column of a table, a named line of facts.

    `show` makes of the value what people read; a `rare` one is left out where no row has it; `text` is cut to fit, or
    stands `whole` below its row; what is `below` is a line of its own under the row; an aside is not in the JSON.
    """
    told = {"head": head, "right": right, "show": show, "rare": rare, "text": text, "whole": whole, "below": below}
    return field(default=default, metadata=told | {"aside": True} if is_aside else told)


def body(default: Any = "") -> Any:
    """A field that is a text of its own, with its own lines."""
    return field(default=default, metadata={"body": True})


def aside(default: Any = None) -> Any:
    """A field that is only for people who read the text, and not in the JSON."""
    return field(default=default, metadata={"aside": True})
