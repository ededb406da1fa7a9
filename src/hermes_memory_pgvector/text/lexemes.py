"""The lexemes that a document is found by, and the terms of a question. Pure; any input is fine.

Words are folded (case, accents, width) and stemmed; tokens such as `/etc/hosts`, `ERR-42` or `-Fc` are kept as typed
beside their words; scripts written without spaces become pairs of signs. Documents and questions take the same path.
Lexemes that start with `~` are markers, see sql/migrations/0002_search.sql; no text can produce one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from hermes_memory_pgvector.text.authors import MAX_WORDS, author_of, name_words
from hermes_memory_pgvector.text.clean import clean
from hermes_memory_pgvector.text.stemmer import stem
from hermes_memory_pgvector.text.stopwords import ASKING, ENGLISH, light_stem, likely_language
from hermes_memory_pgvector.text.time_phrases import speaks_of_time
from hermes_memory_pgvector.values import Role, is_private_theme

MAX_LEXEMES = 4_000
"""Distinct words kept of one text, so that a pasted log does not fill the index."""
MAX_CHARS = 200_000
MAX_CONTEXT_CHARS = 600
"""How much of each preceding turn is indexed with a turn."""
MAX_REMEMBERED_CHARS = 4096
MAX_QUESTION_CHARS = 8_000
MAX_TERMS = 48
MAX_TOKEN = 80
ASKING_WEIGHT = 0.5

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"(?:[^\W_{UNSPACED}]|[\u0900-\u0dff])+(?:'[^\W\d_{UNSPACED}]+)?")
_ASCII_WORD = re.compile("[a-z0-9]+(?:'[a-z]+)?")
_RUN = re.compile(f"[{UNSPACED}]+")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# Between blanks, quotes and brackets; one with a sign in it is a path, an option, a version, an id.
_CHUNK = re.compile(r"[^\s\"'`(){}\[\]<>,;|!?*“”‘’«»…]+")
_QUOTED = re.compile(r"[\"`“”„«»]([^\"`“”„«»\n]{1,80})[\"`“”„«»]")
_PUNCTUATION = "\"'`(){}[]<>,;|!?*.:“”‘’«»…"
_COMBINING = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u0652\u0670]+")
_OF_ASSISTANT = re.compile(
    r"\b(?:you|your)\s(?:\w+\s)?(?:recommend|suggest|told|tell|said|mention|gave|give|provid|list|creat|wr[oi]t|explain|"
    r"describ|shar|help|advis|previous|made|answer)|\bassistant\b|\bremind me\b|\bour (?:previous|last|earlier|past)\b|"
    r"\bprevious (?:chat|conversation)|\blooking back\b",
    re.IGNORECASE,
)
_OF_USER = re.compile(r"\b(?:i|my|me|mine|we|our|user)\b", re.IGNORECASE)
_ALNUM = re.compile(r"[^\W_]")
_BLANKS = (" ", "\n", "\t")
# What follows a lexeme in a binary tsvector: its end, how many positions it has, and the position with its weight.
_NO_POSITION = b"\x00\x00\x00"
_OWN_POSITION = b"\x00\x00\x01\xc0\x01"
_CONTEXT_POSITION = b"\x00\x00\x01\x80\x01"


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a question: the lexemes that would satisfy it, the plainest first."""

    lexemes: tuple[str, ...]
    weight: float = 1.0
    is_exact: bool = False
    """Whether it was meant to the letter: an id, a path, a number, or a word in quotes."""

    @property
    def query(self) -> str:
        """The term as Postgres reads a tsquery."""
        return " | ".join(quoted(lexeme) for lexeme in self.lexemes)

    @property
    def own_query(self) -> str:
        """The same, but matching only a row's own words, not those of the turns before it."""
        return " | ".join(quoted(lexeme) + ":A" for lexeme in self.lexemes)


def fold(text: str) -> str:
    """Lower case, without accents, vowel points and width variants, apostrophes made plain."""
    if text.isascii():
        return text.lower()
    plain = _COMBINING.sub("", unicodedata.normalize("NFKD", text.replace("’", "'")))
    return unicodedata.normalize("NFC", plain).casefold()


