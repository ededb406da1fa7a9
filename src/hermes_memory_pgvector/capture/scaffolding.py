"""What a user typed when the host stored a skill around it. Pure.

The host wraps `/skill do this` into a message that carries the whole skill. A running host unwraps it for its memory
providers; whoever reads its store afterwards has to do the same. The marks below are the host's format.
"""

from __future__ import annotations

_OPENING = "[IMPORTANT: The user has invoked the "
_BUNDLE = " skill bundle,"
_ONE_SKILL = "The full skill content is loaded below.]"
_AFTER_SKILL = "The user has provided the following instruction alongside the skill invocation: "
_BEFORE_BUNDLE = "\nUser instruction: "


def typed_by_user(text: str) -> str | None:
    """The user's own words; None when a skill was called without any."""
    if not text.startswith(_OPENING):
        return text
    if _BUNDLE in text:
        # The words stand before the skills, which may quote anything.
        _, found, words = text.partition(_BEFORE_BUNDLE)
        words = words.partition("\n\n[Loaded as part of the ")[0]
    elif _ONE_SKILL in text:
        # The words stand after the skill, which may quote anything.
        _, found, words = text.rpartition(_AFTER_SKILL)
        words = words.partition("\n\n[Runtime note:")[0]
    else:
        return None
    return (words.strip() or None) if found else None
