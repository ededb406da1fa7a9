"""What a user takes back is hidden, as the host's own store tells, and shown again when it is active there again."""

from __future__ import annotations

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.store import hidden
from testing.agent import AgentHome
from testing.host_state import host_state
from testing.shell import SUMMARY, Shell

FIRST = ("The very first question is about the barrels in the cellar.", "The very first answer is forty-four barrels.")


@pytest.fixture(params=[True, False], ids=["told", "not told"])
def shell(agent_home: AgentHome, request: pytest.FixtureRequest) -> Shell:
    """A session with one exchange, of a host that tells of an undo or does not."""
    made = Shell(agent_home, tells_of_undo=request.param)
    made.say(*FIRST)
    return made


def test_an_undo_hides_the_last_exchange_and_leaves_an_audit_row(shell: Shell) -> None:
    second = shell.say()
    shell.undo()
    assert shell.found() == [*FIRST]
    assert shell.found(is_hidden=True) == [*second]
    audit = shell.home.stored.rows("SELECT action, actor, counts FROM audit_log WHERE theme = 'marketing'")
    assert audit == [("undo", "user", {"turns": 2})]


def test_undos_one_by_one_and_several_at_once_hide_what_they_name(shell: Shell) -> None:
    for _ in range(4):
        shell.say()
    shell.undo()
    shell.undo(2)
    fifth = shell.say()
    kept = [*FIRST, "Question 2 is about the barrels of cider in cellar number 2."]
    assert [text for text in shell.found() if "Answer 2" not in text] == [*kept, *fifth]


def test_a_host_before_0_18_does_not_mark_what_it_summarised(shell: Shell) -> None:
    with host_state(shell.home.path) as state:
        state.run("ALTER TABLE messages DROP COLUMN compacted")
    for _ in range(3):
        shell.say()
    shell.undo(3)
    assert shell.found() == [*FIRST]


def test_what_was_undone_and_is_said_again_is_stored_again(shell: Shell) -> None:
    for _ in range(2):
        shell.undo()
        shell.age(60)
        shell.say(*FIRST)
    assert shell.found() == [*FIRST]
    assert shell.found(is_hidden=True) == [*FIRST, *FIRST]


def test_words_said_before_stay_when_they_are_said_again_and_undone(shell: Shell) -> None:
    shell.age(3600)
    shell.say(*FIRST)
    assert shell.found() == [*FIRST, *FIRST]
    shell.undo()
    assert shell.found() == [*FIRST]


def test_an_undone_turn_of_which_the_report_comes_later_is_hidden_when_it_arrives(shell: Shell) -> None:
    """The host reports turns from a queue; the user may be faster."""
    asked, told = "A second question about the barrels in the other cellar?", "There are none in the other one."
    shell.ask(asked)
    shell._append("assistant", told)
    before = list(shell.transcript)
    shell.undo()
    shell.transcript, left = before, shell.transcript
    shell.report(asked, told)
    shell.transcript = left
    shell.agent.on_session_end(before)
    assert shell.found() == [*FIRST]


def test_an_interrupted_question_that_was_undone_stays_away(shell: Shell) -> None:
    asked = shell.interrupt()
    stale = list(shell.transcript)
    shell.undo()
    shell.agent.on_session_end(stale)
    shell.start_anew()
    shell.agent.on_session_end(stale)
    assert shell.found() == [*FIRST]
    shell.ask(asked)
    shell.agent.on_session_end(list(shell.transcript))
    assert shell.found() == [*FIRST, asked]


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "another session"])
def test_an_undo_reaches_what_a_compression_has_carried_over_and_nothing_before_it(
    shell: Shell, in_place: bool
) -> None:
    second = shell.say()
    shell.compress(in_place=in_place)
    third = shell.say()
    shell.undo()
    assert shell.found() == [*FIRST, *second]
    shell.undo()
    assert shell.found() == [*FIRST]
    assert shell.found(is_hidden=True) == [*second, *third]


