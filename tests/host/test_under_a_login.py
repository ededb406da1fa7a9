"""The real host under a login of single themes, and turns in which the model has read a stranger's text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.admin import logins
from hermes_memory_pgvector.admin.logins import Wanted
from testing.hermes import MakeHome
from testing.hermes_home import HermesHome
from testing.hermes_servers import Gateway
from testing.llm_server import Call, Say, ScriptedLLM
from testing.waiting import wait_until

STRANGERS = {"web_search": "web", "browser_navigate": "browser", "mcp__notes__read": "mcp"}


def give(home: HermesHome, *themes: str) -> str:
    """Grant the login of this home some themes; its name."""
    login = f"host_{home.database.name}"
    logins.grant(home.database.owner_dsn, Wanted(login, themes), password="x", actor="test", home_id="")
    return login


@pytest.fixture
def laptop(make_home: MakeHome) -> Iterator[HermesHome]:
    """A home whose login was granted the profile's theme and launch."""
    home = make_home()
    login = give(home, "hermes", "launch")
    home.change_setting("dsn", make_conninfo(home.dsn, user=login, password="x"))
    yield home
    logins.revoke(home.database.owner_dsn, login, actor="test", home_id="")


def told(gateway: Gateway, llm: ScriptedLLM, theme: str, cue: str, call: Call) -> Any:
    """What a tool told the model in a chat of that theme."""
    llm.when(cue, call, Say("That is what I found."))
    gateway.chat(cue, theme=theme)
    return json.loads([request for request in llm.about(cue) if request.tool_results][-1].tool_results[0])


@pytest.mark.large
def test_an_agent_works_under_its_login_and_what_it_may_not_write_waits(laptop: HermesHome, llm: ScriptedLLM) -> None:
    stored = laptop.stored
    fact = "The giraffe barge leaves the harbour at the ninth bell"
    goal = "Count the giraffe barges in the harbour for the walls"
    with laptop.gateway() as gateway:
        call = Call("memory", {"action": "add", "target": "memory", "content": fact})
        assert (
            told(gateway, llm, "launch", "Keep the giraffe barge of the harbour in mind for all of us, please.", call)[
                "success"
            ]
            is True
        )
        wait_until(lambda: stored.memories("launch") == [("memory", fact)])
        wait_until(lambda: stored.turns_with_vector("launch") >= 1)
        found = told(
            gateway, llm, "launch", "Look the giraffe up.", Call("recall_memory", {"query": "giraffe barge harbour"})
        )
        assert [hit["content"] for hit in found["results"]] == [fact]
        assert {"origin", "ts"} <= found["results"][0].keys()
        llm.when("Ask a helper about barges for the walls", Call("delegate_task", {"goal": goal}), Say("Asked."))
        llm.when(goal, Say("There are two giraffe barges in the harbour."))
        gateway.chat("Ask a helper about barges for the walls.", theme="launch")
        wait_until(lambda: stored.count("delegations") == 1)
        # A theme that it was not granted: the chat goes on, nothing is recalled, and what is said is kept.
        said = "The kitchen serves giraffe pudding on the second Sunday of the month."
        gateway.chat(said, theme="kitchen")
        none = told(
            gateway, llm, "kitchen", "Recall pudding.", Call("recall_conversation", {"query": "giraffe pudding"})
        )
        assert none["results"] == []
        wait_until(lambda: stored.count("dead_letters") == 1)
        assert stored.themes() == {"launch"}
        # The host writes a warning to more than one file.
        assert len({line for line in laptop.logs().splitlines() if "was not granted the theme 'kitchen'" in line}) == 1
        listed = json.loads(laptop.run("pgvector", "journal", "dead", "list", "--json").out)
        assert {"'kitchen'" in each["reason"] for each in listed} == {True}
        assert "dead letter" in laptop.run("pgvector", "doctor").out
        give(laptop, "hermes", "launch", "kitchen")
        wait_until(lambda: stored.count("dead_letters") == 0, seconds=90)
        assert [role for role, _, _ in stored.turns("kitchen", said)] == ["user"]
    assert "Traceback" not in laptop.logs()


@pytest.mark.large
def test_strangers_words_are_marked_not_offered_and_found_by_who_asks(laptop: HermesHome, llm: ScriptedLLM) -> None:
    with laptop.gateway() as gateway:
        for tool, kind in STRANGERS.items():
            cue = f"Look up the zebra toll with {kind} for all of us, would you?"
            llm.when(
                cue,
                Call(tool, {"query": "x", "url": "http://127.0.0.1:9/"}),
                Say(f"By {kind}: the zebra toll is 9 coins at every gate of the town."),
            )
            gateway.chat(cue, theme="launch")
        honest = "Our treasurer says the zebra toll is seven coins at the northern gate."
        gateway.chat(honest, theme="launch")
        marked = (
            "SELECT metadata -> 'tools' ->> 0, origin, trust FROM conversations WHERE content LIKE 'By %%' ORDER BY 1"
        )
        expected = [(kind, "assistant", "untrusted") for kind in sorted(STRANGERS.values())]
        wait_until(lambda: laptop.stored.rows(marked) == expected)
        wait_until(lambda: laptop.stored.turns_with_vector("launch") == 8)
        question = "How much is the zebra toll at the northern gate these days?"
        gateway.chat(question, theme="launch")
        recalled = llm.about(question)[-1].recalled
        assert honest in recalled
        assert "the zebra toll is 9" not in recalled
        call = Call("recall_conversation", {"query": "zebra toll", "limit": 20})
        hits = told(gateway, llm, "launch", "Recall the toll.", call)["results"]
        strangers = [hit for hit in hits if hit["content"].startswith("By ")]
        assert len(strangers) == 3
        assert {(hit["origin"], hit["untrusted"]) for hit in strangers} == {("assistant", True)}
        assert all(hit["ts"] for hit in hits)
        assert not any(hit.get("untrusted") for hit in hits if hit["content"] == honest)
