"""When two texts say the same: one folding for what is looked for, forgotten and compared, and the dress words come in.

SQL may narrow a search to a superset; whether a text says it is decided here. Pure.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

FORMAT_SIGNS = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f"
)
"""Signs that show nothing (category Cf), for a class of a pattern; the same under every version of Python."""

UNSEEN_SIGNS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Others that show nothing, or a blank: compared without, and kept where they were written."""

_LINES = "\u0305\u0332\u0333\u0335-\u0338\u033f\u20d0-\u20f0"
"""Lines above, below and through a letter, and what encloses it."""
_CONTROLS = "\\x01-\\x08\\x0e-\\x1a\\x1c-\\x1f\\x7f-\\x84\\x86-\\x9f"
_NOTHING = f"{FORMAT_SIGNS}{UNSEEN_SIGNS}{_LINES}"

_UNSEEN_SIGN = re.compile(f"[{FORMAT_SIGNS}{UNSEEN_SIGNS}]")
_SHOWS_NOTHING = re.compile(f"[{_NOTHING}]")
_HEX = "[0-9A-Fa-f]"
_ESC = r"(?:\x1b|\^\[|\\{1,4}(?:u001[bB]|u\{1[bB]\}|x1[bB]|033|e))"
_INLINE = "a|abbr|b|big|cite|code|del|em|font|i|ins|kbd|mark|pre|q|s|samp|small|span|strong|sub|sup|tt|u|wbr"
_BLOCKS = "blockquote|br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|table|tbody|td|th|thead|tr|ul"


def _byte(first: str, octal: str) -> str:
    return rf"(?:(?:%(?:25){{0,4}}|\\{{1,8}}x){first}{_HEX}|\\{{1,8}}{octal}[0-7]{{2}})"


_DRESS = (
    # As text: made into a pattern when a text is looked at, not when the package is loaded.
    # Colours and other orders to a terminal, also where they were printed as text or lost their first sign.
    rf"(?P<gone>(?:{_ESC}\[|\x9b)[0-?]{{0,32}}[ -/]{{0,4}}[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]{0,512}+(?:\x07|\x1b\\|\x9c)|\x1b[ -/]{1,2}[0-~]|\x1b[0-Z\\^-~]"
    r"|\[\d{1,3}(?:;\d{1,3}){0,8}m"
    # Bold and code of markdown, and their tags.
    rf"|\*{{2,3}}(?!\*)|`{{1,3}}|~~|</?(?i:{_INLINE})(?:\s[^<>\n]{{0,200}})?/?>|<!--[^<>]{{0,200}}-->"
    # A line that a mail or a shell goes on with.
    rf"|(?<=\S)[=\\]\r?\n(?=\S)|[{_CONTROLS}{_NOTHING}]+)"
    rf"|(?P<apart></?(?i:{_BLOCKS})(?:\s[^<>\n]{{0,200}})?/?>)"
    # JSON, URLs, HTML, markdown: signs in other words, also several times over.
    rf"|\\{{1,8}}(?:u(?P<unicode>{_HEX}{{4}}|\{{{_HEX}{{1,6}}\}})|(?P<escaped>[nrtfbv\"'/_*.~#!|`+-]))"
    rf"|(?P<bytes>{_byte('[C-Fc-f]', '3')}{_byte('[89ABab]', '2')}{{1,3}}|{_byte(_HEX, '[0-3]')}"
    r"|=[CDEF][0-9A-F](?:=[89AB][0-9A-F]){1,3}|=(?:20|3D))"
    rf"|&(?:amp;){{0,4}}(?P<entity>#\d{{1,7}};?|#[xX]{_HEX}{{1,6}};?|(?:quot|amp|lt|gt|nbsp|shy)(?!;)"
    r"|[A-Za-z][A-Za-z0-9]{1,31};)"
)
_MAY_BEGIN = rf"[{_CONTROLS}\x1b^\\\[*`~<%&{_NOTHING}]|=(?:\r?\n|[2-9C-F])"
"""What each of them begins with: most texts have none of it."""
_ESCAPED = {"n": "\n", "r": "\n", "t": " ", "f": " ", "b": " ", "v": " "}
_BYTE = re.compile(r"(?:%(?:25)*|\\+x|=)([0-9A-Fa-f]{2})|\\+([0-7]{3})")


_FOREIGN, _LATIN = "авекмнорстухіјѕԁһӏԛԝαβεζηικμνορτυχ", "abekmhopctyxijsdhlqwabezhikmnoptyx"
"""Small letters of which one form, mostly the capital, passes for a Latin letter; Cyrillic ones, then Greek ones."""
_LOOK_ALIKE = str.maketrans(_FOREIGN + _FOREIGN.upper(), _LATIN + _LATIN.upper())
_MICRO = re.compile("μ(?=[A-Za-z])")
"""As a small letter it looks like a u, whatever its capital looks like: 10 μs are not 10 ms."""
_LOOKS_LATIN = re.compile(f"[{_FOREIGN}{_FOREIGN.upper()}]")
_MIXED_WORD = re.compile(rf"\b(?=\w*[A-Za-z])(?=\w*[{_FOREIGN}{_FOREIGN.upper()}])\w+")
_SIGNS = str.maketrans("‘’‚‛ʼ′“”„‟″‐‑‒–—―−ı", "'" * 6 + '"' * 5 + "-" * 7 + "i")
"""Quotes and dashes of printed texts, and letters of one language, as they are typed elsewhere."""
_EMPHASIS = re.compile(r"(?<![^\W_])[*_]{1,3}(?=[^\W_])|(?<=[^\W_])[*_]{1,3}(?![^\W_])")
_WRAP = re.compile(r"(?<=\w)[-\u2010\u2011]\r?\n[ \t>]{0,40}(?=\w)")
_QUOTED = re.compile(r"\n[ \t]{0,40}>[ \t>]{0,40}")
_PLUS = re.compile(r"(?<=\w)\+(?=\w)")


