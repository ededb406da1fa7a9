"""What identifies an installation: a home's id, and the private key its pseudonyms are made with."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from hermes_memory_pgvector.settings_file import data_folder

KEY_BYTES = 32


def home_id(home: Path) -> str:
    """A random id that stays with this home; it names the rows that came from its files."""
    try:
        return _kept(data_folder(home) / "home-id", lambda: secrets.token_hex(8))
    except OSError:
        # A home that cannot be written to still needs an identity that does not change between processes.
        return hashlib.sha256(f"{socket.gethostname()}:{home}".encode("utf-8", "replace")).hexdigest()[:16]


def pseudonym_key(home: Path) -> bytes:
    """The key that turns phone numbers and user ids into pseudonyms; it never leaves this folder.

    Raises OSError rather than inventing one: a key that changes would give the same person a new theme each time.
    """
    return bytes.fromhex(_kept(data_folder(home) / "identity.key", lambda: secrets.token_hex(KEY_BYTES)))


def _kept(path: Path, make: Callable[[], str]) -> str:
    """The content of a small private file, made once; whoever comes first decides for all."""
    known = _read(path)
    if known:
        return known
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(make())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(name, path)
        except FileExistsError:
            # An empty or foreign file is no identity: replace it.
            if not _read(path):
                Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    return _read(path)


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            # A restored backup comes back readable for everybody.
            with contextlib.suppress(OSError):
                path.chmod(0o600)
        return path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
