"""The last configuration of a home that could be read, kept beside the journal for processes that find a broken one.

It holds what the settings are made of, never a password: references to variables stay references, and a password that
was written out is left out, which is noted. Whoever needs it must have the real file mended first.
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
    """What could be read, as far as it may be kept."""

    digest: str
    """Of config.yaml as it was; empty when there was none."""
    sections: Mapping[str, Mapping[str, Any]]
    names: frozenset[str]
    """What the file had at its top, and which settings it made."""
    ends: bool
    """Whether the file ended with the end of a line."""
    variables: Mapping[str, str | None]
    """Of .env, as far as settings use them; None where the value is not kept."""
    variables_digest: str = ""
    withheld: frozenset[str] = frozenset()
    """Settings, as layer.name, whose value is kept without its secret."""
    at: float = field(default_factory=time.time, compare=False)


def load(folder: Path) -> LastGood | None:
    """What an earlier process has kept; None when there is nothing usable, or when it was kept for another home.

    A copied home has a configuration of its own, and the one of the home it was copied from is none of its business.
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
    """Write it down in one step, readable by the owner only; False when the disk does not let us."""
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
