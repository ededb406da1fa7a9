"""The provider's promises, hook by hook, against a real Postgres and the local model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.known_models import LOCAL_MODEL
from hermes_memory_pgvector.embedding.local import DIM, SCALE
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime import registry
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from testing.agent import AgentHome
from testing.cases import examples
from testing.postgres import Database
from testing.waiting import wait_until

Make = Callable[..., PgvectorMemoryProvider]
U = "How large is the budget of the spring campaign in Berlin this year?"
A = "The spring campaign in Berlin has a budget of forty thousand euros."

EDGES = "SELECT session_id, metadata ->> 'delegated_to' FROM conversations WHERE role = 'tool'"


@pytest.fixture
def make(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes providers of one home, as the host's API server does: a new one per request."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "default-home"))
    migrate.apply(database.owner_dsn, model=NewModel(LOCAL_MODEL, DIM, SCALE.mean, SCALE.sd))
    home = tmp_path / "home"
    home.mkdir()

    def provider(theme: str = "marketing", session_id: str = "s1", **arguments: Any) -> PgvectorMemoryProvider:
        made = PgvectorMemoryProvider({"dsn": database.runtime_dsn})
        made.initialize(
            session_id, hermes_home=str(home), platform="api_server", agent_context="primary",
            gateway_session_key=theme, agent_identity="default", agent_workspace="hermes", **arguments,
        )  # fmt: skip
        return made

    yield provider
    registry.close_all(Deadline.after(10))


def settle(provider: PgvectorMemoryProvider) -> None:
    """Wait until what was acknowledged is stored and has its vector."""
    engine = provider._engine
    assert engine is not None
    assert engine.flush(Deadline.after(30))


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.owner_dsn) as connection:
        return connection.execute(query).fetchall()


def tool(provider: PgvectorMemoryProvider, name: str, **arguments: Any) -> Any:
    return json.loads(provider.handle_tool_call(name, arguments))


def test_it_is_a_real_provider_of_the_host() -> None:
    from agent.memory_provider import MemoryProvider

    assert issubclass(PgvectorMemoryProvider, MemoryProvider)
    assert PgvectorMemoryProvider().name == "pgvector"


def test_both_sides_of_a_turn_are_stored_and_found(make: Make, database: Database) -> None:
    provider = make()
    provider.sync_turn(
        U, A, session_id="s1", messages=[{"role": "user", "content": U}, {"role": "assistant", "content": A}]
    )
    provider.sync_turn("ok", "You are welcome!", session_id="s1", messages=[])
    settle(provider)
    assert rows(database, "SELECT role, content FROM conversations ORDER BY id") == [("user", U), ("assistant", A)]
    found = tool(provider, "recall_conversation", query="what may the campaign cost")
    assert "note" not in found
    assert {row["content"] for row in found["results"]} == {U, A}
    assert all(0 <= row["score"] <= 1 for row in found["results"])


def test_the_model_is_told_when_the_embedder_is_dead_and_only_keywords_were_searched(agent_home: AgentHome) -> None:
    agent = agent_home.provider("marketing")
    agent.sync_turn(U, A)
    agent.on_memory_write("add", "memory", "The spring campaign launches on 14 March", {})
    agent_home.settle()
    for name in ("recall_conversation", "recall_memory"):
        found = tool(agent, name, query="spring campaign")
        assert found["count"] == len(found["results"]) > 0
        assert found["note"] == "keyword search only: the embedding service is out of reach"
    block = agent.prefetch("when does the spring campaign launch?")
    assert "14 March" in block
    assert "keyword" not in block
    (breaker,) = [each for each in agent_home.engine.status.breakers() if each.name == "embedding of questions"]
    assert breaker.state == "open"


def test_a_turn_brings_its_neighbours_along_when_asked_to(make: Make) -> None:
    provider = make()
    provider.sync_turn(U, A, session_id="s1", messages=[])
    settle(provider)
    found = tool(provider, "recall_conversation", query=U, limit=1, context=1)
    assert found["count"] == 1
    (row,) = found["results"]
    assert row["content"] == U
    assert (row["after"]["role"], row["after"]["content"]) == ("assistant", A)
    assert "before" not in row
    assert "after" not in tool(provider, "recall_conversation", query=U, limit=1)["results"][0]


def test_a_memory_is_offered_for_the_current_question(make: Make) -> None:
    provider = make()
    provider.on_memory_write("add", "memory", "The spring campaign launches on 14 March", {})
    provider.on_memory_write("add", "user", "Prefers answers in metric units", {})
    settle(provider)
    assert "14 March" in provider.prefetch("when does the spring campaign launch?")
    assert provider.prefetch("when does the spring campaign launch?") == ""
    assert provider.prefetch("zebra migration patterns across the Serengeti") == ""


def test_no_default_recall_crosses_themes_even_with_colliding_sessions(make: Make) -> None:
    marketing, trading = make("marketing", "same-id"), make("trading", "same-id")
    marketing.on_memory_write("add", "memory", "The spring campaign launches on 14 March", {})
    marketing.sync_turn(U, A, session_id="same-id", messages=[])
    settle(marketing)
    for name in ("recall_memory", "recall_conversation"):
        assert tool(trading, name, query="spring campaign budget launch")["count"] == 0
    assert tool(trading, "recall_conversation", query="spring campaign", scope="session")["count"] == 0
    assert trading.prefetch("spring campaign budget and launch") == ""
    assert tool(trading, "recall_memory", query="spring campaign", scope="all")["count"] == 1
    assert tool(trading, "recall_memory", query="spring campaign", scope="Marketing")["count"] == 1


def test_private_themes_are_seen_by_themselves_only(make: Make) -> None:
    partner = make("agent:main:whatsapp:dm:15550100123")
    partner.on_memory_write("add", "memory", "The spring campaign launches on 14 March", {})
    settle(partner)
    theme = partner._session.theme
    assert tool(make("trading"), "recall_memory", query="spring campaign", scope="all")["count"] == 0
    assert "error" in tool(make("trading"), "recall_memory", query="spring campaign", scope=theme)
    assert tool(partner, "recall_memory", query="spring campaign")["count"] == 1
    assert tool(partner, "recall_memory", query="spring campaign", scope="all")["count"] == 1


def test_files_are_imported_into_the_profiles_theme_only(make: Make, database: Database, tmp_path: Path) -> None:
    memories = tmp_path / "home" / "memories"
    memories.mkdir()
    (memories / "MEMORY.md").write_text("Servers run Debian 12\n§\nDeploys happen on Thursdays", encoding="utf-8")
    provider = make("marketing")
    wait_until(lambda: len(rows(database, "SELECT FROM memory_entries")) == 2)
    assert set(rows(database, "SELECT agent_identity FROM memory_entries")) == {("hermes",)}
    assert tool(provider, "recall_memory", query="which day do deploys happen")["count"] == 0


def test_a_delegation_is_an_edge_and_a_turn(make: Make, database: Database) -> None:
    provider = make()
    provider.on_delegation("Compare three print shops in Berlin", "Druckhaus is cheapest", child_session_id="child-1")
    provider.on_delegation("Compare three print shops in Berlin", "Druckhaus is cheapest", child_session_id="child-1")
    settle(provider)
    assert rows(database, EDGES) == [("s1", "child-1")]
    found = tool(provider, "recall_conversation", query="print shops", scope="session")
    assert "Druckhaus" in found["results"][0]["content"]
    assert found["count"] == 1


def test_the_prompt_block_is_short_stable_and_names_theme_and_tools(make: Make) -> None:
    provider = make()
    block = provider.system_prompt_block()
    assert all(word in block for word in ("marketing", "recall_memory", "recall_conversation"))
    assert len(block) < 600
    provider.on_memory_write("add", "memory", "another fact to remember", {})
    assert provider.system_prompt_block() == block
    assert make().system_prompt_block() == block


def test_contexts_that_may_not_write_only_recall(make: Make, database: Database) -> None:
    writer = make()
    writer.on_memory_write("add", "memory", "The spring campaign launches on 14 March", {})
    settle(writer)
    reader = PgvectorMemoryProvider({"dsn": database.runtime_dsn})
    reader.initialize("s2", hermes_home=str(writer._home), gateway_session_key="marketing", agent_context="subagent")
    reader.on_memory_write("add", "memory", "should not be there", {})
    reader.sync_turn(U, A, session_id="s2", messages=[])
    settle(reader)
    assert rows(database, "SELECT count(*) FROM memory_entries") == [(1,)]
    assert rows(database, "SELECT count(*) FROM conversations") == [(0,)]
    assert tool(reader, "recall_memory", query="spring campaign")["count"] == 1


def test_300_providers_share_six_threads_and_four_connections(make: Make, database: Database) -> None:
    make()

    def request(number: int) -> None:
        provider = make("marketing", f"s{number}")
        provider.prefetch(U)
        provider.sync_turn(f"{U} ({number})", f"{A} ({number})", session_id=f"s{number}", messages=[])

    def client(number: int) -> None:
        for request_number in range(38):
            request(number * 38 + request_number)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    most_threads = most_connections = 0
    while any(thread.is_alive() for thread in threads):
        ours = [thread for thread in threading.enumerate() if thread.name.startswith("hermes-pgvector")]
        most_threads = max(most_threads, len(ours))
        backends = rows(
            database,
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name = 'hermes-pgvector' AND datname = current_database()",
        )
        most_connections = max(most_connections, backends[0][0])
    settle(make())
    assert rows(database, "SELECT count(*) FROM conversations") == [(8 * 38 * 2,)]
    assert most_connections <= 4
    assert most_threads <= 6


def test_a_provider_without_initialize_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    provider = PgvectorMemoryProvider({"dsn": "host=127.0.0.1 port=1 dbname=x"})
    assert provider.is_available()
    assert len(provider.get_tool_schemas()) == 3
    assert provider.get_config_schema()
    assert provider.backup_paths() == []
    assert provider.identity_signature()
    assert provider.queue_prefetch("x", session_id="s") is None
    provider.shutdown()


def test_an_impossible_dsn_makes_it_unavailable_with_a_reason() -> None:
    provider = PgvectorMemoryProvider({"dsn": "this is not = a 'dsn"})
    assert not provider.is_available()
    assert "dsn" in provider.unavailable_reason()


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5)
ANYTHING = PLAIN | st.lists(PLAIN, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), PLAIN, max_size=3)


@settings(max_examples=examples(40))
@given(values=st.lists(ANYTHING, min_size=6, max_size=6))
def test_no_hook_raises_whatever_its_arguments(make: Make, values: list[Any]) -> None:
    provider = make()
    a, b, c, d, e, f = values
    provider.initialize(a, hermes_home=b if not isinstance(b, str) else "", gateway_session_key=c, agent_context=d, x=e)
    provider = make()
    provider.on_turn_start(a, b, kind=c)
    provider.prefetch(a, session_id=b)
    provider.queue_prefetch(a, session_id=b)
    provider.sync_turn(a, b, session_id=c, messages=d, turn_author=e)
    provider.on_memory_write(a, b, c, d)
    provider.on_memory_write("add", "memory", a, metadata=b)
    provider.on_memory_write("replace", "user", c, metadata={"old_text": d, "previous_content": e, "x": f})
    provider.on_memory_write("remove", "user", "", metadata={"old_text": d})
    provider.on_delegation(a, b, child_session_id=c, more=d)
    provider.on_pre_compress(a)
    provider.on_session_end(b)
    provider.on_session_switch(a, parent_session_id=b, reset=c, rewound=d, reason=e)
    assert isinstance(json.loads(provider.handle_tool_call(a, b)), dict)
    assert isinstance(
        json.loads(provider.handle_tool_call("recall_memory", {"query": c, "limit": d, "scope": e})), dict
    )
    assert isinstance(provider.system_prompt_block(), str)


def test_who_said_something_is_stored_and_counts_when_the_question_names_them(make: Make) -> None:
    provider = make(session_id="old")
    for name, opinion in (("Tim", "far too expensive"), ("Ann", "worth every penny"), ("Tim", "quite comfortable")):
        provider.sync_turn(
            f"I must say that the harbour hotel in Oslo is {opinion} for a trip of the whole team.",
            "",
            session_id="old",
            messages=[],
            turn_author={"id": "7", "name": name, "is_bot": False},
        )
    settle(provider)

    def first(query: str) -> str:
        found = json.loads(provider.handle_tool_call("recall_conversation", {"query": query}))
        return str(found["results"][0]["content"])

    assert "penny" in first("what did Ann say of the harbour hotel in Oslo?")
    assert "penny" not in first("what did Tim say of the harbour hotel in Oslo?")


def test_small_talk_gets_no_block_and_a_question_the_right_part_of_a_long_turn(make: Make) -> None:
    provider = make(session_id="old")
    long = (
        "We looked at the ferry for our holiday on the island. " * 10
        + "The ferry to Gotland leaves Nynashamn at 11:35. "
        + "The cabin on the ferry is booked for all of us. " * 10
    )
    for user, assistant in [
        (U, A),
        ("Can you run the tests again and then commit and push everything, please?", "Done: thanks, all pushed."),
        ("When does our ferry leave for the island this summer?", long),
        ("The scanner shows ERR-42 whenever the tray of the scanner is empty.", "Noted, the tray it is, thank you!"),
    ]:
        provider.sync_turn(user, assistant, session_id="old", messages=[])
    settle(provider)
    asker = make(session_id="new")
    for prompt in ("thanks", "commit and push", "hi, how are you?", "run the tests", "danke, mach weiter", "谢谢"):
        assert asker.prefetch(prompt, session_id="new") == ""
    line = next(
        line for line in asker.prefetch("when does the ferry to Gotland leave?").splitlines() if "11:35" in line
    )
    assert len(line) < 360
    assert "…" in line
    assert make(session_id="third").prefetch("Which colour has the harbour crane?") == ""
    # Not near at all, but named to the letter.
    assert "tray of the scanner" in make(session_id="fourth").prefetch("ERR-42")


def test_a_tool_that_finds_nothing_says_what_it_searched(make: Make) -> None:
    provider = make()
    provider.on_memory_write("add", "memory", "The spring campaign starts on 4 May", {})
    provider.sync_turn(U, A, session_id="s1", messages=[])
    settle(provider)
    assert tool(provider, "recall_memory", query="zebra quantum harmonica") == {
        "results": [],
        "count": 0,
        "note": "Nothing found in theme 'marketing' (1 memory searched by meaning and words).",
    }
    answer = tool(provider, "recall_conversation", query="zebra quantum harmonica")
    assert answer["note"] == "Nothing found in theme 'marketing' (2 turns searched by meaning and words)."
    assert "note" not in tool(provider, "recall_memory", query="when does the campaign start?")


def test_a_home_with_nothing_configured_gets_its_database_by_itself(tmp_path: Path) -> None:
    home = tmp_path / "new"
    home.mkdir()
    provider = PgvectorMemoryProvider()
    provider.initialize("s1", hermes_home=str(home), agent_identity="default", agent_workspace="hermes")
    provider.on_memory_write("add", "memory", "The lathe needs bearings SKF-6203", {})
    server = EmbeddedPostgres(home / "pgvector")
    try:
        wait_until(lambda: provider._current().flush(Deadline.after(1)), seconds=90)
        assert tool(provider, "recall_memory", query="bearings")["count"] == 1
    finally:
        registry.close_all(Deadline.after(10))
        server.stop(Deadline.after(30), mode="immediate")


def test_a_turn_of_a_scheduled_job_is_recalled_when_asked_for_and_never_offered(agent_home: AgentHome) -> None:
    agent_home.settings |= {"prefetch_sources": "both"}
    said = "Nightly report about the walnut harvest: eleven tonnes of walnuts were brought in."
    for platform in ("cron", "cli"):
        agent = agent_home.provider(session=f"job-{platform}", platform=platform)
        agent.sync_turn(f"{said} ({platform})", "The walnut report is written and sent.", session_id=f"job-{platform}")
    agent_home.settle()
    asking = agent_home.provider(session="asking", platform="cli")
    block = asking.prefetch("what did the nightly report say about the walnut harvest?")
    assert "(cli)" in block
    assert "(cron)" not in block
    answer = asking.handle_tool_call("recall_conversation", {"query": "nightly report walnut harvest"})
    assert "(cron)" in answer
