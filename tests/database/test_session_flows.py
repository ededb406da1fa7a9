"""Whatever the host does to a session, short of an undo, every word that was said stays and is recalled.

The host's own store is kept beside it as the host keeps it: what a compression replaced is no longer active there, a
branch copies messages, a title changes.
"""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.host_state import host_state

SUMMARY = {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Barrels were counted in some cellars."}
STEPS = 40


@dataclass
class Shell:
    """One hermes at a time on a home, with its transcript and its store."""

    home: AgentHome
    session: str = "s0"
    transcript: list[dict[str, Any]] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    """The session of each sentence."""
    kept: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        with host_state(self.home.path) as state:
            state.session(self.session)
        self.agent: PgvectorMemoryProvider = self.home.provider("marketing", self.session, platform="cli")

    def say(self) -> None:
        number = next(self.numbers)
        asked = f"Question {number} is about the barrels of cider in cellar number {number}."
        told = f"Answer {number}: there are {number * 11} barrels of cider in cellar number {number}."
        self.agent.on_turn_start(1, asked)
        self.transcript += [{"role": "user", "content": asked}, {"role": "assistant", "content": told}]
        with host_state(self.home.path) as state:
            state.exchange(self.session, asked, told)
        self.agent.sync_turn(asked, told, session_id=self.session, messages=list(self.transcript))
        self.said |= {asked: self.session, told: self.session}

    def new_id(self, parent: str | None = None) -> str:
        name = f"s{next(self.numbers)}"
        with host_state(self.home.path) as state:
            state.session(name, parent_session_id=parent)
        return name

    def leave(self) -> None:
        self.kept[self.session] = list(self.transcript)

    def compress(self, *, in_place: bool) -> None:
        self.agent.on_pre_compress(list(self.transcript))
        self.agent.on_session_end(list(self.transcript))
        former, tail = self.session, self.transcript[-2:]
        with host_state(self.home.path) as state:
            state.run("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", former)
            if not in_place:
                state.run("UPDATE sessions SET ended_at = 1, end_reason = 'compression' WHERE id = ?", former)
        if not in_place:
            self.session = self.new_id(former)
        self.transcript = [SUMMARY, *tail]
        with host_state(self.home.path) as state:
            for each in self.transcript:
                state.say(self.session, each["role"], each["content"])
        self.agent.on_session_switch(self.session, parent_session_id=former, reset=False, reason="compression")

    def start_anew(self) -> None:
        self.agent.on_session_end(list(self.transcript))
        self.leave()
        former, self.session = self.session, self.new_id()
        self.transcript = []
        self.agent.on_session_switch(self.session, parent_session_id=former, reset=True, reason="new_session")

    def branch(self) -> None:
        self.leave()
        former, self.session = self.session, self.new_id(self.session)
        with host_state(self.home.path) as state:
            for each in self.transcript:
                state.say(self.session, each["role"], each["content"])
        self.agent.on_session_switch(self.session, parent_session_id=former, reset=False, reason="branch")

    def resume(self, session: str) -> None:
        self.leave()
        former, self.session = self.session, session
        self.transcript = list(self.kept[session])
        self.agent.on_session_switch(session, parent_session_id=former, reset=False, reason="resume")

    def rename(self) -> None:
        with host_state(self.home.path) as state:
            state.run("UPDATE sessions SET title = ? WHERE id = ?", f"Barrels {next(self.numbers)}", self.session)

    def restart(self, *, politely: bool) -> None:
        if politely:
            self.agent.on_session_end(list(self.transcript))
            self.agent.shutdown()
        self.home.settle()
        self.home.close()
        self.agent = self.home.provider("marketing", self.session, platform="cli", session_title="Barrels")


def run(shell: Shell, generator: random.Random, steps: int) -> None:
    for _ in range(steps):
        shell.say()
        match generator.choice(["say", "in place", "compress", "new", "branch", "resume", "rename", "restart", "kill"]):
            case "in place":
                shell.compress(in_place=True)
            case "compress":
                shell.compress(in_place=False)
            case "new":
                shell.start_anew()
            case "branch":
                shell.branch()
            case "resume" if shell.kept:
                shell.resume(generator.choice(sorted(shell.kept)))
            case "rename":
                shell.rename()
            case "restart":
                shell.restart(politely=True)
            case "kill":
                shell.restart(politely=False)
            case _:
                shell.say()


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(number, marks=pytest.mark.large) for number in range(3, 13))])
def test_no_flow_of_a_session_without_an_undo_loses_or_hides_a_word(agent_home: AgentHome, seed: int) -> None:
    shell = Shell(agent_home)
    run(shell, random.Random(seed), STEPS)
    shell.say()
    shell.restart(politely=True)
    agent_home.settle()
    stored = agent_home.stored.rows("SELECT content, session_id FROM conversations WHERE agent_identity = 'marketing'")
    assert not set(shell.said.items()) - set(stored)
    other = agent_home.provider("marketing", "asking")
    for words in random.Random(seed).sample(sorted(shell.said), 20):
        answer = json.loads(other.handle_tool_call("recall_conversation", {"query": words, "limit": 5}))
        assert words in [hit["content"] for hit in answer["results"]]
