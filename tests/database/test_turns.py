"""A turn is stored exactly once, whoever reports it, in whatever order and from whatever process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome

Message = dict[str, Any]


def exchange(number: int) -> tuple[str, str]:
    return f"Question {number}: how many barrels are there?", f"Answer {number}: there are {number * 11} barrels."


def messages(*numbers: int) -> list[Message]:
    roles = ("user", "assistant")
    return [{"role": role, "content": text} for n in numbers for role, text in zip(roles, exchange(n), strict=True)]


def report(agent: PgvectorMemoryProvider, session: str, *numbers: int) -> None:
    """The last of these exchanges has just been said, the others before it."""
    agent.sync_turn(*exchange(numbers[-1]), session_id=session, messages=messages(*numbers))


def stored(home: AgentHome, session: str | None = None) -> list[str]:
    home.settle()
    return sorted(text for _, where, text in home.stored.turns("marketing") if session in (None, where))


def words(*numbers: int) -> list[str]:
    return sorted(text for number in numbers for text in exchange(number))


REPORTS: dict[str, Callable[[PgvectorMemoryProvider], object]] = {
    "sync_turn": lambda agent: report(agent, "s1", 1),
    "on_session_end": lambda agent: agent.on_session_end(messages(1)),
    "on_pre_compress": lambda agent: agent.on_pre_compress(messages(1)),
}


@pytest.mark.parametrize("order", list(itertools.permutations(REPORTS)), ids="-".join)
def test_a_turn_reported_by_every_hook_is_stored_once(agent_home: AgentHome, order: tuple[str, ...]) -> None:
    agent = agent_home.provider()
    for name in order:
        REPORTS[name](agent)
    assert stored(agent_home) == words(1)


@pytest.mark.parametrize("order", list(itertools.permutations(REPORTS)), ids="-".join)
def test_a_turn_reported_by_hooks_of_several_providers_is_stored_once(
    agent_home: AgentHome, order: tuple[str, ...]
) -> None:
    for name in order:
        REPORTS[name](agent_home.provider())
    assert stored(agent_home) == words(1)


def test_a_turn_reported_by_every_hook_at_the_same_moment_is_stored_once(agent_home: AgentHome) -> None:
    for number in range(1, 31):
        agent = agent_home.provider(session=f"s{number}")
        together = threading.Barrier(3)

        def end(agent: PgvectorMemoryProvider = agent, n: int = number, gate: threading.Barrier = together) -> None:
            gate.wait()
            agent.on_session_end(messages(n))

        def say(agent: PgvectorMemoryProvider = agent, n: int = number, gate: threading.Barrier = together) -> None:
            gate.wait()
            report(agent, f"s{n}", n)

        threads = [threading.Thread(target=end), threading.Thread(target=say)]
        for thread in threads:
            thread.start()
        together.wait()
        for thread in threads:
            thread.join()
    assert stored(agent_home) == words(*range(1, 31))


def test_processes_that_report_the_same_turn_store_it_once(agent_home: AgentHome) -> None:
    script = """
