"""The embedder's troubles never keep a row waiting: it lands at once and gets its vector later, without being asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.writer import embed_pending
from testing.agent import AgentHome
from testing.embed_server import EmbedServer, Mode
from testing.faulty import expect, say
from testing.postgres import DIM, MODEL, Database
from testing.waiting import wait_until

MODES: list[Mode] = ["500", "429", "401", "hang", "drip", "huge", "redirect", "nan", "wrongdim", "short"]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_pending, "HOLD_SECONDS", 0.5)
    monkeypatch.setattr(embed_pending, "RETURN_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(Settings, "batch_embed_seconds", 2.0)


@pytest.fixture
def embedder() -> Iterator[EmbedServer]:
    with EmbedServer(DIM) as running:
        yield running


@pytest.fixture
def embedding_home(tmp_path: Path, database: Database, embedder: EmbedServer) -> Iterator[AgentHome]:
    home = AgentHome.create(
        tmp_path / "home", database, embed_url=embedder.url, embed_model=MODEL, embed_protocol="openai",
        embed_on_write=True,  embed_dim=DIM,
    )  # fmt: skip
    yield home
    home.close()


def with_vector(home: AgentHome) -> tuple[int, int]:
    memories = "SELECT count(*) FROM memory_entries_embedded WHERE embedding IS NOT NULL"
    return home.stored.turns_with_vector("marketing"), int(home.stored.rows(memories)[0][0])


@pytest.mark.parametrize("mode", MODES)
def test_rows_land_at_once_and_get_their_vector_when_the_embedder_is_back(
    embedding_home: AgentHome, embedder: EmbedServer, mode: Mode
) -> None:
    embedder.redirect_to = "http://127.0.0.1:9"
    embedder.mode = mode
    say(embedding_home, 1, 2)
    expect(embedding_home, 1, 2, seconds=10)
    wait_until(lambda: embedding_home.engine.backlog.breaker.is_open, seconds=60)
    assert with_vector(embedding_home) == (0, 0)
    embedder.mode = "ok"
    wait_until(lambda: with_vector(embedding_home) == (4, 2))
    assert embedding_home.stored.count("pending_vectors") == 0


def test_when_every_row_has_its_vector_nobody_keeps_asking_the_database(embedding_home: AgentHome) -> None:
    engine = embedding_home.engine
    say(embedding_home, 1)
    wait_until(lambda: with_vector(embedding_home) == (2, 1))
    wait_until(lambda: not engine.backlog.is_due())
    assert engine.backlog.run() > embed_pending.LOOK_SECONDS / 2


def test_a_start_without_an_embedder_heals_by_itself(embedding_home: AgentHome, embedder: EmbedServer) -> None:
    embedder.stop()
    say(embedding_home, 1)
    expect(embedding_home, 1, seconds=10)
    embedder.start()
    wait_until(lambda: with_vector(embedding_home) == (2, 1))


def test_another_process_gives_the_vectors_that_a_killed_one_owed(
    embedding_home: AgentHome, embedder: EmbedServer
) -> None:
    script = """
import threading
from hermes_memory_pgvector.writer import embed_pending
embed_pending.LEASE_MARGIN_SECONDS = 1.0
agent = provider("marketing")
agent.sync_turn("question 1", "answer 1", session_id="s1")
agent.on_memory_write("add", "memory", "fact 1", {})
say("done")
threading.Event().wait()
"""
    embedder.mode = "500"
    with embedding_home.start(script) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "done\n"
        wait_until(lambda: embedding_home.stored.count("pending_vectors") == 3)
        child.kill()
    embedder.mode = "ok"
    embedding_home.provider()
    wait_until(lambda: with_vector(embedding_home) == (2, 1), seconds=60)


def test_one_shot_gets_its_vector_before_it_ends(embedding_home: AgentHome) -> None:
    """`hermes -z` calls shutdown and then leaves by os._exit."""
    script = """
agent = provider("marketing")
agent.sync_turn("question 1", "answer 1", session_id="s1")
agent.on_session_end([{"role": "user", "content": "question 1"}, {"role": "assistant", "content": "answer 1"}])
agent.shutdown()
os._exit(0)
"""
    assert embedding_home.run(script) == (0, "")
    assert with_vector(embedding_home) == (2, 0)


@pytest.mark.parametrize("answer", ["400", "500"])
def test_a_text_that_is_too_long_for_the_embedder_stops_no_other_text(
    embedding_home: AgentHome, embedder: EmbedServer, answer: Mode
) -> None:
    embedder.max_chars, embedder.too_long = 1000, answer
    say(embedding_home, 1, 2)
    embedding_home.provider().sync_turn("What is the plan? " * 140, "The plan is long. " * 140)
    wait_until(lambda: with_vector(embedding_home) == (6, 2))
    assert embedding_home.stored.count("pending_vectors") == 0
