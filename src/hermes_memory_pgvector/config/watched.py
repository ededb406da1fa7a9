"""A small file that other programs rewrite: what it says is believed once it is whole, and stays in force until then.

Not every program replaces a file in one step, and a crash may leave it cut off or empty. A file that cannot be read, or
is gone, changes nothing for a process that has read it before; a process that starts meanwhile knows nothing.
"""

from __future__ import annotations

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
TROUBLE_SECONDS: Final = 1.0
"""A file that makes no sense for this long is broken, not just being rewritten."""
RETRY_SECONDS: Final = 0.02
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
        self._puzzled_at: float | None = None
        """Since when it has made no sense."""

    def read(self, patience: float) -> tuple[T | None, str]:
        """What is in force, and what is wrong with the file now; waits so long for a file that is being rewritten."""
        begun = time.monotonic()
        while True:
            is_last = time.monotonic() - begun >= patience
            with self._lock:
                trouble, is_settled = self._look(is_last=is_last)
                if is_settled or is_last:
                    return self._value, trouble
            time.sleep(RETRY_SECONDS)

    def believe(self, data: bytes, signature: files.Signature | None) -> None:
        """Take what we have written ourselves."""
        with self._lock:
            self._take(self._interpret(data), data, signature)

    def _look(self, *, is_last: bool) -> tuple[str, bool]:
        """What is wrong, and whether waiting would not change it."""
        if self._value is not None and files.signature(self.path) == self._signature:
            self._puzzled_at = None
            return "", True
        seen = files.look(self.path)
        trouble = seen.problem
        value: T | None = None
        if not trouble and seen.is_steady:
            try:
                value = self._interpret(seen.data)
            except ConfigError as error:
                trouble = str(error)
        if value is not None and not (self._was_empty or seen.data):
            trouble = "is gone" if seen.signature is None else "is empty, but was not before"
        is_quiet = seen.signature is None or not 0 <= seen.age < QUIET_SECONDS
        if value is not None and not trouble and (is_quiet or (is_last and self._value is None)):
            self._take(value, seen.data, seen.signature)
            return "", True
        now = time.monotonic()
        self._puzzled_at = now if self._puzzled_at is None else self._puzzled_at
        is_broken = now - self._puzzled_at >= TROUBLE_SECONDS or (seen.is_steady and seen.age >= TROUBLE_SECONDS)
        if self._value is None or (trouble and is_broken):
            return f"{self.path} {trouble or 'is being rewritten'}", bool(trouble) and is_broken
        return "", False

    def _take(self, value: T, data: bytes, signature: files.Signature | None) -> None:
        self._value, self._signature, self._was_empty, self._puzzled_at = value, signature, not data.strip(), None


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
    """.env as the host reads it: UTF-8, else Latin-1, and what Windows editors write."""
    if data.startswith(_UTF_32):
        raise ConfigError("is not in UTF-8")
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    found = dotenv_values(stream=io.StringIO(text.replace("\x00", "")))
    return {name: value for name, value in found.items() if value is not None}
