"""What a search finds, and what it must never find."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

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
    memories = {theme: store.remember(theme, "memory", "the zebra budget is approved", near) for theme in THEMES}
    for theme in THEMES:
        for vector in (near, None):
            for kind, wanted in ((Kind.TURN, ids), (Kind.MEMORY, memories)):
                hits = store.ask("zebra budget", vector, theme=theme, kind=kind)
                assert [(hit.theme, hit.id) for hit in hits] == [(theme, wanted[theme])]


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
        ("กาแฟ", "ฉันชอบดื่มกาแฟตอนเช้า"),
        ("книги", "Я читал книги и не нашёл ответ"),
        ("회의", "내일 회의가 있습니다"),
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
