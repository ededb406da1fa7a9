"""Every text is a question that is answered: without error, without hanging, and never turned into something else."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from database.searching import Said, Store, new_store, settle, unit

from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.values import Kind
from testing.waiting import promptly

DIM = 64

WRITTEN = [
    "", " ", "\n\t", ".", "...", "?", "'", "''", '"', '""', "\\", "\\\\", "\\'", "%", "%%", "%s",
    "%(theme)s", "_", "-", "--", "-n", "-Fc", "--force", "- - -", "!", "!!", "!zebra", "-zebra",
    "not zebra", "zebra & horse", "zebra | horse", "zebra <-> horse", "(", ")", "((((", "zebra:*",
    "zebra:A", "'zebra':B & !'horse'", "~=fleet", "~all", "'~=other'", "~=other | zebra",
    "zebra\x00horse", "\x00", "\x00" * 50, "\ud800", "\udfff zebra", "🦓", "🦓" * 500,
    "👩‍👩‍👧‍👦 zebra", "\u202ezebra\u202c", "שלום זברה", "זֶבְּרָה", "حمار وحشي", "斑马", "斑馬" * 2000,
    "しまうま", "얼룩말", "ม้าลาย", "z̸̧͝e̷b̵r̶a̴", "e\u0301" * 500, "ﬀ ﬁ ﬂ", "İstanbul", "ǅ", "ß" * 300,
    "\ufeffzebra", "the of and to a in is it", "who what when where why how", "a" * 100_000,
    "zebra " * 50_000, "$1", "$$", "$tag$", ";DROP TABLE conversations;--", "{turn_vectors}", "{}",
    "{0}", "\r\n", "\x1b[31mred", "\x7f", "\x80\x9f", "NULL", "null", "NaN", "1e309", "-1", "0x00",
    "1/0", "http://example.com/?q=zebra&x=%20#top", "C:\\Users\\zebra", "zebra@example.com",
    "'; SELECT 1; --", "E'\\x41'", "U&'\\0041'", "99/99/9999", "0000-00-00", "2024-02-30", "31.2.2020",
    "in 0000", "9999999999 years ago", "last 99999 months", "13/13/13",
]  # fmt: skip


@pytest.fixture(scope="module")
def store(postgres_server: ConnectionInfo) -> Iterator[Store]:
    """A theme of ordinary turns and a secret of another theme."""
    with new_store(postgres_server, DIM) as (database, opened):
        generator = random.Random(1)
        for start in range(0, 1500, 250):
            opened.say(
                *(
                    Said(f"zebra report {n} about the {generator.choice(WORDS)}", vector=unit(generator, DIM))
                    for n in range(start, start + 250)
                )
            )
        opened.say(Said("the zebra secret of another theme", "other", vector=unit(generator, DIM)))
        settle(database)
        yield opened


WORDS = [
    "budget",
    "horse",
    "server",
    "猫",
    "Straße",
    "deploy",
    "it's",
    "-Fc",
    "/etc/hosts",
    "ERR_42",
    "שלום",
    "🦓",
    "100%",
    "\\n",
]


def generated(number: int) -> str:
    """The n-th question of the corpus: ordinary words among signs that mean something to somebody."""
    generator = random.Random(number)
    signs = [
        "'",
        '"',
        "\\",
        "%",
        "_",
        "&",
        "|",
        "!",
        "(",
        ")",
        "<->",
        ":*",
        ":A",
        "-",
        "--",
        ";",
        "$1",
        "\x00",
        "\ud83d",
        "~=other",
        "~",
    ]
    signs += [
        "\u202e",
        "\u0000",
        "\u0301",
        "{",
        "}",
        "%s",
        "\t",
        "\n",
        "?",
        "*",
        "/",
        "@",
        "#",
        "=",
        "+",
        ",",
        ".",
        "`",
        "^",
    ]
    parts = generator.choices(
        [*WORDS, *signs, "zebra", "report", "yesterday", "2024-01-01"], k=generator.randint(1, 30)
    )
    return generator.choice(["", " "]).join(parts)


def asked(store: Store, text: str) -> None:
    """Ask for turns and memories, with and without a vector; the answer must be of this theme and in time."""
    for kind in Kind:
        for vector in (unit(random.Random(2), DIM), None):
            with promptly():
                hits = store.ask(text, vector, kind=kind)
            assert all(hit.theme == "fleet" for hit in hits)


@pytest.mark.parametrize("text", WRITTEN, ids=[f"written-{number}" for number in range(len(WRITTEN))])
def test_a_hostile_question_is_answered(store: Store, text: str) -> None:
    asked(store, text)


@pytest.mark.parametrize("batch", [0, 1, *(pytest.param(n, marks=pytest.mark.large) for n in range(2, 10))])
def test_a_corpus_of_generated_questions_is_answered(store: Store, batch: int) -> None:
    for number in range(50):
        asked(store, generated(batch * 50 + number))


def test_two_hundred_thousand_words_are_answered(store: Store) -> None:
    generator = random.Random(3)
    asked(store, " ".join(f"{generator.choice(WORDS)}{generator.getrandbits(20)}" for _ in range(200_000)))
    asked(store, "the and of " * 66_667)


@pytest.mark.parametrize(
    "text", ["-zebra", "!zebra", "not zebra", "NOT zebra", "zebra -report", '"zebra', "zebra)", "zebra:*"]
)
def test_signs_never_negate_or_widen_a_word(store: Store, text: str) -> None:
    hits = store.ask(text)
    assert len(hits) == 10
    assert all("zebra" in hit.content for hit in hits)


def test_stop_words_alone_find_nothing_by_words(store: Store) -> None:
    assert store.ask("the of and to a in is it") == []


def test_a_question_of_stop_words_is_still_answered_by_meaning(store: Store) -> None:
    assert len(store.ask("what is it", unit(random.Random(2), DIM), is_open=True)) == 10
