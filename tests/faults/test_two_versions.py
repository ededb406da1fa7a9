"""Two versions of the package on one database: what one of them migrates, the other lives with or waits for."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.store.schema import SCHEMA_VERSION
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database
from testing.waiting import wait_until

NEWER = SCHEMA_VERSION + 1


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    made = Commands(tmp_path / "commands")
    made.folder.mkdir()
    made.configure(dsn=with_password(database.runtime_dsn)[0])
    return made


def is_migrated_by_a_newer_package(home: AgentHome) -> None:
    home.stored.rows(
        "INSERT INTO hermes_pgvector_migrations (version, name, sha256) VALUES (%s, 'of_tomorrow', 'x') RETURNING 1",
        NEWER,
    )


def is_not_migrated_yet(home: AgentHome) -> Callable[[], None]:
    """The ledger as an older package leaves it; the answer migrates it."""
    columns = "version, name, sha256, applied_at"
    (row,) = home.stored.rows(
        f"DELETE FROM hermes_pgvector_migrations WHERE version = %s RETURNING {columns}", SCHEMA_VERSION
    )

    def migrated() -> None:
        home.stored.rows(
            f"INSERT INTO hermes_pgvector_migrations ({columns}) VALUES (%s, %s, %s, %s) RETURNING 1", *row
        )

    return migrated


def recalled(agent: PgvectorMemoryProvider) -> Any:
    return json.loads(agent.handle_tool_call("recall_conversation", {"query": "spare key"})).get("count")


def lines(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if word in record.getMessage()]


def schema_check(commands: Commands) -> dict[str, str]:
    checks = {check["name"]: check for check in commands.run("doctor", "--json").json["checks"]}
    found: dict[str, str] = checks["schema"]
    return found


def test_an_older_package_goes_on_with_a_newer_schema_and_says_so_once(
    agent_home: AgentHome, commands: Commands, caplog: pytest.LogCaptureFixture
) -> None:
    is_migrated_by_a_newer_package(agent_home)
    with caplog.at_level(logging.WARNING):
        agent = agent_home.provider("marketing")
        for number in range(3):
            agent.sync_turn(f"where is spare key {number}", f"behind the clock, number {number}")
            agent_home.settle()
            # Whatever makes the writer look at the schema again is no news.
            agent_home.engine.writer._is_verified = False
    assert recalled(agent) >= 3
    assert len(agent_home.stored.turns("marketing")) == 6
    sentence = f"the schema is at version {NEWER}, this package knows {NEWER - 1}: it goes on storing"
    assert len(lines(caplog, sentence)) == 1
    found = schema_check(commands)
    assert found["level"] == "warning"
    assert sentence in found["text"]


def test_a_process_that_runs_while_a_newer_package_migrates_goes_on(agent_home: AgentHome) -> None:
    agent = agent_home.provider("marketing")
    agent.sync_turn("where is the spare key", "behind the clock")
    agent_home.settle()
    is_migrated_by_a_newer_package(agent_home)
    agent.sync_turn("and where is the other spare key", "in the drawer")
    agent_home.settle()
    assert len(agent_home.stored.turns("marketing")) == 4
    assert recalled(agent) >= 2


def test_an_older_package_does_not_migrate_a_newer_schema(
    agent_home: AgentHome, database: Database, commands: Commands
) -> None:
    is_migrated_by_a_newer_package(agent_home)
    done = commands.run("migrate", "--admin-dsn", with_password(database.owner_dsn)[0])
    assert done.code == 1
    assert f"the database is at schema version {NEWER}, this package knows {NEWER - 1}" in done.everything
    assert "upgrade" in done.everything


def test_a_newer_package_holds_its_writes_until_the_schema_is_migrated(
    agent_home: AgentHome, commands: Commands, caplog: pytest.LogCaptureFixture
) -> None:
    """Held in the journal, not lost; what is stored already is recalled meanwhile; everything arrives once."""
    agent_home.provider("marketing").sync_turn("where is the spare key", "behind the clock")
    agent_home.settle()
    agent_home.close()
    migrated = is_not_migrated_yet(agent_home)
    agent = agent_home.provider("marketing")
    with caplog.at_level(logging.WARNING):
        agent.sync_turn("and where is the other spare key", "in the drawer")
        wait_until(lambda: agent_home.engine.writer.breaker.is_open)
        assert len(agent_home.stored.turns("marketing")) == 2
        assert recalled(agent) >= 1
        assert len(lines(caplog, "is needed; run: hermes-pgvector migrate")) == 1
        found = schema_check(commands)
        assert found["level"] == "problem"
        assert f"{SCHEMA_VERSION} is needed" in found["text"]
        migrated()
        # What the writer does by itself after its pause.
        agent_home.engine.writer.breaker.failed("tried again", hold_seconds=0.0)
        agent_home.engine.writer.wake()
        agent_home.settle()
    assert len(agent_home.stored.turns("marketing")) == 4
    assert schema_check(commands)["level"] == "ok"