def folded(text: str) -> str:
    """A text as it is compared: without regard to case, to how accents and blanks are written, and to unseen signs."""
    seen = unicodedata.normalize("NFC", _UNSEEN_SIGN.sub("", text.replace("\u2800", " ")))
    return " ".join(unicodedata.normalize("NFC", seen.casefold()).split())


def alike(text: str) -> str:
    """A text as it looks, folded: letters of other widths as usual ones, and in a Latin word those that look Latin.

    A word that has no Latin letter is a word of its own language.
    """
    wide = folded(_MICRO.sub("u", unicodedata.normalize("NFKC", text)))
    if wide.isascii():
        return wide
    return _MIXED_WORD.sub(_in_latin, wide.translate(_SIGNS).replace("i\u0307", "i"))


def readings(text: str) -> Iterator[str]:
    """A text in the ways it may be read: as it is written, and without its dress, which joins or parts words."""
    yield text
    for joint in ("", " "):
        read = _QUOTED.sub(" ", _WRAP.sub("-" if joint else "", undressed(text, joint).text))
        read = _EMPHASIS.sub("", _PLUS.sub(" ", read) if joint else read)
        if read != text:
            yield read


def latin(text: str) -> str:
    """A text of the same length: letters of other widths as usual ones, and in a Latin word those that look Latin."""
    # Most texts are sooner seen to need neither.
    usual = text if unicodedata.is_normalized("NFKC", text) else text.translate(_NARROW)
    usual = _MIXED_WORD.sub(_in_latin, usual) if _LOOKS_LATIN.search(usual) else usual
    return text if usual == text else usual


def _in_latin(word: re.Match[str]) -> str:
    return word[0].translate(_LOOK_ALIKE)


class _Narrow(dict[int, str]):
    """Each sign in its usual form, where that is one sign, too."""

    def __missing__(self, code: int) -> str:
        sign = unicodedata.normalize("NFKC", chr(code))
        self[code] = sign if len(sign) == 1 else chr(code)
        return self[code]


_NARROW = _Narrow()


@dataclass(frozen=True, slots=True)
class Undressed:
    """A text as it reads, and where each of its signs stands in what was written."""

    text: str
    _places: tuple[int, ...] = (0,)
    """Where a run of signs begins that stand together in both."""
    _origins: tuple[int, ...] = (0,)
    """Where each such run begins in what was written."""
    has_joints: bool = False
    """Whether something was taken away for which there may be a blank."""

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
    text = latin(text)
    if not re.search(_MAY_BEGIN, text):
        return Undressed(text)
    pieces: list[str] = []
    places, origins = [0], [0]
    at = length = 0
    has_joints = False
    for found in re.finditer(_DRESS, text):
        start, end = found.span()
        kind = found.lastgroup
        if start > at:
            pieces.append(text[at:start])
            length += start - at
        if kind == "gone":
            sign, has_joints = joint, True
        else:
            sign = _sign(found, kind)
        if sign:
            pieces.append(sign)
            places.append(length)
            origins.append(start)
            length += len(sign)
        places.append(length)
        origins.append(end)
        at = end
    if not at:
        return Undressed(text)
    pieces.append(text[at:])
    return Undressed("".join(pieces), tuple(places), tuple(origins), has_joints)


def _sign(found: re.Match[str], kind: str | None) -> str:
    """The sign that an escape means; a blank for what steers a terminal, nothing for what shows nothing."""
    told = found[kind or 0]
    if kind == "apart":
        return " "
    if kind == "escaped":
        return _ESCAPED.get(told, told)
    if kind == "entity":
        import html  # its table is large, and few texts need it

        sign = html.unescape(f"&{told}")
        if sign == f"&{told}":
            return found[0]
    elif kind == "bytes":
        sign = _decoded(told)
    else:
        code = int(told.strip("{}"), 16)
        sign = chr(code) if code <= sys.maxunicode else found[0]
    if sign in "\r\n":
        return "\n"
    return _SHOWS_NOTHING.sub("", " " if sign < " " or "\x7f" <= sign <= "\xa0" else latin(sign))


@lru_cache(maxsize=512)
def _decoded(told: str) -> str:
    """The sign that bytes in hexadecimal or octal digits stand for."""
    raw = bytes(int(high, 16) if high else int(octal, 8) for high, octal in _BYTE.findall(told))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
