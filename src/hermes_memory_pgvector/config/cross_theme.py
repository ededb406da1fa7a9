"""Which themes may read which others: the setting `cross_theme`, as one line of text. Pure.

`allow`, `deny`, or what each reader may read: `marketing=sales|support,*=handbook`. A reader that is not listed has
what stands for `*`, or nothing. Private themes are read by nobody else, whatever stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

ALLOW, DENY = "allow", "deny"
ANYBODY = "*"
"""As a reader: whoever is not listed. As a theme: every shared one."""


def parse(value: Any) -> str:
    """The setting in the form it is kept; ValueError for nonsense."""
    if value is None or value == "":
        return ALLOW
    if isinstance(value, str):
        word = value.strip().casefold()
        if word in (ALLOW, DENY):
            return word
        rules = _of_text(value)
    elif isinstance(value, Mapping):
        rules = [(str(reader), _names(themes)) for reader, themes in value.items()]
    else:
        raise ValueError  # noqa: TRY004 - one kind of refusal for every wrong value
    if not rules:
        return DENY
    return ",".join(f"{_name(reader)}={'|'.join(map(_name, themes))}" for reader, themes in rules)


def others(rule: str, reader: str) -> frozenset[str] | None:
    """The other themes that a theme may read; None for every shared one."""
    if rule == ALLOW:
        return None
    rules = {} if rule == DENY else {name: frozenset(themes) for name, themes in _of_text(rule)}
    found = rules.get(reader, rules.get(ANYBODY, frozenset()))
    return None if ANYBODY in found else found - {reader}


def _of_text(text: str) -> list[tuple[str, list[str]]]:
    rules = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        reader, equals, themes = part.partition("=")
        if not equals:
            raise ValueError
        rules.append((reader, themes.split("|") if themes.strip() else []))
    return rules


def _names(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return value.replace("|", ",").split(",")
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        return [str(each) for each in value]
    raise ValueError


def _name(text: str) -> str:
    name = text.strip().casefold()
    if not name or any(sign in name for sign in ",|="):
        raise ValueError
    return name