def quoted(lexeme: str) -> str:
    """A lexeme as tsvector and tsquery input take it."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Lexemes:
    """What a row is found by: markers, its own words, and with less weight the words of the turns before it."""

    markers: Sequence[str]
    own: AbstractSet[str]
    context: AbstractSet[str]

    @property
    def text(self) -> str:
        """As tsvector input takes it."""
        parts = [quoted(marker) for marker in self.markers]
        for lexemes, weight in ((self.own, ":1A"), (self.context, ":1B")):
            if lexemes:
                parts.append(_weighted(lexemes, weight))
        return " ".join(parts)

    @property
    def binary(self) -> bytes:
        """As Postgres receives it in binary, which is a third of the work on both sides."""
        parts = [
            (len(self.markers) + len(self.own) + len(self.context)).to_bytes(4, "big"),
            *(marker.encode() + _NO_POSITION for marker in self.markers),
        ]
        for lexemes, position in ((self.own, _OWN_POSITION), (self.context, _CONTEXT_POSITION)):
            if lexemes:
                # No word contains a line feed.
                parts += ("\n".join(lexemes).encode().replace(b"\n", position), position)
        return b"".join(parts)


def lexemes_of(theme: str, content: str, before: Sequence[str] = (), author: str = "") -> Lexemes:
    """A turn's lexemes: its own words, those of up to two turns `before` it, and its author's name where known."""
    own = _found(content).own
    context: AbstractSet[str] = frozenset()
    for earlier in before[-2:]:
        context = context | _edges_of(earlier)
    markers = _markers(theme, own)
    name = author or author_of(content)
    if name:
        markers += [f"~by:{word}" for word in name_words(fold(clean(name)))[:MAX_WORDS] if len(word) <= MAX_TOKEN]
    return Lexemes(markers, own, context - own)


def _markers(theme: str, own: AbstractSet[str]) -> list[str]:
    markers = [f"~={theme}"] if is_private_theme(theme) else [f"~={theme}", "~all"]
    return [*markers, "~when"] if speaks_of_time(own) else markers


def turn_lexemes(theme: str, content: str, before: Sequence[str] = (), author: str = "") -> str:
    """A turn's tsvector, as text."""
    return lexemes_of(theme, content, before, author).text


def prepare(content: str) -> None:
    """Compute the lexemes of a turn ahead of time; it and the two turns after it need them."""
    if len(content) <= MAX_REMEMBERED_CHARS:
        _remembered(content)


def clear_prepared() -> None:
    """Free the memory that prepared lexemes take."""
    _remembered.cache_clear()


def memory_lexemes(theme: str, content: str) -> str:
    """A memory's tsvector, as text."""
    own = _found(content).own
    return Lexemes(_markers(theme, own), own, frozenset()).text


def question_terms(text: str) -> tuple[Term, ...]:
    """The distinct terms of a question; if there are more than MAX_TERMS, those that look rarest."""
    folded = fold(_edges(clean(text), MAX_QUESTION_CHARS))
    words = _words(folded)
    language = likely_language(folded, words[:100])
    in_quotes = {word for name in _QUOTED.findall(folded) for word in _words(name)}
    terms: dict[str, Term] = {}
    for word in words:
        if word not in ENGLISH and len(word) <= MAX_TOKEN:
            forms = tuple(dict.fromkeys(_forms(word, language)))
            is_exact = word in in_quotes or (len(word) > 1 and any(map(str.isdigit, word)))
            terms.setdefault(forms[0], Term(forms, ASKING_WEIGHT if word in ASKING else 1.0, is_exact))
    for sign in _signs(folded, is_question=True):
        terms.setdefault(sign, Term((sign,)))
    for token in _tokens(dict.fromkeys(folded.split())):
        terms.setdefault(token, Term((token,), is_exact=True))
    if len(terms) <= MAX_TERMS:
        return tuple(terms.values())
    return tuple(sorted(terms.values(), key=_looks_rare, reverse=True)[:MAX_TERMS])


def author_query(text: str) -> str | None:
    """The markers of everybody a question may name, as Postgres reads a tsquery; None when it names nobody."""
    words = name_words(fold(_edges(clean(text), MAX_QUESTION_CHARS)))
    names = [word for word in words if word not in ENGLISH and 1 < len(word) <= MAX_TOKEN]
    return " | ".join(quoted(f"~by:{name}") for name in names[:MAX_TERMS]) or None


def likely_speaker(text: str) -> Role | None:
    """Who probably said what a question is about: the assistant for "what did you suggest", the user for "my dog"."""
    head = text[:2000]
    if _OF_ASSISTANT.search(head):
        return "assistant"
    return "user" if _OF_USER.search(head) else None


def _looks_rare(term: Term) -> tuple[bool, int]:
    lexeme = term.lexemes[0]
    return any(sign.isdigit() for sign in lexeme), len(lexeme)


@dataclass(frozen=True, slots=True)
class _Found:
    """The lexemes of a text, and those of its beginning and end, which the turns after it get as context."""

    own: frozenset[str]
    edges: frozenset[str]


