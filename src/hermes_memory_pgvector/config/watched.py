"""A small file that other programs rewrite: what it says is believed once it is whole, and stays in force until then.

Not every program replaces a file in one step, and a crash may leave it cut off or empty. A file that cannot be read, or
is gone, changes nothing for a process that has read it before; a process that starts meanwhile knows nothing.
"""

from __future__ import annotations

import codecs
import io
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import yaml
from dotenv import dotenv_values

from hermes_memory_pgvector import files
from hermes_memory_pgvector.errors import ConfigError

QUIET_SECONDS: Final = 0.2
"""A file is believed when nobody has touched it for this long."""
RETRY_SECONDS: Final = 0.02
MOST_TRIES: Final = 20
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UTF_32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")

T = TypeVar("T")


class WatchedFile(Generic[T]):
    """One file and what it said when it could last be read. Thread-safe."""

    def __init__(self, path: Path, interpret: Callable[[bytes], T]) -> None:
        self.path = path
        self._interpret = interpret
        self._lock = threading.Lock()
        self._value: T | None = None
        self._signature: files.Signature | None = None
        self._was_empty = True

    def read(self, patience: float) -> tuple[T | None, str]:
        """What is in force, and what is wrong with the file now; waits so long for a file that is being rewritten."""
        until = time.monotonic() + patience
        while True:
            with self._lock:
                if self._value is not None and files.signature(self.path) == self._signature:
                    return self._value, ""
            seen = files.look(self.path)
            is_quiet = seen.is_steady and (seen.signature is None or not 0 <= seen.age < QUIET_SECONDS)
            if is_quiet or time.monotonic() >= until:
                with self._lock:
                    return self._take(seen, is_quiet=is_quiet)
            time.sleep(RETRY_SECONDS)

    def edit(self, change: Callable[[bytes], bytes], mode: int | None = None) -> bool:
        """Rewrite the file and believe it; False when nothing changes.

        Another program may write it at the same time: it is then read again, and that program's change kept.
        """
        for _ in range(MOST_TRIES):
            seen = files.look(self.path)
            if seen.problem:
                raise ConfigError(f"{self.path} {seen.problem}; nothing was changed")
            if not seen.is_steady:
                continue
            data = change(seen.data)
            if data == seen.data:
                return False
            if self._replace(seen, data, mode):
                with self._lock:
                    self._was_empty = True
                    self._take(files.look(self.path), is_quiet=True)
                return True
        raise ConfigError(f"{self.path} keeps being rewritten by another program; nothing was changed")

    def _replace(self, seen: files.Look, data: bytes, mode: int | None) -> bool:
        """Put something else in the place of what was seen; False when the file has changed since."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            target = self.path.resolve()
            if mode is None:
                mode = target.stat().st_mode & 0o777 if target.exists() else files.PRIVATE
            return files.replace(target, data, mode=mode, only_if=lambda: files.signature(self.path) == seen.signature)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise ConfigError(f"{self.path} cannot be written: {reason}; nothing was changed") from None

    def _take(self, seen: files.Look, *, is_quiet: bool) -> tuple[T | None, str]:
        value, trouble = None, seen.problem
        if not trouble and seen.is_steady:
            try:
                value = self._interpret(seen.data)
            except ConfigError as error:
                trouble = str(error)
        if value is not None and not (self._was_empty or seen.data):
            trouble = "is gone" if seen.signature is None else "is empty, but was not before"
        if value is not None and not trouble and (is_quiet or self._value is None):
            self._value, self._signature, self._was_empty = value, seen.signature, not seen.data.strip()
            return value, ""
        if self._value is None:
            return None, f"{self.path} {trouble or 'is being rewritten'}"
        return self._value, f"{self.path} {trouble}" if trouble and is_quiet else ""


def parse_yaml(data: bytes) -> dict[str, Any]:
    """A mapping from the bytes of a YAML file; ConfigError says what they are instead."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(data.decode("utf-8-sig"), Loader=loader)  # noqa: S506 - both are safe loaders
    except UnicodeDecodeError:
        raise ConfigError("is not in UTF-8") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError("is not valid YAML") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError("does not hold a mapping")
    return document


def parse_variables(data: bytes) -> dict[str, str]:
    """.env as the host reads it."""
    text, _ = decoded_variables(data)
    found = dotenv_values(stream=io.StringIO(text.replace("\x00", "")))
    return {name: value for name, value in found.items() if value is not None}


def decoded_variables(data: bytes) -> tuple[str, str]:
    """The text of .env, and how it is encoded: UTF-8, else Latin-1, and what Windows editors write."""
    if data.startswith(_UTF_32):
        raise ConfigError("is not in UTF-8")
    first = "utf-16" if data.startswith(_UTF_16) else "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    try:
        return data.decode(first), first
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"
