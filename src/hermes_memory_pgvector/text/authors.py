"""Who said a turn, where its text or the host tells: the names in it, and the names a question may mean. Pure.

In chats of several people the host writes `[Tim] …` before a message; pasted transcripts write `Tim: …`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_BRACKETED = re.compile(r"\[([^\[\]\n]{1,60})\]\s")
_PREFIXED = re.compile(r"([^\W\d_][\w'.-]{0,30}(?: [^\W\d_][\w'.-]{0,30}){0,2}): ")
_WORD = re.compile(r"[^\W_]+")
MAX_WORDS = 4
"""Of one name."""


def author_told(metadata: Mapping[str, Any]) -> str:
    """The name the host gave with a turn (`turn_author`), or nothing."""
    author = metadata.get("author")
    name = author.get("name") if isinstance(author, Mapping) else None
    return name[:200] if isinstance(name, str) else ""


def author_of(content: str) -> str:
    """The name before the words of a turn, or nothing."""
    if found := _BRACKETED.match(content):
        return found[1]
    found = _PREFIXED.match(content)
    return found[1] if found and all(word[0].isupper() for word in found[1].split()) else ""


def name_words(folded: str) -> tuple[str, ...]:
    """The words of a folded name or question as they can be compared: "tim's" is Tim."""
    words = (word.partition("'")[0] for word in folded.replace("'s", " ").split())
    return tuple(dict.fromkeys(part for word in words for part in _WORD.findall(word)))
