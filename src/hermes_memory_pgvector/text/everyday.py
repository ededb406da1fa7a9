"""Whether a prompt asks anything of the memory at all: small talk and chores do not. Pure.

"thanks", "commit and push" and "mach weiter" are made of words that are said every day, about anything. Whatever stored
text contains them, it is no answer. A prompt is worth asking about when at least one of its words is none of these.
"""

from __future__ import annotations

import re
from importlib import resources

from hermes_memory_pgvector.text.words import STOP_WORDS, UNSPACED, fold


def _read() -> dict[str, frozenset[str]]:
    """The words of everyday.txt, by the name that each of its paragraphs begins with."""
    text = resources.files("hermes_memory_pgvector.text").joinpath("everyday.txt").read_text(encoding="utf-8")
    paragraphs = (paragraph.split("\n", 1) for paragraph in text.strip().split("\n\n"))
    return {head[2:].partition(":")[0]: frozenset(words.split()) for head, words in paragraphs}


_WORDS = _read()
_TALK, _CHORES, _OTHER_LANGUAGES = _WORDS["talk"], _WORDS["chores"], _WORDS["elsewhere"]
# As text: made into patterns when a question comes, not when the package is loaded.
_UNSPACED_TALK = "|".join(sorted(_WORDS["unspaced"], key=len, reverse=True))
"""Taken away, the longest first, nothing must be left."""
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
        re.sub(_UNSPACED_TALK, "", run) for run in re.findall(_UNSPACED_RUN, folded)
    )


def _is_question(folded: str, words: list[str]) -> bool:
    """Whether it asks who, what, when, where, why or how, rather than using such a word in passing."""
    asking = next((place for place, word in enumerate(words) if word.partition("'")[0] in _ASKING), None)
    return asking == 0 or (asking is not None and "?" in folded)


def _is_stop_word(word: str) -> bool:
    return len(word) == 1 or word in STOP_WORDS


def _is_talk(word: str) -> bool:
    if _is_stop_word(word) or word in _OTHER_LANGUAGES or _is_one_of(word, _TALK):
        return True
    # The short forms of other languages: c'est, s'il.
    return "'" in word and all(map(_is_talk, word.split("'")))


def _is_talk_or_chore(word: str) -> bool:
    return _is_talk(word) or _is_one_of(word, _CHORES)


def _is_one_of(word: str, known: frozenset[str]) -> bool:
    return any(word.removesuffix(ending) in known for ending in _ENDINGS)
