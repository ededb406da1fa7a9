"""When two texts say the same, and what a text reads like without its dress."""

from __future__ import annotations

import html.entities
import quopri
import re
import sys
import unicodedata
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.ops.forget.named import Needle
from hermes_memory_pgvector.text.folding import FORMAT_SIGNS, alike, folded, undressed


@pytest.mark.parametrize(
    "written",
    [
        "anna schmidt",
        "ANNA  SCHMIDT",
        " Anna\tSchmidt\n",
        "Anna\r\nSchmidt",
        "Anna\u00a0Schmidt",
        "Anna\u202f\u2003Schmidt",
        "Anna\u2028Schmidt",
        "An\u200bna Schm\u00adidt",
        "\u202eAnna Schmidt\u202c",
    ],
)
def test_a_name_is_the_same_however_it_is_written(written: str) -> None:
    assert folded(written) == folded("Anna Schmidt")


@pytest.mark.parametrize(
    ("one", "other"), [("Straße", "STRASSE"), ("Zoë", "Zoe\u0308"), ("É", "e\u0301"), ("e\u200d\u0301", "é")]
)
def test_accents_and_capitals_are_the_same_in_every_spelling(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize("other", ["Anna Schmitt", "AnnaSchmidt", "Anna-Schmidt", "Zoe"])
def test_other_words_are_others(other: str) -> None:
    assert folded(other) not in (folded("Anna Schmidt"), folded("Zoë"))


@pytest.mark.parametrize(
    "written", ["Ａｎｎａ　Ｓｃｈｍｉｄｔ", "\u0410nna S\u0441hmidt", "Ann\u03b1 Schm\u0456dt", "𝐀𝐧𝐧𝐚 Ⓢⓒⓗⓜⓘⓓⓣ"]
)
def test_a_name_looks_the_same_in_letters_of_another_width_or_script(written: str) -> None:
    assert alike(written) == alike("Anna Schmidt") == "anna schmidt"


def test_a_word_of_another_script_is_no_latin_word() -> None:
    assert alike("сор и нет") == "сор и нет"
    assert alike("НЕТ") == alike("нет") != "het"


def test_a_small_my_before_a_unit_is_no_m() -> None:
    assert alike("10 \u00b5s") == alike("10 \u03bcs") != alike("10 ms")
    assert alike("\u039cIT") == alike("MIT")


@pytest.mark.parametrize("written", ["wifi_пароль: x", "APIпароль", "%D0%BF wifi_**пар**оль"])
def test_a_part_of_a_word_of_two_scripts_is_in_it(written: str) -> None:
    assert Needle("пароль").is_in(written)


NAMES = ("Anna Schmidt", "Zoë Müller-O'Brien", "Irmak Çelik")
# How a name may be written; what stands for {} is its first part, and then the rest.
AROUND_NAMES = [
    "{}<br>{}", "<p>{}</p><p>{}</p>", "<td>{}</td><td>{}</td>", "{}\x1b[1C{}", "{}\x1b[31m {}", "{}\x07 {}", "*{}* {}",
    "_{}_ {}", "__{}__ {}", "**_{}_** {}", "q={}+{}&n=1", "> {}\n> {}", "{}\r\n>> {}", "{}\u3164{}", "{}\u2800{}",
    "{}&nbsp;{}", "{}&emsp;{}", "{}%20{}", "{}%C2%A0{}", "{}%E2%80%83{}", "{}\\x20{}", "{}\\xa0{}", "{}\\040{}",
    "{}=20{}",
]  # fmt: skip
WAYS: dict[str, Callable[[str], str]] = {
    "HTML": lambda text: "".join(f"&{html.entities.codepoint2name.get(ord(sign), f'#{ord(sign)}')};" for sign in text),
    "a URL": urllib.parse.quote,
    "UTF-8 in hexadecimal": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "UTF-8 in octal": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "Latin-1": lambda text: "".join(sign if sign < "\x80" else f"\\x{ord(sign):02x}" for sign in text),
    "a mail": lambda text: quopri.encodestring(text.encode()).decode(),
    "printed": lambda text: text.replace("'", "’").replace("-", "‑"),
    "a dash": lambda text: text.replace("-", "–"),
    "JavaScript": lambda text: "".join(f"\\u{{{ord(sign):x}}}" for sign in text),
    "Turkish letters": lambda text: text.replace("i", "ı").replace("I", "İ"),
    "hyphenation": lambda text: f"{text[:-2]}-\n{text[-2:]}",
    "hyphenation in a quote": lambda text: f"{text[:-2]}-\n> {text[-2:]}",
    "a hyphen at the end of a line": lambda text: text.replace("-", "-\n"),
    "a soft line end": lambda text: f"{text[:-3]}=\n{text[-3:]}",
    "control signs": lambda text: "\x08".join(text),
    "underlined": lambda text: "\u0332".join(text),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("around", AROUND_NAMES)
def test_a_name_between_others_is_found_however_its_parts_are_joined(around: str, name: str) -> None:
    assert Needle(name).is_in(f"Call {around.format(*name.split())} back")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", WAYS)
def test_a_name_is_found_in_every_way_to_write_its_signs(way: str, name: str) -> None:
    assert Needle(name).is_in(f"Call {WAYS[way](name)} back")


@pytest.mark.parametrize(
    "other", ["Anna+Schmitt", "AnnaSchmidt", "Anna-Schmidt", "Anna, Schmidt", "Schmidt Anna", "Hannah-\nSchmidt"]
)
def test_a_name_is_not_found_in_another(other: str) -> None:
    assert not Needle("Anna Schmidt").is_in(f"Call {other} back")


@given(st.text())
def test_folding_again_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_the_signs_that_show_nothing_are_those_that_unicode_says_format_a_text() -> None:
    known = re.compile(f"[{FORMAT_SIGNS}]")
    signs = map(chr, range(sys.maxunicode + 1))
    missing = [f"U+{ord(each):04X}" for each in signs if unicodedata.category(each) == "Cf" and not known.match(each)]
    assert not missing


PIECES = [
    "a",
    "Z",
    " ",
    "\n",
    "\x1b[31m",
    "[0m",
    "\\n",
    "\\u003d",
    "%3D",
    "&quot;",
    "**",
    "`",
    "\u200b",
    "é",
    "\\",
    "%",
    "&",
]


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.sampled_from(["", " "]), st.data())
def test_each_part_of_what_a_text_reads_like_is_found_in_what_was_written(
    text: str, joint: str, data: st.DataObject
) -> None:
    seen = undressed(text, joint)
    if seen.text:
        start = data.draw(st.integers(0, len(seen.text) - 1))
        end = data.draw(st.integers(start + 1, len(seen.text)))
        begin, stop = seen.span(start, end)
        assert 0 <= begin < stop <= len(text)
        assert undressed(text[begin:stop], joint).text.strip() in seen.text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\\u001b[31mred\\u001b[0m", "red"),
        ("[31mred[0m", "red"),
        ("^[[31mred^[[0m", "red"),
        ("a\\nb\\tc", "a\nb c"),
        ("a%20b%3Dc%252Fd", "a b=c/d"),
        ("&quot;a&#61;b&amp;amp;&quot;", '"a=b&"'),
        ("**bold** and `code` and <b>tag</b>", "bold and code and tag"),
        ("a\u200bb\u00adc", "abc"),
        ("plain [text] 5*3 100% & more \\d", "plain [text] 5*3 100% & more \\d"),
    ],
)
def test_a_text_is_read_without_its_dress(written: str, read: str) -> None:
    assert undressed(written).text == read
