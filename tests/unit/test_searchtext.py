"""What texts are found by: lexemes of documents, terms of questions, and that both agree."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.text.lexemes import (
    MAX_LEXEMES,
    MAX_TERMS,
    author_query,
    fold,
    lexemes_of,
    likely_speaker,
    memory_lexemes,
    question_terms,
    turn_lexemes,
)
from hermes_memory_pgvector.text.stemmer import stem

LEXEME = re.compile(r"'((?:[^'\\]|''|\\\\)*)'(?::1([AB]))?(?: |$)")


def lexemes(tsvector: str) -> dict[str, str]:
    """Lexeme to weight ('' for markers); fails when the text is not a tsvector."""
    found = {}
    place = 0
    while place < len(tsvector):
        match = LEXEME.match(tsvector, place)
        assert match is not None, tsvector[place : place + 40]
        found[match[1].replace("''", "'").replace("\\\\", "\\")] = match[2] or ""
        place = match.end()
    return found


def terms(question: str) -> set[str]:
    """Every lexeme that could satisfy some term of a question."""
    return {lexeme for term in question_terms(question) for lexeme in term.lexemes}


def shares_a_term(question: str, document: str) -> bool:
    """Whether a question finds a document by at least one word."""
    return not terms(question).isdisjoint(lexemes(memory_lexemes("t", document)))


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("run kubectl -n prod get pods", "-n"),
        ("pg_dump -Fc mydb", "-fc"),
        ("see /etc/nginx/nginx.conf.", "/etc/nginx/nginx.conf"),
        ("it failed with ERR_CONN-42!", "err_conn-42"),
        ("write to foo@bar.com, please", "foo@bar.com"),
        ("upgrade to v1.2.3 (now)", "v1.2.3"),
        ("id 550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("host 192.168.0.17:8080", "192.168.0.17:8080"),
        ("we write C++ and C#", "c++"),
        ("we write C++ and C#", "c#"),
        ("--dry-run=client", "--dry-run=client"),
    ],
)
def test_a_token_with_signs_is_kept_as_typed(text: str, token: str) -> None:
    assert token in lexemes(memory_lexemes("t", text))
    assert token in terms(text)


def test_words_are_stemmed_and_stop_words_dropped() -> None:
    found = lexemes(memory_lexemes("t", "The deployments were running"))
    assert {"deploy", "run"} <= set(found)
    assert not {"the", "were"} & set(found)


def test_accents_width_and_case_do_not_matter() -> None:
    assert fold("ＣＡＦÉ Straße") == "cafe strasse"
    assert shares_a_term("cafe", "Das Café am Markt")
    assert shares_a_term("CAFÉ", "the cafe")


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("猫が好き", "私は猫が大好きです"),
        ("猫", "私は猫が大好きです"),
        ("北京的天气", "我昨天查了北京天气预报"),
        ("กาแฟ", "ฉันชอบดื่มกาแฟตอนเช้า"),
        ("Rechnung bezahlt", "Die Rechnungen wurden gestern von mir bezahlt"),
        ("كتاب", "قرأت الكتاب في المكتبة"),
        ("книга", "Я читал книги и не нашёл ответ"),
        ("회의", "내일 회의가 있습니다"),
    ],
)
def test_other_languages_find_their_sentence(question: str, document: str) -> None:
    assert shares_a_term(question, document)


def test_a_turn_carries_the_words_before_it_with_less_weight() -> None:
    found = lexemes(
        turn_lexemes("t", "I would say Tuesday", ["ignored long ago", "Which weekday suits?", "Or the dentist?"])
    )
    assert found["tuesday"] == "A"
    assert found["dentist"] == "B"
    assert found["weekday"] == "B"
    assert "ignor" not in found


def test_a_word_of_its_own_is_not_repeated_as_context() -> None:
    assert lexemes(turn_lexemes("t", "dentist", ["dentist"]))["dentist"] == "A"


@pytest.mark.parametrize(
    "theme", ["plain", "it's", 'quo"ted', "back\\slash", "a b", "ünï", "猫" * 256, "~=x", "%", "' | 'y"]
)
def test_a_theme_becomes_one_marker(theme: str) -> None:
    markers = {lexeme for lexeme, weight in lexemes(memory_lexemes(theme, "hello")).items() if not weight}
    assert markers == {f"~={theme}", "~all"}


@pytest.mark.parametrize("theme", ["dm-1", "group-a", "_bench"])
def test_a_private_theme_is_not_marked_for_all(theme: str) -> None:
    assert "~all" not in lexemes(memory_lexemes(theme, "hello"))


@given(st.text(max_size=400))
def test_no_text_can_produce_a_marker(text: str) -> None:
    found = lexemes(memory_lexemes("t", text))
    assert {lexeme for lexeme in found if lexeme.startswith("~")} <= {"~=t", "~all", "~when"}
    assert not any(lexeme.startswith("~") for lexeme in terms(text))


@given(st.text(max_size=400))
def test_any_text_gives_lexemes_postgres_can_store(text: str) -> None:
    for lexeme in lexemes(turn_lexemes("t", text, [text[::-1]])):
        assert lexeme
        assert "\x00" not in lexeme
        assert len(lexeme.encode()) <= 2046


@given(st.text(alphabet="abcdefg '-_./\\\"", min_size=1, max_size=60))
def test_a_text_finds_itself(text: str) -> None:
    found = terms(text)
    assert found <= set(lexemes(memory_lexemes("t", text)))


def test_a_question_is_bounded_and_keeps_what_looks_rarest() -> None:
    words = [f"w{number:x}ord" for number in range(3000)]
    found = question_terms(" ".join(words))
    assert len(found) == MAX_TERMS


def test_a_document_is_bounded() -> None:
    generator = random.Random(1)
    text = " ".join(f"{generator.getrandbits(40):x}" for _ in range(12_000))
    assert len(lexemes(memory_lexemes("t", text))) <= MAX_LEXEMES + 3


def test_a_question_of_stop_words_has_no_terms() -> None:
    assert question_terms("what is it that we should have been doing with you") == ()


def test_words_that_only_ask_weigh_less() -> None:
    weights = {term.lexemes[0]: term.weight for term in question_terms("how many sourdough loaves last week")}
    assert weights["sourdough"] == 1.0
    assert weights["week"] < 1.0


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("What did you recommend for dinner?", "assistant"),
        ("Can you remind me of the name of that hotel", "assistant"),
        ("Where did I park my car?", "user"),
        ("Who wrote the report?", None),
    ],
)
def test_a_question_says_who_would_have_said_it(question: str, speaker: str | None) -> None:
    assert likely_speaker(question) == speaker


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("running", "run"),
        ("generously", "generous"),
        ("skies", "sky"),
        ("added", "add"),
        ("dying", "die"),
        ("by", "by"),
    ],
)
def test_stems_are_those_of_snowball(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("content", "author", "names"),
    [
        ("[Tim] see you", "", ["~by:tim"]),
        ("Tim: see you", "", ["~by:tim"]),
        ("Ada Lovelace: see you", "", ["~by:ada", "~by:lovelace"]),
        ("see you", "Zoë O'Brien", ["~by:zoe", "~by:o"]),
        ("[Tim] see you", "Ann", ["~by:ann"]),
        ("see you: soon", "", []),
        ("see [Tim] there", "", []),
        ("http://example.org: down", "", []),
        ("[] x", "", []),
    ],
)
def test_who_said_it_is_known_from_the_host_or_the_text(content: str, author: str, names: list[str]) -> None:
    assert [marker for marker in lexemes_of("t", content, (), author).markers if marker.startswith("~by:")] == names


def test_a_memory_has_no_author() -> None:
    assert "~by" not in memory_lexemes("t", "Project: see you")


def test_a_question_may_name_any_of_its_words() -> None:
    assert author_query("What did Tim's sister say?") == "'~by:tim' | '~by:sister' | '~by:say'"
    assert author_query("what is it?") is None


@given(st.text(), st.text())
def test_no_name_breaks_a_tsvector(content: str, author: str) -> None:
    found = lexemes_of("t", content, (), author)
    assert set(found.markers) <= set(lexemes(found.text))
    assert len(set(found.markers)) == len(found.markers)
