"""A turn is reported once, whoever reports it first and however often."""

from __future__ import annotations

from collections import Counter

from hermes_memory_pgvector.capture.session_ledger import Sessions, Spoken, Wording
from hermes_memory_pgvector.capture.transcript import Said

KEY = ("marketing", "s1")
U, A = Said("user", "question"), Said("assistant", "answer")
U2, A2 = Said("user", "another"), Said("assistant", "reply")
WINDOW = 600_000_000


def announce(
    book: Sessions,
    exchange: list[Said],
    transcript: list[Said] | None,
    *,
    at: int = 0,
    key: tuple[str, str] = KEY,
    spoken: Spoken | None = None,
) -> list[tuple[Said, int]]:
    wording = None
    if transcript is not None:
        wording = Wording(Counter(transcript), {said.role: said for said in transcript})
    new, _ = book.announce(
        key, exchange, wording, now_us=at, window_us=WINDOW, spoken_before=Spoken() if spoken is None else spoken
    )
    return new


def test_a_turn_is_new_once() -> None:
    book = Sessions()
    assert announce(book, [U, A], [U, A]) == [(U, 1), (A, 1)]
    assert announce(book, [U, A], [U, A], at=1) == []


def test_the_end_of_a_session_reports_only_what_was_missed() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    assert book.read_transcript(KEY, [U, A, U2], now_us=1) == [(U2, 1)]


def test_a_turn_found_in_a_transcript_first_is_not_announced_again() -> None:
    book = Sessions()
    book.read_transcript(KEY, [U, A], now_us=0)
    assert announce(book, [U, A], [U, A], at=10 * WINDOW) == []


def test_the_same_words_later_in_a_session_are_a_new_turn() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    assert announce(book, [U, A], [U, A, U, A], at=1) == [(U, 2), (A, 2)]


def test_without_a_transcript_one_provider_counts_its_own_turns() -> None:
    book, spoken = Sessions(), Spoken()
    assert announce(book, [U], None, spoken=spoken) == [(U, 1)]
    assert announce(book, [U], None, spoken=spoken, at=1) == [(U, 2)]


def test_a_retry_through_another_provider_is_the_same_turn_within_the_window() -> None:
    book = Sessions()
    announce(book, [U], None)
    assert announce(book, [U], None, at=WINDOW) == []
    assert announce(book, [U], None, at=3 * WINDOW) == [(U, 2)]


def test_the_hosts_wording_of_an_announced_turn_is_known_in_the_transcript() -> None:
    book = Sessions()
    wording = Said("user", "[skill body] question")
    announce(book, [U, A], [wording, A])
    assert book.read_transcript(KEY, [wording, A], now_us=1) == []


def test_an_announcement_after_a_transcript_in_the_hosts_wording_is_not_new() -> None:
    book = Sessions()
    wording = Said("assistant", "answer with footer")
    book.read_transcript(KEY, [U, wording], now_us=0)
    assert announce(book, [U, A], [U, wording], at=1) == []


def test_a_compressed_session_keeps_what_it_has_told() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    new = ("marketing", "s2")
    book.continue_as(KEY, new)
    assert book.read_transcript(new, [U, A, U2], now_us=1) == [(U2, 1)]


def test_words_repeated_after_compression_in_place_are_a_new_turn() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    book.continue_as(KEY, KEY)
    assert announce(book, [U, A], [U, A], at=1) == [(U, 2), (A, 2)]


def ids(*turns: Said) -> list[tuple[str, int]]:
    return [(turn.digest, 1) for turn in turns]


def test_a_turn_taken_back_is_new_when_it_is_said_again() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    announce(book, [U2, A2], [U, A, U2, A2], at=1)
    assert book.take_back(KEY, ids(U2, A2)) == (ids(U2, A2), 1)
    assert announce(book, [U2, A2], [U, A, U2, A2], at=2) == [(U2, 1), (A2, 1)]
    assert announce(book, [U2, A2], [U, A, U2, A2], at=3) == []


def test_a_stale_transcript_does_not_bring_back_what_was_taken_back() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    book.take_back(KEY, ids(U, A))
    assert book.read_transcript(KEY, [U, A, U2], now_us=1) == [(U2, 1)]


def test_a_question_taken_back_and_asked_again_is_read_from_a_transcript() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    book.take_back(KEY, ids(U, A))
    book.begin(KEY, U)
    assert book.read_transcript(KEY, [U, A2], now_us=1) == [(U, 1), (A2, 1)]


def test_a_turn_taken_back_in_the_hosts_wording_is_found_as_it_is_stored() -> None:
    book = Sessions()
    wording = Said("user", "[skill body] question")
    announce(book, [U, A], [wording, A], at=7)
    assert book.take_back(KEY, ids(wording, A)) == (ids(U, A), 7)


def test_words_said_once_more_get_the_next_number_nobody_has() -> None:
    book = Sessions()
    book.read_transcript(KEY, [U, U, U], now_us=0)
    announce(book, [U], [U])
    assert announce(book, [U], [U], at=3 * WINDOW) == [(U, 4)]


def test_a_transcript_is_recognised_by_any_of_its_turns() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    assert book.knows_any(KEY, [U, A2])
    assert not book.knows_any(KEY, [U2, A2])
    assert not book.knows_any(KEY, [])
    assert not book.knows_any(("marketing", "s2"), [U, A])


def test_themes_with_the_same_session_id_have_separate_books() -> None:
    book = Sessions()
    announce(book, [U, A], [U, A])
    assert announce(book, [U, A], [U, A], key=("trading", "s1")) == [(U, 1), (A, 1)]


def test_what_was_shown_is_not_shown_again_until_the_context_is_cut() -> None:
    book = Sessions()
    book.note_shown(KEY, ["memory:1"])
    assert book.not_shown(KEY, ["memory:1", "memory:2"]) == {"memory:2"}
    book.forget_shown(KEY)
    assert book.not_shown(KEY, ["memory:1"]) == {"memory:1"}


def test_books_are_bounded() -> None:
    book = Sessions()
    for number in range(5000):
        announce(book, [U], [U], key=("t", str(number)))
    assert len(book._ledgers) <= 2000
