"""What a search finds, and what it must never find."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy
import psycopg
import pytest
from database.searching import START, Said, Store, everywhere, settle, spec_of, store_of, unit

from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from hermes_memory_pgvector.values import Kind, Scope
from testing.postgres import Database, new_database

THEMES = [
    "plain",
    "it's",
    'quo"ted',
    "back\\slash",
    "a b",
    "ünïcode",
    "猫" * 256,
    "~=plain",
    "%",
    "' | '~all",
    "x:*",
    "plain2",
]


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with store_of(database) as opened:
        yield opened


def test_every_theme_finds_its_own_row_and_no_other(store: Store) -> None:
    generator = random.Random(5)
    near = unit(generator, store.model.dim)
    ids = {theme: store.say(Said("the zebra budget is approved", theme, vector=near))[0] for theme in THEMES}
    for theme in THEMES:
        for vector in (near, None):
            hits = store.ask("zebra budget", vector, theme=theme)
            assert [(hit.theme, hit.id) for hit in hits] == [(theme, ids[theme])]


def test_memories_keep_to_their_theme_too(store: Store) -> None:
    near = unit(random.Random(5), store.model.dim)
    ids = {theme: store.remember(theme, "memory", "the zebra budget is approved", near) for theme in THEMES}
    for theme in THEMES:
        for vector in (near, None):
            assert [hit.id for hit in store.ask("zebra budget", vector, theme=theme, kind=Kind.MEMORY)] == [ids[theme]]


def test_scope_all_never_shows_private_themes_except_the_askers_own(store: Store) -> None:
    near = unit(random.Random(5), store.model.dim)
    themes = ["open", "other", "dm-alice", "dm-bob", "group-ops", "_bench"]
    for theme in themes:
        store.say(Said(f"the zebra budget of {theme}", theme, vector=near))
        store.remember(theme, "user", f"zebra lover {theme}", near)
    for kind in Kind:
        for vector in (near, None):
            seen = {hit.theme for hit in everywhere(store, "zebra", vector, theme="open", kind=kind)}
            assert seen == {"open", "other"}
            seen = {hit.theme for hit in everywhere(store, "zebra", vector, theme="dm-bob", kind=kind)}
            assert seen == {"open", "other", "dm-bob"}


def test_scope_session_stays_in_session_and_theme(store: Store) -> None:
    near = unit(random.Random(5), store.model.dim)
    wanted = store.say(Said("zebra one", session="s1", vector=near))
    store.say(Said("zebra two", session="s2", vector=near), Said("zebra three", "another", session="s1", vector=near))
    for vector in (near, None):
        hits = store.ask("zebra", vector, scope=Scope.SESSION, session_id="s1")
        assert [hit.id for hit in hits] == wanted


def test_targets_narrow_memories(store: Store) -> None:
    near = unit(random.Random(5), store.model.dim)
    store.remember("fleet", "memory", "zebra note", near)
    wanted = store.remember("fleet", "user", "zebra person", near)
    for vector in (near, None):
        hits = store.ask("zebra", vector, kind=Kind.MEMORY, targets=("user",))
        assert [(hit.id, hit.target) for hit in hits] == [(wanted, "user")]


@pytest.mark.parametrize("dim", [64, 256, 768])
def test_the_nearest_are_those_of_brute_force(database: Database, dim: int) -> None:
    """Vectors gather in clumps, as those of texts do."""
    generator = random.Random(dim)
    subjects = [unit(generator, dim) for _ in range(40)]
    vectors = [unit(generator, dim, generator.choice(subjects), 0.45) for _ in range(2400)]
    matrix = numpy.array(vectors)
    with store_of(database, dim) as store:
        ids: list[int] = []
        for start in range(0, len(vectors), 200):
            ids += store.say(*(Said(f"n{start + k}", vector=v) for k, v in enumerate(vectors[start : start + 200])))
        settle(database)
        found = wanted = 0
        for subject in subjects[:20]:
            question = unit(generator, dim, subject, 0.5)
            similarity = matrix @ numpy.array(question)
            best = {ids[place] for place in numpy.argsort(-similarity)[:10]}
            hits = store.ask("", question, is_open=True)
            assert len(hits) == 10
            found += len(best & {hit.id for hit in hits})
            wanted += 10
            assert hits[0].score == pytest.approx(float(similarity.max()), abs=2e-3)
    assert found / wanted >= 0.999


def test_a_small_theme_is_exact_among_many_large_ones(database: Database) -> None:
    generator = random.Random(2)
    with store_of(database, 256) as store:
        for theme in ("big-a", "big-b"):
            store.say(*(Said(f"{theme} {n}", theme, vector=unit(generator, 256)) for n in range(600)))
        vectors = [unit(generator, 256) for _ in range(30)]
        ids = store.say(*(Said(f"small {n}", "small", vector=vector) for n, vector in enumerate(vectors)))
        settle(database)
        # Many calls on one connection, first for a large theme: whatever is cached must still serve the small one.
        for _ in range(12):
            store.ask("big", unit(generator, 256), theme="big-a", is_open=True)
        for _ in range(12):
            question = unit(generator, 256)
            similarity = [sum(a * b for a, b in zip(question, vector, strict=True)) for vector in vectors]
            order = sorted(range(30), key=lambda place: -similarity[place])[:10]
            assert [hit.id for hit in store.ask("", question, theme="small", is_open=True)] == [ids[n] for n in order]


def test_a_row_without_a_vector_is_found_by_words(store: Store) -> None:
    generator = random.Random(3)
    store.say(*(Said(f"filler {n}", vector=unit(generator, store.model.dim)) for n in range(20)))
    (wanted,) = store.say("the okapi eats leaves")
    hit = store.ask("okapi leaves", unit(generator, store.model.dim))[0]
    assert (hit.id, hit.score) == (wanted, None)


def test_a_hit_by_meaning_alone_must_be_near_enough(store: Store) -> None:
    generator = random.Random(3)
    question = unit(generator, store.model.dim)
    (near,) = store.say(Said("alpha", vector=unit(generator, store.model.dim, question, 0.8)))
    store.say(Said("beta", vector=unit(generator, store.model.dim)))
    assert [hit.id for hit in store.ask("unrelated", question)] == [near]


def test_identical_turns_are_one_hit_with_a_count(store: Store) -> None:
    generator = random.Random(4)
    same = unit(generator, store.model.dim)
    ids = store.say(*(Said("check the zebra backups", session=f"cron-{n}", vector=same) for n in range(30)))
    (other,) = store.say(Said("zebra backups failed on monday", vector=unit(generator, store.model.dim, same, 0.7)))
    for vector in (same, None):
        hits = store.ask("zebra backups", vector)
        assert {hit.id for hit in hits} == {ids[-1], other}
        assert {hit.id: hit.count for hit in hits}[ids[-1]] == 30


def test_many_identical_turns_do_not_crowd_out_the_rest(store: Store) -> None:
    generator = random.Random(4)
    same = unit(generator, store.model.dim)
    for _ in range(3):
        store.say(*(Said("check the zebra backups", session=f"cron-{store.said + n}", vector=same) for n in range(100)))
    others = store.say(
        *(Said(f"zebra story {n}", vector=unit(generator, store.model.dim, same, 0.6)) for n in range(8))
    )
    assert set(others) <= {hit.id for hit in store.ask("zebra backups", same)}


def test_rare_words_outweigh_common_ones(store: Store) -> None:
    store.say(*(f"the server report number {n} is fine" for n in range(60)))
    (wanted,) = store.say("the server flamingo is fine")
    assert store.ask("server flamingo report")[0].id == wanted


def test_the_words_before_a_turn_help_less_than_its_own(store: Store) -> None:
    before, own = store.say(
        Said("I would say Tuesday", session="a", before=["When does the dentist have time?"]),
        Said("The dentist has time", session="b"),
    )
    store.say(*(f"filler number {n}" for n in range(20)))
    assert [hit.id for hit in store.ask("dentist")] == [own, before]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("kubectl -n prod", "then run kubectl -n prod rollout restart"),
        ("-Fc", "dump it with pg_dump -Fc"),
        ("/etc/hosts", "the entry in /etc/hosts is wrong"),
        ("ERR-4711", "it fails with ERR-4711 every night"),
        ("550e8400-e29b-41d4", "trace 550e8400-e29b-41d4 was slow"),
        ("北京天气", "我昨天查了北京天气预报"),
        ("猫が好き", "私は猫が大好きです"),
        ("Wann wird die Rechnung bezahlt?", "Die Rechnungen werden am Montag bezahlt"),
        ("أين الكتاب", "وضعت الكتاب على الطاولة"),
        ("cafe", "Wir treffen uns im Café"),
    ],
)
def test_words_find_their_sentence_with_the_embedder_down(store: Store, question: str, sentence: str) -> None:
    store.say(*(f"something else, number {n}, about servers and people" for n in range(30)))
    (wanted,) = store.say(sentence)
    hits = store.ask(question)
    assert hits
    assert hits[0].id == wanted


@pytest.mark.parametrize(
    ("question", "sentence"),
    [("okapi", "Okapis eat leaves"), ("北京天气", "我昨天查了北京天气预报"), ("cafe", "im Café")],
)
def test_rows_typed_by_hand_are_found(store: Store, question: str, sentence: str) -> None:
    row: Any = store.connection.execute(
        "INSERT INTO conversations (agent_identity, session_id, role, content)"
        " VALUES ('fleet', 's', 'user', %s) RETURNING id",
        (sentence,),
    ).fetchone()
    assert [hit.id for hit in store.ask(question)] == [row[0]]


def test_an_older_postgres_without_any_other_extension_finds_the_same(postgres_without_contrib: ConnectionInfo) -> None:
    near = unit(random.Random(5), 256)
    with new_database(postgres_without_contrib) as database:
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=spec_of("model", 256))
        with store_of(database) as store:
            (wanted,) = store.say(Said("我昨天查了北京天气预报", vector=near))
            store.say(*(Said(f"filler {n}", vector=unit(random.Random(n), 256)) for n in range(20)))
            for vector in (near, None):
                assert store.ask("北京天气", vector)[0].id == wanted
                assert everywhere(store, "北京天气", vector)[0].id == wanted
            store.remember("fleet", "memory", "zebra note", near)
            assert len(store.ask("zebra", near, kind=Kind.MEMORY)) == 1


def test_a_memory_edited_by_hand_is_found_by_its_new_words_only(store: Store) -> None:
    memory = store.remember("fleet", "memory", "likes okapis")
    store.connection.execute("UPDATE memory_entries SET content = 'likes zebras' WHERE id = %s", (memory,))
    assert [hit.id for hit in store.ask("zebra", kind=Kind.MEMORY)] == [memory]
    assert store.ask("okapi", kind=Kind.MEMORY) == []


def test_rows_moved_to_another_theme_are_found_there_only(store: Store) -> None:
    near = unit(random.Random(6), store.model.dim)
    (turn,) = store.say(Said("the zebra budget", "old", vector=near))
    store.connection.execute("UPDATE conversations SET agent_identity = 'new' WHERE agent_identity = 'old'")
    for vector in (near, None):
        assert store.ask("zebra", vector, theme="old") == []
        assert [hit.id for hit in store.ask("zebra", vector, theme="new")] == [turn]


def test_a_deleted_row_takes_its_vectors_along(store: Store) -> None:
    store.say(Said("the zebra budget", vector=unit(random.Random(6), store.model.dim)))
    store.connection.execute("DELETE FROM conversations WHERE agent_identity = 'fleet'")
    count: Any = store.connection.execute(f"SELECT count(*) FROM turn_vectors_{store.model.id}".encode()).fetchone()
    assert count[0] == 0


def test_vectors_of_rows_that_are_gone_are_passed_over(store: Store) -> None:
    store.embed([("fleet", 4711, unit(random.Random(6), store.model.dim))])
    assert store.ask("", unit(random.Random(6), store.model.dim), is_open=True) == []


def test_since_and_until_are_hard_bounds(store: Store) -> None:
    near = unit(random.Random(7), store.model.dim)
    days = store.say(*(Said(f"zebra day {n}", vector=near, ts=START + timedelta(days=n)) for n in range(10)))
    for vector in (near, None):
        hits = store.ask("zebra", vector, since=START + timedelta(days=3), until=START + timedelta(days=6))
        assert {hit.id for hit in hits} == set(days[3:6])


def test_a_date_in_the_question_lifts_that_day_but_excludes_nothing(store: Store) -> None:
    now = datetime(2026, 6, 20, 12, tzinfo=UTC)
    days = store.say(*(Said(f"zebra walk number {n}", session=str(n), ts=now - timedelta(days=n)) for n in range(9)))
    hits = store.ask("the zebra walk three days ago", now=now)
    assert hits[0].id == days[3]
    assert {hit.id for hit in hits} == set(days)


def test_age_counts_only_when_asked_to(store: Store) -> None:
    now = datetime(2026, 6, 20, 12, tzinfo=UTC)
    old, new = store.say(
        Said("the zebra budget", ts=now - timedelta(days=300)), Said("the zebra budget and other things", ts=now)
    )
    store.say(*(f"filler {n}" for n in range(10)))
    assert {hit.id for hit in store.ask("zebra budget", now=now)} == {old, new}
    hits = store.ask("zebra budget", now=now, half_life_days=30.0)
    assert hits[0].id == new
    assert hits[0].rank > 10 * hits[1].rank
    # After hundreds of half-lives it is still found, last.
    assert [hit.id for hit in store.ask("zebra budget", now=now, half_life_days=0.5)] == [new, old]


def test_what_the_user_said_comes_first_when_the_question_is_about_them(store: Store) -> None:
    (theirs, ours) = store.say(
        Said("zebra boots size forty", role="user"), Said("zebra boots size fifty", role="assistant")
    )
    assert [hit.id for hit in store.ask("what size are my zebra boots")] == [theirs, ours]
    assert [hit.id for hit in store.ask("what zebra boots did you recommend")] == [ours, theirs]


def test_a_common_word_still_finds_something(database: Database, store: Store) -> None:
    for start in range(0, 2000, 250):
        store.say(*(f"status report number {start + n}" for n in range(250)))
    settle(database)
    assert len(store.ask("report")) == 10
    assert len(store.ask("status report")) == 10


def test_scores_are_cosines_between_zero_and_one(store: Store) -> None:
    question = unit(random.Random(8), store.model.dim)
    store.say(Said("zebra same", vector=question), Said("zebra opposite", vector=[-value for value in question]))
    scores = {hit.content: hit.score for hit in store.ask("zebra", question)}
    assert scores["zebra same"] == pytest.approx(1.0, abs=1e-3)
    assert scores["zebra opposite"] == 0.0


def test_documents_of_any_text_can_be_stored(store: Store) -> None:
    generator = random.Random(9)
    signs = "ab'\\\":*&|!()<-> %_\t\nß猫🦓\u202e\u0301ا~=@/.-"
    texts = ["".join(generator.choices(signs, k=generator.randint(1, 80))) for _ in range(300)]
    store.say(*(Said(text, theme=text[:5] or "x") for text in texts))
    count: Any = store.connection.execute("SELECT count(*) FROM conversations").fetchone()
    assert count[0] == 300


def test_a_row_is_in_the_index_under_its_theme_alone(store: Store) -> None:
    store.say(Said("zebra", "alpha"), Said("zebra", "beta"))
    rows: list[Any] = store.connection.execute(
        "SELECT agent_identity FROM conversations WHERE lexemes @@ '''~=alpha'''::tsquery"
    ).fetchall()
    assert rows == [("alpha",)]


def test_the_runtime_role_cannot_change_the_registry_of_models(database: Database) -> None:
    with (
        psycopg.connect(database.runtime_dsn) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("UPDATE embedding_models SET is_current = false")


def test_among_what_answers_a_question_about_now_the_newest_comes_first(store: Store) -> None:
    old, new = store.say("My gym is the Harbour Club", Said("My gym is the Garden Club", session="s2"))
    store.say(Said("The gym smells", session="s3", role="assistant"))
    asked = [hit.id for hit in store.ask("What is my current gym?")][:2]
    assert asked == [new, old]
    hits = store.ask("What is my current gym?")
    assert [hit.rank for hit in hits] == sorted((hit.rank for hit in hits), reverse=True)
    vector = unit(random.Random(5), store.model.dim)
    older, newer = store.say(
        Said("The boat is called Alma", session="s4", vector=vector), Said("The boat is called Bella", session="s5")
    )
    assert [hit.id for hit in store.ask("What was the boat called?", vector)][:2] == [older, newer]
    assert [hit.id for hit in store.ask("What is the boat called now?", vector)][:2] == [newer, older]


def test_further_hits_of_a_session_step_back(store: Store) -> None:
    said = store.say("My sister's wedding in May was a wedding of friends", "A wedding of friends in June")
    asked = "Which weddings of friends?"
    usual = {hit.id: hit.rank for hit in store.ask(asked)}
    spread = {hit.id: hit.rank for hit in store.ask(asked, by_session=True)}
    assert sorted(round(usual[each] - spread[each], 2) for each in said) == [0.0, 0.19]


def test_where_the_answer_is_in_several_sessions_they_step_back_further_and_meaning_counts_more(store: Store) -> None:
    vector = unit(random.Random(6), store.model.dim)
    (one,) = store.say(Said("Something striped", vector=vector))
    few, many = (store.ask(f"zebra {word}", vector)[0] for word in ("herd", "total"))
    assert (few.id, many.id) == (one, one)
    assert many.meaning is not None
    assert many.rank - few.rank == pytest.approx(0.04 * many.meaning, rel=0.01)