def _found(text: str) -> _Found:
    return _remembered(text) if len(text) <= MAX_REMEMBERED_CHARS else _read(text[:MAX_CHARS])


# A turn is context for the two that follow it: its lexemes are computed once.
@lru_cache(maxsize=4096)
def _remembered(text: str) -> _Found:
    return _read(text)


def _edges_of(text: str) -> frozenset[str]:
    return _remembered(text).edges if len(text) <= MAX_REMEMBERED_CHARS else _read(_edges(text, MAX_CONTEXT_CHARS)).own


def _read(text: str) -> _Found:
    """The lexemes of a text; if it can be cut between words, each part is read only once."""
    if len(text) <= MAX_CONTEXT_CHARS:
        own, _ = _lexemes(text)
        return _Found(own, own)
    half = MAX_CONTEXT_CHARS // 2
    first = max(text.rfind(blank, half // 2, half) for blank in _BLANKS)
    last = max(text.rfind(blank, len(text) - half, len(text) - half // 2) for blank in _BLANKS)
    if first < 0 or last < 0:
        return _Found(_bounded(_lexemes(text)[0]), _lexemes(_edges(text, MAX_CONTEXT_CHARS))[0])
    middle, language = _lexemes(text[first:last])
    edges = _lexemes(f"{text[:first]} {text[last:]}", language)[0]
    return _Found(_bounded(edges | middle), edges)


def _bounded(lexemes: frozenset[str]) -> frozenset[str]:
    return lexemes if len(lexemes) <= MAX_LEXEMES else frozenset(sorted(lexemes)[:MAX_LEXEMES])


def _lexemes(text: str, language: str | None = "") -> tuple[frozenset[str], str | None]:
    """The lexemes of a text, and its language: the one given, otherwise a guess."""
    folded = fold(clean(text))
    pieces = folded.split()
    is_ascii = folded.isascii()
    distinct = set(pieces)
    if is_ascii:
        # Nearly every piece is a plain word; only the others have to be taken apart.
        words = set(filter(str.isalnum, distinct))
        odd = distinct - words
        words.update(*map(_ASCII_WORD.findall, odd))
        sample = pieces[:100]
    else:
        ordered = _WORD.findall(folded)
        words = set(ordered)
        odd = distinct - words
        sample = ordered[:100]
    if language == "":
        language = likely_language(folded, sample)
    kept = words - ENGLISH
    if max(map(len, kept), default=0) > MAX_TOKEN:
        kept = {word for word in kept if len(word) <= MAX_TOKEN}
    found = set(map(stem, kept))
    if language is not None:
        found |= {light_stem(word, language) for word in kept}
    found.update(_tokens(odd))
    if not is_ascii:
        found.update(_signs(folded))
    return frozenset(found), language


def _edges(text: str, most: int) -> str:
    """The beginning and end of a long text, which usually say what it is about."""
    if len(text) <= most:
        return text
    return text[: most // 2] + " " + text[-most // 2 :]


def _forms(word: str, language: str | None) -> Iterator[str]:
    yield stem(word)
    if language is not None:
        yield light_stem(word, language)


def _signs(folded: str, *, is_question: bool = False) -> Iterator[str]:
    """Pairs of signs of scripts without spaces; single signs where they can be words or stand alone."""
    for run in _RUN.findall(folded):
        for start in range(len(run) - 1):
            yield run[start : start + 2]
        if len(run) == 1:
            yield run
        elif not is_question:
            yield from _HAN.findall(run)


def _tokens(pieces: Iterable[str]) -> Iterator[str]:
    """Tokens with punctuation inside, such as paths and options, as typed apart from case."""
    for piece in pieces:
        bare = piece.strip(_PUNCTUATION)
        if bare.isalnum():
            continue
        for chunk in _CHUNK.findall(bare):
            token = chunk.lstrip("~.:=&")
            if not token.endswith(("++", "#")):
                token = token.rstrip(".:-=/&%$@")
            if 2 <= len(token) <= MAX_TOKEN and not token.isalnum() and _ALNUM.search(token):
                yield token


def _words(folded: str) -> list[str]:
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)


def _weighted(lexemes: AbstractSet[str], weight: str) -> str:
    joined = f"'{weight} '".join(lexemes)
    # One check for all lexemes is much cheaper than one for each, and hardly any needs escaping.
    if "\\" in joined or joined.count("'") != 2 * (len(lexemes) - 1):
        return " ".join(quoted(lexeme) + weight for lexeme in lexemes)
    return f"'{joined}'{weight}"
