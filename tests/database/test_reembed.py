"""The embedding model changes while agents write and ask: no answer fails or mixes models, and no row is left out."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.probe import PAIRS
from hermes_memory_pgvector.ops.embed import fill
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.recall.recall import Answer
from hermes_memory_pgvector.runtime.engine import Engine
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.store import models
from hermes_memory_pgvector.values import Kind, Question
from testing.command import Commands
from testing.embed_server import EmbedServer, meaningful_vector
from testing.postgres import DIM, MODEL, Database
from testing.stored import Stored
from testing.waiting import wait_until

NEW = "new-model"
NEW_DIM = 96
THEME = "workshop"
SETTLED_SECONDS = 5.0
"""By then every process here has read its new settings."""

VECTOR = "(SELECT array_agg(sin(id * i)) FROM generate_series(1, {dim}) AS i)::real[]::halfvec"
SOME_ROWS = f"""
INSERT INTO conversations (agent_identity, session_id, role, content, ts)
SELECT 'theme-' || n % 7, 's' || n % 20, 'user', 'Turn ' || n || ' is about subject ' || n % 100,
       now() - n * interval '1 minute'
FROM generate_series(1, {{rows}}) AS n;
INSERT INTO memory_entries (agent_identity, target, content)
SELECT 'theme-' || n % 7, 'memory', 'Memory ' || n || ' about subject ' || n % 10
FROM generate_series(1, {{rows}} / 10) AS n;
INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)
SELECT agent_identity, id, ts, hermes_content_hash(content), {VECTOR} FROM conversations;
INSERT INTO memory_vectors_1 (agent_identity, id, ts, target, embedding)
SELECT agent_identity, id, updated_at, target, {VECTOR} FROM memory_entries;
"""


class Fleet:
    """Two endpoints, one database, a home with its commands, and what is in the database."""

    def __init__(self, folder: Path, database: Database, old: EmbedServer, new: EmbedServer) -> None:
        self.commands = Commands(folder)
        self.database = database
        self.old = old
        self.new = new
        self.stored = Stored(database.owner_dsn)
        self.commands.configure(
            dsn=database.runtime_dsn, embed_url=old.url, embed_model=MODEL, turn_min_chars=1, prefetch_budget=7.0
        )

    @property
    def home(self) -> Path:
        return self.commands.home

    @property
    def engine(self) -> Engine:
        engine = engine_for(self.home)[0]
        engine.start()
        return engine

    @property
    def options(self) -> tuple[str, ...]:
        return ("--url", self.new.url, "--model", NEW, "--admin-dsn", self.database.owner_dsn)

    def reembed(self, *more: str, code: int = 0) -> Any:
        done = self.commands.call("reembed", *more, "--json", "--admin-dsn", self.database.owner_dsn)
        assert done.code == code, done.everything
        return done.json

    def change(self) -> Any:
        return self.reembed("--url", self.new.url, "--model", NEW)

    def fill(self, rows: int) -> None:
        with psycopg.connect(self.database.owner_dsn) as owner:
            owner.execute(SOME_ROWS.format(rows=rows, dim=DIM).encode())

    def agent(self, theme: str = THEME) -> PgvectorMemoryProvider:
        made = PgvectorMemoryProvider()
        made.initialize(
            "s1", hermes_home=str(self.home), platform="cli", agent_context="primary",
            gateway_session_key=theme, agent_workspace="hermes", agent_identity="default",
        )  # fmt: skip
        return made

    def ask(self, text: str, theme: str = THEME) -> Answer:
        question = Question(text, Kind.TURN, theme, limit=5)
        return self.engine.recall.search(question, Deadline.after(10))

    def missing(self, model_id: int) -> int:
        """How many rows that recall may find have no vector of a model."""
        ((count,),) = self.stored.rows(
            f"SELECT (SELECT count(*) FROM conversations AS t WHERE hidden_by IS NULL AND NOT EXISTS"
            f" (SELECT FROM turn_vectors_{model_id} AS v WHERE (v.agent_identity, v.id) = (t.agent_identity, t.id)))"
            f" + (SELECT count(*) FROM memory_entries AS t WHERE hidden_by IS NULL AND NOT EXISTS"
            f" (SELECT FROM memory_vectors_{model_id} AS v WHERE (v.agent_identity, v.id) = (t.agent_identity, t.id)))"
        )
        return int(count)

    def current(self) -> tuple[int, str, int]:
        ((model_id, name, dim),) = self.stored.rows("SELECT id, name, dim FROM embedding_models WHERE is_current")
        return model_id, name, dim


@pytest.fixture
def fleet(tmp_path: Path, database: Database) -> Iterator[Fleet]:
    with EmbedServer(dim=DIM) as old, EmbedServer(dim=NEW_DIM) as new:
        try:
            yield Fleet(tmp_path, database, old, new)
        finally:
            close_all(Deadline.after(10))


def test_a_model_is_changed_and_the_old_vectors_are_dropped_on_request(fleet: Fleet) -> None:
    fleet.fill(300)
    done = fleet.change()
    assert (done["switched"], done["embedded"], done["without_vector"]) == (True, 330, 0)
    assert fleet.current() == (2, NEW, NEW_DIM)
    assert fleet.missing(2) == 0
    assert fleet.commands.config["memory"]["pgvector"]["embed_model"] == NEW
    assert fleet.change()["embedded"] == fleet.reembed()["embedded"] == 0
    states = [(each["name"], each["state"], each["missing"]) for each in fleet.reembed("--status")["models"]]
    assert states == [(NEW, "in use", 0), (MODEL, "not in use", 0)]
    assert fleet.reembed("--cancel")["dropped"] == []
    assert fleet.stored.count("turn_vectors_1") == 300
    assert fleet.reembed("--drop-old")["dropped"] == [f"{MODEL}, {DIM} dimensions"]
    assert fleet.stored.rows("SELECT to_regclass('turn_vectors_1'), to_regclass('memory_vectors_1')") == [(None, None)]
    assert [each["name"] for each in fleet.reembed("--status")["models"]] == [NEW]
    assert [hit.score is not None for hit in fleet.ask("subject 7", "theme-0").hits] == [True] * 5
    actions = [row["action"] for row in fleet.commands.call("list", "audit", "--json").json["rows"]]
    assert actions == ["drop vectors", "switch model"]


def test_a_profile_that_was_set_up_and_never_used_embeds_with_the_new_model_too(fleet: Fleet) -> None:
    fleet.fill(3)
    coder = fleet.home / "profiles" / "coder"
    coder.mkdir(parents=True)
    shutil.copy(fleet.home / "config.yaml", coder / "config.yaml")
    assert str(coder) in fleet.change()["homes"]
    assert settings_file.load(coder).settings.embed_model == NEW


class OtherModel(EmbedServer):
    """A model of the same dimension whose vectors mean something else: comparing the two would fail nowhere."""

    def content(self, mode: Any, protocol: str, texts: tuple[str, ...]) -> bytes:
        return super().content(mode, protocol, tuple(text[::-1] for text in texts))


class Load:
    """Agents that write and ask all the time, and what they were answered."""

    def __init__(self, fleet: Fleet, *, writes: float, recalls: float) -> None:
        self._fleet = fleet
        self._rates = (writes, recalls)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(writes, self._write)),
            threading.Thread(target=self._repeat, args=(recalls, self._ask)),
        ]
        self._agents = [fleet.agent(f"minion-{number}") for number in range(5)]
        self.said: dict[str, str] = {}
        """Every text written, and the text its vector is made from."""
        self.answers: list[tuple[str, dict[str, Any], float]] = []
        self.failures: list[BaseException] = []
        self._numbers = itertools.count()

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
        if self.failures:
            raise self.failures[0]

    def _repeat(self, rate: float, act: Any) -> None:
        try:
            while not self._stop.wait(1 / rate):
                act(next(self._numbers))
        except BaseException as failure:
            self.failures.append(failure)

    def _write(self, number: int) -> None:
        asked = f"Question {number} is about the subject {number % 40} of the ferry"
        told = f"Answer {number} says what is known of subject {number % 40} and its harbour"
        self.said |= {asked: asked, told: f"{asked}\n{told}"}
        self._agents[number % 5].sync_turn(asked, told, session_id=f"s{number}")

    def _ask(self, number: int) -> None:
        text = f"what is known of subject {number % 40}"
        answer = json.loads(self._agents[number % 5].handle_tool_call("recall_conversation", {"query": text}))
        self.answers.append((text, answer, time.monotonic()))


def similarity(question: str, told: str, *, is_new: bool) -> float:
    if is_new:
        question, told = question[::-1], told[::-1]
    one, other = (meaningful_vector(text, DIM) for text in (question, told))
    return max(0.0, sum(a * b for a, b in zip(one, other, strict=True)))


def models_of(load: Load, text: str, answer: dict[str, Any]) -> set[bool]:
    """Which of the two models an answer can be of, by the scores of its hits."""
    possible = {False, True}
    for hit in answer["results"]:
        told = load.said[hit["content"]]
        if hit["score"] is not None:
            fits = {new for new in (False, True) if abs(similarity(text, told, is_new=new) - hit["score"]) < 0.002}
            possible &= fits
    return possible


@pytest.mark.parametrize("rows", [1_000, pytest.param(100_000, marks=[pytest.mark.large, pytest.mark.timeout(1_800)])])
def test_agents_write_and_ask_while_the_model_changes(tmp_path: Path, database: Database, rows: int) -> None:
    with EmbedServer(dim=DIM) as old, OtherModel(dim=DIM) as new:
        fleet = Fleet(tmp_path, database, old, new)
        fleet.fill(rows)
        fleet.agent()
        try:
            with Load(fleet, writes=50, recalls=5) as load:
                wait_until(lambda: len(load.answers) > 4)
                changing = fleet.commands.start("reembed", "--json", *fleet.options)
                out, _ = changing.communicate(timeout=1_800)
                switched_at, before = time.monotonic(), len(load.said)
                wait_until(
                    lambda: len(load.said) > before + 50 and load.answers[-1][2] > switched_at + SETTLED_SECONDS + 1
                )
            assert changing.returncode == 0, out
            assert fleet.engine.flush(Deadline.after(30))
            assert fleet.stored.rows("SELECT count(*) FROM conversations") == [(rows + len(load.said),)]
            assert fleet.missing(2) == 0
            judged = [(models_of(load, text, answer), answer, at) for text, answer, at in load.answers]
            assert [answer for which, answer, _ in judged if not which] == []
            assert [answer for _, answer, _ in load.answers if "error" in answer] == []
            # From the switch on, until the homes have read their new settings, the former vectors answer.
            by_words = [at for _, answer, at in load.answers if "keyword" in answer.get("note", "")]
            assert all(abs(at - switched_at) < SETTLED_SECONDS for at in by_words)
            late = [which for which, _, at in judged if at > switched_at + SETTLED_SECONDS]
            assert late
            assert all(True in which for which in late)
            assert any(which == {False} for which, _, at in judged)
            assert any(which == {True} for which, _, at in judged)
            if rows > 50_000:
                print(out, len(load.said), len(load.answers))
        finally:
            close_all(Deadline.after(10))


def test_a_theme_that_is_always_written_to_does_not_keep_the_others_waiting(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with many rows, when looking through them takes so long that the last theme has a new one by then."""
    fleet.fill(600)
    original, looks = models.missing_turns, 0
    one_more = (
        "WITH said AS (INSERT INTO conversations (agent_identity, session_id, role, content)"
        " VALUES ('zoo', 's', 'user', 'Turn number ' || %s) RETURNING *)"
        " INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)"
        f" SELECT agent_identity, id, ts, hermes_content_hash(content), {VECTOR.format(dim=DIM)} FROM said"
    )

    def missing(*arguments: Any, **named: Any) -> Any:
        nonlocal looks
        looks += 1
        # Nobody can write at the switch, or without end.
        if looks < 100:
            with contextlib.suppress(psycopg.errors.LockNotAvailable):
                owner.execute(one_more, (looks,))
        return original(*arguments, **named)

    monkeypatch.setattr(models, "missing_turns", missing)
    with psycopg.connect(fleet.database.owner_dsn, autocommit=True) as owner:
        owner.execute("SET lock_timeout = '100ms'")
        assert fleet.change()["switched"]
    assert looks < 30
    assert fleet.missing(2) == 0


