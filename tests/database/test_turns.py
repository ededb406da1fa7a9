"""A turn is stored exactly once, whoever reports it, in whatever order and from whatever process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hermes_memory_pgvector.ops import journals
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from testing.agent import AgentHome
from testing.waiting import wait_until

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


def age(home: AgentHome, by: str) -> None:
    """What is stored was said so much earlier."""
    home.stored.rows("UPDATE conversations SET ts = ts - %s::interval RETURNING id", by)


REPORTS: dict[str, Callable[[PgvectorMemoryProvider], object]] = {
    "sync_turn": lambda agent: report(agent, "s1", 1),
    "on_session_end": lambda agent: agent.on_session_end(messages(1)),
    "on_pre_compress": lambda agent: agent.on_pre_compress(messages(1)),
}


@pytest.mark.parametrize("has_several", [False, True], ids=["one provider", "several"])
@pytest.mark.parametrize("order", list(itertools.permutations(REPORTS)), ids="-".join)
def test_a_turn_reported_by_every_hook_is_stored_once(
    agent_home: AgentHome, order: tuple[str, ...], has_several: bool
) -> None:
    agent = agent_home.provider()
    for name in order:
        REPORTS[name](agent_home.provider() if has_several else agent)
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


def test_both_sides_of_a_turn_carry_the_time_they_were_said_and_their_order(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    for number in range(3):
        report(agent, "s1", *range(number + 1))
    agent_home.settle()
    told = [text for _, _, text in agent_home.stored.turns("marketing")]
    assert told == [text for number in range(3) for text in exchange(number)]


def test_a_clients_retry_in_another_process_is_the_same_turn(agent_home: AgentHome) -> None:
    script = "provider('marketing').sync_turn(*arguments, session_id='s1')\n"
    for _ in range(2):
        code, _ = agent_home.run(script, *exchange(1))
        assert code == 0
    agent_home.provider()
    assert stored(agent_home) == words(1)


def test_words_said_again_within_the_window_are_the_same_turn_and_later_a_new_one(agent_home: AgentHome) -> None:
    agent = agent_home.provider()
    report(agent, "s1", 1)
    agent.sync_turn(*exchange(1), session_id="s1", messages=messages(1, 1))
    assert stored(agent_home) == words(1)
    age(agent_home, "11 minutes")
    agent.sync_turn(*exchange(1), session_id="s1", messages=messages(1, 1, 1))
    agent.on_session_end(messages(1, 1, 1))
    assert stored(agent_home) == words(1, 1)
    ordinals = agent_home.stored.rows("SELECT DISTINCT ordinal FROM conversations ORDER BY 1")
    assert ordinals == [(1,), (2,)]


def test_words_of_a_transcript_are_new_only_if_the_session_does_not_have_them(agent_home: AgentHome) -> None:
    report(agent_home.provider(), "s1", 1)
    agent_home.settle()
    age(agent_home, "1 day")
    agent_home.close()
    agent_home.provider().on_session_end(messages(1, 2))
    assert stored(agent_home) == words(1, 2)


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
    edges = agent_home.stored.rows("SELECT agent_identity, session_id, metadata ->> 'delegated_to' FROM conversations")
    assert edges == [("marketing", "s1", "child-1")]


def reloaded(*numbers: int) -> list[Message]:
    """Messages as the host shows them once a session is resumed: with the time they were said."""
    return [{**message, "timestamp": 1_700_000_000.0 + at} for at, message in enumerate(messages(*numbers))]


def past(home: AgentHome, *numbers: int) -> None:
    """A process has said all this in session s1, and has ended."""
    agent = home.provider()
    for end in range(1, len(numbers) + 1):
        report(agent, "s1", *numbers[:end])
    agent.on_session_end(messages(*numbers))
    home.settle()
    home.close()


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


@pytest.mark.parametrize(("rule", "kept", "short"), [("each", 1, 3), ("pair", 2, 2)])
def test_short_turns_are_counted_where_status_reads_it(agent_home: AgentHome, rule: str, kept: int, short: int) -> None:
    agent_home.settings |= {"turn_min_chars": 40, "turn_rule": rule}
    agent = agent_home.provider()
    agent.sync_turn("It is 4711.", "The number of the cellar is noted: four thousand seven hundred and eleven.")
    agent.sync_turn("Which one?", "The left one.")
    agent.sync_turn("thanks", "ok")
    assert len(stored(agent_home)) == kept

    def told() -> int:
        agent_home.engine.status.publish()
        return journals.report(agent_home.path, None).of_processes("short_turns")

    wait_until(lambda: told() == short)
