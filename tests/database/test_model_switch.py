"""A process that idles while the embedding model changes goes on by itself, and advises nothing that is being done."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres
from hermes_memory_pgvector.writer import embed_pending
from testing.embed_server import EmbedServer
from testing.postgres import DIM, MODEL, Database
from testing.waiting import wait_until

SAID = ("Which of the two ferries carries bicycles to the island?", "Only the slow ferry carries bicycles.")


def configure(home: Path, **settings: Any) -> None:
    document = {"memory": {"provider": "pgvector", "pgvector": settings}}
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


def chat(home: Path) -> PgvectorMemoryProvider:
    """A provider as the host makes it, after one turn."""
    agent = PgvectorMemoryProvider()
    agent.initialize("s1", hermes_home=str(home), platform="cli", agent_workspace="hermes", agent_identity="default")
    agent.sync_turn(*SAID, session_id="s1")
    return agent


def embedded(dsn: str) -> int:
    """How many turns have a vector of the current model."""
    with psycopg.connect(dsn) as connection:
        row: Any = connection.execute("SELECT count(embedding) FROM conversations_embedded").fetchone()
    return int(row[0])


def test_an_idle_process_picks_up_a_new_model(
    tmp_path: Path, database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed_pending, "MISMATCH_SECONDS", 0.1)
    settings = {"dsn": database.runtime_dsn, "turn_min_chars": 1}
    with EmbedServer(dim=DIM) as server, caplog.at_level(logging.WARNING):
        configure(tmp_path, **settings, embed_url=server.url, embed_model=MODEL)
        chat(tmp_path)
        old, _ = engine_for(tmp_path)
        assert old.flush(Deadline.after(30))
        assert embedded(database.owner_dsn) == 2
        asked_before = len(server.texts)
        settings_file.save(tmp_path, {"embed_model": "another-model"})
        wait_until(lambda: old.settings.embed_model == "another-model")
        new, _ = engine_for(tmp_path)
        wait_until(lambda: bool(new.backlog.problem))
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=NewModel("another-model", DIM))
        wait_until(lambda: len(server.texts) >= asked_before + 2 and embedded(database.owner_dsn) == 2)
        wait_until(lambda: not new.backlog.problem)
        close_all(Deadline.after(10))
    assert "migrate" not in caplog.text


def test_a_model_that_stays_another_one_is_told_once(
    tmp_path: Path, database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed_pending, "MISMATCH_SECONDS", 0.05)
    monkeypatch.setattr(embed_pending, "MISMATCH_PATIENCE_SECONDS", 0.1)
    with EmbedServer(dim=DIM) as server, caplog.at_level(logging.WARNING):
        configure(tmp_path, dsn=database.runtime_dsn, embed_url=server.url, embed_model="another-model")
        chat(tmp_path)
        wait_until(lambda: "the database's vectors are of" in caplog.text)
        close_all(Deadline.after(10))
    assert caplog.text.count("with: hermes-pgvector reembed") == 1


def test_the_first_start_of_an_embedded_home_tells_nobody_to_migrate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    home = tmp_path / "hermes"
    configure(home, turn_min_chars=1)
    try:
        with caplog.at_level(logging.WARNING):
            agent = chat(home)
            wait_until(lambda: engine_for(home)[0].writer.progress.stored > 0, seconds=60)
            assert "slow ferry" in agent.handle_tool_call("recall_conversation", {"query": "bicycles on the ferry"})
            close_all(Deadline.after(10))
    finally:
        EmbeddedPostgres(home / "pgvector").stop(Deadline.after(30), mode="immediate")
    assert "migrate" not in caplog.text
