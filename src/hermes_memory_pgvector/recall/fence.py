"""Recalled text that cannot break out of the fence the host puts around it, nor pass for another speaker. Pure."""

from __future__ import annotations

import re
import unicodedata

from hermes_memory_pgvector.text.folding import alike, latin

# As text: made into patterns when a text is recalled, not when the package is loaded.
_OPENING = "[<\uff1c\ufe64\\[\uff3b]"
"""The signs that a fence or the host's note can start with, in any width."""
_FENCE = (
    r"(?=</*memory-*context|\[systemnote|<\|[^|<>]{1,40}\|>|<</*sys>>|</s>|</*(?:start|end)_of_turn>"
    r"|\[/*(?:inst|assistant|system(?:message|prompt|reminder)?)\]"
    # What begins so is a role, whatever follows; other names only as a whole.
    r"|</*(?:[a-z0-9_.-]{1,20}:)?(?:system|assistant|(?:tool|function)s?(?:[-_=/]|call|use|result|response|output)"
    r"|untrusted_tool_result|(?P<tag>human|user|developer|invoke|parameter|message|tools?|function)))"
)
"""The host's fence and its note, and what marks a change of role in a prompt, as `_visible` reduces them;
also one that stands in another."""
_END = r"[^a-z0-9-]|[\w:.-]{1,40}="
"""What shows that a tag's name is at its end, beside a blank."""
_MUFFLED = {"<": "‹", "[": "("}
_CONTROL = (
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
    r"\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
"""What steers a terminal, turns the direction of reading, or hides text: never shown. Joiners stay, they make words."""
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that show nothing."""


def harmless(text: str) -> str:
    """Text that cannot open or close the host's memory fence, pass for its note or change the role, however disguised.

    A model ignores invisible characters, spaces, width and case; so does the comparison here.
    """
    text = re.sub(_CONTROL, "", text)
    if re.search(_OPENING, text) is None:
        return text
    visible, positions = _visible(text)
    found = {
        positions[match.start()]: _MUFFLED[visible[match.start()]]
        for match in re.finditer(_FENCE, visible)
        if match["tag"] is None or _ends_there(visible, positions, match.end("tag"))
    }
    if not found:
        return text
    return "".join(found.get(position, sign) for position, sign in enumerate(text))


def _ends_there(visible: str, positions: list[int], place: int) -> bool:
    """Whether a tag's name ends at a place: at its bracket, at an attribute, at a blank, or with the text."""
    return (
        place == len(visible)
        or positions[place] > positions[place - 1] + 1
        or re.compile(_END).match(visible, place) is not None
    )


def _visible(text: str) -> tuple[str, list[int]]:
    """The text in plain lower case without spaces and invisible characters, and the position of each character."""
    visible: list[str] = []
    positions: list[int] = []
    # What folding takes for one sign stays one.
    for position, sign in enumerate(latin(text)):
        if not sign.isascii():
            if sign in _FILLERS or unicodedata.category(sign)[0] in "CMZ":
                continue
            plain = alike(sign)
        elif sign.isspace():
            continue
        else:
            plain = sign.lower()
        visible.append(plain)
        positions.extend([position] * len(plain))
    return "".join(visible), positions
