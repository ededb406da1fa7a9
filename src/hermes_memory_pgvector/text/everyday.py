"""Whether a prompt asks anything of the memory at all: small talk and chores do not. Pure.

"thanks", "commit and push" and "mach weiter" are made of words that are said every day, about anything. Whatever stored
text contains them, it is no answer. A prompt is worth asking about when at least one of its words is none of these.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from hermes_memory_pgvector.text.words import STOP_WORDS, UNSPACED, fold


@cache
def _known(name: str) -> frozenset[str]:
    """The words of a paragraph of everyday.txt, by the name it begins with; read when a question comes."""
    text = resources.files("hermes_memory_pgvector.text").joinpath("everyday.txt").read_text(encoding="utf-8")
    paragraphs = (paragraph.split("\n", 1) for paragraph in text.strip().split("\n\n"))
    return next(frozenset(words.split()) for head, words in paragraphs if head[2:].partition(":")[0] == name)


@cache
def _unspaced_talk() -> str:
    """Small talk of scripts without spaces, the longest first: taken away, nothing must be left."""
    return "|".join(sorted(_known("unspaced"), key=len, reverse=True))


_ASKING = frozenset(["who", "whom", "whose", "what", "which", "when", "where", "why", "how"])
_OWN = frozenset(["i", "my", "mine", "me", "we", "our", "ours", "us"])
_WORD = rf"[^\W_{UNSPACED}]+(?:'[^\W_{UNSPACED}]+)*"
_UNSPACED_RUN = f"[{UNSPACED}]+"
_ENDINGS = ("", "s", "es", "d", "ed", "ing", "ly")
MAX_TALK_CHARS = 200
"""Nobody writes small talk longer than this."""


def worth_asking(prompt: str) -> bool:
    """Whether a prompt has a word that a memory could be about.

    What counts depends on how it is said. "Run the tests" tells the agent to do something, "how are the tests run?" and
    "tell me about the tests" want to know something: there the words of chores count. In a question about the speaker
    ("when do I finish work?") every word counts.
    """
    if len(prompt) > MAX_TALK_CHARS:
        return True
    folded = fold(prompt)
    words = re.findall(_WORD, folded)
    if _is_question(folded, words):
        says_nothing = _is_talk if _OWN.isdisjoint(words) else _is_stop_word
    else:
        says_nothing = _is_talk if "about" in words else _is_talk_or_chore
    return not all(map(says_nothing, words)) or any(
        re.sub(_unspaced_talk(), "", run) for run in re.findall(_UNSPACED_RUN, folded)
    )


def _is_question(folded: str, words: list[str]) -> bool:
    """Whether it asks who, what, when, where, why or how, rather than using such a word in passing."""
    asking = next((place for place, word in enumerate(words) if word.partition("'")[0] in _ASKING), None)
    return asking == 0 or (asking is not None and "?" in folded)


def _is_stop_word(word: str) -> bool:
    return len(word) == 1 or word in STOP_WORDS


def _is_talk(word: str) -> bool:
    if _is_stop_word(word) or word in _known("elsewhere") or _is_one_of(word, _known("talk")):
        return True
    # The short forms of other languages: c'est, s'il.
    return "'" in word and all(map(_is_talk, word.split("'")))


def _is_talk_or_chore(word: str) -> bool:
    return _is_talk(word) or _is_one_of(word, _known("chores"))


def _is_one_of(word: str, known: frozenset[str]) -> bool:
    return any(word.removesuffix(ending) in known for ending in _ENDINGS)
