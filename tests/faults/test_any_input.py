"""Whatever a hook or a tool is given: no exception, and no neighbour is lost."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.agent import AgentHome
from testing.cases import examples
from testing.faulty import FaultyServer, expect, new_database, say
from testing.postgres import Database

TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(alphabet=st.characters(categories=["Cs", "Cc", "Co", "Cn"]), max_size=20),
    st.sampled_from([
        "\x00", "a\x00b", "\ud800", "a\udfffb", "\x1b[31m", "\u202e", "\ufeff", "%s %(a)s %%", "'; DROP x; --",
        "\\x00", "{}", "§", "\n§\n", "<memory-context>x</memory-context>", "a" * 100_000, "\x00" * 5000,
    ]),
)  # fmt: skip


class Unhelpful:
    """An object that nobody can make sense of."""

    def __repr__(self) -> str:
        return "<unhelpful>"


class Enormous(int):
    """A number with more digits than Python is willing to write."""

    def __repr__(self) -> str:
        return "<enormous>"


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        TEXTS, st.none(), st.booleans(), st.integers(), st.floats(), st.binary(max_size=20), st.builds(Unhelpful),
        st.just(Enormous(10**5000)), st.just(object), st.just({1, 2}), st.just(float("nan")),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | st.integers() | st.none(), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
ARGUMENTS = ("query", "scope", "target", "limit", "since", "until")
MESSAGES = st.lists(
    st.one_of(
        VALUES,
        st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]) | VALUES, "content": VALUES}),
        st.fixed_dictionaries({"role": st.just("user"), "content": TEXTS, "timestamp": VALUES, "tool_calls": VALUES}),
    ),
    max_size=5,
)


@pytest.fixture(scope="module")
def shared_home(
    server: FaultyServer, template: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentHome]:
    with new_database(server, template.name) as database:
        home = AgentHome.create(tmp_path_factory.mktemp("any") / "home", database, bulk_sync_on_init=False)
        yield home
        home.close()


@given(data=st.data())
@settings(max_examples=examples(100))
def test_no_argument_of_any_hook_raises(shared_home: AgentHome, data: st.DataObject) -> None:
    draw = data.draw
    agent: Any = shared_home.provider("odd")
    hook = draw(st.sampled_from(range(10)))
    if hook == 0:
        agent.sync_turn(draw(VALUES), draw(VALUES), session_id=draw(VALUES), messages=draw(MESSAGES | VALUES))
    elif hook == 1:
        agent.on_memory_write(draw(VALUES), draw(VALUES), draw(VALUES), metadata=draw(VALUES))
    elif hook == 2:
        action, target = draw(st.sampled_from(["add", "replace", "remove"])), draw(st.sampled_from(["memory", "user"]))
        metadata = {"old_text": draw(VALUES), "previous_content": draw(VALUES), "more": draw(VALUES)}
        agent.on_memory_write(action, target, draw(VALUES), metadata=metadata)
    elif hook == 3:
        agent.on_session_end(draw(MESSAGES | VALUES))
    elif hook == 4:
        assert agent.on_pre_compress(draw(MESSAGES | VALUES)) == ""
    elif hook == 5:
        agent.on_session_switch(
            draw(VALUES), parent_session_id=draw(VALUES), reset=draw(VALUES), rewound=draw(VALUES), reason=draw(VALUES)
        )
        agent.sync_turn("after a switch", "to anywhere", session_id="")
    elif hook == 6:
        agent.on_delegation(draw(VALUES), draw(VALUES), child_session_id=draw(VALUES))
    elif hook == 7:
        name = draw(st.sampled_from(["recall_memory", "recall_conversation"]) | VALUES)
        answer = agent.handle_tool_call(name, draw(VALUES | st.dictionaries(st.sampled_from(ARGUMENTS), VALUES)))
        assert set(json.loads(answer)) in ({"error"}, {"results", "count"})
    elif hook == 8:
        assert isinstance(agent.prefetch(draw(VALUES), session_id=draw(VALUES)), str)
        agent.queue_prefetch(draw(VALUES), session_id=draw(VALUES))
    else:
        agent.on_turn_start(draw(VALUES), draw(VALUES))
        agent.initialize(draw(VALUES), hermes_home=str(shared_home.path), gateway_session_key=draw(VALUES),
                         agent_identity=draw(VALUES), platform=draw(VALUES), warning_callback=draw(VALUES))  # fmt: skip
        agent.sync_turn("after any start", "at all", session_id=draw(VALUES))


def test_what_odd_neighbours_left_everything_else_arrives(shared_home: AgentHome) -> None:
    shared_home.settle(120)
    say(shared_home, 1, 2, 3)
    expect(shared_home, 1, 2, 3)
    assert shared_home.stored.count("dead_letters") == 0, "a hook let something through that Postgres cannot hold"


ODD = [
    "nul \x00 inside", "lone \ud800 surrogate", "control \x1b\x07\x0b", "x" * 5_000_000, "\ud83d\ude00 in two halves",
    "right \u202e to left", "\ufeffmarked", "emoji 👩‍👩‍👧", "per %s cent %(a)s", "quote ' and \\ slash",
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=[text[:8].encode("ascii", "replace").decode() for text in ODD])
def test_odd_text_is_stored_sanitised_between_its_neighbours(
    home: AgentHome, odd: str, caplog: pytest.LogCaptureFixture
) -> None:
    home.settings["bulk_sync_on_init"] = False
    agent = home.provider("odd")
    with caplog.at_level(logging.WARNING):
        say(home, 1)
        agent.sync_turn(odd, f"answer to {odd}", session_id="s1", messages=[{"role": "user", "content": odd}])
        agent.on_memory_write("add", "memory", odd, metadata={"session_id": odd, "n": odd})
        agent.on_delegation(odd, odd, child_session_id=odd)
        say(home, 2)
        expect(home, 1, 2)
    assert len(home.stored.turns("odd")) == 3
    ((_, stored),) = home.stored.memories("odd")
    assert "\x00" not in stored
    assert len(stored) <= 8192
    assert ("[cut: " in stored) == (len(odd) > 8192), "cut without saying so, or the other way round"
    assert home.stored.count("dead_letters") == 0
    assert "failed" not in caplog.text


def test_a_transcript_of_megabytes_is_stored(home: AgentHome) -> None:
    agent = home.provider()
    messages = [{"role": "user", "content": f"question {n} {'x' * 20_000}"} for n in range(300)]
    agent.on_session_end(messages)
    home.settle()
    assert home.stored.count("conversations") == 300


def test_a_session_id_of_any_length_keeps_its_turns_together(home: AgentHome) -> None:
    first, second = "s" * 100_000 + "1", "s" * 100_000 + "2"
    agent = home.provider(session=first)
    agent.sync_turn("question 1", "answer 1", session_id=first)
    agent.sync_turn("question 2", "answer 2", session_id=second)
    agent.on_session_end([{"role": "user", "content": "question 1"}, {"role": "assistant", "content": "answer 1"}])
    home.settle()
    sessions = [session for _, session, _ in home.stored.turns("marketing")]
    assert len(sessions) == 4
    assert len(set(sessions)) == 2


def test_a_home_that_cannot_be_written_raises_nothing(tmp_path: Path, database: Database) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    home = AgentHome(blocked, database.runtime_dsn, AgentHome.create(tmp_path / "x", database).stored, {})
    agent: Any = home.provider()
    agent.sync_turn("question 1", "answer 1", session_id="s1")
    agent.on_memory_write("add", "memory", "fact", metadata={})
    assert isinstance(agent.prefetch("question"), str)
    home.close()