def test_a_change_that_is_killed_goes_on_where_it_was(fleet: Fleet) -> None:
    fleet.fill(1_000)
    fleet.new.latency = 0.05
    with fleet.commands.start("reembed", *fleet.options) as killed:
        wait_until(lambda: len(fleet.new.texts) > 500)
        killed.send_signal(signal.SIGKILL)
    made = fleet.stored.count("turn_vectors_2") + fleet.stored.count("memory_vectors_2")
    assert made > 200
    assert fleet.current() == (1, MODEL, DIM)
    before, fleet.new.latency = len(fleet.new.texts), 0.0
    done = fleet.change()
    assert (done["switched"], done["embedded"]) == (True, 1_100 - made)
    assert fleet.missing(2) == 0
    assert len(fleet.new.texts) - before <= 1_100 - made + 1 + 2 * len(PAIRS)  # the model is measured again


def test_a_change_that_is_killed_between_the_switch_and_the_settings_is_finished_by_the_next_run(fleet: Fleet) -> None:
    fleet.fill(20)
    config = fleet.commands.config
    fleet.change()
    (fleet.home / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    assert settings_file.load(fleet.home).settings.embed_model == MODEL
    refused = fleet.commands.call("reembed")
    assert (refused.code, "this home embeds with" in " ".join(refused.err.split())) == (1, True), (
        "it switches nobody back"
    )
    assert fleet.change()["homes"] == [str(fleet.home)]
    settings = settings_file.load(fleet.home).settings
    assert (settings.embed_url, settings.embed_model) == (fleet.new.url, NEW)


def test_a_change_is_cancelled_and_begun_again(fleet: Fleet) -> None:
    fleet.fill(600)
    fleet.new.latency = 0.2
    changing = fleet.commands.start("reembed", *fleet.options)
    wait_until(lambda: fleet.reembed("--status")["is_at_work"])
    wait_until(lambda: fleet.stored.rows("SELECT to_regclass('turn_vectors_2') IS NOT NULL") == [(True,)])
    second = fleet.commands.call("reembed", *fleet.options)
    assert (second.code, "another process is at it" in second.err) == (1, True)
    refused = fleet.commands.call("reembed", "--drop-old", "--admin-dsn", fleet.database.owner_dsn)
    assert (refused.code, "--cancel" in refused.err) == (1, True)
    assert fleet.reembed("--cancel")["dropped"] == [f"{NEW}, {NEW_DIM} dimensions"]
    ended = fleet.commands.finish(changing)
    assert (ended.code, "cancelled" in ended.err) == (1, True)
    assert fleet.current() == (1, MODEL, DIM)
    assert fleet.ask("subject 7", "theme-0").degraded is None
    fleet.new.latency = 0.0
    assert fleet.change()["embedded"] == 660


def test_an_embedder_that_goes_away_is_waited_for(fleet: Fleet) -> None:
    fleet.fill(1_000)
    fleet.new.fail_after = 6
    changing = fleet.commands.start("reembed", "--json", *fleet.options)
    wait_until(lambda: fleet.new.fail_after == 0)
    assert fleet.ask("subject 7", "theme-0").degraded is None
    fleet.new.fail_after = None
    done = fleet.commands.finish(changing)
    assert done.code == 0, done.everything
    assert done.err.count(" waits: ") == 1, "whoever runs it without a terminal is told why nothing happens"
    assert fleet.missing(2) == 0


def test_an_embedder_that_stays_away_is_not_waited_for_for_ever(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "MOST_WAIT_SECONDS", 0.6)
    fleet.fill(1_000)
    fleet.new.fail_after = 6
    ended = fleet.commands.call("reembed", *fleet.options)
    said = " ".join(ended.err.split())
    assert (ended.code, "then gave up" in said, "to go on, run this again" in said) == (2, True, True), said
    made = fleet.stored.count("turn_vectors_2") + fleet.stored.count("memory_vectors_2")
    assert made > 0
    assert fleet.current() == (1, MODEL, DIM)
    fleet.new.fail_after = None
    assert fleet.change()["embedded"] == 1_100 - made


def test_what_is_hidden_edited_or_forgotten_while_its_vector_is_made_stays_so(fleet: Fleet) -> None:
    agent = fleet.agent()
    for number in range(1, 5):
        agent.on_memory_write("add", "memory", f"Entry {number} of the ferry")
        agent.sync_turn(f"Question {number} about the ferry", f"Answer {number} about it", session_id=f"s{number}")
    fleet.agent("gone").sync_turn("This is forgotten soon", "All of it is", session_id="g")
    assert fleet.engine.flush(Deadline.after(30))
    ids = {content: row_id for row_id, content in fleet.stored.rows("SELECT id, content FROM conversations")}
    with fleet.new.held() as released:
        fleet.new.request_arrived.clear()
        changing = fleet.commands.start("reembed", "--json", *fleet.options)
        # Its first request is for the dimension; hold the one with the memories.
        wait_until(lambda: len(fleet.new.texts) == 1)
        released.set()
        with fleet.new.held() as released:
            wait_until(lambda: len(fleet.new.texts) > 1)
            agent.on_memory_write("replace", "memory", "Entry 1 of the harbour", metadata={"old_text": "Entry 1 of"})
            for command in (
                ("mute", f"t{ids['Question 2 about the ferry']}", "--execute"),
                ("forget", "--theme", "gone", "--execute"),
            ):
                told = fleet.commands.call(*command)
                assert told.code == 0, told.everything
            assert fleet.engine.flush(Deadline.after(30))
            released.set()
            done = fleet.commands.finish(changing)
    assert done.code == 0, done.everything
    assert fleet.missing(2) == 0
    assert fleet.stored.rows("SELECT count(*) FROM turn_vectors_2 WHERE agent_identity = 'gone'") == [(0,)]
    muted = ids["Question 2 about the ferry"]
    assert fleet.stored.rows("SELECT count(*) FROM turn_vectors_2 WHERE id = %s", muted) == [(0,)]
    for text, table in (("Question 3 about the ferry", "turn"), ("Entry 1 of the harbour", "memory")):
        source = "conversations" if table == "turn" else "memory_entries"
        ((vector,),) = fleet.stored.rows(
            f"SELECT embedding::real[] FROM {table}_vectors_2 JOIN {source} USING (agent_identity, id)"
            " WHERE content = %s",
            text,
        )
        assert sum(a * b for a, b in zip(vector, meaningful_vector(text, NEW_DIM), strict=True)) > 0.99


def test_a_process_that_has_not_noticed_the_switch_never_compares_two_models(fleet: Fleet) -> None:
    fleet.fill(100)
    unprepared = Engine(fleet.home, settings_file.load(fleet.home).settings)
    question = Question("subject 7", Kind.TURN, "theme-0", limit=5)
    try:
        # It remembers the old model when that is replaced.
        assert unprepared.recall.search(question, Deadline.after(10)).degraded is None
        fleet.change()
        for _ in range(2):
            answer = unprepared.recall.search(question, Deadline.after(10))
            assert answer.hits
        assert answer.degraded is not None
        fleet.reembed("--drop-old")
        answer = unprepared.recall.search(question, Deadline.after(10))
        assert [hit.score for hit in answer.hits] == [None] * len(answer.hits)
        assert answer.hits
        assert answer.degraded is not None
    finally:
        unprepared.close(Deadline.after(5))


def test_what_doctor_says_to_do_about_another_model_does_it(fleet: Fleet) -> None:
    """The hint names no endpoint: it is the one that this home is set to, with its protocol and its key."""
    fleet.fill(100)
    for name, value in (("embed_url", fleet.new.url), ("embed_model", NEW)):
        assert fleet.commands.call("config", "set", name, value).code == 0
    (model,) = [each for each in fleet.commands.call("doctor", "--json").json["checks"] if each["name"] == "model"]
    done = fleet.commands.call(*model["hint"].split()[1:], "--admin-dsn", fleet.database.owner_dsn)
    assert done.code == 0, done
    assert fleet.current() == (2, NEW, NEW_DIM)


def test_a_home_with_another_model_is_told_and_takes_nobodys_vectors_away(fleet: Fleet) -> None:
    fleet.fill(1_100)
    settings_file.update(fleet.home, ("memory", "pgvector"), {"embed_url": fleet.new.url, "embed_model": NEW})
    migrated = fleet.commands.call("migrate", "--json", "--admin-dsn", fleet.database.owner_dsn)
    assert (migrated.code, migrated.json["kept_model"]) == (3, f"{MODEL} ({DIM} dimensions)")
    assert fleet.current() == (1, MODEL, DIM)
    told = fleet.commands.call("migrate", "--admin-dsn", fleet.database.owner_dsn)
    assert "hermes-pgvector reembed" in told.out
    status = fleet.commands.call("status")
    assert f"the database's vectors are of {MODEL}, this home embeds with {NEW}" in " ".join(status.out.split())
    assert f"hermes-pgvector reembed --model {NEW}" in " ".join(status.out.split())
    checks = fleet.commands.call("doctor", "--json").json["checks"]
    (model,) = [each for each in checks if each["name"] == "model"]
    assert (model["level"], model["hint"]) == ("problem", f"hermes-pgvector reembed --model {NEW}")
    refused = fleet.commands.call("reembed")
    assert (refused.code, f"reembed --model {NEW}" in " ".join(refused.err.split())) == (1, True)
    # At once, however many rows there are, only where somebody says so.
    settings_file.update(fleet.home, ("memory", "pgvector"), {"embed_url": fleet.new.url, "embed_model": NEW})
    switched = fleet.commands.call("migrate", "--json", "--switch-model", "--admin-dsn", fleet.database.owner_dsn)
    assert (switched.code, switched.json["kept_model"]) == (0, None)
    assert fleet.current() == (2, NEW, NEW_DIM)


def test_the_agents_role_cannot_change_the_model_and_is_told_whose_login_can(fleet: Fleet) -> None:
    fleet.fill(10)
    refused = fleet.commands.call("reembed", "--url", fleet.new.url, "--model", NEW)
    assert refused.code == 1
    assert "--admin-dsn OWNER_DSN" in refused.err
    assert fleet.current() == (1, MODEL, DIM)
    assert fleet.commands.run("reembed", "--status", "--model", "x").code == 2
    for wrong in (("--dim", "many"), ("--url", "nowhere"), ("--url", "http://u:p@host")):
        assert fleet.commands.call("reembed", "--model", "x", *wrong).code == 1
