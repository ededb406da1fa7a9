"""One hermes at a time on a home, as its memory provider meets it: hooks, transcripts, and the host's own store beside.

The store is kept as the host keeps it: what an undo takes back is no longer active there, what a compression replaced
is marked as summarised, a branch copies messages.
"""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass, field
from typing import Any

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.host_state import host_state

THEME = "marketing"
SUMMARY = {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Barrels were counted in some cellars."}
FLOWS = ("say", "in place", "compress", "new", "branch", "resume", "rename", "restart", "kill")
UNDOS = ("undo", "undo", "undo two", "interrupt")


@dataclass
class Shell:
    """A user at work; whatever is said is said but once, unless a test repeats it."""

    home: AgentHome
    tells_of_undo: bool = True
    """The messaging gateway tells nobody."""
    session: str = "s0"
    transcript: list[dict[str, Any]] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    """The session of each sentence that was reported."""
    undone: set[str] = field(default_factory=set)
    interrupted: set[str] = field(default_factory=set)
    """What nobody has reported: only a later transcript may show it."""
    kept: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    """The sessions that go on from others because those were compressed."""
    times: dict[str, float] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        with self.state() as state:
            state.session(self.session)
        self.agent: PgvectorMemoryProvider = self.home.provider(THEME, self.session, platform="cli")

    def state(self) -> Any:
        """The host's store, to be changed."""
        return host_state(self.home.path, is_now=True)

    def say(self, asked: str = "", told: str = "") -> tuple[str, str]:
        """A turn: a question and its answer."""
        number = next(self.numbers)
        asked = asked or f"Question {number} is about the barrels of cider in cellar number {number}."
        told = told or f"Answer {number}: there are {number * 11} barrels of cider in cellar number {number}."
        self.ask(asked)
        self.answer(asked, told)
        return asked, told

    def ask(self, asked: str) -> None:
        """A turn starts."""
        self.agent.on_turn_start(1, asked)
        self._append("user", asked)

    def answer(self, asked: str, told: str) -> None:
        """It is over, and reported."""
        self._append("assistant", told)
        self.report(asked, told)

    def report(self, asked: str, told: str) -> None:
        """The host's worker gets to it."""
        self.agent.sync_turn(asked, told, session_id=self.session, messages=list(self.transcript))
        self.said |= {asked: self.session, told: self.session}

    def interrupt(self) -> str:
        """A turn that the user stops."""
        asked = f"Question {next(self.numbers)} is about a cellar that nobody wants to hear of any more."
        self.ask(asked)
        self.interrupted.add(asked)
        return asked

    def undo(self, exchanges: int = 1) -> None:
        """The user takes back the last exchanges."""
        places = [place for place, each in enumerate(self.transcript) if each["role"] == "user"][-exchanges:]
        if not places:
            return
        with self.state() as state:
            state.rewind(self.session, len(places))
        mine = self.lineage()
        for each in self.transcript[places[0] :]:
            text = each["content"]
            if text in self.interrupted or self.said.get(text) in mine:
                self.undone.add(text)
        self.transcript = self.transcript[: places[0]]
        if self.tells_of_undo:
            self.agent.on_session_switch(self.session, parent_session_id="", reset=False, rewound=True)

    def lineage(self) -> list[str]:
        """This session and those it goes on from."""
        found = [self.session]
        while found[-1] in self.parents:
            found.append(self.parents[found[-1]])
        return found

    def compress(self, *, in_place: bool) -> None:
        """What was said is summarised, but for the end."""
        self.agent.on_pre_compress(list(self.transcript))
        self.agent.on_session_end(list(self.transcript))
        former, tail = self.session, self.transcript[-2:]
        kept = [(each["role"], each["content"]) for each in tail]
        with self.state() as state:
            if in_place:
                state.compact(former, *kept)
            else:
                state.run("UPDATE sessions SET ended_at = 1, end_reason = 'compression' WHERE id = ?", former)
        if not in_place:
            self.kept[former] = list(self.transcript)
            self.session = self._new_id(former)
            self.parents[self.session] = former
            with self.state() as state:
                state.say(self.session, SUMMARY["role"], SUMMARY["content"])
                for role, content in kept:
                    state.say(self.session, role, content)
        self.transcript = [SUMMARY, *tail]
        self.agent.on_session_switch(self.session, parent_session_id=former, reset=False, reason="compression")

    def start_anew(self) -> None:
        """Another session."""
        self.agent.on_session_end(list(self.transcript))
        former = self._leave()
        self.session = self._new_id()
        self.transcript = []
        self.agent.on_session_switch(self.session, parent_session_id=former, reset=True, reason="new_session")

    def branch(self) -> None:
        """A copy of this session."""
        former = self._leave()
        self.session = self._new_id(former)
        with self.state() as state:
            for each in self.transcript:
                state.say(self.session, each["role"], each["content"])
        self.agent.on_session_switch(self.session, parent_session_id=former, reset=False, reason="branch")

    def resume(self, session: str) -> None:
        """Back to a session that was left."""
        former = self._leave()
        self.session = session
        self.transcript = self._reloaded(self.kept[session])
        self.agent.on_session_switch(session, parent_session_id=former, reset=False, reason="resume")

    def rename(self) -> None:
        """Another title."""
        with self.state() as state:
            state.run("UPDATE sessions SET title = ? WHERE id = ?", f"Barrels {next(self.numbers)}", self.session)

    def restart(self, *, politely: bool) -> None:
        """Another process goes on."""
        if politely:
            self.agent.on_session_end(list(self.transcript))
            self.agent.shutdown()
        self.home.settle()
        self.home.close()
        self.transcript = self._reloaded(self.transcript)
        self.agent = self.home.provider(THEME, self.session, platform="cli", session_title="Barrels")

    def step(self, what: str, generator: random.Random) -> None:
        """One of FLOWS or UNDOS."""
        match what:
            case "in place":
                self.compress(in_place=True)
            case "compress":
                self.compress(in_place=False)
            case "new":
                self.start_anew()
            case "branch":
                self.branch()
            case "resume" if self.kept:
                self.resume(generator.choice(sorted(self.kept)))
            case "rename":
                self.rename()
            case "restart" | "kill":
                self.restart(politely=what == "restart")
            case "undo" | "undo two":
                self.undo(2 if what == "undo two" else 1)
            case "interrupt":
                self.interrupt()
            case _:
                self.say()

    def age(self, seconds: int) -> None:
        """All that was said was said so much earlier."""
        self.home.settle()
        self.home.stored.rows("UPDATE conversations SET ts = ts - make_interval(secs => %s) RETURNING id", seconds)
        with self.state() as state:
            state.run("UPDATE messages SET timestamp = timestamp - ?", seconds)

    def look(self) -> None:
        """What was recorded has arrived, and the store has been looked at once more."""
        self.home.settle()
        self.home.engine.watch_undo.finish(Deadline.after(30))

    def found(self, *, is_hidden: bool = False) -> list[str]:
        """The sentences that are stored and recalled, or those that are hidden."""
        self.look()
        condition = "IS NOT NULL" if is_hidden else "IS NULL"
        rows = self.home.stored.rows(
            f"SELECT content FROM conversations WHERE agent_identity = %s AND hidden_by {condition} ORDER BY id", THEME
        )
        return [text for (text,) in rows]

    def _reloaded(self, transcript: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Messages as the host reads them from its store: with their time."""
        return [{**each, "timestamp": self.times.get(each["content"], time.time())} for each in transcript]

    def _append(self, role: str, content: str) -> None:
        self.transcript.append({"role": role, "content": content})
        self.times[content] = time.time()
        with self.state() as state:
            state.say(self.session, role, content)

    def _new_id(self, parent: str | None = None) -> str:
        name = f"s{next(self.numbers)}"
        with self.state() as state:
            state.session(name, parent_session_id=parent)
        return name

    def _leave(self) -> str:
        self.kept[self.session] = list(self.transcript)
        return self.session
