"""Addresses and tokens of what serves on this machine: `ui` and `mcp`."""

from __future__ import annotations

import argparse
from pathlib import Path

from hermes_memory_pgvector.errors import ConfigError


def address(text: str) -> tuple[str, int]:
    """HOST:PORT as an option's value."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, such as 127.0.0.1:9121, not {text!r}")
    return host, int(port)


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