user, answer = arguments
messages = [{"role": "user", "content": user}, {"role": "assistant", "content": answer}]
agent = provider("marketing")
agent.sync_turn(user, answer, session_id="s1", messages=messages)
agent.on_session_end(messages)
agent.shutdown()
"""
    children = [agent_home.start(script, *exchange(1)) for _ in range(4)]
    assert [child.wait(60) for child in children] == [0, 0, 0, 0]
    agent_home.provider()
    assert stored(agent_home) == words(1)
    for child in children:
        assert child.stdout is not None
        child.stdout.close()


def test_a_burst_of_a_thousand_turns_is_two_thousand_rows(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    for number in range(1000):
        agent.sync_turn(*exchange(number), session_id="s1")
    agent_home.settle()
    assert agent_home.stored.count("conversations") == 2000


def test_both_sides_of_a_turn_carry_the_time_they_were_said_and_their_order(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    for number in range(3):
        report(agent, "s1", *range(number + 1))
    agent_home.settle()
    told = [text for _, _, text in agent_home.stored.turns("marketing")]
    assert told == [text for number in range(3) for text in exchange(number)]


def test_the_same_words_later_in_a_session_are_a_new_turn(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    agent.sync_turn(*exchange(1), session_id="s1", messages=messages(1, 1))
    agent.on_session_end(messages(1, 1))
    assert stored(agent_home) == words(1, 1)


def test_a_clients_retry_within_the_window_is_the_same_turn(agent_home: AgentHome) -> None:
    for _ in range(3):
        report(agent_home.provider(), "s1", 1)
    assert stored(agent_home) == words(1)


def test_a_clients_retry_in_another_process_is_the_same_turn(agent_home: AgentHome) -> None:
    script = "provider('marketing').sync_turn(*arguments, session_id='s1')\n"
    for _ in range(2):
        code, _ = agent_home.run(script, *exchange(1))
        assert code == 0
    agent_home.provider()
    assert stored(agent_home) == words(1)


def test_the_same_words_after_the_window_are_a_new_turn(agent_home: AgentHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "turn_retry_window", 0.0)
    for _ in range(2):
        report(agent_home.provider(), "s1", 1)
        agent_home.settle()
    assert stored(agent_home) == words(1, 1)


def test_a_turn_names_the_session_it_continues_and_when_it_was_said(agent_home: AgentHome) -> None:
    agent = agent_home.provider(session="s1")
    agent.sync_turn("How large is the budget?", "Forty thousand euros.", session_id="s1")
    agent.on_session_switch("s2", parent_session_id="s1", reset=False, reason="compression")
    agent.sync_turn("And who approves it?", "Dana approves it.", session_id="s2")
    agent_home.settle()
    said = agent_home.stored.rows(
        "SELECT session_id, parent_session_id, ts BETWEEN now() - interval '1 minute' AND now() + interval '1 minute'"
        " FROM conversations ORDER BY id"
    )
    assert said == [("s1", None, True)] * 2 + [("s2", "s1", True)] * 2


def test_compression_under_a_new_session_id_stores_nothing_twice(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    report(agent, "s1", 1, 2)
    agent.on_pre_compress(messages(1, 2))
    agent.on_session_end(messages(1, 2))
    agent.on_session_switch("s2", parent_session_id="s1", reset=False, reason="compression")
    report(agent, "s2", 2, 3)
    agent.on_session_end(messages(2, 3))
    assert stored(agent_home, "s1") == words(1, 2)
    assert stored(agent_home, "s2") == words(3)


def test_compression_in_place_stores_nothing_twice_and_hears_what_is_said_again(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    report(agent, "s1", 1, 2)
    agent.on_pre_compress(messages(1, 2))
    agent.on_session_end(messages(1, 2))
    agent.on_session_switch("s1", parent_session_id="s1", reset=False, reason="compression")
    report(agent, "s1", 2, 1)
    agent.on_session_end(messages(2, 1))
    assert stored(agent_home) == words(1, 1, 2)


def test_the_user_message_in_flight_during_compression_is_stored_once(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    in_flight = [*messages(1), messages(2)[0]]
    agent.on_pre_compress(in_flight)
    agent.on_session_end(in_flight)
    agent.on_session_switch("s2", parent_session_id="s1", reset=False, reason="compression")
    report(agent, "s2", 2)
    agent.on_session_end(messages(2))
    assert stored(agent_home) == words(1, 2)


def test_a_resumed_session_stores_only_what_is_new(agent_home: AgentHome) -> None:
    first = agent_home.provider()
    report(first, "s1", 1)
    first.on_session_end(messages(1))
    agent_home.settle()
    agent_home.close()
    reloaded = [{**message, "timestamp": 1_700_000_000.0} for message in messages(1)]
    second = agent_home.provider(session="other")
    second.on_session_switch("s1", reason="resume")
    second.sync_turn(*exchange(2), session_id="s1", messages=[*reloaded, *messages(2)])
    second.on_session_end([*reloaded, *messages(2)])
    assert stored(agent_home, "s1") == words(1, 2)
    assert stored(agent_home, "other") == []


def test_exit_after_new_brings_the_old_transcript_and_stores_nothing(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    agent.on_session_end(messages(1))
    agent.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    agent.on_session_end(messages(1))
    assert stored(agent_home, "s1") == words(1)
    assert stored(agent_home, "s2") == []


def test_the_session_named_by_the_call_wins_over_the_one_at_the_start(agent_home: AgentHome) -> None:
    agent = agent_home.provider(session="s1")
    report(agent, "s7", 1)
    assert stored(agent_home, "s7") == words(1)


def test_an_undo_takes_back_the_last_turn(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    report(agent, "s1", 1, 2)
    agent.on_session_switch("s1", rewound=True)
    assert stored(agent_home) == words(1)


def test_two_undos_take_back_two_turns(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    for numbers in ((1,), (1, 2), (1, 2, 3)):
        report(agent, "s1", *numbers)
    agent.on_session_switch("s1", rewound=True)
    agent.on_session_switch("s1", rewound=True)
    report(agent, "s1", 1, 4)
    agent.on_session_end(messages(1, 4))
    assert stored(agent_home) == words(1, 4)


def test_an_undone_turn_said_again_is_stored(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    agent.on_session_switch("s1", rewound=True)
    report(agent, "s1", 1)
    agent.on_session_end(messages(1))
    assert stored(agent_home) == words(1)


def test_an_undo_after_a_resume_takes_back_what_the_next_transcript_lacks(agent_home: AgentHome) -> None:
    first = agent_home.provider()
    report(first, "s1", 1)
    report(first, "s1", 1, 2)
    agent_home.settle()
    agent_home.close()
    second = agent_home.provider()
    second.on_session_switch("s1", rewound=True)
    report(second, "s1", 1, 3)
    assert stored(agent_home) == words(1, 3)


def test_an_undo_of_a_turn_that_was_not_worth_storing_leaves_the_one_before_it(agent_home: AgentHome) -> None:
    agent_home.settings["turn_min_chars"] = 20
    agent = agent_home.provider()
    report(agent, "s1", 1)
    agent.sync_turn("thanks", "done", session_id="s1", messages=[
        *messages(1), {"role": "user", "content": "thanks"}, {"role": "assistant", "content": "done"}])  # fmt: skip
    agent.on_session_switch("s1", rewound=True)
    assert stored(agent_home) == words(1)


def test_an_undo_of_a_turn_that_was_interrupted_leaves_the_one_before_it(agent_home: AgentHome) -> None:
    """The host reports the start of every turn, but no interrupted turn."""
    agent = agent_home.provider()
    agent.on_turn_start(1, exchange(1)[0])
    report(agent, "s1", 1)
    agent.on_turn_start(2, exchange(2)[0])
    agent.on_session_switch("s1", rewound=True)
    assert stored(agent_home) == words(1)


def test_an_undo_leaves_other_sessions_and_themes_alone(agent_home: AgentHome) -> None:
    agent, other = agent_home.provider(), agent_home.provider("trading")
    report(agent, "s1", 1)
    report(agent, "s2", 1)
    report(other, "s1", 1)
    agent.on_session_switch("s1", rewound=True)
    assert stored(agent_home, "s1") == []
    assert stored(agent_home, "s2") == words(1)
    assert len(agent_home.stored.turns("trading")) == 2


def test_the_hosts_wording_of_a_turn_is_not_a_second_turn(agent_home: AgentHome) -> None:
    """The host strips skill text from what it reports, and adds footers to what it keeps."""
    agent = agent_home.provider()
    user, answer = exchange(1)
    kept = [{"role": "user", "content": f"{user} (as kept)"}, {"role": "assistant", "content": f"{answer}\n\n[files]"}]
    agent.sync_turn(user, answer, session_id="s1", messages=kept)
    agent.on_session_end(kept)
    assert stored(agent_home) == words(1)


def test_what_was_recalled_is_never_stored_as_said(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    user, answer = exchange(1)
    injected = f"{user}\n\n<memory-context>\nsomebody else's secret\n</memory-context>"
    agent.on_session_end([
        {"role": "user", "content": user, "api_content": injected},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": injected.replace("Question 1", "Question 2")},
    ])  # fmt: skip
    assert not any("secret" in text for text in stored(agent_home))


def test_a_delegation_is_an_edge_and_a_turn(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    for _ in range(2):
        agent.on_delegation("Count the barrels", "There are 44 barrels", child_session_id="child-1")
    assert stored(agent_home) == ["Delegated: Count the barrels\nResult: There are 44 barrels"]
    edges = agent_home.stored.rows("SELECT agent_identity, session_id, child_session_id FROM delegations")
    assert edges == [("marketing", "s1", "child-1")]


def reloaded(*numbers: int) -> list[Message]:
    """Messages as the host shows them once a session is resumed: with the time they were said."""
    return [{**message, "timestamp": 1_700_000_000.0 + at} for at, message in enumerate(messages(*numbers))]


SUMMARY: Message = {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Barrels were counted."}
TWENTY = tuple(range(1, 21))


def past(home: AgentHome, *numbers: int) -> None:
    """A process has said all this in session s1, and has ended."""
    agent = home.provider()
    for end in range(1, len(numbers) + 1):
        report(agent, "s1", *numbers[:end])
    agent.on_session_end(messages(*numbers))
    home.settle()
    home.close()


def undo(agent: PgvectorMemoryProvider, session: str = "s1") -> None:
    agent.on_session_switch(session, parent_session_id="", reset=False, rewound=True)


@pytest.mark.parametrize("is_stale", [False, True], ids=["cut", "as before the undo"])
def test_resume_undo_and_quit_takes_back_one_exchange(agent_home: AgentHome, is_stale: bool) -> None:
    """The command line hands over its transcript at exit; depending on how it ends, the undo has not reached it."""
    past(agent_home, *TWENTY)
    agent = agent_home.provider()
    agent.sync_turn(*exchange(21), session_id="s1", messages=[*reloaded(*TWENTY), *messages(21)])
    assert stored(agent_home) == words(*TWENTY, 21)
    undo(agent)
    assert stored(agent_home) == words(*TWENTY)
    agent.on_session_end([*reloaded(*TWENTY), *(messages(21) if is_stale else [])])
    assert stored(agent_home) == words(*TWENTY)


@pytest.mark.parametrize("is_stale", [False, True], ids=["cut", "as before the undo"])
def test_a_second_undo_after_a_resume_takes_back_what_was_said_before_it(agent_home: AgentHome, is_stale: bool) -> None:
    past(agent_home, 1, 2, 3)
    agent = agent_home.provider()
    agent.sync_turn(*exchange(4), session_id="s1", messages=[*reloaded(1, 2, 3), *messages(4)])
    undo(agent)
    undo(agent)
    assert stored(agent_home) == words(1, 2)
    agent.on_session_end([*reloaded(1, 2, 3), *messages(4)] if is_stale else reloaded(1, 2))
    assert stored(agent_home) == words(1, 2)


def test_resume_undo_at_once_and_quit_takes_back_the_last_exchange(agent_home: AgentHome) -> None:
    past(agent_home, *TWENTY)
    agent = agent_home.provider(session="other")
    agent.on_session_switch("s1", parent_session_id="other", reset=False, reason="resume")
    undo(agent)
    agent.on_session_end(reloaded(*TWENTY[:-1]))
    assert stored(agent_home) == words(*TWENTY[:-1])


@pytest.mark.parametrize("shown", [[], [SUMMARY], [*reloaded(1), SUMMARY]], ids=["nothing", "a summary", "its head"])
def test_an_undo_at_once_after_a_resume_deletes_nothing_when_it_is_unclear_what_went(
    agent_home: AgentHome, shown: list[Message]
) -> None:
    past(agent_home, 1, 2, 3)
    agent = agent_home.provider()
    undo(agent)
    agent.on_session_end(shown)
    assert stored(agent_home) == words(1, 2, 3)


def test_an_undo_after_a_resume_of_a_turn_not_worth_storing_leaves_the_one_before_it(agent_home: AgentHome) -> None:
    agent_home.settings["turn_min_chars"] = 20
    past(agent_home, 1, 2)
    agent = agent_home.provider()
    undo(agent)
    agent.on_session_end(reloaded(1, 2))
    assert stored(agent_home) == words(1, 2)


def test_an_undo_never_means_what_another_process_has_said_meanwhile(agent_home: AgentHome) -> None:
    past(agent_home, 1, 2)
    agent = agent_home.provider()
    script = """
