"""The Snowball English stemmer ("Porter 2"), written from its published definition.

The same stems as Postgres' `english_stem`, so that rows whose lexemes the database worked out and questions whose
lexemes were worked out here meet. Input is one lower-case word.
"""

from __future__ import annotations

import re
from functools import lru_cache

_EXCEPTIONS = {
    "skis": "ski", "skies": "sky", "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli",
    "only": "onli", "singly": "singl", "sky": "sky", "news": "news", "howe": "howe", "atlas": "atlas",
    "cosmos": "cosmos", "bias": "bias", "andes": "andes", "dying": "die", "lying": "lie", "tying": "tie",
}  # fmt: skip
_AFTER_PLURAL = frozenset({"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"})
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_STEP_2 = (
    ("ization", "ize"), ("ational", "ate"), ("fulness", "ful"), ("ousness", "ous"), ("iveness", "ive"),
    ("tional", "tion"), ("biliti", "ble"), ("lessli", "less"), ("entli", "ent"), ("ation", "ate"), ("alism", "al"),
    ("aliti", "al"), ("ousli", "ous"), ("iviti", "ive"), ("fulli", "ful"), ("enci", "ence"), ("anci", "ance"),
    ("abli", "able"), ("izer", "ize"), ("ator", "ate"), ("alli", "al"), ("bli", "ble"), ("ogi", "og"), ("li", ""),
)  # fmt: skip
_STEP_3 = (
    ("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("icate", "ic"), ("iciti", "ic"), ("ative", ""),
    ("ical", "ic"), ("ness", ""), ("ful", ""),
)  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic",
)  # fmt: skip
_VOWEL = re.compile("[aeiouy]")
_REGION = re.compile("[aeiouy][^aeiouy]")
_SHORT_END = re.compile("(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The English stem of a lower-case word."""
    if len(word) <= 2 or word.isdigit():
        return word
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    word = _mark_consonant_y(word.removeprefix("'"))
    r1, r2 = _regions(word)
    word = _step_1a(_step_0(word))
    if word in _AFTER_PLURAL:
        return word
    word = _step_1c(_step_1b(word, r1))
    word = _step_4(_step_3(_step_2(word, r1), r1, r2), r2)
    return _step_5(word, r1, r2).replace("Y", "y")


def _mark_consonant_y(word: str) -> str:
    """Write a y that acts as a consonant as Y."""
    if "y" not in word:
        return word
    signs = list(word)
    for position, sign in enumerate(signs):
        if sign == "y" and (position == 0 or signs[position - 1] in "aeiouy"):
            signs[position] = "Y"
    return "".join(signs)


def _regions(word: str) -> tuple[int, int]:
    """Where the regions after the first and second vowel-consonant pair begin."""
    for prefix in ("gener", "commun", "arsen"):
        if word.startswith(prefix):
            r1 = len(prefix)
            break
    else:
        found = _REGION.search(word)
        r1 = found.end() if found else len(word)
    found = _REGION.search(word, r1)
    return r1, found.end() if found else len(word)


def _is_short(word: str, r1: int) -> bool:
    return r1 >= len(word) and _SHORT_END.search(word) is not None


def _step_0(word: str) -> str:
    for suffix in ("'s'", "'s", "'"):
        if word.endswith(suffix):
            return word[: -len(suffix)]
    return word


def _step_1a(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _VOWEL.search(word[:-2]):
        return word[:-1]
    return word


def _step_1b(word: str, r1: int) -> str:
    for suffix in ("eedly", "eed"):
        if word.endswith(suffix):
            return word[: -len(suffix)] + "ee" if len(word) - len(suffix) >= r1 else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if not word.endswith(suffix):
            continue
        base = word[: -len(suffix)]
        if not _VOWEL.search(base):
            return word
        if base.endswith(("at", "bl", "iz")):
            return base + "e"
        if base.endswith(_DOUBLES):
            return base if base in ("add", "egg", "off") else base[:-1]
        return base + "e" if _is_short(base, r1) else base
    return word


def _step_1c(word: str) -> str:
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in "aeiouy":
        return word[:-1] + "i"
    return word


def _step_2(word: str, r1: int) -> str:
    for suffix, replacement in _STEP_2:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            is_barred = (suffix == "ogi" and not base.endswith("l")) or (
                suffix == "li" and not base.endswith(("c", "d", "e", "g", "h", "k", "m", "n", "r", "t"))
            )
            return word if len(base) < r1 or is_barred else base + replacement
    return word


def _step_3(word: str, r1: int, r2: int) -> str:
    for suffix, replacement in _STEP_3:
        if word.endswith(suffix):
            start = len(word) - len(suffix)
            return word[:start] + replacement if start >= (r2 if suffix == "ative" else r1) else word
    return word


def _step_4(word: str, r2: int) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            is_barred = suffix == "ion" and not base.endswith(("s", "t"))
            return word if len(base) < r2 or is_barred else base
    return word


def _step_5(word: str, r1: int, r2: int) -> str:
    last = len(word) - 1
    if word.endswith("e") and (last >= r2 or (last >= r1 and not _SHORT_END.search(word[:-1]))):
        return word[:-1]
    if word.endswith("ll") and last >= r2:
        return word[:-1]
    return word
