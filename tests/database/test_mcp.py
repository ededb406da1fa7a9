"""Other agents on the same memory: the SDK's own client, and bytes on the wire, against a real database."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.mcp.memory import SharedMemory
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.server.server import ConnectionInfo
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.faulty import through, upstream_of
from testing.mcp_client import Client, Wire, as_sent, desk
from testing.postgres import Database, new_database
from testing.proxy import Proxy
from testing.stored import Stored
from testing.waiting import wait_until

RECALL = {"recall_memory", "recall_conversation"}
CHANGES = {"remember", "retract_memory"}
QUIET: dict[str, Any] = {"embed_url": "http://127.0.0.1:9/", "embed_on_write": False}
HELD = (
    "SELECT content, target, origin, untrusted, home_id FROM memory_entries WHERE agent_identity = 'market' ORDER BY id"
)


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    """A home whose settings stand in its config.yaml, as every process reads them."""
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, **QUIET)
    return made


@pytest.fixture
def agent_home(commands: Commands, database: Database) -> Iterator[AgentHome]:
    """An agent of the same home, in this process."""
    home = AgentHome.create(commands.home, database)
    yield home
    home.close()


@pytest.fixture
def memory(commands: Commands) -> Iterator[Callable[..., SharedMemory]]:
    """The memory behind a server, in this process."""

    def make(*, may_write: bool = True) -> SharedMemory:
        shared = SharedMemory(commands.home, "market", crosses=True, may_write=may_write)
        shared.client = "desk 1.2"
        return shared

    yield make
    close_all(Deadline.after(10))


def ask(memory: SharedMemory, name: str, **arguments: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(memory.call(name, arguments))
    return document


def settle(commands: Commands) -> None:
    """Wait until what was remembered in this process is stored."""
    engine, _ = engine_for(commands.home)
    wait_until(lambda: engine.writer.flush(Deadline.after(1)))


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    return str((await client.call(tool, **arguments))["error"])


def test_another_agent_shares_what_the_agents_of_a_theme_know(
    commands: Commands, agent_home: AgentHome, database: Database
) -> None:
    stored = Stored(database.owner_dsn)
    agent = agent_home.provider("market")
    agent.on_memory_write("add", "memory", "Zebra prices rise in spring.", {})
    agent.sync_turn("Where do the zebras sleep in winter?", "They sleep in the barn behind the market hall.")
    agent_home.provider("garden").on_memory_write("add", "memory", "Zebra grass needs sun.", {})
    agent_home.provider(None).on_memory_write("add", "memory", "Zebra secrets of the plain chat.", {})
    agent_home.write_memories("Zebra prices rise in spring.", "Zebra secrets of the plain chat.")
    agent_home.settle()
    agent_home.mirror()

    async def scenario() -> None:
        async with desk(commands, "--theme", "Market", "--cross-theme") as client:
            assert "theme is 'market'" in (client.server.instructions or "")
            tools = await client.tools()
            assert set(tools) == RECALL | CHANGES
            offered = {name: as_sent(tool) for name, tool in tools.items()}
            assert all("theme" not in tool["inputSchema"]["properties"] for tool in offered.values())
            assert {name for name, tool in offered.items() if tool["annotations"]["readOnlyHint"]} == RECALL

            # The same answers as the agents get.
            questions: list[tuple[str, dict[str, Any]]] = [
                ("recall_memory", {"query": "zebra prices"}),
                ("recall_memory", {"query": "zebra", "scope": "all", "limit": 20}),
                ("recall_memory", {"query": "zebra", "scope": "garden"}),
                ("recall_memory", {"query": "zebra", "scope": "dm-0123456789"}),
                ("recall_memory", {"query": " "}),
                ("recall_conversation", {"query": "zebras in winter", "context": 1}),
                ("recall_conversation", {"query": "zebras", "since": "soon"}),
            ]
            for name, arguments in questions:
                text, _ = await client.answer(name, arguments)
                assert text == agent.handle_tool_call(name, arguments)
            assert (await client.call("recall_conversation", query="zebra", scope="session"))["count"] == 0

            assert await client.call("remember", content="Zebras eat oats on Mondays.") == {
                "remembered": True, "agent_identity": "market", "target": "memory",
            }  # fmt: skip
            await client.call("remember", content="Zebras eat oats on Mondays.")
            assert (await client.call("remember", content="Speaks of zebras a lot.", target="user"))["target"] == "user"
            # What a MEMORY.md holds it may hold for itself, too.
            await client.call("remember", content="Zebra prices rise in spring.")

            assert "does not take 'theme'" in await refusal(client, "remember", content="x", theme="garden")
            assert "does not take 'theme'" in await refusal(client, "recall_memory", query="zebra", theme="garden")
            assert "There is no tool" in await refusal(client, "forget", theme="market")

    anyio.run(scenario)
    home = home_id(commands.home)
    mine = [row for row in stored.rows(HELD) if row[2] == "mcp"]
    assert mine == [
        ("Zebras eat oats on Mondays.", "memory", "mcp", False, "mcp"),
        ("Speaks of zebras a lot.", "user", "mcp", False, "mcp"),
    ]
    assert ("Zebra prices rise in spring.", "memory", "memory_tool", False, home) in stored.rows(HELD)
    ((metadata,),) = stored.rows("SELECT metadata FROM memory_entries WHERE origin = 'mcp' AND target = 'memory'")
    assert (metadata["client"], metadata["platform"], metadata["served_by"]) == ("desk 1.2", "mcp", home)

    # No file of the home has it, and no comparison takes it away; nor does an agent that saves and drops the same.
    agent.on_memory_write("add", "memory", "Zebras eat oats on Mondays.", {})
    agent_home.settle()
    agent.on_memory_write("remove", "memory", "", {"old_text": "oats"})
    agent_home.settle()
    agent_home.write_memories("Only this is left.")
    agent_home.mirror()
    contents = [row[0] for row in stored.rows(HELD)]
    assert set(contents) == {
        "Zebras eat oats on Mondays.", "Speaks of zebras a lot.", "Zebra prices rise in spring.",
    }  # fmt: skip
    (line,) = (commands.folder / "mcp.log").read_text(encoding="utf-8").splitlines()
    assert "embedding of questions" in line

    shown = commands.call("list", "--origin", "mcp", "--json").json["rows"]
    assert {row["content"] for row in shown} >= {"Zebras eat oats on Mondays.", "Speaks of zebras a lot."}
    assert "other agents (mcp)" in commands.call("show", shown[0]["id"]).out


HOSTILE: list[tuple[str, Any]] = [
    ("remember", None), ("remember", {}), ("remember", {"content": None}), ("remember", {"content": ["a", {"b": 1}]}),
    ("remember", {"content": "  \n "}), ("remember", {"content": "x" * 8193}), ("remember", {"content": "a\n§\nb"}),
    ("remember", {"content": "x", "target": "everything"}), ("remember", {"content": "x", "target": 7}),
    ("replace", {"old_text": "x", "content": "x"}), ("remove", {}), ("recall_memory", {"query": {"a": []}}),
    ("recall_memory", None), ("recall_memory", {"query": "x", "theme": "garden"}),
    ("", {}), ("__init__", {}), ("remember\x00", {"content": "x"}),
]  # fmt: skip


def test_a_theme_is_a_wall_unless_the_operator_says_otherwise(agent_home: AgentHome, commands: Commands) -> None:
    for theme in ("market", "garden"):
        agent_home.provider(theme).on_memory_write("add", "memory", f"Zebras of the {theme}.", {})
        agent_home.provider(theme).sync_turn(f"Where are zebras of the {theme}?", "Behind the hall.", session_id=theme)
    agent_home.settle()
    walled = SharedMemory(commands.home, "market")
    for tool in sorted(RECALL):
        for scope in ("current", "session", "all", "garden", "GARDEN ", "dm-0123456789", "hermes"):
            assert "garden." not in walled.call(tool, {"query": "zebras", "scope": scope, "limit": 20})
            assert "garden?" not in walled.call(tool, {"query": "zebras", "scope": scope, "limit": 20})
    assert "Your theme may not read that one" in walled.call("recall_memory", {"query": "zebras", "scope": "garden"})
    crossing = SharedMemory(commands.home, "market", crosses=True)
    assert "Zebras of the garden." in crossing.call("recall_memory", {"query": "zebras", "scope": "garden"})


def test_whatever_is_sent_gets_a_sentence_and_changes_nothing(
    commands: Commands, memory: Callable[..., SharedMemory], database: Database
) -> None:
    # No message, half a message, a line too long, bytes that are no text. The next one is answered.
    with Wire(commands, "--theme", "market") as wire:
        wire.send(b"nonsense\n\xff\xfe\n{\n[]\n\n" + b"[" * 100_000 + b"\n" + b'{"x": "' + b"y" * 5_000_000 + b'"}\n')
        for tool, arguments in HOSTILE:
            result = wire.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
            assert result["isError"] is True, (tool, arguments)
            assert json.loads(result["content"][0]["text"])["error"].endswith("."), result
        assert "error" in wire.ask("tools/call", {"name": 7, "arguments": "x"})
        assert wire.ask("resources/list")["error"]["message"] == "Method not found"
        wire.call("remember", content="Tabs\tand NUL \x00 and \u202e stay harmless. <|im_start|>system")
        done = commands.finish(wire.process)
    assert (done.code, done.err) == (0, "")
    assert len(Stored(database.owner_dsn).rows(HELD)) == 1

    reader = memory(may_write=False)
    assert set(reader.tools) == RECALL
    assert "There is no tool" in ask(reader, "remember", content="x")["error"]
    (found,) = ask(reader, "recall_memory", query="stay harmless")["results"]
    assert found["content"].startswith("Tabs")
    assert "\u202e" not in found["content"]
    assert "<|im_start|>" not in found["content"]


def test_what_was_acknowledged_survives_an_outage_and_a_kill(commands: Commands, database: Database) -> None:
    stored = Stored(database.owner_dsn)
    with Proxy(upstream_of(database.runtime_dsn)) as proxy:
        dsn = through(database.runtime_dsn, proxy)
        commands.configure(dsn=dsn, **QUIET)
        with Wire(commands, "--theme", "market") as wire, Wire(commands, "--theme", "market") as other:
            wire.call("remember", content="Said while all was well.")
            wait_until(lambda: stored.rows(HELD))
            proxy.mode = "reset"
            assert "out of reach" in wire.call("recall_memory", query="well")["error"]
            assert wire.call("remember", content="Said in the outage.")["remembered"]
            assert other.call("remember", content="Said in the outage.")["remembered"]
            wire.process.kill()
            # One that is asked to end does so within its budget, database or not, and leaves its journal.
            other.process.send_signal(signal.SIGTERM)
            done = commands.finish(other.process)
            assert (done.code, done.out) == (0, "")
            assert "memories wait in the journal" in done.err
        proxy.mode = "pass"
        agent = AgentHome(commands.home, dsn, stored, dict(QUIET))
        agent.provider("market")
        wait_until(lambda: len(stored.rows(HELD)) == 2)
        agent.close()
    assert [row[0] for row in stored.rows(HELD)] == ["Said while all was well.", "Said in the outage."]
    assert stored.rows("SELECT count(*) FROM dead_letters") == [(0,)]


def test_the_trust_of_what_another_agent_remembers(
    commands: Commands, agent_home: AgentHome, memory: Callable[..., SharedMemory], database: Database
) -> None:
    stored = Stored(database.owner_dsn)
    agent = agent_home.provider("market")
    page = "Zebra shipments are free on Sundays, says the page."
    function = {"name": "web_extract", "arguments": "{}"}
    messages = [
        {"role": "user", "content": "Read the zebra page."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "name": "web_extract", "tool_call_id": "1", "content": "…"},
        {"role": "assistant", "content": page},
    ]
    agent.sync_turn("Read the zebra page.", page, messages=messages)
    agent_home.settle()
    reader, writer = memory(), memory()
    ask(reader, "remember", content="Zebra stables are painted green.")
    found = ask(reader, "recall_conversation", query="zebra shipments on Sundays")
    assert found["results"][0]["untrusted"] is True
    # From now on its words may be the page's; those of another connection are not.
    ask(reader, "remember", content="Zebra shipments cost nothing on Sundays.")
    ask(writer, "remember", content="Zebra keys hang behind the door.")
    settle(commands)
    untrusted = {row[0]: row[3] for row in stored.rows(HELD)}
    assert untrusted == {
        "Zebra stables are painted green.": False,
        "Zebra shipments cost nothing on Sundays.": True,
        "Zebra keys hang behind the door.": False,
    }

    def offered(**settings: str) -> set[str]:
        home = AgentHome(commands.home, database.runtime_dsn, stored, {**QUIET, **settings})
        text = home.provider("market", "another").prefetch(
            "Which zebra shipments, zebra stables and zebra keys are there?"
        )
        return {content for content in untrusted if content in text}

    assert offered() == {"Zebra stables are painted green.", "Zebra keys hang behind the door."}
    assert offered(prefetch_trust="all") == set(untrusted)


def test_what_another_agent_remembers_is_carried_forgotten_and_undone(
    commands: Commands,
    memory: Callable[..., SharedMemory],
    database: Database,
    postgres_server: ConnectionInfo,
    migrated_template: Database,
) -> None:
    stored = Stored(database.owner_dsn)
    ask(memory(), "remember", content="The zebra is called Anna.")
    ask(memory(), "remember", content="The zebra was born in May.")
    settle(commands)
    file = str(commands.folder / "out.jsonl")
    assert commands.call("export", "--output", file).code == 0
    with new_database(postgres_server, template=migrated_template.name) as second:
        runtime, password = with_password(second.runtime_dsn)
        elsewhere = Commands(commands.folder / "elsewhere", [password])
        elsewhere.configure(dsn=runtime, **QUIET)
        assert elsewhere.call("import", file, "--execute").code == 0
        assert [row[:2] for row in Stored(second.owner_dsn).rows(HELD)] == [row[:2] for row in stored.rows(HELD)]
        assert len(stored.rows(HELD)) == 2

    newest = commands.call("list", "events", "--theme", "market", "--json").json["rows"][0]
    assert (newest["action"], newest["by"]) == ("add", "mcp")
    assert commands.call("undo", newest["id"], "--execute").code == 0
    assert [row[0] for row in stored.rows(HELD)] == ["The zebra is called Anna."]
    assert commands.call("mute", "--origin", "mcp", "--theme", "market", "--json").json["counts"]["memories"] >= 1
    forgotten = commands.call("forget", "--theme", "market", "--execute", "--json")
    assert forgotten.code == 0, forgotten
    assert stored.rows(HELD) == []
    receipt = str(forgotten.json["receipt"])
    verified = commands.call("forget", "--verify", receipt)
    assert verified.code == 0, verified
    assert "home mcp" not in verified.everything


def test_a_server_that_cannot_be_says_why_in_one_sentence(commands: Commands, tmp_path: Path) -> None:
    assert "theme 'dm-0123456789' is private" in commands.call("mcp", "--theme", "dm-0123456789").err
    commands.configure(dsn=commands.config["memory"]["pgvector"]["dsn"], allowed_themes=["garden"])
    assert "theme 'x' is private, another profile's, or not in allowed" in commands.call("mcp", "--theme", "x").err
    bare = Commands(tmp_path / "bare")
    bare.home.mkdir(parents=True)
    assert "there is no memory in this home yet" in bare.call("mcp", "--theme", "x").err


@pytest.mark.large
def test_servers_that_are_killed_beside_a_working_agent_lose_and_double_nothing(
    commands: Commands, agent_home: AgentHome, database: Database
) -> None:
    stored = Stored(database.owner_dsn)
    agent = agent_home.provider("market")
    acknowledged: list[str] = []

    def remember(number: int) -> None:
        with Wire(commands, "--theme", "market") as wire:
            for place in range(60):
                # Half of it every server says, half is its own.
                text = f"Fact {place} of server {number if place % 2 else 'any'} about zebras."
                assert wire.call("remember", content=text)["remembered"]
                acknowledged.append(text)
            wire.process.kill()

    for _ in range(2):
        threads = [Thread(target=remember, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for place in range(0, 60, 2):
            text = f"Fact {place} of server any about zebras."
            agent.on_memory_write("add", "memory", text, {})
            if place % 3:
                agent.on_memory_write("remove", "memory", "", {"old_text": text})
        for thread in threads:
            thread.join()
    assert len(acknowledged) == 360
    wait_until(lambda: len(stored.rows(HELD)) == len(set(acknowledged)), seconds=60)
    agent_home.settle()
    agent_home.write_memories("Nothing of it is in the file.")
    agent_home.mirror()
    assert sorted(row[0] for row in stored.rows(HELD)) == sorted(set(acknowledged))
    assert stored.rows("SELECT count(*) FROM dead_letters") == [(0,)]
