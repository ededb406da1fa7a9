"""Words as they are compared, and what the words of a question tell beside what they look for. Pure.

What rows are found by is the work of hermes_lexemes in sql/functions.sql; `fold` does here what hermes_fold does there.
"""

from __future__ import annotations

import re
import unicodedata

from hermes_memory_pgvector.text.clean import clean
from hermes_memory_pgvector.values import Role

MAX_QUESTION_CHARS = 8_000
MAX_NAMES = 48


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts written without spaces, for a class of a pattern."""
# As text: made into patterns when a question comes, not when the package is loaded.
_COMBINING = "[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u0652\u0670]+"
_PART = r"[^\W_]+"
_OF_ASSISTANT = (
    r"(?i)\b(?:you|your)\s(?:\w+\s)?(?:recommend|suggest|told|tell|said|mention|gave|give|provid|list|creat|wr[oi]t|explain|"
    r"describ|shar|help|advis|previous|made|answer)|\bassistant\b|\bremind me\b|\bour (?:previous|last|earlier|past)\b|"
    r"\bprevious (?:chat|conversation)|\blooking back\b"
)
_FOR_SEVERAL = (
    r"(?i)\b(?:how (?:many|much|often|long)|list|all (?:the|of|my)|total|order|number of|different|average|compare\w*"
    r"|between)\b"
)
_OF_USER = r"(?i)\b(?:i|my|me|mine|we|our|user)\b"

STOP_WORDS = _words(
    """i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
    it its itself they them their theirs themselves what which who whom whose this that these those am is are was were
    be been being have has had having do does did doing a an the and but if or because as until while of at by for with
    about against between into through during before after above below to from up down in out on off over under again
    further then once here there when where why how all any both each few more most other some such no nor not only own
    same so than too very s t can could would should will shall may might must just don now i'm i've i'd i'll you're
    you've you'd you'll he's she's it's we're we've they're that's what's who's where's don't doesn't didn't isn't
    aren't wasn't weren't haven't hasn't hadn't won't wouldn't can't cannot couldn't shouldn't let's also"""
)
"""English words too common to ask anything."""
ASKING = (
    "many much long day days week weeks month months year years time times date passed past between ago first "
    "last order earliest latest recent recently currently total number different kind type remember remind mention "
    "mentioned tell told talk talked discuss discussed previous conversation conversations chat wondering suggest "
    "recommend advice tips think know get got go going went take took start started happened event events people like "
    "want need make made likely still ever "
    "would could shall may might must also whose let"
)
"""Words that ask rather than describe: they are in many questions and few answers."""


def fold(text: str) -> str:
    """Lower case, without accents, vowel points and width variants, apostrophes made plain."""
    if text.isascii():
        return text.lower()
    plain = re.sub(_COMBINING, "", unicodedata.normalize("NFKD", text.replace("’", "'")))
    return unicodedata.normalize("NFC", plain).casefold()


def edges(text: str, most: int) -> str:
    """The beginning and end of a long text, which usually say what it is about."""
    return text if len(text) <= most else f"{text[: most // 2]} {text[-most // 2 :]}"


def asked(text: str) -> str:
    """A question as the search takes it."""
    return edges(clean(text), MAX_QUESTION_CHARS)


def names_in(question: str) -> str | None:
    """Every word that may be somebody's name, as a pattern for Postgres; None where there is none: "Tim's" is Tim."""
    text = asked(question)
    parts = dict.fromkeys(part for form in (text.lower(), fold(text)) for part in re.findall(_PART, form))
    names = [part for part in parts if len(part) > 1 and part not in STOP_WORDS][:MAX_NAMES]
    return rf"\m(?:{'|'.join(names)})\M" if names else None


def asks_for_several(question: str) -> bool:
    """Whether a question counts, lists or compares, so that its answer is in several places."""
    return re.search(_FOR_SEVERAL, question[:2000]) is not None


def likely_speaker(question: str) -> Role | None:
    """Who probably said what a question is about: the assistant for "what did you suggest", the user for "my dog"."""
    head = question[:2000]
    if re.search(_OF_ASSISTANT, head):
        return "assistant"
    return "user" if re.search(_OF_USER, head) else None
