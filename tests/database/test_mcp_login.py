"""Other agents under a login of single themes: they are offered what it may do, and told nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.admin import logins
from hermes_memory_pgvector.admin.logins import Wanted
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine import heartbeat
from hermes_memory_pgvector.engine.registry import close_all
from hermes_memory_pgvector.mcp.memory import Assistant, SharedMemory
from testing.command import Commands
from testing.mcp_client import Wire
from testing.postgres import Database
from testing.stored import Stored
from testing.waiting import wait_until

RECALL, CHANGES = ["recall_memory", "recall_conversation"], ["remember", "replace", "remove"]
Grant = Callable[..., Commands]


@pytest.fixture
def granted(tmp_path: Path, database: Database) -> Iterator[Grant]:
    """A home under a login with these themes; the database has a memory in market and one in garden."""
    login = f"desk_{database.name}"
    with psycopg.connect(database.operator_dsn) as connection:
        for theme in ("market", "garden"):
            connection.execute(
                "INSERT INTO memory_entries (agent_identity, target, content) VALUES (%s, 'memory', %s)",
                (theme, f"Zebras of the {theme} are striped."),
            )

    def grant(*themes: str, may_write: bool = True, may_create: bool = False) -> Commands:
        wanted = Wanted(login, themes, may_write=may_write, may_create=may_create)
        logins.grant(database.owner_dsn, wanted, password="x", actor="test", home_id="")
        commands = Commands(tmp_path, [])
        dsn = make_conninfo(database.runtime_dsn, user=login, password="x", passfile="")
        commands.configure(dsn=dsn, embed_url="http://127.0.0.1:9/", embed_on_write=False)
        return commands

    yield grant
    close_all(Deadline.after(10))
    logins.revoke(database.owner_dsn, login, actor="test", home_id="")


def tools(wire: Wire) -> list[str]:
    return [each["name"] for each in wire.ask("tools/list")["result"]["tools"]]


def found(wire: Wire, **arguments: str) -> list[str]:
    return [hit["content"] for hit in wire.call("recall_memory", query="zebras striped", **arguments)["results"]]


def test_a_login_that_may_write_shares_its_themes_and_no_other(granted: Grant, database: Database) -> None:
    commands = granted("market")
    with Wire(commands, "--theme", "market") as wire:
        assert tools(wire) == RECALL + CHANGES
        assert found(wire) == found(wire, scope="all") == ["Zebras of the market are striped."]
        assert found(wire, scope="garden") == []
        assert wire.call("remember", content="Zebras eat hay.")["remembered"]
        assert wire.call("replace", old_text="eat hay", content="Zebras eat oats.")["was"] == "Zebras eat hay."
        assert "No entry" in wire.call("remove", old_text="of the garden")["error"]
        assert commands.finish(wire.process).code == 0
    rows = Stored(database.owner_dsn).rows("SELECT agent_identity, content FROM memory_entries WHERE origin = 'mcp'")
    assert rows == [("market", "Zebras eat oats.")]
    refused = commands.run("mcp", "--theme", "garden")
    assert (refused.code, refused.out) == (1, "")
    assert "was not granted the theme 'garden'" in refused.err
    # Whoever may create themes begins one with the first entry.
    commands = granted("market", may_create=True)
    with Wire(commands, "--theme", "orchard") as wire:
        assert wire.call("remember", content="Zebras like apples.")["remembered"]
        assert commands.finish(wire.process).code == 0
    assert ("orchard", "Zebras like apples.") in Stored(database.owner_dsn).rows(
        "SELECT agent_identity, content FROM memory_entries"
    )


def test_a_login_that_may_only_read_is_offered_recall_and_is_heard_of(
    granted: Grant, database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    commands = granted("market", may_write=False)
    with Wire(commands, "--theme", "market") as wire:
        assert tools(wire) == RECALL
        assert found(wire) == ["Zebras of the market are striped."]
        assert "There is no tool" in wire.call("remember", content="Zebras eat hay.")["error"]
        done = commands.finish(wire.process)
    assert done.code == 0
    assert "may only read" in done.err
    assert commands.run("mcp", "--theme", "garden", "--read-only").code == 1
    # It reads, so it is at work.
    monkeypatch.setattr(heartbeat, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(heartbeat, "LOOK_SECONDS", 0.05)
    memory = SharedMemory(commands.home, "market", may_write=False)
    memory.start()
    assert not memory.call("recall_memory", {"query": "zebras"}, Assistant()).is_error
    stored = Stored(database.owner_dsn)
    wait_until(lambda: stored.count("agent_processes") == 1)
    shown = commands.call("status", "--fleet")
    assert shown.code == 0, shown
    assert "1 process at work" in shown.out
    assert commands.call("metrics").code == 0
    assert not [each for each in caplog.messages if "may only read" in each], "nothing waits to be stored"
