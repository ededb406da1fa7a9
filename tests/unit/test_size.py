"""How large the package is, room by room, and that a name means one thing."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from importlib import resources
from pathlib import Path

PACKAGE = Path(str(resources.files("hermes_memory_pgvector")))
MOST_LINES = 36_300
"""Lowered with the package, to 22,000."""


def lines_per_room() -> dict[str, int]:
    """Lines of Python by room; what lies beside the rooms is the ground."""
    found: dict[str, int] = defaultdict(int)
    for path in PACKAGE.rglob("*.py"):
        where = path.relative_to(PACKAGE).parts
        found[where[0] if len(where) > 1 else "ground"] += len(path.read_text(encoding="utf-8").splitlines())
    return dict(found)


def test_the_package_grows_no_larger() -> None:
    rooms = lines_per_room()
    told = ", ".join(f"{room} {lines:,}" for room, lines in sorted(rooms.items(), key=lambda each: -each[1]))
    print(f"{sum(rooms.values()):,} lines: {told}")
    assert sum(rooms.values()) <= MOST_LINES, told


def test_no_class_takes_the_name_of_another() -> None:
    names = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []
