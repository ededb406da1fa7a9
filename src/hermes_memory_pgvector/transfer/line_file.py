"""Files of one JSON object per line, plain or compressed by their suffix (.gz, .zst)."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from hermes_memory_pgvector.errors import ConfigError

STANDARD = "-"
"""Stands for standard input or output."""
BEFORE_IT = "what stands before it is stored; mend the line and run this again, nothing is stored twice"
MAX_LINE_BYTES = 64 * 1024 * 1024


def encoded(document: Mapping[str, Any]) -> bytes:
    """One line."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@contextmanager
def writing(name: str) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is whole, and that nobody else can read.

    A pipe or a device is written to as it is; where a link stands, the file it names is replaced.
    """
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as target, _compressor(path, target) as out:
                yield out
        else:
            with _replacing(path.resolve() if path.is_symlink() else path) as raw, _compressor(path, raw) as out:
                yield out
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror or type(error).__name__})") from None


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            yield raw
        # Or a power cut leaves an empty file in the place of an older, whole one.
        with unfinished.open("rb") as whole:
            os.fsync(whole.fileno())
        unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


@contextmanager
def reading(name: str) -> Iterator[IO[bytes]]:
    """The bytes of a file or of standard input."""
    if name == STANDARD:
        yield sys.stdin.buffer
        return
    path = Path(name)
    try:
        with path.open("rb") as raw, _decompressor(path, raw) as stream:
            yield stream
    except EOFError:
        raise ConfigError(f"{path} ends in the middle; was it copied whole?") from None
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged, or not what its suffix says"
        raise ConfigError(f"{path} cannot be read ({reason})") from None


def documents(stream: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line's number and object; a line may be a list of them, and the whole file one document."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES):
        number += 1
        if not line.strip():
            continue
        document = _parsed(line)
        if document is None and number == 1:
            # A document that was written for people has many lines.
            document = _parsed(line + stream.read(MAX_LINE_BYTES))
        found = document if isinstance(document, list) else [document]
        if not all(isinstance(each, dict) for each in found):
            raise ConfigError(f"{name}, line {number}: this is neither a JSON object nor a list of them; {BEFORE_IT}")
        yield from ((number, each) for each in found)


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _compressor(path: Path, raw: BinaryIO) -> IO[bytes]:
    if path.suffix == ".gz":
        # No name and no time in it: the same rows are the same bytes.
        return cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
    if path.suffix == ".zst":
        return cast(IO[bytes], _zstandard().open(raw, "wb"))
    return raw


def _decompressor(path: Path, raw: BinaryIO) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="rb"))
    if path.suffix == ".zst":
        return cast(IO[bytes], _zstandard().open(raw, "rb"))
    return raw


def _zstandard() -> Any:
    """Python's own module since 3.14, or one of two packages that offer the same."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        with suppress(ImportError):
            return importlib.import_module(name)
    raise ConfigError("this Python cannot read or write .zst; run: pip install zstandard, or use .gz")
