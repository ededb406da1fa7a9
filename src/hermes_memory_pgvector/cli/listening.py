"""The token of what serves on this machine."""

from __future__ import annotations

from pathlib import Path

from hermes_memory_pgvector.errors import ConfigError


def token(path: Path) -> str:
    """The token in a file that nobody else may read."""
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"{path} can be read by others; close it to them: chmod 600 {path}")
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise ConfigError(f"{path} cannot be read: {reason}") from None
    if not found or not found.isascii() or not found.isprintable():
        raise ConfigError(f"{path} holds no token: one line of letters and digits is needed")
    return found
