"""A turn is reported once, whoever reports it first and however often."""

from __future__ import annotations

from collections import Counter

from hermes_memory_pgvector.capture.session_ledger import MAX_SESSIONS, ReportCounts, SessionLedger, TranscriptWords
from hermes_memory_pgvector.capture.transcript import Turn

KEY = ("marketing", "s1")
U, A = Turn("user", "question"), Turn("assistant", "answer")
U2, A2 = Turn("user", "another"), Turn("assistant", "reply")
WINDOW = 600_000_000


def report(
    ledger: SessionLedger,
    exchange: list[Turn],
    transcript: list[Turn] | None,
    *,
    at: int = 0,
    key: tuple[str, str] = KEY,
    counts: ReportCounts | None = None,
) -> list[tuple[Turn, int]]:
    words = None
    if transcript is not None:
        words = TranscriptWords(Counter(transcript), {turn.role: turn for turn in transcript})
    new, _ = ledger.report(
        key, exchange, words, now_us=at, window_us=WINDOW, counts=ReportCounts() if counts is None else counts
    )
    return new


def test_a_turn_is_new_once() -> None:
    ledger = SessionLedger()
    assert report(ledger, [U, A], [U, A]) == [(U, 1), (A, 1)]
    assert report(ledger, [U, A], [U, A], at=1) == []


def test_the_end_of_a_session_reports_only_what_was_missed() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    assert ledger.read_transcript(KEY, [U, A, U2], now_us=1) == [(U2, 1)]


def test_a_turn_found_in_a_transcript_first_is_not_reported_again() -> None:
    ledger = SessionLedger()
    ledger.read_transcript(KEY, [U, A], now_us=0)
    assert report(ledger, [U, A], [U, A], at=10 * WINDOW) == []


def test_the_same_words_later_in_a_session_are_a_new_turn() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    assert report(ledger, [U, A], [U, A, U, A], at=1) == [(U, 2), (A, 2)]


def test_without_a_transcript_one_provider_counts_its_own_turns() -> None:
    ledger, counts = SessionLedger(), ReportCounts()
    assert report(ledger, [U], None, counts=counts) == [(U, 1)]
    assert report(ledger, [U], None, counts=counts, at=1) == [(U, 2)]


def test_a_retry_through_another_provider_is_the_same_turn_within_the_window() -> None:
    ledger = SessionLedger()
    report(ledger, [U], None)
    assert report(ledger, [U], None, at=WINDOW) == []
    assert report(ledger, [U], None, at=3 * WINDOW) == [(U, 2)]


def test_the_hosts_wording_of_a_reported_turn_is_known_in_the_transcript() -> None:
    ledger = SessionLedger()
    wording = Turn("user", "[skill body] question")
    report(ledger, [U, A], [wording, A])
    assert ledger.read_transcript(KEY, [wording, A], now_us=1) == []


def test_a_report_after_a_transcript_in_the_hosts_wording_is_not_new() -> None:
    ledger = SessionLedger()
    wording = Turn("assistant", "answer with footer")
    ledger.read_transcript(KEY, [U, wording], now_us=0)
    assert report(ledger, [U, A], [U, wording], at=1) == []


def test_a_compressed_session_keeps_what_it_has_reported() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    new = ("marketing", "s2")
    ledger.continue_as(KEY, new)
    assert ledger.read_transcript(new, [U, A, U2], now_us=1) == [(U2, 1)]


def test_words_repeated_after_compression_in_place_are_a_new_turn() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    ledger.continue_as(KEY, KEY)
    assert report(ledger, [U, A], [U, A], at=1) == [(U, 2), (A, 2)]


def ids(*turns: Turn) -> list[tuple[str, int]]:
    return [(turn.digest, 1) for turn in turns]


def test_words_interrupted_before_a_compression_and_said_again_after_it_are_a_new_turn() -> None:
    """A summary hides the first time, of which only a transcript has told."""
    ledger = SessionLedger()
    ledger.begin(KEY, U)
    ledger.read_transcript(KEY, [U], now_us=1)
    ledger.continue_as(KEY, ("marketing", "s2"))
    ledger.begin(("marketing", "s2"), U)
    assert report(ledger, [U, A], [U, A], key=("marketing", "s2")) == [(U, 2), (A, 1)]


def test_a_turn_undone_is_new_when_it_is_reported_again() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    report(ledger, [U2, A2], [U, A, U2, A2], at=1)
    assert ledger.undo(KEY, ids(U2, A2)) == (ids(U2, A2), 1)
    assert report(ledger, [U2, A2], [U, A, U2, A2], at=2) == [(U2, 1), (A2, 1)]
    assert report(ledger, [U2, A2], [U, A, U2, A2], at=3) == []


def test_a_stale_transcript_does_not_bring_back_what_was_undone() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    ledger.undo(KEY, ids(U, A))
    assert ledger.read_transcript(KEY, [U, A, U2], now_us=1) == [(U2, 1)]


def test_what_was_undone_before_it_was_stored_is_not_brought_back_until_it_is_asked_again() -> None:
    ledger = SessionLedger()
    question = Turn("user", "How many barrels are there?")
    ledger.void(KEY, [question])
    ledger.void(KEY, [question])
    assert ledger.read_transcript(KEY, [question], now_us=1) == []
    assert ledger.read_transcript(KEY, [question, question], now_us=1) == [(question, 2)]
    ledger.begin(KEY, question)
    assert ledger.read_transcript(KEY, [question], now_us=2) == [(question, 1)]


def test_a_question_undone_and_asked_again_is_read_from_a_transcript() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    ledger.undo(KEY, ids(U, A))
    ledger.begin(KEY, U)
    assert ledger.read_transcript(KEY, [U, A2], now_us=1) == [(U, 1), (A2, 1)]


def test_a_turn_undone_in_the_hosts_wording_is_found_as_it_is_stored() -> None:
    ledger = SessionLedger()
    wording = Turn("user", "[skill body] question")
    report(ledger, [U, A], [wording, A], at=7)
    assert ledger.undo(KEY, ids(wording, A)) == (ids(U, A), 7)


def test_another_occurrence_gets_the_next_number_nobody_has() -> None:
    ledger = SessionLedger()
    ledger.read_transcript(KEY, [U, U, U], now_us=0)
    report(ledger, [U], [U])
    assert report(ledger, [U], [U], at=3 * WINDOW) == [(U, 4)]


def test_a_transcript_is_recognised_by_any_of_its_turns() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    assert ledger.knows_any(KEY, [U, A2])
    assert not ledger.knows_any(KEY, [U2, A2])
    assert not ledger.knows_any(KEY, [])
    assert not ledger.knows_any(("marketing", "s2"), [U, A])


def test_themes_with_the_same_session_id_have_separate_ledgers() -> None:
    ledger = SessionLedger()
    report(ledger, [U, A], [U, A])
    assert report(ledger, [U, A], [U, A], key=("trading", "s1")) == [(U, 1), (A, 1)]


def test_the_ledger_forgets_the_sessions_that_reported_longest_ago() -> None:
    ledger = SessionLedger()
    for number in range(MAX_SESSIONS + 1):
        report(ledger, [U], [U], key=("t", str(number)))
    assert not ledger.knows_any(("t", "0"), [U])
    assert ledger.knows_any(("t", "1"), [U])
