"""When two texts say the same: one folding for what is looked for, forgotten and compared, and the dress words come in.

SQL may narrow a search to a superset; whether a text says it is decided here. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

FORMAT_SIGNS = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f"
)
"""Signs that show nothing (category Cf), for a class of a pattern; the same under every version of Python."""

UNSEEN_SIGNS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Others that show nothing, or a blank: compared without, and kept where they were written."""

_FORMAT_SIGN = re.compile(f"[{FORMAT_SIGNS}]")
_UNSEEN_SIGN = re.compile(f"[{FORMAT_SIGNS}{UNSEEN_SIGNS}]")
_ESC = r"(?:\x1b|\^\[|\\{1,4}(?:u001[bB]|x1[bB]|033|e))"
_DRESS = (
    # As text: made into a pattern when a text is looked at, not when the package is loaded.
    # Colours and other orders to a terminal, also where they were printed as text or lost their first sign.
    rf"(?P<gone>{_ESC}\[[0-?]{{0,32}}[ -/]{{0,4}}[@-~]|\x1b\][^\x07\x1b]{{0,512}}+(?:\x07|\x1b\\)"
    r"|\[\d{1,3}(?:;\d{1,3}){0,8}m"
    # Bold and code of markdown, and their tags.
    r"|\*{2,3}(?!\*)|`{1,3}|~~|</?(?:b|i|u|em|strong|code|span|font|mark|pre|kbd|tt|samp|br|p)(?:\s[^<>\n]{0,200})?/?>"
    rf"|[{FORMAT_SIGNS}]+)"
    # JSON, URLs, HTML: signs in other words, also several times over.
    r"|\\{1,8}(?:u(?P<unicode>[0-9A-Fa-f]{4})|(?P<escaped>[nrtfbv\"'/]))"
    r"|%(?:25){0,4}(?P<percent>[0-7][0-9A-Fa-f])"
    r"|&(?:amp;){0,4}(?P<entity>#\d{1,6}|#[xX][0-9A-Fa-f]{1,5}"
    r"|quot|amp|apos|lt|gt|nbsp|shy|equals|colon|sol|lowbar|period|zwj|zwnj);"
)
_MAY_BEGIN = rf"[\x1b^\\\[*`~<%&{FORMAT_SIGNS}]"
"""What each of them begins with: most texts have none of it."""
_ESCAPED = {"n": "\n", "r": "\n", "t": " ", "f": " ", "b": " ", "v": " "}


_FOREIGN, _LATIN = "авекмнорстухіјѕԁһӏԛԝαβεζηικμνορτυχ", "abekmhopctyxijsdhlqwabezhikmnoptyx"
"""Small letters of which one form, mostly the capital, passes for a Latin letter; Cyrillic ones, then Greek ones."""
_LOOK_ALIKE = str.maketrans(_FOREIGN, _LATIN)
_MICRO = re.compile("μ(?=[A-Za-z])")
"""As a small letter it looks like a u, whatever its capital looks like: 10 μs are not 10 ms."""
_MIXED_WORD = re.compile(rf"\b(?=\w*[a-z])(?=\w*[{_FOREIGN}])\w+")


def folded(text: str) -> str:
    """A text as it is compared: without regard to case, to how accents and blanks are written, and to unseen signs."""
    seen = unicodedata.normalize("NFC", _UNSEEN_SIGN.sub("", text.replace("\u2800", " ")))
    return " ".join(unicodedata.normalize("NFC", seen.casefold()).split())


def alike(text: str) -> str:
    """A text as it looks, folded: letters of other widths as usual ones, and in a Latin word those that look Latin.

    A word that has no Latin letter is a word of its own language.
    """
    wide = folded(_MICRO.sub("u", unicodedata.normalize("NFKC", text)))
    return wide if wide.isascii() else _MIXED_WORD.sub(lambda word: word[0].translate(_LOOK_ALIKE), wide)


@dataclass(frozen=True, slots=True)
class Undressed:
    """A text as it reads, and where each of its signs stands in what was written."""

    text: str
    _places: tuple[int, ...] = (0,)
    """Where a run of signs begins that stand together in both."""
    _origins: tuple[int, ...] = (0,)
    """Where each such run begins in what was written."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part that is not empty stands in what was written."""
        last = bisect_right(self._places, end - 1) - 1
        stop = self._origin(end - 1) + 1
        if last + 1 < len(self._places) and self._places[last + 1] == end:
            # The sign may be longer than one where it is written; what shows nothing after it is taken along.
            stop = self._origins[last + 1]
        return self._origin(start), stop

    def _origin(self, place: int) -> int:
        run = bisect_right(self._places, place) - 1
        return self._origins[run] + place - self._places[run]


def undressed(text: str, joint: str = "") -> Undressed:
    """A text without colours, bold and unseen signs, its escapes read; `joint` stands for what was taken away."""
    if not re.search(_MAY_BEGIN, text):
        return Undressed(text)
    pieces: list[str] = []
    places, origins = [0], [0]
    at = length = 0
    for found in re.finditer(_DRESS, text):
        start, end = found.span()
        pieces.append(text[at:start])
        length += start - at
        sign = joint if found["gone"] else _sign(found)
        if sign:
            pieces.append(sign)
            places.append(length)
            origins.append(start)
            length += 1
        places.append(length)
        origins.append(end)
        at = end
    if not pieces:
        return Undressed(text)
    pieces.append(text[at:])
    return Undressed("".join(pieces), tuple(places), tuple(origins))


def _sign(found: re.Match[str]) -> str:
    """The sign that an escape means; a blank for what steers a terminal, nothing for what shows nothing."""
    if found["escaped"]:
        return _ESCAPED.get(found["escaped"], found["escaped"])
    if found["entity"]:
        import html  # its table is large, and few texts need it

        sign = html.unescape(f"&{found['entity']};")[:1]
    else:
        sign = chr(int(found["unicode"] or found["percent"], 16))
    if sign in "\r\n":
        return "\n"
    return _FORMAT_SIGN.sub("", " " if sign < " " or "\x7f" <= sign <= "\xa0" else sign)
