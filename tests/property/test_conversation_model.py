"""Turns, undo, resume, branch, compression and exit in any order, against a model of the host's own transcripts.

The model knows for each turn ever said whether it must be stored, must be gone, or is in doubt: undone in a way that
the host's hooks do not let anybody tell. A turn in doubt may stay; any other turn that is missing is a loss.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.server.server import ConnectionInfo
from testing.agent import AgentHome
from testing.postgres import Database, new_database

THEME = "marketing"
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] What was said before."
REPEATED = ("Please go on with the next cellar.", "Count them again, one by one.")
"""Sometimes the same words are said again."""
NOISE = "thanks"
"""Not worth storing, but a turn that an undo can take back."""

MUST, GONE, DOUBT, NEVER = "must be stored", "must be gone", "in doubt", "never reported"


@dataclass
class Row:
    """A turn that was said."""

    session: str
    role: str
    content: str
    state: str = NEVER
    said_at: float = field(default_factory=time.time)


@dataclass
class Item:
    """A message of the host's transcript, and its turn; None for summaries, noise and what a branch has copied."""

    role: str
    content: str
    row: Row | None = None
    is_note: bool = False
    is_reloaded: bool = False
    """Whether the host has read it from its store, where messages carry their time."""
    at: float = field(default_factory=time.time)
    is_cut: bool = False
    """Whether it was undone, and the provider can know it."""

    def message(self) -> dict[str, Any]:
        made: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.is_reloaded:
            made["timestamp"] = self.at
        return made


@dataclass
class Agent:
    """What the host holds for one agent."""

    provider: PgvectorMemoryProvider
    session: str
    started: float
    history: list[Item] = field(default_factory=list)
    kept: list[Item] = field(default_factory=list)
    """The transcript of the last turn, which is what the host shows at exit: no undo has reached it."""
    is_seen: bool = False
    """Whether the provider has seen this conversation's transcript as it is, but for undos."""
    had_notes: bool = False
    pending: list[Item] = field(default_factory=list)
    """Undone, but only the next transcript tells."""


