"""The kinds of value a setting can have: each a function that takes what somebody wrote, or raises ValueError."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Parser = Callable[[Any], Any]
Pairs = tuple[tuple[str, Any], ...]
TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})
_KIND_OF_SECRET = re.compile(r"[a-z][a-z0-9-]{0,39}")
_THEME = "theme:"
_KEPT = ("turns", "memories", "history")


def boolean(value: Any) -> bool:
    """True or false, also as a word."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError
    return word in TRUE_WORDS


def number(kind: type[int] | type[float], at_least: float, at_most: float) -> Parser:
    """A number within bounds."""

    def parse(value: Any) -> int | float:
        if isinstance(value, bool):
            raise ValueError  # noqa: TRY004 - one kind of refusal for every wrong value
        found = kind(value.strip() if isinstance(value, str) else value)
        is_cut = isinstance(value, float) and kind is int and found != value
        if is_cut or not at_least <= found <= at_most:
            raise ValueError
        return found

    return parse


def optional(inner: Parser) -> Parser:
    """The same, or nothing."""

    def parse(value: Any) -> Any:
        return None if value is None or str(value).strip().lower() in ("", "none", "auto", "0") else inner(value)

    return parse


def text(value: Any) -> str:
    """Free text."""
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError
    return "" if value is None else str(value).strip()


def word(*choices: str) -> Parser:
    """One of a few words."""

    def parse(value: Any) -> str:
        found = str(value).strip().lower()
        if found not in choices:
            raise ValueError
        return found

    return parse


def words(value: Any) -> tuple[str, ...]:
    """A list of words, or one string with commas."""
    if isinstance(value, str):
        value = value.split(",")
    if value is not None and not isinstance(value, list | tuple | set | frozenset):
        raise ValueError
    parts = (str(part).strip().casefold() for part in value or ())
    return tuple(dict.fromkeys(part for part in parts if part))


def items(value: Any) -> list[tuple[str, Any]]:
    """The pairs of a map, or of a=b,c=d."""
    if value is None or value == "":
        return []
    if isinstance(value, Mapping):
        return [(str(key), each) for key, each in value.items()]
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004
    split = [piece.partition("=") for piece in value.split(",") if piece.strip()]
    if not all(equals for _, equals, _ in split):
        raise ValueError
    return [(key.strip(), each.strip()) for key, _, each in split]


def pairs(value: Any) -> Pairs:
    """A map of names to names."""
    found = tuple((key.strip().casefold(), str(name).strip().casefold()) for key, name in items(value))
    if not all(key and name for key, name in found):
        raise ValueError
    return found


def recall_log(value: Any) -> str:
    """What is kept of answers; true and false as for a yes/no setting."""
    found = str(value).strip().lower()
    if found in ("off", "ids", "text"):
        return found
    return "ids" if boolean(value) else "off"


def secrets(value: Any) -> bool | Pairs:
    """Whether secrets are masked, or a map of kinds of your own to regular expressions: then they are."""
    if not isinstance(value, Mapping | tuple):
        return boolean(value)
    rules = tuple((kind, str(pattern)) for kind, pattern in items(value))
    for kind, pattern in rules:
        try:
            # A pattern that matches nothing at all would find something everywhere.
            is_usable = _KIND_OF_SECRET.fullmatch(kind) and re.compile(pattern).match("") is None
        except (re.error, RecursionError):
            raise ValueError from None
        if not is_usable:
            raise ValueError
    return rules or True


def trust(value: Any) -> Pairs:
    """A map of tool names, in which * stands for anything, to trusted or untrusted."""
    found = pairs(value)
    if not all(each in ("trusted", "untrusted") for _, each in found):
        raise ValueError
    return found


def days(value: Any) -> Pairs:
    """For how many days what is kept: a number for turns, or a map of turns, memories, history and theme:NAME."""
    parse = number(int, 0, 36500)
    if isinstance(value, int | float) or (isinstance(value, str) and "=" not in value):
        value = {"turns": value or 0}
    found = tuple((key.strip().casefold(), int(parse(each))) for key, each in items(value))
    if not all(key in _KEPT or (key.startswith(_THEME) and key != _THEME) for key, _ in found):
        raise ValueError
    return tuple(pair for pair in found if pair != ("turns", 0))
