"""The code of a vector: for each number, which of a few ranges it lies in. Must agree with sql/model.sql."""

from __future__ import annotations

import math
from collections.abc import Sequence


def bounds(dim: int) -> tuple[float, ...]:
    """Where the ranges of a unit vector's numbers meet; few dimensions need more of them."""
    if dim <= 384:
        steps: tuple[float, ...] = (-0.9, -0.3, 0.3, 0.9)
    elif dim <= 1024:
        steps = (-0.45, 0.45)
    else:
        steps = (0.0,)
    return tuple(step / math.sqrt(dim) for step in steps)


def code_of(vector: Sequence[float]) -> str:
    """A vector's code as Postgres reads a bit string."""
    length = math.sqrt(math.fsum(value * value for value in vector)) or 1.0
    return "".join(
        "1" if value > bound else "0" for bound in (bound * length for bound in bounds(len(vector))) for value in vector
    )
