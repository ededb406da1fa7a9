"""The home's .env file: it holds passwords, only its owner can read it, and config.yaml refers to them."""

from __future__ import annotations

import re
from pathlib import Path

from hermes_memory_pgvector import files
from hermes_memory_pgvector.errors import ConfigError

PASSWORD_VARIABLE = "HERMES_PGVECTOR_PASSWORD"  # noqa: S105 - the name of one


def put(home: Path, name: str, value: str) -> bool:
    """Set one variable and leave every other line as it is; False when it already had that value."""
    path = home / ".env"
    text, encoding = _read(path)
    line = f"{name}={value}\n"
    pattern = _lines_of(name)
    if pattern.search(text):
        changed = pattern.sub(lambda _: line, text, count=1)
    else:
        changed = text + ("" if not text or text.endswith("\n") else "\n") + line
    return _write(path, text, changed, encoding)


def remove(home: Path, name: str) -> bool:
    """Take one variable out and leave every other line as it is; False when it was not there."""
    path = home / ".env"
    text, encoding = _read(path)
    return _write(path, text, _lines_of(name).sub("", text), encoding)


def _lines_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*(?:export[ \t]+)?{re.escape(name)}[ \t]*=.*(?:\n|$)", re.MULTILINE)


def _read(path: Path) -> tuple[str, str]:
    seen = files.look(path)
    if seen.problem or not seen.is_steady:
        raise ConfigError(f"{path} {seen.problem or 'is being rewritten'}; nothing was changed")
    try:
        return seen.data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        # The host reads it the same way; the other lines stay the same, byte for byte.
        return seen.data.decode("latin-1"), "latin-1"


def _write(path: Path, text: str, changed: str, encoding: str) -> bool:
    if changed == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        files.replace(path.resolve(), changed.encode(encoding))
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(f"{path} cannot be written: {reason}") from None
    return True