def test_an_undo_in_a_branch_leaves_the_session_it_was_copied_from(shell: Shell) -> None:
    shell.branch()
    second = shell.say()
    shell.undo(2)
    assert shell.found() == [*FIRST]
    assert shell.found(is_hidden=True) == [*second]


def test_an_undo_leaves_other_sessions_and_themes_alone(shell: Shell) -> None:
    other = shell.home.provider("trading", shell.session)
    other.sync_turn(*FIRST, session_id=shell.session)
    shell.agent.sync_turn(*FIRST, session_id="s9")
    shell.undo()
    assert shell.found() == [*FIRST]
    hidden = shell.home.stored.rows(
        "SELECT agent_identity, session_id FROM conversations WHERE hidden_by IS NOT NULL ORDER BY id"
    )
    assert set(hidden) == {("marketing", "s0"), ("trading", "s0")}, "the host has one session of this name"


def test_what_is_active_again_is_shown_again_and_found(shell: Shell) -> None:
    shell.undo()
    assert shell.found() == []
    with shell.state() as state:
        state.run("UPDATE messages SET active = 1 WHERE active = 0 AND compacted = 0")
    assert shell.found() == [*FIRST]
    answer = shell.home.provider("marketing", "other").handle_tool_call(
        "recall_conversation", {"query": "the very first question about barrels"}
    )
    assert FIRST[0] in answer


def test_what_an_operator_has_shown_again_stays_shown_and_a_later_undo_counts(shell: Shell) -> None:
    shell.undo()
    assert shell.found() == []
    with shell.home.engine.pool.transaction(Deadline.after(10)) as connection:
        for rule in hidden.listed(connection):
            hidden.end(connection, rule.id, wants_vectors=False)
    shell.restart(politely=True)
    second = shell.say()
    assert shell.found() == [*FIRST, *second]
    shell.undo()
    assert shell.found() == [*FIRST]


def test_an_undo_of_another_process_counts(agent_home: AgentHome) -> None:
    """Killed before it could look; the next one to store a turn of the session does."""
    shell = Shell(agent_home, tells_of_undo=False)
    shell.say(*FIRST)
    agent_home.settle()
    with shell.state() as state:
        state.rewind(shell.session)
    shell.restart(politely=False)
    second = shell.say()
    assert shell.found() == [*second]


def test_a_summary_hides_nothing(agent_home: AgentHome) -> None:
    shell = Shell(agent_home)
    shell.say(*FIRST)
    with shell.state() as state:
        state.compact(shell.session)
        state.rewind(shell.session)
    shell.transcript = [SUMMARY]
    shell.say()
    assert set(FIRST) <= set(shell.found())


def test_where_the_host_keeps_no_store_the_last_exchange_reported_is_hidden(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    second, third = ("A second question about barrels?", "A second answer."), ("A third question?", "A third answer.")
    for asked, told in (FIRST, second, third):
        agent.on_turn_start(1, asked)
        agent.sync_turn(asked, told, session_id="s1")
    agent.on_session_switch("s1", rewound=True)
    agent.on_turn_start(1, "A question that nobody reports, because the user has stopped it.")
    agent.on_session_switch("s1", rewound=True)
    agent_home.settle()
    rows = agent_home.stored.rows("SELECT content FROM conversations WHERE hidden_by IS NULL ORDER BY id")
    assert [text for (text,) in rows] == [*FIRST, *second]
    agent.on_session_switch("s1", rewound=True)
    agent_home.settle()
    rows = agent_home.stored.rows("SELECT content FROM conversations WHERE hidden_by IS NULL ORDER BY id")
    assert [text for (text,) in rows] == [*FIRST]


def test_a_store_without_marks_of_undo_hides_nothing(agent_home: AgentHome) -> None:
    with host_state(agent_home.path, is_old=True) as state:
        state.session("s1", "cli")
        state.exchange("s1", *FIRST)
    agent = agent_home.provider()
    agent.sync_turn(*FIRST, session_id="s1")
    agent_home.settle()
    agent_home.engine.watch_undo.finish(Deadline.after(10))
    assert agent_home.stored.rows("SELECT 1 FROM conversations WHERE hidden_by IS NOT NULL") == []