agent = provider("marketing")
agent.sync_turn(*arguments, session_id="s1")
agent.shutdown()
"""
    code, _ = agent_home.run(script, *exchange(3))
    assert code == 0
    undo(agent)
    agent.on_session_end(reloaded(1))
    assert stored(agent_home) == words(1, 3)


def test_a_resumed_session_that_went_on_elsewhere_is_not_taken_for_the_one_that_was_left(
    agent_home: AgentHome,
) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    report(agent, "s1", 1, 2)
    agent_home.settle()
    agent.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    script = """
agent = provider("marketing")
agent.sync_turn(*arguments, session_id="s1")
agent.shutdown()
"""
    code, _ = agent_home.run(script, *exchange(3))
    assert code == 0
    agent.on_session_switch("s1", parent_session_id="s2", reset=False, reason="resume")
    undo(agent)
    agent.sync_turn(*exchange(4), session_id="s1", messages=[*reloaded(1, 2), *messages(4)])
    assert stored(agent_home) == words(1, 2, 4)


@pytest.mark.parametrize("is_seen", [True, False], ids=["seen", "not seen"])
@pytest.mark.parametrize("left", [(), (1,)], ids=["nothing left", "head left"])
def test_what_a_summary_replaced_was_not_undone(agent_home: AgentHome, is_seen: bool, left: tuple[int, ...]) -> None:
    """Compression in place, then an undo that reaches past what is left verbatim."""
    agent = agent_home.provider()
    for end in TWENTY:
        report(agent, "s1", *TWENTY[:end])
    agent.on_pre_compress(messages(*TWENTY))
    agent.on_session_end(messages(*TWENTY))
    agent.on_session_switch("s1", parent_session_id="s1", reset=False, reason="compression")
    said = [*TWENTY]
    if is_seen:
        agent.sync_turn(*exchange(21), session_id="s1", messages=[*messages(1), SUMMARY, *messages(20, 21)])
        undo(agent)
        undo(agent)
        said = [*TWENTY[:-1]]
    undo(agent)
    agent.sync_turn(*exchange(22), session_id="s1", messages=messages(*left, 22))
    agent.on_session_end(messages(*left, 22))
    assert stored(agent_home) == words(*said, 22)


def test_an_undo_right_after_compression_takes_back_what_the_next_transcript_lacks_behind_the_summary(
    agent_home: AgentHome,
) -> None:
    agent = agent_home.provider()
    for end in TWENTY:
        report(agent, "s1", *TWENTY[:end])
    agent.on_pre_compress(messages(*TWENTY))
    agent.on_session_end(messages(*TWENTY))
    agent.on_session_switch("s1-b", parent_session_id="s1", reset=False, reason="compression")
    undo(agent, "s1-b")
    agent.sync_turn(*exchange(22), session_id="s1-b", messages=[SUMMARY, *messages(18, 19, 22)])
    assert stored(agent_home, "s1") == words(*TWENTY[:-1])
    assert stored(agent_home, "s1-b") == words(22)


def test_an_undo_of_the_turn_in_which_the_session_was_compressed_takes_back_both_sides(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    report(agent, "s1", 1, 2)
    agent.on_turn_start(3, exchange(3)[0])
    in_flight = [*messages(1, 2), messages(3)[0]]
    agent.on_pre_compress(in_flight)
    agent.on_session_end(in_flight)
    agent.on_session_switch("s1-b", parent_session_id="s1", reset=False, reason="compression")
    agent.sync_turn(*exchange(3), session_id="s1-b", messages=[SUMMARY, *messages(3)])
    assert stored(agent_home) == words(1, 2, 3)
    undo(agent, "s1-b")
    assert stored(agent_home) == words(1, 2)


def test_an_undo_of_several_turns_at_once_takes_back_each_of_them_even_the_first(agent_home: AgentHome) -> None:
    """The host says once that it was rewound, however many turns the user has named."""
    agent = agent_home.provider()
    for numbers in ((1,), (1, 2), (1, 2, 3)):
        report(agent, "s1", *numbers)
    undo(agent)
    report(agent, "s1", 4)
    assert stored(agent_home) == words(4)


def test_an_undo_in_a_branch_leaves_the_session_it_was_copied_from(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    report(agent, "s1", 1, 2)
    agent.on_session_switch("s2", parent_session_id="s1", reset=False, reason="branch")
    report(agent, "s2", 1, 2, 3)
    for _ in range(3):
        undo(agent, "s2")
    report(agent, "s2", 4)
    assert stored(agent_home, "s1") == words(1, 2)
    assert stored(agent_home, "s2") == words(4)


def test_a_question_that_was_undone_asked_again_and_interrupted_is_stored(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    agent.on_turn_start(1, exchange(1)[0])
    report(agent, "s1", 1)
    undo(agent)
    agent.on_turn_start(1, exchange(1)[0])
    agent.on_session_end([messages(1)[0], {"role": "assistant", "content": "Let me count the barrels, one by"}])
    assert stored(agent_home) == sorted([exchange(1)[0], "Let me count the barrels, one by"])


def test_a_turn_that_begins_before_the_last_is_reported_is_the_one_an_undo_means(agent_home: AgentHome) -> None:
    """The host reports turns from a thread of its own; the user may be faster."""
    agent = agent_home.provider()
    agent.on_turn_start(1, exchange(1)[0])
    agent.on_turn_start(2, exchange(2)[0])
    report(agent, "s1", 1)
    undo(agent)
    assert stored(agent_home) == words(1)


def test_words_that_an_undone_turn_shares_with_an_earlier_one_are_lost_once_only(agent_home: AgentHome) -> None:
    past(agent_home, 1, 2, 1)
    agent = agent_home.provider()
    agent.sync_turn(*exchange(1), session_id="s1", messages=[*reloaded(1, 2, 1), *messages(1)])
    assert stored(agent_home) == words(1, 1, 1, 2)
    undo(agent)
    undo(agent)
    agent.on_session_end(reloaded(1, 2))
    agent_home.settle()
    said = agent_home.stored.rows("SELECT ordinal FROM conversations WHERE content LIKE 'Question 1:%%' ORDER BY 1")
    assert said == [(1,)]


def test_an_interrupted_question_belongs_to_the_session_it_was_asked_in(agent_home: AgentHome) -> None:
    """Nothing else was said there, and the host ends with its messages after the user has gone elsewhere."""
    past(agent_home, 1)
    agent = agent_home.provider(session="s2")
    agent.on_turn_start(1, exchange(3)[0])
    agent.on_session_switch("s1", parent_session_id="s2", reset=False, reason="resume")
    agent.on_session_end([messages(3)[0]])
    assert stored(agent_home, "s1") == words(1)
    assert stored(agent_home, "s2") == [exchange(3)[0]]


def test_what_only_the_old_transcript_has_belongs_to_the_old_session(agent_home: AgentHome) -> None:
    """After a resume without a turn, the host ends with the messages of the session before."""
    past(agent_home, 1)
    agent = agent_home.provider(session="s2")
    report(agent, "s2", 2)
    agent.on_turn_start(2, exchange(3)[0])
    agent.on_session_switch("s1", parent_session_id="s2", reset=False, reason="resume")
    agent.on_session_end([*messages(2), messages(3)[0]])
    assert stored(agent_home, "s1") == words(1)
    assert stored(agent_home, "s2") == sorted([*words(2), exchange(3)[0]])
