"""Words too common to find anything by, and just enough about a few languages to fold their inflections. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH = _words(
    """i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
    it its itself they them their theirs themselves what which who whom whose this that these those am is are was were
    be been being have has had having do does did doing a an the and but if or because as until while of at by for with
    about against between into through during before after above below to from up down in out on off over under again
    further then once here there when where why how all any both each few more most other some such no nor not only own
    same so than too very s t can could would should will shall may might must just don now i'm i've i'd i'll you're
    you've you'd you'll he's she's it's we're we've they're that's what's who's where's don't doesn't didn't isn't
    aren't wasn't weren't haven't hasn't hadn't won't wouldn't can't cannot couldn't shouldn't let's also"""
)

# Words that ask rather than describe: they are in many questions and few answers.
ASKING = _words(
    """many much long day days week weeks month months year years time times date passed past between ago first
    last order earliest latest recent recently currently total number different kind type remember remind mention
    mentioned tell told talk talked discuss discussed previous conversation conversations chat wondering suggest
    recommend advice tips think know get got go going went take took start started happened event events people like
    want need make made likely still ever"""
)

# Small words that betray a language, and none of which is frequent in another of these.
_SIGNS_OF = {
    "de": _words("der und nicht ich ist ein eine das mit auf für fur den dem wir auch wird sich haben wurde nach bei"),
    "fr": _words("le les des une est pas pour dans que qui sur avec nous vous je sont cette mais ete du"),
    "es": _words("el los las una es por para con que del como pero esta se su lo mi muy fue donde cuando"),
    "it": _words("il che di non per una sono con del della gli ho anche questo come piu ma nel alla dove"),
    "pt": _words("o os uma nao para com que em do da dos um eu por mais foi voce como esta onde quando"),
    "nl": _words("de het een en niet van ik dat op te zijn met voor ook maar wij heb wordt naar bij"),
    "sv": _words("och att det som en pa ar av for med jag inte den till har om ett vi var"),
}
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _signs in _SIGNS_OF.items():
    for _sign in _signs:
        _LANGUAGES_OF[_sign] = (*_LANGUAGES_OF.get(_sign, ()), _language)

# Commonest endings, longer ones first.
_ENDINGS = {
    "de": "ungen innen ern est em en er es et st e n s t",
    "fr": "ements ement euses euse eux ees ait ent ons ez er es ee e s x",
    "es": "aciones acion amente mente ando iendo ados adas ado ada ar er ir es os as o a e s",
    "it": "amente azioni azione ando endo ati ate ato ata are ere ire i e o a",
    "pt": "amente acoes acao mente ando endo indo ados adas ado ada ar er ir oes es os as o a e s",
    "nl": "heden ingen eren en je es e s t",
    "sv": "heterna heten arna erna orna ande are ar er or en et na t a e n s",
    "ar": "ات ون ين ان ها ية ه ة ي",
    "ru": "иями ями ами ого его ому ему ыми ими ешь ать ять ить ет ют ия ии ию ов ев ей ам ям ах ях ой ый "
    "ий ая яя ое ее ые ие ую юю ом ем ал ил а я о е ы и у ю ь й",
}
_SUFFIXES = {language: tuple(endings.split()) for language, endings in _ENDINGS.items()}
_ARABIC_PREFIX = re.compile("^(?:وال|بال|كال|فال|لل|ال)(?=..)")
_ARABIC = re.compile("[\u0620-\u06ff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_SAMPLE_CHARS = 600


def likely_language(folded: str, words: Sequence[str]) -> str | None:
    """The language whose small words a folded text uses; None for English and whenever in doubt.

    `words` are the first words of the text, as a caller has found them already.
    """
    sample = folded[:_SAMPLE_CHARS]
    if not sample.isascii():
        if _ARABIC.search(sample):
            return "ar"
        if _CYRILLIC.search(sample):
            return "ru"
    # Most texts are English, which shows within the first words.
    english = sum(map(ENGLISH.__contains__, words))
    if english * 3 >= len(words):
        return None
    found: dict[str, int] = {}
    for word in filter(_LANGUAGES_OF.__contains__, words):
        for language in _LANGUAGES_OF[word]:
            found[language] = found.get(language, 0) + 1
    if not found:
        return None
    language, count = max(found.items(), key=lambda item: item[1])
    return language if count > english and count * 12 >= len(words) else None


def light_stem(word: str, language: str) -> str:
    """A word without its commonest ending, never shorter than three signs."""
    if language == "ar":
        word = _ARABIC_PREFIX.sub("", word)
    for suffix in _SUFFIXES[language]:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word
