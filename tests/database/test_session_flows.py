"""Whatever the host does to a session: what was not taken back stays and is recalled, what was taken back is hidden."""

from __future__ import annotations

import json
import random

import pytest

from testing.agent import AgentHome
from testing.shell import FLOWS, UNDOS, Shell

STEPS = 40


def many(*seeds: int) -> list[object]:
    """These seeds in every run, and twice as many others in a large one."""
    others = range(100, 100 + 2 * len(seeds))
    return [*seeds, *(pytest.param(number, marks=pytest.mark.large) for number in others)]


@pytest.mark.parametrize("seed", many(1, 2))
def test_no_flow_of_a_session_without_an_undo_loses_or_hides_a_word(agent_home: AgentHome, seed: int) -> None:
    shell = Shell(agent_home)
    generator = random.Random(seed)
    for _ in range(STEPS):
        shell.say()
        shell.step(generator.choice(FLOWS), generator)
    shell.say()
    shell.restart(politely=True)
    assert shell.found(is_hidden=True) == []
    stored = agent_home.stored.rows("SELECT content, session_id FROM conversations WHERE agent_identity = 'marketing'")
    assert not set(shell.said.items()) - set(stored)
    other = agent_home.provider("marketing", "asking")
    for words in random.Random(seed).sample(sorted(shell.said), 20):
        answer = json.loads(other.handle_tool_call("recall_conversation", {"query": words, "limit": 5}))
        assert words in [hit["content"] for hit in answer["results"]]


@pytest.mark.parametrize("tells_of_undo", [True, False], ids=["told", "not told"])
@pytest.mark.parametrize("seed", many(11, 12, 13))
def test_undo_resume_branch_and_compression_in_any_order_lose_no_turn_and_hide_what_was_undone(
    agent_home: AgentHome, seed: int, tells_of_undo: bool
) -> None:
    shell = Shell(agent_home, tells_of_undo=tells_of_undo)
    generator = random.Random(seed)
    for _ in range(STEPS):
        shell.say()
        shell.step(generator.choice((*FLOWS, *UNDOS)), generator)
    found = shell.found()
    assert len(found) == len(set(found)), "a turn is stored twice"
    assert set(found) - shell.interrupted == shell.said.keys() - shell.undone
    assert not shell.undone & set(found)
    assert set(shell.found(is_hidden=True)) <= shell.undone
