"""SQL functions, each by itself: those that find rows, by meaning and by words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from database.searching import START, Said, Store, settle, store_of, unit

from hermes_memory_pgvector.postgres.vector_types import HalfVector
from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes
from testing.postgres import DIM, Database

NEAR = (0.9, 0.7, 0.5)
"""How far the rows of a theme are pulled towards the question."""
EVERY_ROW = 2**31 - 1


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with store_of(database) as opened:
        yield opened


@pytest.fixture
def asked() -> list[float]:
    """The meaning of the question."""
    return unit(random.Random(1), DIM)


@pytest.fixture
def ids(store: Store, asked: list[float]) -> dict[str, list[int]]:
    """The turns of some themes, the nearest to the question first."""
    generator = random.Random(2)
    return {
        theme: store.say(
            *(
                Said(f"{theme} says {pull}", theme, f"s{pull}", vector=unit(generator, DIM, asked, pull))
                for pull in NEAR
            )
        )
        for theme in ("fleet", "other", "dm-bob", "dm-eve")
    }


def one(store: Store, call: str, *values: Any) -> Any:
    """The one row a function answers; its only column by itself."""
    row: Any = store.connection.execute(f"SELECT * FROM {call}".encode(), values).fetchone()
    return row[0] if len(row) == 1 else row


def code(store: Store, vector: Sequence[float]) -> str:
    """The code of a question."""
    return str(one(store, "CAST(hermes_code(l2_normalize(%s::halfvec)) AS text)", HalfVector(vector)))


BOUNDS: list[tuple[str, list[Any], list[int]]] = [
    ("everything", [None, None, None], [0, 1, 2]),
    ("a session", [["s0.7"], None, None], [1]),
    ("since", [None, START + timedelta(minutes=1), None], [1, 2]),
    ("until", [None, None, START + timedelta(minutes=1)], [0]),
]


@pytest.mark.parametrize(("bounds", "places"), [bound[1:] for bound in BOUNDS], ids=[bound[0] for bound in BOUNDS])
def test_candidates_in_theme_are_its_own_within_bounds_the_nearest_first(
    store: Store, asked: list[float], ids: dict[str, list[int]], bounds: list[Any], places: list[int]
) -> None:
    call = "hermes_candidates_in_theme(NULL::turn_vectors_1, 'fleet', %s, %s, %s, %s::bit varying, %s)"
    found = one(store, call, *bounds, code(store, asked), 10)
    assert found == [ids["fleet"][place] for place in places]
    assert one(store, call, *bounds, code(store, asked), 1) == found[:1]


def test_candidates_in_theme_of_memories_are_narrowed_by_target(store: Store, asked: list[float]) -> None:
    fact = store.remember("fleet", "memory", "a fact", asked)
    store.remember("fleet", "user", "a person", asked)
    call = "hermes_candidates_in_theme(NULL::memory_vectors_1, 'fleet', %s, NULL, NULL, %s::bit varying, 10)"
    assert one(store, call, ["memory"], code(store, asked)) == [fact]


def test_excluded_are_the_rows_that_are_less_trusted_than_asked_for(store: Store) -> None:
    rows = store.say(*(Said(f"words {trust}", trust=trust) for trust in ("", "trusted", "exposed", "untrusted")))
    other = store.say(Said("a stranger elsewhere", theme="other", trust="untrusted"))
    private = store.say(Said("a stranger in private", theme="dm-bob", trust="untrusted"))
    call = "hermes_excluded(NULL::conversations, %s, %s, %s::text)"
    assert one(store, call, "fleet", False, None) is None
    assert one(store, call, "fleet", False, "trusted") == rows[3:]
    assert sorted(one(store, call, "fleet", False, "strict")) == rows[2:]
    assert one(store, call, "nobody", False, "strict") is None
    assert sorted(one(store, call, "fleet", True, "trusted")) == rows[3:] + other
    assert private[0] in one(store, call, "dm-bob", True, "trusted")
    assert one(store, call.replace("conversations", "memory_entries"), "fleet", True, "strict") is None


def test_what_is_excluded_makes_room_for_the_next(
    database: Database, store: Store, asked: list[float], ids: dict[str, list[int]]
) -> None:
    first, rest = ids["fleet"][:1], ids["fleet"][1:]
    vector, bits = HalfVector(asked), code(store, asked)
    in_theme = "hermes_candidates_in_theme(NULL::turn_vectors_1, 'fleet', NULL, NULL, NULL, %s::bit varying, 2, %s)"
    near = "hermes_nearest_in_theme(NULL::turn_vectors_1, 'fleet', NULL, NULL, NULL, %s::halfvec, 1600, -1, 10, %s)"
    wide = "hermes_nearest_everywhere(NULL::turn_vectors_1, 'fleet', NULL, NULL, NULL, %s::halfvec, 1600, %s)"
    exact = "hermes_nearest_exact(NULL::turn_vectors_1, 'fleet', %s, NULL, NULL, NULL, %s::halfvec, %s)"
    seen = sorted(rest + ids["other"])

    def check() -> None:
        assert one(store, near, vector, first)[1] == rest
        assert sorted(one(store, wide, vector, first)[1]) == seen

    assert one(store, in_theme, bits, first) == rest
    assert one(store, exact, False, vector, first)[1] == rest
    assert sorted(one(store, exact, True, vector, first)[1]) == seen
    check()
    with VectorIndexes.open(database.owner_dsn) as indexes:
        indexes.create_theme("fleet", force=True)
        indexes.create_all()
    check()
    terms = "ARRAY['fleet'], ARRAY['fleet'], ARRAY[1]::real[], 10, %s"
    words = f"hermes_find_by_words(NULL::conversations, 'fleet', false, NULL, NULL, NULL, {terms})"
    assert sorted(one(store, words, first)[1]) == rest


@pytest.mark.parametrize(("theme", "seen"), [("fleet", ["fleet", "other"]), ("dm-bob", ["dm-bob", "fleet", "other"])])
def test_candidates_everywhere_are_those_that_may_be_seen(
    store: Store, asked: list[float], ids: dict[str, list[int]], theme: str, seen: list[str]
) -> None:
    call = "hermes_candidates_everywhere(NULL::turn_vectors_1, %s, NULL, NULL, NULL, %s::bit varying, %s)"
    themes, found = one(store, call, theme, code(store, asked), 100)
    assert sorted(set(themes)) == seen
    assert sorted(found) == sorted(row for name in seen for row in ids[name])
    themes, found = one(store, call, theme, code(store, asked), len(seen))
    assert sorted(found) == sorted(ids[name][0] for name in seen)


@pytest.mark.parametrize(("theme", "seen"), [("fleet", ["fleet", "other"]), ("dm-bob", ["dm-bob", "fleet", "other"])])
def test_candidates_by_shared_index_are_those_that_may_be_seen(
    database: Database, store: Store, asked: list[float], ids: dict[str, list[int]], theme: str, seen: list[str]
) -> None:
    with VectorIndexes.open(database.owner_dsn) as indexes:
        indexes.create_all()
    call = "hermes_candidates_by_shared_index(NULL::turn_vectors_1, %s, NULL, NULL, NULL, %s::bit varying, 100)"
    themes, found = one(store, call, theme, code(store, asked))
    assert sorted(set(themes)) == seen
    assert sorted(found) == sorted(row for name in seen for row in ids[name])


def test_candidates_by_theme_index_are_its_own_the_nearest_first(
    database: Database, store: Store, asked: list[float], ids: dict[str, list[int]]
) -> None:
    with VectorIndexes.open(database.owner_dsn) as indexes:
        indexes.create_theme("fleet", force=True)
    call = "hermes_candidates_by_theme_index(NULL::turn_vectors_1, 'fleet', %s::bit varying, %s)"
    assert one(store, call, code(store, asked), 100) == ids["fleet"]
    assert one(store, call, code(store, asked), 1) == ids["fleet"][:1]


@pytest.mark.parametrize(("bounds", "places"), [bound[1:] for bound in BOUNDS], ids=[bound[0] for bound in BOUNDS])
def test_nearest_in_theme_tells_how_near(
    store: Store, asked: list[float], ids: dict[str, list[int]], bounds: list[Any], places: list[int]
) -> None:
    call = "hermes_nearest_in_theme(NULL::turn_vectors_1, 'fleet', %s, %s, %s, %s::halfvec, 1600, -1, 10)"
    themes, found, similarities, copies = one(store, call, *bounds, HalfVector(asked))
    assert found == [ids["fleet"][place] for place in places]
    assert (themes, copies) == (["fleet"] * len(places), [1] * len(places))
    assert similarities == sorted(similarities, reverse=True)


def test_nearest_in_theme_goes_on_while_portions_bring_something_better(store: Store) -> None:
    """The codes of these rows say little: what is near is spread over all portions."""
    generator = random.Random(3)
    centre = unit(generator, DIM)
    vectors = [unit(generator, DIM, centre, 0.995) for _ in range(2400)]
    for start in range(0, 2400, 400):
        store.say(*(Said(f"n{start + n}", vector=v) for n, v in enumerate(vectors[start : start + 400])))
    call = "hermes_nearest_in_theme(NULL::turn_vectors_1, 'fleet', NULL, NULL, NULL, %s::halfvec, %s, %s, 10)"
    exact = "hermes_nearest_exact(NULL::turn_vectors_1, 'fleet', false, NULL, NULL, NULL, %s::halfvec)"
    missed = {400: 0, 1600: 0, 9600: 0}
    for _ in range(10):
        question = HalfVector(unit(generator, DIM, centre, 0.98))
        best = set(one(store, exact, question)[1][:10])
        for limit in missed:
            missed[limit] += len(best - set(one(store, call, question, limit, -1)[1][:10]))
    # A limit that was raised makes the portions larger, here so large that one holds all rows.
    assert 0 == missed[9600] < missed[1600] < missed[400]


def test_nearest_in_theme_counts_the_copies_of_a_text(store: Store, asked: list[float]) -> None:
    said = store.say(*(Said("the same prompt", session=f"s{n}", vector=asked) for n in range(5)))
    call = "hermes_nearest_in_theme(NULL::turn_vectors_1, 'fleet', NULL, NULL, NULL, %s::halfvec, 1600, -1, 10)"
    assert one(store, call, HalfVector(asked))[1:] == ([said[-1]], [pytest.approx(1, abs=1e-3)], [5])


def test_nearest_everywhere_is_the_same_with_and_without_the_index(
    database: Database, store: Store, asked: list[float], ids: dict[str, list[int]]
) -> None:
    call = "hermes_nearest_everywhere(NULL::turn_vectors_1, 'dm-bob', NULL, NULL, NULL, %s::halfvec, 1600)"
    themes, found, similarities, copies = one(store, call, HalfVector(asked))
    assert set(themes) == {"dm-bob", "fleet", "other"}
    assert set(found[:3]) == {ids[theme][0] for theme in ("dm-bob", "fleet", "other")}
    assert similarities == sorted(similarities, reverse=True)
    assert copies == [1] * 9
    with VectorIndexes.open(database.owner_dsn) as indexes:
        indexes.create_all()
    assert one(store, call, HalfVector(asked)) == (themes, found, similarities, copies)


def test_nearest_everywhere_counts_a_text_in_several_pieces_once(
    database: Database, store: Store, asked: list[float]
) -> None:
    store.say(Said("a long text", vector=asked))
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO turn_vectors_1 (agent_identity, id, chunk, ts, content_hash, embedding)"
            " SELECT agent_identity, id, 1, ts, content_hash, embedding FROM turn_vectors_1"
        )
    calls = (
        "hermes_nearest_everywhere(NULL::turn_vectors_1, 'fleet', NULL, NULL, NULL, %s::halfvec, 1600)",
        "hermes_nearest_exact(NULL::turn_vectors_1, 'fleet', true, NULL, NULL, NULL, %s::halfvec)",
        "hermes_nearest_exact(NULL::turn_vectors_1, 'fleet', false, NULL, NULL, NULL, %s::halfvec)",
        "hermes_nearest_in_theme(NULL::turn_vectors_1, 'fleet', NULL, NULL, NULL, %s::halfvec, 1600, -1, 10)",
    )
    assert [one(store, call, HalfVector(asked))[3] for call in calls] == [[1]] * 4


@pytest.mark.parametrize(("bounds", "places"), [bound[1:] for bound in BOUNDS], ids=[bound[0] for bound in BOUNDS])
def test_nearest_exact_keeps_to_its_theme_and_bounds(
    store: Store, asked: list[float], ids: dict[str, list[int]], bounds: list[Any], places: list[int]
) -> None:
    call = "hermes_nearest_exact(NULL::turn_vectors_1, 'fleet', false, %s, %s, %s, %s::halfvec)"
    themes, found, _, _ = one(store, call, *bounds, HalfVector(asked))
    assert found == [ids["fleet"][place] for place in places]
    assert themes == ["fleet"] * len(places)
    call = "hermes_nearest_exact(NULL::turn_vectors_1, %s, true, NULL, NULL, NULL, %s::halfvec)"
    assert set(one(store, call, "dm-bob", HalfVector(asked))[0]) == {"dm-bob", "fleet", "other"}
    assert set(one(store, call, "fleet", HalfVector(asked))[0]) == {"fleet", "other"}


def test_count_rows_counts_small_themes_and_knows_large_ones(database: Database, store: Store) -> None:
    store.say(*(f"said {n}" for n in range(5)), Said("said", "other"))
    call = "hermes_count_rows(NULL::conversations, %s, %s)"
    assert (one(store, call, "fleet", False), one(store, call, "nobody", False)) == (5, 0)
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("ANALYZE conversations; INSERT INTO lexeme_statistics VALUES ('conversations', '~=fleet', 0.5)")
    assert (one(store, call, "fleet", False), one(store, call, "fleet", True)) == (3, 6)
    assert one(store, "hermes_count_rows(NULL::memory_entries, 'fleet', false)") == 0


WORDS = "ARRAY['''zebra''', '''tiger''']::tsquery[]"


def test_look_up_terms_finds_rows_by_term_within_the_theme(store: Store) -> None:
    zebra, tiger, both = store.say("zebra", "tiger", "zebra tiger")
    foreign, _ = store.say(Said("zebra", "other"), Said("zebra", "dm-bob"))
    call = f"hermes_look_up_terms(NULL::conversations, 'fleet', %s, NULL, %s, NULL, {WORDS}, ARRAY[1, 2], 400, %s)"
    hits, themes, found = one(store, call, False, None, 1000)
    assert sorted(zip(hits, found, strict=True)) == [(1, zebra), (1, both), (2, tiger), (2, both)]
    assert themes == [None] * 4
    hits, themes, found = one(store, call, True, None, 1000)
    assert sorted(zip(hits, themes, found, strict=True))[2] == (1, "other", foreign)
    assert len(found) == 5
    assert one(store, call, False, START + timedelta(minutes=1), 1000)[2].count(zebra) == 0
    assert len(one(store, call, False, None, 3)[2]) == 3


def test_look_up_terms_gives_up_on_a_common_term(store: Store) -> None:
    store.say(*(f"zebra {n}" for n in range(20)), "tiger")
    call = f"hermes_look_up_terms(NULL::conversations, 'fleet', false, NULL, NULL, NULL, {WORDS}, ARRAY[1, 2], 4, 99)"
    assert one(store, call)[0] == [1] * 5 + [2]


def test_look_up_common_wants_as_many_together_as_can_be_had(store: Store) -> None:
    zebra, _, both = store.say("zebra", "tiger", "zebra tiger")
    call = "hermes_look_up_common(NULL::conversations, 'fleet', false, NULL, NULL, NULL, %s::tsquery[], 10)"
    assert one(store, call, ["'zebra'", "'tiger'"]) == ([None], [both])
    assert set(one(store, call, ["'zebra'", "'nobody'"])[1]) == {zebra, both}
    assert one(store, call, ["'nobody'"]) == (None, None)


def test_find_by_words_prefers_rare_words_and_says_what_each_counts(store: Store) -> None:
    wanted = store.say("zebra report")[0]
    store.say(*(f"report {n}" for n in range(30)))
    call = (
        "hermes_find_by_words(NULL::conversations, 'fleet', false, NULL, NULL, NULL,"
        " ARRAY['report', 'zebra', 'nobody'], ARRAY['''report''', '''zebra''', '''nobody'''],"
        " ARRAY[1, 1, 1]::real[], %s)"
    )
    themes, found, idf, is_absent = one(store, call, 100)
    assert (themes[0], found[0], len(found)) == ("fleet", wanted, 31)
    assert idf[2] > idf[1] > idf[0] > 0
    assert is_absent == [False, False, True]
    assert one(store, call, 1)[1] == [wanted]


def test_find_by_words_of_common_words_alone_finds_something(database: Database, store: Store) -> None:
    store.say(*(f"report status {n}" for n in range(200)))
    settle(database)
    call = (
        "hermes_find_by_words(NULL::conversations, 'fleet', false, NULL, NULL, NULL, ARRAY['report', 'status'],"
        " ARRAY['''report''', '''status'''], ARRAY[1, 1]::real[], 10)"
    )
    themes, found, _, _ = one(store, call)
    assert (themes, len(found)) == (["fleet"] * 10, 10)
    assert one(store, call.replace("ARRAY['report', 'status']", "ARRAY[]::text[]")) == (None,) * 4


def test_measure_hits_says_what_is_known_of_each_row(store: Store) -> None:
    tim, other, long, last = store.say(
        Said("[Tim] zebra on Monday", ts=datetime(2026, 5, 4, 12, tzinfo=UTC)),
        Said("tiger", role="assistant", before=["which zebra?"]),
        Said("zebra " + "and so on " * 100, session="s2"),
        "else",
    )
    call = (
        "SELECT id, round(coverage::numeric, 2), round(exact_coverage::numeric, 2),"
        " round(session_coverage::numeric, 2), answers_when, is_in_period, is_by_speaker, is_by_author"
        " FROM hermes_measure_hits(NULL::conversations, array_fill('fleet'::text, ARRAY[4]), %s, NULL, NULL,"
        " ARRAY['zebra', 'tiger', 'nobody'], ARRAY['zebra:A', 'tiger:A', 'nobody:A'], ARRAY[true, false, false],"
        " ARRAY[2.0, 1.0, 1.0], ARRAY[false, false, true], true, 'assistant', %s, '2026-05-04', '2026-05-05')"
        " ORDER BY id"
    )
    rows = store.connection.execute(call.encode(), ([tim, other, long, last], "'~by:tim'")).fetchall()
    assert rows[0] == (tim, Decimal("0.50"), Decimal("0.50"), Decimal("0.75"), True, True, False, True)
    # The word of the turn before counts 0.6; its session has both words.
    assert rows[1] == (other, Decimal("0.55"), None, Decimal("0.75"), False, False, True, False)
    # A long text has many words by chance.
    assert (rows[2][0], rows[2][3]) == (long, Decimal("0.50"))
    assert 0.2 < rows[2][1] < 0.26
    assert rows[3][:4] == (last, 0, None, Decimal("0.75"))


RANK_HITS = (
    "hermes_rank_hits(NULL::conversations, %s, %s, %s::real[], %s::integer[], ARRAY['''zebra'''], ARRAY['''zebra'':A'],"
    " ARRAY[false], ARRAY[2.0], ARRAY[false], %s::real, 0.1, false, 0.2, false, %s, NULL, NULL, NULL, 0, now(), %s, 10)"
)


def ranked(
    store: Store,
    ids: list[int],
    similarities: Any,
    *,
    copies: Any = None,
    floor: float = 0,
    speaker: Any = None,
    by_session: bool = False,
) -> list[Any]:
    values = (["fleet"] * len(ids), ids, similarities, copies, floor, speaker, by_session)
    return store.connection.execute(
        f"SELECT id, similarity, rank, count, role FROM {RANK_HITS}".encode(), values
    ).fetchall()


def test_rank_hits_adds_up_meaning_and_words(store: Store) -> None:
    word, near, neither = store.say("zebra", Said("a striped horse", session="s2"), Said("else", session="s3"))
    hits = ranked(store, [neither, near, word], [0.2, 0.9, None], floor=0.5)
    assert [(hit[0], hit[1]) for hit in hits] == [(word, None), (near, pytest.approx(0.9))]
    # One has all words of the question, as its session does; the other is near.
    assert [hit[2] for hit in hits] == [pytest.approx(1.5), pytest.approx(0.7 * 0.7 / 0.8)]


def test_rank_hits_of_words_alone_needs_no_similarities(store: Store) -> None:
    word, _ = said = store.say("zebra", "else")
    assert [(hit[0], hit[1]) for hit in ranked(store, said, None)] == [(word, None)]
    assert ranked(store, [], None) == []


def test_rank_hits_folds_the_same_text_and_prefers_the_speaker(store: Store) -> None:
    first, second, answer = store.say(
        Said("zebra", session="s1"), Said("zebra", session="s2"), Said("zebra!", session="s3", role="assistant")
    )
    hits = ranked(store, [first, second, answer], None, speaker="assistant")
    assert [(hit[0], hit[3], hit[4]) for hit in hits] == [(answer, 1, "assistant"), (second, 2, "user")]
    assert ranked(store, [first], [0.9], copies=[7])[0][3] == 7


def test_rank_hits_of_one_session_step_back_behind_each_other(store: Store) -> None:
    said = store.say("zebra one", "zebra two", "zebra three")
    hits = ranked(store, said, None)
    assert [round(hits[0][2] - hit[2], 4) for hit in hits] == [0, 0.007, 0.014]


def test_rank_hits_by_session_puts_the_best_of_each_session_first(store: Store) -> None:
    best, second, other, third = store.say(
        Said("zebra one", session="s1"),
        Said("zebra two", session="s1"),
        Said("else", session="s2"),
        Said("zebra three", session="s1"),
    )
    near = [0.9, 0.8, 0.3, 0.7]
    ids = [best, second, other, third]
    assert [hit[0] for hit in ranked(store, ids, near)] == [best, second, third, other]
    assert [hit[0] for hit in ranked(store, ids, near, by_session=True)] == [best, other, second, third]


SEARCH = (
    "SELECT id, similarity IS NOT NULL FROM hermes_search({}, 'fleet', false, NULL, NULL, NULL, ARRAY['zebra'],"
    " ARRAY['''zebra'''], ARRAY['''zebra'':A'], ARRAY[1]::real[], ARRAY[false], %s::halfvec, %s, 0.3, 0.1, false,"
    " 0.2, false, NULL, NULL, NULL, NULL, 0, now(), false, 10)"
)


@pytest.mark.parametrize("candidates", [1600, EVERY_ROW])
def test_search_unites_meaning_and_words(store: Store, asked: list[float], candidates: int) -> None:
    generator = random.Random(4)
    near, word, both = store.say(
        Said("a striped horse", vector=unit(generator, DIM, asked, 0.8)),
        Said("zebra without a vector"),
        Said("zebra far away", vector=[-number for number in asked]),
    )
    rows = store.connection.execute(
        SEARCH.format("NULL::turn_vectors_1").encode(), (HalfVector(asked), candidates)
    ).fetchall()
    # What only words have found is compared as well, if it can be.
    assert dict(rows) == {near: True, word: False, both: True}


def test_search_by_words_alone_takes_the_table_of_texts(store: Store, asked: list[float]) -> None:
    _, word = store.say(Said("a striped horse", vector=asked), Said("a zebra", vector=asked))
    rows = store.connection.execute(SEARCH.format("NULL::conversations").encode(), (None, None)).fetchall()
    assert rows == [(word, False)]
    fact = store.remember("fleet", "memory", "the zebra budget", asked)
    rows = store.connection.execute(SEARCH.format("NULL::memory_entries").encode(), (None, None)).fetchall()
    assert rows == [(fact, False)]
