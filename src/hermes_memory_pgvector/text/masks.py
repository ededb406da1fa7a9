"""What others have hidden in a text: how a mask looks, and what it leaves of the text."""

from __future__ import annotations

import re
import string

MASK = re.compile(r"\[redacted[^\]\n]{0,60}\]|\*{3,64}|\S{0,6}\.\.\.\S{4}")
"""How hosts and this package write what they hide."""
_SIGNS = ("[redacted", "***", "...")
"""Each mask has one of them: most texts have none, which is sooner seen."""
_OF_TOKENS = string.ascii_letters + string.digits + "_-./+"
_TOKEN = re.compile(rf"[{re.escape(_OF_TOKENS)}]{{16,}}")


def may_be_masked(text: str) -> bool:
    """Whether a host that learns of a secret later might hide something in this text."""
    return _TOKEN.search(text) is not None


def outline(text: str) -> str:
    """The text without what is hidden in it, or may be in a copy of it: both have the same."""
    first, *others = MASK.split(text) if any(sign in text for sign in _SIGNS) else (text,)
    for part in others:
        first = f"{first.rstrip(_OF_TOKENS)}\0{part.lstrip(_OF_TOKENS)}"
    return _TOKEN.sub("\0", first)
