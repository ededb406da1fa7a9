"""Files that hold what is carried: JSON by the line, plain or .gz, and written whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, cast

from hermes_memory_pgvector.errors import ConfigError

STANDARD = "-"
"""Stands for standard input and output."""
HEADER = "hermes-pgvector"
FORMAT = 1


@contextmanager
def reading(name: str) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """The bytes of a file or of standard input, and how far into the file their reader is."""
    if name == STANDARD:
        yield sys.stdin.buffer, lambda: 0
        return
    path = Path(name)
    try:
        with path.open("rb") as raw, _coded(path, raw, "rb") as stream:
            yield stream, raw.tell
    except EOFError:
        raise ConfigError(f"{path} ends in the middle; was it copied whole?") from None
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged, or not what its suffix says"
        raise ConfigError(f"{path} cannot be read ({reason})") from None


@contextmanager
def writing(name: str) -> Iterator[IO[bytes]]:
    """A file or standard output to write to."""
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    with replacing(path) as raw, _coded(path, raw, "wb") as out:
        yield out


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is whole, and that nobody else can read."""
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} cannot be written (it is not a file)")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            yield raw
            raw.flush()
            # Or a power cut leaves an empty file in the place of an older, whole one.
            os.fsync(raw.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror or type(error).__name__})") from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


@contextmanager
def _coded(path: Path, raw: BinaryIO, mode: str) -> Iterator[IO[bytes]]:
    if path.suffix != ".gz":
        yield raw
        return
    # No name and no time in it: the same rows are the same bytes.
    with gzip.GzipFile("", mode, fileobj=raw, mtime=0) as stream:
        yield cast(IO[bytes], stream)
