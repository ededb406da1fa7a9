"""A forgotten text as a part of others: whoever has a longer text finds out whether it contains one; nobody reads it.

Of the text only its length and a keyed hash are kept. A longer text contains it if one of its pieces of that length has
the same hash. That costs a hash for every character, so it is asked only of what was said before the text was forgotten
and arrives afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hermes_memory_pgvector.text.folding import folded

HASH_BYTES = 16


def hash_of(key: bytes, piece: str, place: bytes) -> bytes:
    """The hash of a folded text in a place, which is the hash of a theme and a session."""
    return _in_place(_own(key, piece), place)


@dataclass(frozen=True, slots=True)
class Parts:
    """The forgotten texts that may be part of others."""

    by_key: Mapping[bytes, Mapping[int, Mapping[bytes, datetime]]] = field(default_factory=dict)
    """By the key and the length of the folded text: hashes, and until when each is forgotten."""

    def until(self, text: str, places: Callable[[bytes], tuple[bytes, ...]]) -> datetime | None:
        """Until when a text is forgotten for what is part of it; None when it is not.

        `places` are the places it may be forgotten in, as hashes with a key.
        """
        found: datetime | None = None
        whole = folded(text) if self.by_key else ""
        for key, by_length in self.by_key.items() if whole else ():
            for length, known in by_length.items():
                wanted = {_in_place(each, place): until for each, until in known.items() for place in places(key)}
                for start in range(len(whole) - length + 1):
                    until = wanted.get(_own(key, whole[start : start + length]))
                    if until is not None and (found is None or until > found):
                        found = until
        return found


def _in_place(own: bytes, place: bytes) -> bytes:
    """Undoes itself: the hash of a piece in a place, or of a piece without its place."""
    return bytes(one ^ other for one, other in zip(own, place, strict=True))


def _own(key: bytes, piece: str) -> bytes:
    data = piece.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=HASH_BYTES, key=key[:64]).digest()
