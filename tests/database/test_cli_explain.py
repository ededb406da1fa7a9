"""why, why --query and why ID --query: how an answer came about, and what kept a row out of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest

from hermes_memory_pgvector.ops.explain.lost import Stage
from hermes_memory_pgvector.recall.log import RecallLog
from hermes_memory_pgvector.recall.recall import Answer
from hermes_memory_pgvector.runtime.tasks import KeepRecallLog
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store import memories, recall_log
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.values import (
    AddMemory,
    Kind,
    MemoryOperation,
    Moment,
    Question,
    RemoveMemory,
    ReplaceMemory,
    Scope,
    Session,
)
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.embed_server import EmbedServer
from testing.postgres import DIM, MODEL, Database, new_database
from testing.stored import Stored
from testing.unchanged import nothing_changes
from testing.waiting import wait_until


def minute(number: int) -> Moment:
    at = (1_772_000_000 + 60 * number) * 1_000_000
    return Moment(at, at)


OPERATIONS: list[MemoryOperation] = [
    AddMemory("market", "memory", "The harbour master signs every permit in blue ink", minute(1), "home"),
    AddMemory("market", "memory", "The ferry leaves from gate seven on Sundays", minute(2), "home"),
    ReplaceMemory("market", "memory", "The ferry leaves from gate nine on Sundays", "gate seven", minute(3), "home"),
    AddMemory("market", "memory", "Zinnias bloom", minute(4), "home"),
    AddMemory("market", "memory", "The lighthouse keeper retires", minute(5), "home"),
    RemoveMemory("market", "memory", "lighthouse", minute(6), "home"),
    AddMemory("garden", "memory", "The harbour garden has roses", minute(7), "home"),
]
TURNS = """
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts)
SELECT 'market', 500 + n, 's' || n, 'user', 'The harbour pilot boat number ' || n || ' is late', '2026-03-01'
FROM generate_series(1, 9) AS n;
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts) VALUES
    ('market', 520, 'a', 'user', 'The harbour pilot boat number 1 is late', '2026-02-01'),
    ('market', 521, 'a', 'user', 'Quartz', '2026-02-01'),
    ('market', 522, 'a', 'assistant', 'Muted words about the harbour', '2026-02-01');
