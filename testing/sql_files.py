"""The SQL of the package, statement by statement."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_memory_pgvector.postgres.statements import FOLDER, blocks, read_sql


@dataclass(frozen=True, slots=True)
class Statement:
    """A block of a file, or a whole file that has no blocks."""

    name: str
    text: str


def areas(folder: str) -> list[str]:
    """The files of a folder, as `blocks` takes them."""
    return sorted(f"{folder}/{file.name.removesuffix('.sql')}" for file in FOLDER.joinpath(folder).iterdir())


def statements_of(area: str) -> list[Statement]:
    """The blocks of a file."""
    return [Statement(f"{area}/{name}", text) for name, text in blocks(area).items()]


def everything() -> list[Statement]:
    """All SQL that there is: a statement by its path, a file without blocks by its own."""
    blocked = [
        statement for folder in ("queries", "admin") for area in areas(folder) for statement in statements_of(area)
    ]
    whole = [file.name for file in FOLDER.iterdir() if file.name.endswith(".sql")]
    return sorted([*blocked, *(Statement(path, read_sql(path)) for path in whole)], key=lambda each: each.name)
