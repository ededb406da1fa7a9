"""The last readable configuration of a home, saved beside the journal for processes that find a broken one.

It holds everything that settings come from, except passwords: references to variables stay references, and a password
that was written out is dropped and listed as withheld. To use that one, the operator has to fix the real file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import files

FILE_NAME = "last-good-settings.json"


@dataclass(frozen=True, slots=True)
class LastGood:
    """What could be read, as far as it may be saved."""

    digest: str
    """Of config.yaml as it was; empty when there was none."""
    sections: Mapping[str, Mapping[str, Any]]
    names: frozenset[str]
    """The file's top-level keys, and the settings in it."""
    ends: bool
    """Whether the file ended with a newline."""
    variables: Mapping[str, str | None]
    """The variables of .env that settings use; None where the value is not saved."""
    variables_digest: str = ""
    withheld: frozenset[str] = frozenset()
    """Settings, as layer.name, saved without their secret."""
    at: float = field(default_factory=time.time, compare=False)


def load(folder: Path) -> LastGood | None:
    """What an earlier process has saved; None when nothing is usable, or when it was saved for another home.

    A copied home has a configuration of its own and must not use that of the original.
    """
    look = files.look(folder / FILE_NAME)
    if look.signature is None or look.problem:
        return None
    try:
        raw = json.loads(look.data)
        if raw["folder"] != _name(folder):
            return None
        return LastGood(
            digest=str(raw["digest"]),
            sections={str(name): dict(section) for name, section in raw["sections"].items()},
            names=frozenset(map(str, raw["names"])),
            ends=bool(raw["ends"]),
            variables={str(name): None if value is None else str(value) for name, value in raw["variables"].items()},
            variables_digest=str(raw["variables_digest"]),
            withheld=frozenset(map(str, raw["withheld"])),
            at=float(raw["at"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def keep(folder: Path, good: LastGood) -> bool:
    """Save it; False when the disk does not let us."""
    text = json.dumps(
        {
            "folder": _name(folder),
            "digest": good.digest,
            "sections": {name: dict(section) for name, section in good.sections.items()},
            "names": sorted(good.names),
            "ends": good.ends,
            "variables": dict(good.variables),
            "variables_digest": good.variables_digest,
            "withheld": sorted(good.withheld),
            "at": good.at,
        },
        default=str,
        indent=1,
    )
    try:
        return files.replace(folder / FILE_NAME, text.encode("utf-8"))
    except OSError:
        return False


def _name(folder: Path) -> str:
    return str(folder.resolve())