class Host(RuleBasedStateMachine):
    """One process at a time, one agent in it, and the sessions that it has stored."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="conversation-"))
        self.home = AgentHome.create(self.folder / "home", self.database)
        self.numbers = itertools.count(1)
        self.rows: list[Row] = []
        self.sessions: dict[str, list[Item]] = {}
        self.agent: Agent | None = None

    @initialize()
    def empty_database(self) -> None:
        with psycopg.connect(self.database.owner_dsn, autocommit=True) as connection:
            connection.execute("TRUNCATE conversations, journal_writers, dead_letters CASCADE")
        self.start_new()

    # What the host does.

    def start_new(self) -> None:
        session = f"s{next(self.numbers)}"
        self.agent = self.start(session)
        self.sessions[session] = []

    def start(self, session: str) -> Agent:
        started = time.time()
        return Agent(self.home.provider(THEME, session=session), session, started)

    @property
    def now(self) -> Agent:
        assert self.agent is not None
        return self.agent

    def save(self) -> None:
        self.sessions[self.now.session] = list(self.now.history)

    def item(self, role: str, content: str, *, is_noise: bool = False) -> Item:
        row = None
        if not is_noise:
            row = Row(self.now.session, role, content)
            self.rows.append(row)
        return Item(role, content, row)

    def question(self, kind: str) -> Item:
        number = next(self.numbers)
        if kind == "noise":
            return self.item("user", NOISE, is_noise=True)
        if kind == "repeated":
            return self.item("user", REPEATED[number % len(REPEATED)])
        return self.item("user", f"Question {number}: how many barrels are there?")

    def answer(self, words: str = "Answer") -> Item:
        number = next(self.numbers)
        return self.item("assistant", f"{words} {number}: there are {number * 11} barrels.")

    def finish(self, asked: Item, answered: Item) -> None:
        """The turn is over and reported, with the transcript."""
        agent = self.now
        agent.history.append(answered)
        agent.kept = list(agent.history)
        agent.provider.sync_turn(
            asked.content, answered.content, session_id=agent.session, messages=[each.message() for each in agent.kept]
        )
        for item in (asked, answered):
            row = item.row
            if row is not None and row.state == NEVER:
                row.session = agent.session
                # Words that another process has reported minutes ago, and that a summary hides from this one, cannot be
                # told from a client's retry: `turn_retry_window`.
                is_retry = agent.had_notes and any(
                    (each.session, each.content) == (row.session, row.content) and each.said_at < agent.started
                    for each in self.rows
                )
                row.state = DOUBT if is_retry else MUST
        self.seen()

    def seen(self) -> None:
        agent = self.now
        for item in agent.pending:
            item.is_cut = True
            if item.row is not None and item.row.state == DOUBT:
                item.row.state = GONE
        agent.pending.clear()
        agent.is_seen = True

    def show(self, transcript: list[Item]) -> None:
        """A transcript at some boundary: whatever was interrupted is stored now."""
        agent = self.now
        is_stale = [id(each) for each in transcript] != [id(each) for each in agent.history]
        agent.provider.on_session_end([each.message() for each in transcript])
        for item in transcript:
            row = item.row
            if row is None or row.state != NEVER or (item.is_reloaded and item.at < agent.started):
                continue
            is_there = any(each is item for each in agent.history)
            repeats = sum(1 for each in self.rows if each.content == row.content) > 1
            if item.is_cut and not repeats and not agent.had_notes:
                continue
            row.state = MUST if is_there and not (repeats or agent.had_notes or item.is_reloaded) else DOUBT
            row.session = agent.session if is_there else row.session
        if is_stale:
            # Words of a session that was left may be taken for the same words where they stand in the resumed one.
            shown = {(each.role, each.content) for each in transcript}
            for item in agent.history:
                if item.row is not None and item.row.state == NEVER and (item.role, item.content) in shown:
                    item.row.state = DOUBT
        else:
            self.seen()

    # What a user does.

    @rule(kind=st.sampled_from(("unique", "unique", "repeated", "noise")), has_tools=st.booleans())
    def turn(self, kind: str, has_tools: bool) -> None:
        asked = self.question(kind)
        self.now.provider.on_turn_start(1, asked.content)
        self.now.history.append(asked)
        if has_tools:
            self.now.history += [Item("tool", "44")]
        self.finish(asked, self.answer())
        self.save()

    @rule(kind=st.sampled_from(("unique", "repeated")), has_answer=st.booleans())
    def interrupted_turn(self, kind: str, has_answer: bool) -> None:
        asked = self.question(kind)
        self.now.provider.on_turn_start(1, asked.content)
        self.now.history.append(asked)
        if has_answer:
            self.now.history.append(self.answer("Let me see"))
        self.now.kept = list(self.now.history)
        self.save()

    @rule(count=st.sampled_from((1, 1, 1, 2, 3)))
    @precondition(lambda self: any(each.role == "user" for each in self.now.history))
    def undo(self, count: int) -> None:
        agent = self.now
        places = [place for place, each in enumerate(agent.history) if each.role == "user"]
        cuts = places[-count:]
        last = cuts[-1]
        for place, item in list(enumerate(agent.history))[cuts[0] :]:
            row = item.row
            is_elsewhere = item.is_reloaded and row is not None and row.session != agent.session
            if place >= last and not agent.had_notes and (agent.is_seen or not item.is_reloaded):
                item.is_cut = True
            elif place < last and not agent.had_notes and agent.is_seen and not is_elsewhere:
                agent.pending.append(item)
            if row is None or row.state != MUST:
                continue
            # Words that were said more than once, and of which a summary has hidden some, cannot be told apart.
            is_ambiguous = agent.had_notes and sum(each.content == row.content for each in self.rows) > 1
            if not agent.is_seen or is_ambiguous or is_elsewhere:
                row.state = DOUBT
            elif place >= last:
                row.state = GONE
            else:
                row.state = DOUBT
        agent.history = agent.history[: cuts[0]]
        agent.provider.on_session_switch(agent.session, parent_session_id="", reset=False, rewound=True)
        self.save()

    @rule(kind=st.sampled_from(("unique", "repeated", "noise")))
    def undo_before_the_report(self, kind: str) -> None:
        """The user undoes a turn whose report still waits in the host's queue."""
        agent = self.now
        asked, answered = self.question(kind), self.answer()
        agent.provider.on_turn_start(1, asked.content)
        agent.kept = [*agent.history, asked, answered]
        agent.provider.on_session_switch(agent.session, parent_session_id="", reset=False, rewound=True)
        messages = [each.message() for each in agent.kept]
        agent.provider.sync_turn(asked.content, answered.content, session_id=agent.session, messages=messages)
        for item in (asked, answered):
            repeats = sum(each.content == item.content for each in self.rows) > 1
            item.is_cut = not agent.had_notes
            if item.row is not None:
                item.row.state = DOUBT if agent.had_notes or repeats else GONE

    @rule(
        is_in_place=st.booleans(),
        head=st.integers(0, 2),
        tail=st.integers(0, 2),
        role=st.sampled_from(("user", "assistant")),
        is_under_way=st.booleans(),
    )
    @precondition(lambda self: len(self.now.history) >= 4)
    def compress(self, is_in_place: bool, head: int, tail: int, role: str, is_under_way: bool) -> None:
        agent = self.now
        asked = None
        if is_under_way:
            asked = self.question("unique")
            agent.provider.on_turn_start(1, asked.content)
            agent.history.append(asked)
        agent.provider.on_pre_compress([each.message() for each in agent.history])
        self.show(list(agent.history))
        parent = agent.session
        if not is_in_place:
            self.save()
            agent.session = f"s{next(self.numbers)}"
        agent.provider.on_session_switch(agent.session, parent_session_id=parent, reset=False, reason="compression")
        places = [place for place, each in enumerate(agent.history) if each.role == "user"]
        start = places[-tail - is_under_way] if 0 < tail + is_under_way <= len(places) else len(agent.history)
        first = agent.history[: min(head, start)]
        agent.history = [*first, Item(role, SUMMARY, is_note=True), *agent.history[start:]]
        agent.had_notes = True
        agent.is_seen = False
        if asked is not None:
            self.finish(asked, self.answer())
        self.save()

    @rule()
    def new_session(self) -> None:
        agent = self.now
        self.show(list(agent.history))
        parent = agent.session
        agent.session = f"s{next(self.numbers)}"
        agent.provider.on_session_switch(agent.session, parent_session_id=parent, reset=True, reason="new_session")
        agent.history, agent.pending = [], []
        agent.is_seen, agent.had_notes = True, False
        self.save()

    @rule()
    @precondition(lambda self: bool(self.now.history))
    def branch(self) -> None:
        agent = self.now
        parent = agent.session
        agent.session = f"s{next(self.numbers)}"
        agent.provider.on_session_switch(agent.session, parent_session_id=parent, reset=False, reason="branch")
        copies = {id(each): self.copy(each) for each in (*agent.history, *agent.kept)}
        agent.history = [copies[id(each)] for each in agent.history]
        agent.kept = [copies[id(each)] for each in agent.kept]
        agent.pending = []
        self.save()

    def copy(self, item: Item) -> Item:
        """A message of a branch; what was interrupted is nobody's yet."""
        row = None
        if item.row is not None and item.row.state == NEVER:
            row = Row(self.now.session, item.role, item.content)
            self.rows.append(row)
        return replace(item, row=row)

    def reload(self, session: str) -> list[Item]:
        return [replace(each, is_reloaded=True) for each in self.sessions[session]]

    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        agent = self.now
        session = data.draw(st.sampled_from(sorted(self.sessions)))
        if session == agent.session:
            return
        agent.provider.on_session_switch(session, parent_session_id=agent.session, reset=False, reason="resume")
        agent.session, agent.history, agent.pending = session, self.reload(session), []
        for item in agent.kept:
            # What the provider knows of a session's undos, it knows until it resumes another one.
            item.is_cut = False
        agent.is_seen = False
        agent.had_notes = any(each.is_note for each in agent.history)

    @rule(how=st.sampled_from(("as it is", "before the undo", "killed")), data=st.data())
    def another_process(self, how: str, data: st.DataObject) -> None:
        agent = self.now
        if how != "killed":
            self.show(list(agent.history) if how == "as it is" else list(agent.kept))
            agent.provider.shutdown()
        self.home.settle()
        self.home.close()
        session = data.draw(st.sampled_from(sorted(self.sessions)) | st.none())
        if session is None:
            self.start_new()
            return
        history = self.reload(session)
        self.agent = self.start(session)
        self.now.history = history
        self.now.had_notes = any(each.is_note for each in history)

    @invariant()
    def stored_is_what_the_model_says(self) -> None:
        if self.agent is None:
            return
        self.home.settle()
        columns = "SELECT session_id, role, content FROM conversations WHERE agent_identity = %s"
        found = Counter(self.home.stored.rows(columns, THEME))
        wanted = Counter((row.session, row.role, row.content) for row in self.rows if row.state == MUST)
        allowed = wanted + Counter((row.session, row.role, row.content) for row in self.rows if row.state == DOUBT)
        assert not wanted - found, "turns were lost"
        assert not found - allowed, "turns that were undone, never said or said elsewhere are stored"

    def teardown(self) -> None:
        self.home.close()
        # An engine that has just been closed may still write a last note of itself.
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def shared_database(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    with new_database(postgres_server, template=migrated_template.name) as made:
        yield made


def test_undo_resume_branch_and_compression_in_any_order_lose_no_turn(shared_database: Database) -> None:
    machine = type("Machine", (Host,), {"database": shared_database})
    run_state_machine_as_test(machine, settings=settings(max_examples=8, stateful_step_count=12))


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_undo_resume_branch_and_compression_in_any_order_lose_no_turn_for_long(shared_database: Database) -> None:
    machine = type("Machine", (Host,), {"database": shared_database})
    run_state_machine_as_test(
        machine, settings=settings(settings.get_profile("search"), max_examples=150, stateful_step_count=30)
    )