UPDATE conversations SET hidden_by = 5 WHERE id = 522;
"""


@pytest.fixture(scope="module")
def embedder() -> Iterator[EmbedServer]:
    with EmbedServer(dim=DIM) as server:
        yield server


@pytest.fixture(scope="module")
def filled(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    with new_database(postgres_server, template=migrated_template.name) as database:
        with psycopg.connect(database.owner_dsn) as owner:
            for number, operation in enumerate(OPERATIONS, start=1):
                memories.store(owner, [Placed(operation, "writer", number, 0)])
            owner.execute(TURNS)
        yield database


@pytest.fixture(scope="module")
def commands(filled: Database, embedder: EmbedServer, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    runtime, password = with_password(filled.runtime_dsn)
    made = Commands(tmp_path_factory.mktemp("explain"), [password])
    made.configure(dsn=runtime, embed_url=embedder.url, embed_model=MODEL, ttl_days="history=0")
    assert made.call("backfill", "--json").code == 0
    with psycopg.connect(filled.owner_dsn) as owner:
        owner.execute("DELETE FROM turn_vectors_1 WHERE id = 521")
    return made


@pytest.fixture
def stored(filled: Database) -> Stored:
    return Stored(filled.owner_dsn)


def name_of(stored: Stored, content: str) -> str:
    ((name,),) = stored.rows("SELECT 'm' || id FROM memory_entries WHERE content = %s", content)
    return str(name)


def test_explain_shows_the_reasons_and_where_the_time_went(commands: Commands, stored: Stored) -> None:
    question = ("why", "--query", "who signs the harbour permit", "--theme", "market")
    with nothing_changes(stored):
        found = commands.call(*question, "--json").json
    first = found["results"][0]
    assert first["content"].startswith("The harbour master signs")
    assert first["meaning"] > 3
    assert 0 < first["words_share"] <= 1
    assert {"harbour", "permit"} <= set(first["words"])
    by_memory, by_turn = found["searches"]
    assert set(by_memory["milliseconds"]) == {"embedding", "connection", "search"}
    assert by_memory["bar"] == 0.25
    assert by_memory["model"]["unrelated_sd"] == pytest.approx(0.125)
    assert (by_memory["kind"], by_turn["kind"]) == ("memory", "turn")
    assert sum(term["weight"] for term in by_memory["terms"]) == pytest.approx(1, abs=0.01)
    plain = commands.call("recall", "who signs the harbour permit", "--theme", "market", "--json").json
    assert [row["id"] for row in found["results"]] == [row["id"] for row in plain["results"]]
    out = commands.call(*question).out
    assert "sd nearer than unrelated texts" in out
    assert "a hit needs" in out


def test_explain_tells_the_time_a_question_names(commands: Commands) -> None:
    found = commands.call("why", "--query", "what was said in March 2026", "--theme", "market", "--json").json
    assert found["searches"][0]["period"]["start"].startswith("2026-03-01")
    out = commands.call("why", "--query", "what was said in March 2026", "--theme", "market").out
    assert "2026-03-01 00:00 to 2026-04-01 00:00 UTC" in out


def stage(commands: Commands, *arguments: str, theme: str = "market") -> Any:
    done = commands.call("why", *arguments, "--theme", theme, "--json")
    assert done.code == 0, done
    return done.json


def test_why_not_names_every_stage_that_can_lose_a_row(commands: Commands, stored: Stored, filled: Database) -> None:
    crowd = (
        "INSERT INTO conversations (agent_identity, id, session_id, role, content, ts)"
        " SELECT 'crowd', 1000 + n, 's' || n, 'user', 'harbour pilot boat ' || n, timestamptz '2026-03-01'"
        " FROM generate_series(1, 250) AS n UNION ALL SELECT 'crowd', 2000, 's', 'user', 'harbour crane', '2026-03-01'"
    )
    with psycopg.connect(filled.owner_dsn) as owner:
        owner.execute(crowd.encode())
        hit = recall_log.LoggedHit(Kind.TURN, 503, "market", 0.5, 0.5, "given")
        given = recall_log.LoggedAnswer(
            "market", datetime.now(UTC), "s9", "prefetch", Kind.TURN, "current", None, None, (hit,), 1.0
        )
        recall_log.insert(owner, [given])
    assert commands.call("backfill", "--json").code == 0
    with psycopg.connect(filled.owner_dsn) as owner:
        owner.execute("DELETE FROM turn_vectors_1 WHERE id = 521")
    boat = ("--query", "harbour pilot boat is late")
    asked: dict[str, tuple[tuple[str, ...], str]] = {
        "found": ((name_of(stored, "Zinnias bloom"), "--query", "when do zinnias bloom"), "it is hit number 1"),
        "not stored": (("m99999", *boat), "nothing is stored under this id"),
        "other theme": (("t1001", *boat), "it belongs to theme crowd"),
        "hidden": (("t522", *boat), "it is hidden by rule 5"),
        "no vector yet": (("t521", *boat), "it has no vector yet"),
        "below the bar": ((name_of(stored, "Zinnias bloom"), *boat), "is needed; its words match too little"),
        "same text": (("t520", *boat), "t501 says the same words and stands for it"),
        "beyond the limit": (("t502", *boat, "--limit", "1"), "and 1 are asked for"),
        "already shown": (("t503", *boat, "--prefetch", "--session", "s9"), "session s9 was given it in answer"),
    }
    with nothing_changes(stored):
        found = {expected: stage(commands, *arguments) for expected, (arguments, _) in asked.items()}
        far = stage(commands, "t2000", "--query", "harbour pilot boat", theme="crowd")
    assert {expected: each["stage"] for expected, each in found.items()} == {expected: expected for expected in asked}
    for expected, (_, sentence) in asked.items():
        assert sentence in found[expected]["sentence"], expected
    assert far["stage"] in ("below the bar", "beyond the limit")
    # What is untrusted has tests of its own.
    assert {*found, "untrusted"} == set(get_args(Stage))


def test_why_not_says_what_mends_it_and_what_it_needs(commands: Commands) -> None:
    boat = ("--query", "harbour pilot boat is late")
    out = commands.call("why", "t522", *boat, "--theme", "market").out
    assert "to mend it: hermes-pgvector mute --undo 5 --execute" in out
    assert commands.run("why", "zzz", *boat).code == 2
    assert "--query" in commands.run("why", "t522").err


def test_what_prefetch_and_tools_answered_is_logged_and_why_tells_it(database: Database, tmp_path: Path) -> None:
    home = AgentHome.create(tmp_path / "home", database)
    try:
        agent = home.provider("market", session="s1")
        agent.sync_turn("Where do we moor the harbour pilot boat tonight?", "At the northern quay of the harbour.")
        agent.on_memory_write("add", "memory", "The harbour master signs every harbour permit in blue ink", {})
        home.settle()
        later = home.provider("market", session="s2")
        assert "harbour master" in later.prefetch("who signs the harbour permit in the harbour?")
        assert "harbour master" not in later.prefetch("who signs the harbour permit in the harbour?")
        later.handle_tool_call("recall_memory", {"query": "harbour permit", "scope": "all"})
        home.engine.tasks.wake()
        wait_until(lambda: home.stored.count("recall_log") >= 5)
        log = RecallLog(is_wanted=True, with_text=False)
        search = log.listening(
            Session("reader", "s3", "reader"), lambda questions: [Answer((), None) for _ in questions]
        )
        search([Question("x", Kind.MEMORY, "my password is hunter2", Scope.NAMED)])
        KeepRecallLog(log, home.engine.pool, home.engine.writer.breaker).run()
    finally:
        home.close()
    scopes = home.stored.rows("SELECT DISTINCT scope FROM recall_log WHERE agent_identity = 'reader'")
    assert scopes == [("(no such theme)",)]
    assert home.stored.rows("SELECT count(query) FROM recall_log") == [(0,)]
    assert "blue ink" not in str(home.stored.rows("SELECT hits FROM recall_log"))
    runtime, password = with_password(database.runtime_dsn)
    commands = Commands(tmp_path, [password])
    commands.configure(dsn=runtime, embed_url="http://127.0.0.1:9/")
    with nothing_changes(home.stored):
        why = commands.call("why", "--theme", "market", "--limit", "20", "--json").json
        assert why["session_id"] == "s2"
        assert {answer["kind"] for answer in why["answers"]} == {"memory", "turn"}
        outcomes = [hit["outcome"] for hit in why["hits"] if hit["id"].startswith("m")]
        assert outcomes == ["given", "shown before", "given"]
        assert why["hits"][-1]["content"]
        out = commands.call("why", "--theme", "market", "--session", "s2", "--caller", "prefetch").out
        assert "shown before" in out
        assert "harbour master" in out
        ((memory,),) = home.stored.rows("SELECT 'm' || id FROM memory_entries")
        shown = commands.call(
            "why",
            memory,
            "--query",
            "harbour permit",
            "--theme",
            "market",
            "--prefetch",
            "--session",
            "s2",
            "--json",
        ).json
        assert shown["stage"] == "already shown"
        assert "recall was not asked there" in commands.call("why", "--theme", "market", "--session", "nobody").out
        themes = commands.call("list", "themes", "--json").json["rows"]
        assert themes[0]["last_recall"] is not None


def test_the_log_keeps_the_newest_answers_of_each_theme(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    # No role can have the log made shorter than this.
    monkeypatch.setattr(recall_log, "KEPT_PER_THEME", 100)

    def answer(theme: str, number: int) -> recall_log.LoggedAnswer:
        return recall_log.LoggedAnswer(
            theme, datetime.now(UTC), f"s{number}", "prefetch", Kind.MEMORY, "current", None, None, (), 1.0
        )

    with psycopg.connect(database.runtime_dsn) as connection:
        recall_log.insert(connection, [answer("market", number) for number in range(110)] + [answer("garden", 9)])
        recall_log.insert(connection, [answer("market", 777)])
        kept = recall_log.newest(connection, "market", session_id=None, caller=None, limit=200)
        assert [each.session_id for each in kept] == ["s777", *(f"s{number}" for number in range(109, 10, -1))]
        assert len(recall_log.newest(connection, "garden", session_id=None, caller=None, limit=10)) == 1
