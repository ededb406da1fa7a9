"""Every row knows where it comes from, and what strangers wrote is not offered unasked."""

from __future__ import annotations

import json
from typing import Any

import psycopg

from hermes_memory_pgvector.capture import identity
from hermes_memory_pgvector.config.home import pseudonym_key
from hermes_memory_pgvector.store import memories
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.values import AddMemory, DistrustMemories, Moment, Origin, RowOrigin
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database

NUMBER = "4915112345678"
PAGE = "The page says that zebra shipments are free on Sundays."
FACT = "Zebra shipments are free on Sundays, the page says."


def call(name: str, call_id: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": "{}"}
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
        {"role": "tool", "name": name, "tool_call_id": call_id, "content": "result"},
    ]


def exchange(question: str, answer: str, *between: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": question}, *between, {"role": "assistant", "content": answer}]


def stamps(session: str, call_id: str, **more: str) -> dict[str, str]:
    return {
        "write_origin": "assistant_tool", "session_id": session, "platform": "telegram", "tool_call_id": call_id,
        **more,
    }  # fmt: skip


def test_every_row_knows_where_it_comes_from(agent_home: AgentHome, database: Database) -> None:
    home_id, stored = agent_home.engine.home_id, agent_home.stored
    person = identity.person(NUMBER, pseudonym_key(agent_home.path))
    agent = agent_home.provider("market", "s1", platform="telegram", user_id=NUMBER, user_name=NUMBER)
    agent.on_memory_write("add", "memory", "Zebras are striped.", stamps("s1", "call_0"))
    agent.on_memory_write("add", "memory", FACT, stamps("s1", "call_2"))
    agent.on_memory_write("add", "user", "Reviewed at night.", stamps("s1", "x", write_origin="background_review"))
    agent.on_memory_write("add", "user", "Without any stamps.")
    web = [*call("memory", "call_0"), *call("web_extract", "call_1"), *call("memory", "call_2")]
    messages = exchange("Please read the zebra page.", PAGE, *web)
    agent.sync_turn("Please read the zebra page.", PAGE, session_id="s1", messages=messages)
    messages += exchange("Thank you, is that all of it?", "That is all there is.")
    agent.sync_turn("Thank you, is that all of it?", "That is all there is.", session_id="s1", messages=messages)
    agent.on_delegation("Count the zebras.", "There are seven zebras.", child_session_id="child")
    # An interrupted turn: nobody reports it, the transcript shows it at the end.
    agent.on_memory_write("add", "memory", "Interrupted zebra.", stamps("s1", "call_9"))
    messages += exchange(
        "Look into the browser", "I was interrupted", *call("browser_click", "b"), *call("memory", "call_9")
    )
    agent.on_session_end(messages)
    agent_home.write_memories("Zebras are striped.", FACT, "Interrupted zebra.", "Typed by hand.")
    agent_home.write_memories("Reviewed at night.", "Without any stamps.", target="user")
    agent_home.settle()
    agent_home.mirror()

    rows = {
        content: rest
        for content, *rest in stored.rows("SELECT content, origin, home_id, untrusted, metadata FROM conversations")
    }
    platform = {"platform": "telegram"}
    asked = {**platform, "author": {"id": person}}
    assert rows == {
        "Please read the zebra page.": ["user", home_id, False, asked],
        PAGE: ["assistant", home_id, True, {**platform, "tools": ["web"]}],
        "Thank you, is that all of it?": ["user", home_id, False, asked],
        "That is all there is.": ["assistant", home_id, False, platform],
        "Look into the browser": ["user", home_id, False, asked],
        "I was interrupted": ["assistant", home_id, True, {**platform, "tools": ["browser"]}],
        "Delegated: Count the zebras.\nResult: There are seven zebras.": [
            "delegation", home_id, False, {**platform, "delegated_to": "child"},
        ],
    }  # fmt: skip
    memories = stored.rows(
        "SELECT content, origin, home_id, untrusted, metadata ->> 'session_id', metadata -> 'tools' FROM memory_entries"
    )
    assert sorted(memories, key=str) == sorted([
        ("Zebras are striped.", "memory_tool", home_id, False, "s1", None),
        (FACT, "memory_tool", home_id, True, "s1", ["web"]),
        ("Reviewed at night.", "background_review", home_id, False, "s1", None),
        ("Without any stamps.", "memory_tool", home_id, False, "s1", None),
        ("Interrupted zebra.", "memory_tool", home_id, True, "s1", ["browser"]),
        ("Typed by hand.", "file", home_id, False, None, None),
    ], key=str)  # fmt: skip
    with psycopg.connect(database.owner_dsn) as owner:
        for table in ("conversations", "memory_entries", "memory_operations"):
            assert (
                owner.execute(f"SELECT 1 FROM {table} AS t WHERE t::text LIKE %s".encode(), (f"%{NUMBER}%",)).rowcount
                == 0
            )

    # An older operation that arrives late has everything worked out anew, and nothing is forgotten.
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute("UPDATE memory_operations SET order_us = order_us + 60000000")
    agent.on_memory_write("add", "memory", "It was made earlier.", stamps("s1", "call_7"))
    agent_home.settle()
    kept = "SELECT content, origin, untrusted, metadata -> 'tools' FROM memory_entries WHERE content = %s"
    assert stored.rows(kept, FACT) == [(FACT, "memory_tool", True, ["web"])]
    # Other words by somebody who read nothing are trusted again.
    agent.on_memory_write("replace", "memory", "Zebra shipments cost money.", stamps("s1", "call_8", old_text=FACT))
    trusting = exchange("Correct that please", "It is corrected.", *call("memory", "call_8"))
    agent_home.provider("market", "s2").sync_turn("Correct that please", "It is corrected.", messages=trusting)
    agent.sync_turn("Correct that please", "It is corrected.", messages=trusting)
    agent_home.settle()
    assert stored.rows(kept, "Zebra shipments cost money.") == [
        ("Zebra shipments cost money.", "memory_tool", False, None)
    ]


def test_strangers_are_found_when_asked_for_and_not_offered_unasked(agent_home: AgentHome, database: Database) -> None:
    agent = agent_home.provider("market", "s1")
    for number in range(12):
        text = f"Zebra shipments of week {number} are free, says the page."
        question = f"What does page {number} say?"
        agent.sync_turn(question, text, messages=exchange(question, text, *call("web_search", f"w{number}")))
        agent.on_memory_write("add", "memory", text, stamps("s1", f"m{number}"))
    judged = exchange(
        "Q", "A", *call("web_search", "w"), *(each for n in range(12) for each in call("memory", f"m{n}"))
    )
    agent.sync_turn("Q", "A", messages=judged)
    honest = "Zebra shipments of the week go by rail, Anna says."
    plain = agent_home.provider("market", "s2")
    plain.sync_turn(honest, "I noted that they go by rail.", messages=exchange(honest, "I noted that they go by rail."))
    plain.on_memory_write("add", "memory", "Zebra shipments of the week are paid by Anna.")
    after = judged + exchange("So what of zebra shipments?", "Zebra shipments of the week are cheap.")
    agent.sync_turn("So what of zebra shipments?", "Zebra shipments of the week are cheap.", messages=after)
    agent_home.settle()

    def offered(**settings: Any) -> str:
        home = AgentHome(agent_home.path, agent_home.dsn, agent_home.stored, {**agent_home.settings, **settings})
        return home.provider("market", "new").prefetch("zebra shipments of the week")

    trusted = offered()
    assert "says the page" not in trusted
    assert all(words in trusted for words in ("paid by Anna", "go by rail", "are cheap"))
    assert "says the page" in offered(prefetch_trust="all")
    asked = agent_home.provider("market", "new")
    for tool in ("recall_memory", "recall_conversation"):
        found = json.loads(asked.handle_tool_call(tool, {"query": "zebra shipments free, says the page", "limit": 20}))
        marked = [row for row in found["results"] if row.get("untrusted")]
        assert len(marked) == 12
        assert all(row["tools"] == ["web"] and row["origin"] in ("assistant", "memory_tool") for row in marked)
        assert "untrusted" in found["note"]
    beside = json.loads(asked.handle_tool_call("recall_conversation", {"query": "What does page 3 say?", "context": 1}))
    first = next(row for row in beside["results"] if row["content"] == "What does page 3 say?")
    assert first["after"]["untrusted"] is True
    assert first["origin"] == "user"

    runtime, password = with_password(database.runtime_dsn)
    commands = Commands(agent_home.path.parent / "operator", [password])
    commands.configure(dsn=runtime)
    web = commands.call("list", "--origin", "web", "--limit", "100", "--json").json["rows"]
    assert len(web) == 25
    assert {row["untrusted"] for row in web} == {True}
    assert "untrusted" in commands.call("list", "--origin", "web").out
    turn = next(row["id"] for row in web if row["kind"] == "turn")
    shown = commands.call("show", turn, "--json").json
    assert (shown["origin"], shown["untrusted"], shown["home_id"]) == ("assistant", True, agent_home.engine.home_id)
    assert "its exchange read a stranger's text (web)" in " ".join(commands.call("show", turn).out.split())
    recalled = commands.call("recall", "zebra shipments", "--theme", "market", "--json").json["results"]
    assert all("origin" in row and "untrusted" in row for row in recalled)
    assert "untrusted: web" in commands.call("recall", "zebra shipments", "--theme", "market").out
    assert commands.call("list", "--origin", "nowhere").code == 2


def test_rows_and_records_of_before_are_read_as_they_are(agent_home: AgentHome, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, session_id, role, content)"
            " VALUES ('market', 's', 'user', 'an old zebra'), ('market', 's', 'tool', 'an old delegated zebra');"
            " INSERT INTO memory_entries (agent_identity, target, content)"
            " VALUES ('market', 'memory', 'an older zebra')"
        )
    agent = agent_home.provider("market", "new")
    assert "an old zebra" in agent.prefetch("where is the old zebra?")
    found = json.loads(agent.handle_tool_call("recall_conversation", {"query": "old zebra"}))["results"]
    assert {row["content"]: row["origin"] for row in found} == {
        "an old zebra": "user", "an old delegated zebra": "delegation",
    }  # fmt: skip
    (memory,) = json.loads(agent.handle_tool_call("recall_memory", {"query": "older zebra"}))["results"]
    assert memory["origin"] == "unknown"
    assert "untrusted" not in memory


def test_what_another_process_read_in_the_file_first_is_marked_too(database: Database) -> None:
    told = {"session_id": "s", "tool_call_id": "call"}
    read = AddMemory("t", "memory", "Pay 555", Moment(2_000_000, 2_000_000), "h", Origin.FILE, {}, RowOrigin.FILE)
    said = AddMemory("t", "memory", "Pay 555", Moment(1_000_000, 1_000_000), "h", Origin.TOOL, told)
    with psycopg.connect(database.runtime_dsn) as connection:
        for number, each in enumerate((read, said)):
            memories.store(connection, [Placed(each, f"w{number}", 1, 0)])
        memories.distrust(connection, DistrustMemories("t", "s", ("call",), ("web",), Moment(3_000_000, 3_000_000)))
        (entry,) = memories.entries(connection, "t", "memory").values()
    assert entry.untrusted
    assert entry.metadata == {"tools": ["web"]}
