"""This package as pip knows it: where it was installed from, and the command that installs it into another Python."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "hermes-memory-pgvector"
EXTRA = "embedded"


def requirement(extra: str = EXTRA) -> str:
    """What gets this very package from pip, with an extra: the path of a clone or a wheel, or the name."""
    origin = _origin()
    return f"{NAME}[{extra}]>=2" if origin is None else f"{origin}[{extra}]"


def install_command(python: str | Path = sys.executable, extra: str = EXTRA) -> str:
    """The command that installs this package into a Python, to be typed as it stands."""
    return shlex.join([str(python), "-m", "pip", "install", requirement(extra)])


def folder() -> Path:
    """Where this package's code is."""
    return Path(__file__).resolve().parent


def _origin() -> Path | None:
    """The clone or file this package was installed from, if it is still there."""
    clone = folder().parent.parent
    if (clone / "pyproject.toml").is_file():
        return clone
    try:
        told = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
        url = urlsplit(str(told["url"]))
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return None
    path = Path(unquote(url.path))
    is_there = path.is_file() or (path / "pyproject.toml").is_file()
    return path if url.scheme == "file" and is_there else None
