"""What was undone before anybody reported it stays away, and a transcript belongs to the session it was spoken in."""

from __future__ import annotations

import time
from typing import Any

from testing.agent import AgentHome

Message = dict[str, Any]


def question(name: str) -> str:
    return f"Question {name}: how many barrels are there?"


def said(*names: str, **more: Any) -> list[Message]:
    pairs = [(("user", question(name)), ("assistant", f"Answer {name}: a few.")) for name in names]
    return [{"role": role, "content": text, **more} for pair in pairs for role, text in pair]


def stored(home: AgentHome) -> dict[str, list[str]]:
    """What each session holds."""
    home.settle()
    found: dict[str, list[str]] = {}
    for _, session, text in home.stored.turns("marketing"):
        found.setdefault(session, []).append(text)
    return found


def texts(messages: list[Message]) -> list[str]:
    return [message["content"] for message in messages]


def test_an_interrupted_question_that_was_undone_stays_away(agent_home: AgentHome) -> None:
    """The host ends with the transcript of its last turn, from before the undo, whatever session it is in by then."""
    interrupted = [said("one")[0], {"role": "assistant", "content": "Let me count the barrels, one by"}]
    for session, is_seen, goes_elsewhere in (("s1", True, True), ("s2", False, True), ("s3", False, False)):
        agent = agent_home.provider(session=session)
        agent.on_turn_start(1, question("one"))
        agent.on_session_switch(session, rewound=True)
        if is_seen:
            agent.on_session_end([])
        if goes_elsewhere:
            agent.on_session_switch(f"{session}-new", parent_session_id=session, reset=True, reason="new_session")
        agent.on_session_end(interrupted)
    assert stored(agent_home) == {}


def test_what_was_interrupted_is_kept_when_the_same_question_is_asked_once_more_and_undone(
    agent_home: AgentHome,
) -> None:
    begun = {"role": "assistant", "content": "Let me count the barrels, one by"}
    kept, undone = [said("one")[0], begun], [said("one")[0], begun | {"content": "There are four barrels in"}]
    for session, shown in (("s1", kept), ("s2", [*kept, *undone])):
        agent = agent_home.provider(session=session)
        for number in (1, 2):
            agent.on_turn_start(number, question("one"))
        agent.on_session_switch(session, rewound=True)
        agent.on_session_end(shown)
    found = stored(agent_home)
    assert found["s1"][-1] == begun["content"]
    assert undone[-1]["content"] not in found.get("s2", [])


def test_a_turn_undone_before_its_report_stays_away_unless_it_is_said_again(agent_home: AgentHome) -> None:
    """The host reports turns from a queue; the user may be faster."""
    agent = agent_home.provider(session="s1")
    first, second = said("one"), said("one", "two")
    agent.on_turn_start(1, question("one"))
    agent.sync_turn(*texts(first), session_id="s1", messages=first)
    agent.on_turn_start(2, question("two"))
    agent.on_session_switch("s1", rewound=True)
    agent.sync_turn(*texts(second[2:]), session_id="s1", messages=second)
    agent.on_session_end(second)
    assert stored(agent_home) == {"s1": texts(first)}
    agent.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    agent.on_session_switch("s1", parent_session_id="s2", reset=False, reason="resume")
    agent.on_session_end(second)
    assert stored(agent_home) == {"s1": texts(first)}
    agent.on_turn_start(2, question("two"))
    agent.sync_turn(*texts(second[2:]), session_id="s1", messages=second)
    assert stored(agent_home) == {"s1": texts(second)}


def test_a_question_interrupted_undone_and_asked_again_is_stored(agent_home: AgentHome) -> None:
    """Its first time was never reported, so the report that comes is that of the second; a picture hides the words."""
    for session, again in (("s1", question("one")), ("s2", "")):
        agent = agent_home.provider(session=session)
        agent.on_turn_start(1, question("one"))
        agent.on_session_switch(session, rewound=True)
        agent.on_turn_start(1, again)
        agent.sync_turn(*texts(said("one")), session_id=session, messages=said("one"))
    assert stored(agent_home) == {"s1": texts(said("one")), "s2": texts(said("one"))}


def test_the_transcript_of_the_session_a_call_has_named_is_not_stored_under_the_one_at_the_start(
    agent_home: AgentHome,
) -> None:
    """The gateway serves several sessions with one agent and tells nobody but sync_turn."""
    agent = agent_home.provider(session="s1")
    for session, name in (("s1", "one"), ("s7", "seven")):
        agent.on_turn_start(1, question(name))
        agent.sync_turn(*texts(said(name)), session_id=session, messages=said(name))
    agent.on_session_end(said("seven"))
    assert stored(agent_home) == {"s1": texts(said("one")), "s7": texts(said("seven"))}


def test_a_resumed_session_is_not_taken_for_the_one_just_left_because_they_share_words(agent_home: AgentHome) -> None:
    agent = agent_home.provider(session="s1")
    agent.on_turn_start(1, question("one"))
    agent.sync_turn(*texts(said("one")), session_id="s1", messages=said("one"))
    agent.on_turn_start(1, question("same"))
    agent.sync_turn(*texts(said("same")), session_id="s1", messages=said("one", "same"))
    agent.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    agent.on_turn_start(1, question("same"))
    agent.sync_turn(*texts(said("same")), session_id="s2", messages=said("same"))
    agent.on_session_switch("s1", parent_session_id="s2", reset=False, reason="resume")
    agent.on_session_end(said("one", "same", timestamp=time.time()))
    assert stored(agent_home) == {"s1": texts(said("one", "same")), "s2": texts(said("same"))}
