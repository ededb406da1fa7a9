"""The format of a record on disk, and how to recognise an intact one.

A frame is magic, payload length, wall-clock microseconds, header check, payload check, payload.
The magic consists of bytes that no UTF-8 text contains. Both checks are CRC-32 seeded with the writer's id, so a
frame copied from another writer is never taken for one of this writer, wherever it turns up. The header has a
check of its own: a damaged length is recognised without reading what it claims to span.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple
from zlib import crc32

MAGIC = b"\xf5\xc1\xfe\xc0"
MAX_PAYLOAD = 64 * 1024 * 1024
_WINDOW = 256 * 1024

_FIELDS = struct.Struct("<4sIq")
_CHECKS = struct.Struct("<II")
HEADER_BYTES = _FIELDS.size + _CHECKS.size


class Frame(NamedTuple):
    """An intact record and the bytes of the file it occupies."""

    micros: int
    payload: bytes
    start: int
    end: int


class Junk(NamedTuple):
    """Bytes that are not an intact record of this writer."""

    start: int
    end: int
    is_torn: bool
    """The bytes are at the end of the file and start a frame: a write that was cut off, not damage."""


class _Header(NamedTuple):
    length: int
    micros: int
    check: int
    payload_check: int


ReadAt = Callable[[int, int], bytes]
"""`read_at(offset, count)` returns `count` bytes from `offset`, fewer only at the end of the file."""


def seed_of(writer: str) -> int:
    """The start value of every check of this writer."""
    return crc32(writer.encode())


def encode(seed: int, micros: int, payload: bytes) -> bytes:
    """The frame of one record."""
    fields = _FIELDS.pack(MAGIC, len(payload), micros)
    check = crc32(fields, seed)
    return fields + _CHECKS.pack(check, crc32(payload, check)) + payload


def walk(read_at: ReadAt, size: int, seed: int, offset: int = 0) -> Iterator[Frame | Junk]:
    """Every intact frame between offset and size in file order, and what lies between them.

    A damaged frame is not trusted about its own length: after one, the search continues at the next byte.
    """
    window, base = b"", offset
    position, junk = offset, -1
    while position < size:
        if position + HEADER_BYTES > base + len(window) < size:
            window, base = read_at(position, min(_WINDOW, size - position)), position
            if not window:
                # The file has been cut since we asked for its size.
                size = position
                break
        header = _header(window, position - base, seed)
        if header is not None:
            end = position + HEADER_BYTES + header.length
            if end <= size and end > base + len(window):
                window, base = read_at(position, max(_WINDOW, end - position)), position
            body = position - base + HEADER_BYTES
            payload = window[body : body + header.length]
            if len(payload) == header.length and crc32(payload, header.check) == header.payload_check:
                if junk >= 0:
                    yield Junk(junk, position, is_torn=False)
                    junk = -1
                yield Frame(header.micros, payload, position, end)
                position = end
                continue
        if junk < 0:
            junk = position
        found = window.find(MAGIC, position - base + 1)
        # A magic may straddle two windows, so the next one starts with the last three bytes of this one.
        position = base + found if found >= 0 else max(position + 1, base + len(window) - len(MAGIC) + 1)
    if 0 <= junk < size:
        yield Junk(junk, size, is_torn=_is_torn(read_at(junk, HEADER_BYTES), size - junk, seed))


def _header(data: bytes, at: int, seed: int) -> _Header | None:
    if len(data) - at < HEADER_BYTES or not data.startswith(MAGIC, at):
        return None
    _, length, micros = _FIELDS.unpack_from(data, at)
    check, payload_check = _CHECKS.unpack_from(data, at + _FIELDS.size)
    return _Header(length, micros, check, payload_check) if crc32(data[at : at + _FIELDS.size], seed) == check else None


def _is_torn(head: bytes, remaining: int, seed: int) -> bool:
    """Whether the rest of a file is nothing but the beginning of one frame."""
    if remaining < HEADER_BYTES:
        return head[: len(MAGIC)] == MAGIC[: len(head)]
    header = _header(head, 0, seed)
    return header is not None and remaining < HEADER_BYTES + header.length
