"""What becomes of refused writes: in the order they were made, in the words they were said, once, whatever the host's
session store is like meanwhile, and also when their process has died."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector.capture import refused_writes
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine import tasks
from testing.agent import AgentHome
from testing.postgres import Database
from testing.refusing import PICTURE, Disk, Host
from testing.waiting import wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "RECOVER_SECONDS", 0.1)


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no room for the words of refused turns in memory."""
    monkeypatch.setattr(refused_writes, "MAX_CHARS", 20_000, raising=False)
    monkeypatch.setattr(refused_writes, "TURNS_SHARE", 0.0, raising=False)


def texts(home: AgentHome, theme: str = "marketing") -> list[str]:
    home.settle()
    return [text for _, _, text in home.stored.turns(theme)]


def arrive(home: AgentHome, *wanted: str, theme: str = "marketing") -> None:
    """Wait until exactly these turns are stored, each once."""
    wait_until(lambda: sorted(texts(home, theme)) == sorted(wanted) or None, seconds=60)
    wait_until(lambda: not home.engine.refusals.waits)
    assert sorted(texts(home, theme)) == sorted(wanted)


def arrive_in(home: AgentHome, session: str, *wanted: str) -> None:
    """The same for one session of the theme."""

    def heard() -> list[str]:
        return sorted(text for _, where, text in home.stored.turns("marketing") if where == session)

    wait_until(lambda: heard() == sorted(wanted) or None, seconds=60, every=0.1)
    wait_until(lambda: not home.engine.refusals.waits)
    home.settle()
    assert heard() == sorted(wanted)


def command(home: AgentHome, name: str) -> Any:
    """What a command says of the home, as JSON."""
    program = Path(sys.executable).with_name("hermes-pgvector")
    done = subprocess.run(
        [program, name, "--json", "--hermes-home", str(home.path)],
        env={**os.environ, "HERMES_PGVECTOR_DSN": home.dsn}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return json.loads(done.stdout)


def found(home: AgentHome) -> str:
    """What doctor says of refused writes."""
    return "\n".join(check["text"] for check in command(home, "doctor")["checks"] if check["name"] == "refused writes")


def spoil(store: Path, how: str) -> None:
    """Make a session store unreadable in one of many ways."""
    for beside in store.parent.glob("state.db-*"):
        beside.unlink()
    match how:
        case "missing":
            store.unlink()
        case "directory":
            store.unlink()
            store.mkdir()
        case "pipe":
            store.unlink()
            os.mkfifo(store)
        case "garbage":
            store.write_bytes(b"no database, whatever the name says\n" * 1000)
        case "empty":
            store.write_bytes(b"")
        case _:
            pytest.fail(how)


def test_a_locked_session_store_costs_no_refused_turn(home: AgentHome, host: Host, disk: Disk) -> None:
    agent = home.provider()
    disk.error = errno.ENOSPC
    host.keep("s1", ("user", "question"), ("assistant", "answer"))
    agent.sync_turn("question", "answer", session_id="s1")
    with host.locked():
        disk.error = 0
        arrive(home, "question", "answer")
    assert home.engine.refusals.lost == 0


def test_turns_without_their_words_wait_for_a_locked_session_store(
    home: AgentHome, host: Host, disk: Disk, no_memory: None, caplog: pytest.LogCaptureFixture
) -> None:
    agent = home.provider()
    disk.error = errno.ENOSPC
    host.keep("s1", ("user", "question"), ("assistant", "answer"))
    agent.sync_turn("question", "answer", session_id="s1")
    agent.on_memory_write("add", "memory", "a fact", metadata={})
    with host.locked(), caplog.at_level(logging.WARNING):
        disk.error = 0
        wait_until(lambda: home.engine.refusals.problem)
        # What does not need the store is not kept waiting by it.
        wait_until(lambda: home.stored.memories("marketing"))
        assert texts(home) == []
        assert home.engine.refusals.status().waiting == 2
    arrive(home, "question", "answer")
    assert home.engine.refusals.status().overflowed == 2
    assert home.engine.refusals.lost == 0
    assert sum("is locked by another program" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize("how", ["missing", "directory", "pipe", "garbage", "empty"])
def test_turns_without_their_words_wait_for_a_broken_session_store(
    home: AgentHome, host: Host, disk: Disk, no_memory: None, how: str
) -> None:
    agent = home.provider()
    disk.error = errno.ENOSPC
    host.keep("s1", ("user", "question"), ("assistant", "answer"))
    agent.sync_turn("question", "answer", session_id="s1")
    host.store.close()
    aside = host.path.with_name("aside.db")
    shutil.copy(host.path, aside)
    spoil(host.path, how)
    disk.error = 0
    wait_until(lambda: home.engine.refusals.problem)
    shutil.rmtree(host.path) if how == "directory" else host.path.unlink(missing_ok=True)
    aside.replace(host.path)
    arrive(home, "question", "answer")


@pytest.mark.parametrize("newest", ["in the log", "in the file"])
def test_a_store_beside_which_nothing_can_be_made_can_be_read(
    home: AgentHome, host: Host, disk: Disk, no_memory: None, newest: str
) -> None:
    """A reader in WAL mode makes files of its own, for which a full disk has no room."""
    agent = home.provider()
    disk.error = errno.ENOSPC
    host.keep("s1", ("user", "question"), ("assistant", "answer"))
    agent.sync_turn("question", "answer", session_id="s1")
    # Copied while the host has it open, the log holds what the file does not.
    copies = {suffix: (home.path / f"state.db{suffix}").read_bytes() for suffix in ("", "-wal")}
    assert copies["-wal"]
    host.store.close()
    if newest == "in the log":
        for suffix, content in copies.items():
            (home.path / f"state.db{suffix}").write_bytes(content)
    (home.path / "state.db-shm").mkdir()
    disk.error = 0
    arrive(home, "question", "answer")


def test_the_store_of_an_older_host_can_be_read(home: AgentHome, disk: Disk, no_memory: None) -> None:
    """Before rewinding and lineage there were neither their columns nor a table of sessions that has them."""
    with closing(sqlite3.connect(home.path / "state.db")) as store, store:
        store.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL)")
        store.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,"
            " timestamp REAL NOT NULL)"
        )
        store.execute(
            "INSERT INTO messages VALUES (1, 's1', 'user', 'question', 1), (2, 's1', 'assistant', 'answer', 2)",
        )
    agent = home.provider()
    disk.error = errno.ENOSPC
    agent.sync_turn("question", "answer", session_id="s1")
    disk.error = 0
    arrive(home, "question", "answer")


@pytest.mark.parametrize("name", ["100%41 #1?mode=rwc&x=y", "naïve ✓"])
def test_any_path_will_do(tmp_path: Path, database: Database, disk: Disk, no_memory: None, name: str) -> None:
    home = AgentHome.create(tmp_path / name / "home", database, shutdown_drain_timeout=0.5)
    host = Host(home.path)
    agent = home.provider()
    disk.error = errno.ENOSPC
    host.keep("s1", ("user", "question"), ("assistant", "answer"))
    agent.sync_turn("question", "answer", session_id="s1")
    disk.error = 0
    arrive(home, "question", "answer")
    host.store.close()
    home.close(2.0)


def test_no_refused_operation_is_dropped(home: AgentHome, disk: Disk) -> None:
    home.settings["bulk_sync_on_init"] = False
    agent = home.provider()
    disk.error = errno.ENOSPC
    wanted = [f"fact {number}" for number in range(2_300)]
    for fact in wanted:
        agent.on_memory_write("add", "memory", fact, metadata={})
    disk.error = 0
    wait_until(lambda: home.stored.count("memory_entries") >= len(wanted) or None, seconds=60)
    assert sorted(text for _, text in home.stored.memories("marketing")) == sorted(wanted)


def test_what_finds_no_room_in_memory_is_counted(home: AgentHome, disk: Disk, no_memory: None) -> None:
    home.settings["bulk_sync_on_init"] = False
    agent = home.provider()
    disk.error = errno.ENOSPC
    for number in range(100):
        agent.on_memory_write("add", "memory", f"fact {number} {'x' * 900}", metadata={})
    status = home.engine.refusals.status()
    assert status.memories == 100
    assert status.overflowed > 0
    assert status.waiting + status.overflowed == 100
    disk.error = 0
    wait_until(lambda: not home.engine.refusals.waits)
    home.settle()
    assert len(home.stored.memories("marketing")) == status.waiting


@pytest.mark.parametrize("kept_here", [True, False], ids=["in memory", "by the host"])
@pytest.mark.parametrize("stored_as", ["parts", "text"])
def test_a_turn_with_a_picture_is_stored_as_it_was_announced(
    home: AgentHome, host: Host, disk: Disk, request: pytest.FixtureRequest, kept_here: bool, stored_as: str
) -> None:
    if not kept_here:
        request.getfixturevalue("no_memory")
    agent = home.provider()
    disk.error = errno.ENOSPC
    parts = [{"type": "text", "text": "What is on this picture?"}, PICTURE]
    content: Any = parts if stored_as == "parts" else "What is on this picture?\n[screenshot]"
    host.keep("s1", ("user", content), ("assistant", "A lighthouse."))
    shown = [{"role": "user", "content": parts}, {"role": "assistant", "content": "A lighthouse."}]
    agent.sync_turn("[1 image] What is on this picture?", "A lighthouse.", session_id="s1", messages=shown)
    disk.error = 0
    arrive(home, "[1 image] What is on this picture?", "A lighthouse.")
    agent.on_session_end(shown)
    assert sorted(texts(home)) == ["A lighthouse.", "[1 image] What is on this picture?"]


@pytest.mark.parametrize("kept_here", [True, False], ids=["in memory", "by the host"])
def test_what_the_host_wraps_around_a_skill_is_not_stored(
    home: AgentHome, host: Host, disk: Disk, request: pytest.FixtureRequest, kept_here: bool
) -> None:
    if not kept_here:
        request.getfixturevalue("no_memory")
    wrapped = (
        '[IMPORTANT: The user has invoked the "plan" skill, indicating they want you to follow its instructions. '
        "The full skill content is loaded below.]\n\nBe thorough.\n\n"
        "The user has provided the following instruction alongside the skill invocation: plan the launch"
    )
    agent = home.provider()
    disk.error = errno.ENOSPC
    host.keep("s1", ("user", wrapped), ("assistant", "Here is the plan."))
    shown = [{"role": "user", "content": wrapped}, {"role": "assistant", "content": "Here is the plan."}]
    agent.sync_turn("plan the launch", "Here is the plan.", session_id="s1", messages=shown)
    disk.error = 0
    arrive(home, "plan the launch", "Here is the plan.")


@pytest.mark.parametrize("kept_here", [True, False], ids=["in memory", "by the host"])
def test_a_compacted_session_gets_each_turn_once(
    home: AgentHome, host: Host, disk: Disk, request: pytest.FixtureRequest, kept_here: bool
) -> None:
    """A compaction in place leaves the old messages aside and writes those that it keeps once more."""
    if not kept_here:
        request.getfixturevalue("no_memory")
    agent = home.provider()
    said = [("user", "go on"), ("assistant", "first answer"), ("user", "go on"), ("assistant", "second answer")]
    shown = [{"role": role, "content": text} for role, text in said]
    host.keep("s1", *said[:2])
    agent.sync_turn("go on", "first answer", session_id="s1", messages=shown[:2])
    disk.error = errno.ENOSPC
    for role, text in said[2:]:
        host.store.append_message("s1", role, text)
    agent.sync_turn("go on", "second answer", session_id="s1", messages=shown)
    summary = {"role": "user", "content": "[CONTEXT COMPACTION] They went on.", "_compressed_summary": True}
    agent.on_pre_compress(shown)
    host.store.archive_and_compact("s1", [summary, *shown[2:]])
    agent.on_session_switch("s1", parent_session_id="s1", reset=False, reason="compression")
    disk.error = 0
    arrive(home, "go on", "go on", "first answer", "second answer")


def test_a_turn_is_found_in_the_session_that_its_own_continues(
    home: AgentHome, host: Host, disk: Disk, no_memory: None
) -> None:
    agent = home.provider()
    disk.error = errno.ENOSPC
    host.keep("old", ("user", "question"))
    host.keep("new", ("assistant", "answer"), parent="old")
    agent.sync_turn("question", "answer", session_id="new")
    disk.error = 0
    arrive(home, "question", "answer")
    assert {session for _, session, _ in home.stored.turns("marketing")} == {"new"}


def test_a_turn_that_the_host_does_not_have_is_given_up_and_counted(
    home: AgentHome, host: Host, disk: Disk, no_memory: None, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    agent = home.provider()
    disk.error = errno.ENOSPC
    host.keep("s1", ("user", "question"))
    agent.sync_turn("question", "answer that the host never kept", session_id="s1")
    disk.error = 0
    wait_until(lambda: home.engine.refusals.recovered == 0 and not disk.error)
    with caplog.at_level(logging.WARNING):
        monkeypatch.setattr(refused_writes, "GIVE_UP_SECONDS", 0.0)
        arrive(home, "question")
    status = home.engine.refusals.status()
    assert (status.turns, status.recovered, status.lost, status.waiting) == (2, 1, 1, 0)
    assert any("are lost" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("room_comes", ["before the undo", "after the undo"])
def test_an_undo_does_not_overtake_the_turn_it_takes_back(home: AgentHome, disk: Disk, room_comes: str) -> None:
    agent = home.provider()
    agent.sync_turn("kept question", "kept answer", session_id="s1")
    home.settle()
    # Nobody recovers in the background meanwhile.
    home.engine.tasks.stop(Deadline.after(10))
    disk.error = errno.ENOSPC
    agent.sync_turn("regretted question", "regretted answer", session_id="s1")
    if room_comes == "before the undo":
        disk.error = 0
    agent.on_session_switch("s1", rewound=True)
    disk.error = 0
    agent.sync_turn("better question", "better answer", session_id="s1")
    home.engine.tasks.start()
    arrive(home, "kept question", "kept answer", "better question", "better answer")


def test_a_turn_that_waits_for_its_words_keeps_nobody_else_waiting(
    home: AgentHome, host: Host, disk: Disk, no_memory: None
) -> None:
    agent = home.provider()
    for number in (1, 2):
        host.keep("s1", ("user", f"question {number}"), ("assistant", f"answer {number}"))
    disk.error = errno.ENOSPC
    for number in (1, 2):
        agent.sync_turn(f"question {number}", f"answer {number}", session_id="s1")
    with host.locked():
        disk.error = 0
        wait_until(lambda: home.engine.refusals.problem)
        # What was taken back is not waited for, and what comes next is not kept from the journal.
        agent.on_session_switch("s1", rewound=True)
        agent.sync_turn("question 3", "answer 3", session_id="s1")
        wait_until(lambda: sorted(texts(home)) == ["answer 3", "question 3"] or None)
        assert home.engine.refusals.status().waiting == 2
    arrive(home, "question 1", "answer 1", "question 3", "answer 3")


def test_an_undo_that_was_refused_is_not_lost(home: AgentHome, disk: Disk) -> None:
    agent = home.provider()
    agent.sync_turn("kept question", "kept answer", session_id="s1")
    agent.sync_turn("regretted question", "regretted answer", session_id="s1")
    home.settle()
    disk.error = errno.ENOSPC
    agent.on_session_switch("s1", rewound=True)
    disk.error = 0
    # The same words, said again, are not the ones that were taken back.
    agent.sync_turn("regretted question", "another answer", session_id="s1")
    arrive(home, "kept question", "kept answer", "regretted question", "another answer")


def test_an_undo_that_an_ended_process_was_refused_comes_before_what_is_said_next(home: AgentHome, disk: Disk) -> None:
    agent = home.provider()
    agent.sync_turn("question", "answer", session_id="s1")
    home.settle()
    disk.error = errno.ENOSPC
    agent.on_session_switch("s1", rewound=True)
    home.close(2.0)
    disk.error = 0
    home.provider().sync_turn("question", "another answer", session_id="s1")
    arrive(home, "question", "another answer")


def test_refused_memory_operations_keep_their_order_and_moment(home: AgentHome, disk: Disk) -> None:
    home.settings["bulk_sync_on_init"] = False
    agent = home.provider()
    disk.error = errno.ENOSPC
    agent.on_memory_write("add", "memory", "The launch is in May", metadata={})
    agent.on_memory_write("replace", "memory", "The launch is in June", metadata={"old_text": "in May"})
    disk.error = 0
    # This one is made later and arrives sooner.
    agent.on_memory_write("replace", "memory", "The launch is in July", metadata={"old_text": "in June"})
    wait_until(lambda: not home.engine.refusals.waits)
    home.settle()
    assert home.stored.memories("marketing") == [("memory", "The launch is in July")]


def test_a_memory_that_was_removed_by_hand_while_it_was_refused_does_not_come_back(
    home: AgentHome, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_memory_pgvector.mirror.mirror.QUIET_SECONDS", 0.0)
    agent = home.provider()
    home.write_memories("something else")
    home.mirror()
    disk.error = errno.ENOSPC
    agent.on_memory_write("add", "memory", "a passing fact", metadata={})
    home.write_memories("something else", "one more thing")
    home.mirror()
    disk.error = 0
    wait_until(lambda: not home.engine.refusals.waits)
    home.settle()
    home.mirror()
    assert home.stored.themes_of("a passing fact") == set()


def test_a_refused_delegation_is_recovered(home: AgentHome, disk: Disk) -> None:
    agent = home.provider()
    disk.error = errno.ENOSPC
    agent.on_delegation("find a venue", "the harbour hall", child_session_id="c1")
    disk.error = 0
    arrive(home, "Delegated: find a venue\nResult: the harbour hall")
    assert home.stored.rows("SELECT session_id, child_session_id FROM delegations") == [("s1", "c1")]


def test_what_a_changed_configuration_finds_waiting_is_recovered(home: AgentHome, disk: Disk) -> None:
    """Raising journal_max_mb, which is what an operator is told to do, replaces the engine."""
    agent = home.provider()
    disk.error = errno.ENOSPC
    agent.sync_turn("question", "answer", session_id="s1")
    agent.on_memory_write("add", "memory", "a fact", metadata={})
    before = home.engine
    (home.path / "config.yaml").write_text("memory:\n  pgvector:\n    journal_max_mb: 512\n", encoding="utf-8")
    home.provider()
    wait_until(lambda: before.is_retired and not before.tasks.is_running)
    disk.error = 0
    arrive(home, "question", "answer")
    wait_until(lambda: home.stored.memories("marketing") == [("memory", "a fact")])


def test_the_parts_of_a_transcript_that_were_taken_are_not_taken_twice(
    home: AgentHome, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = home.provider()
    shown = [{"role": ("user", "assistant")[n % 2], "content": f"message {n} {'x' * 9000}"} for n in range(60)]
    home.engine.start()
    real = home.engine.journal.append
    taken: list[bytes] = []

    def append(payload: bytes, *rest: Any) -> int:
        disk.error = errno.ENOSPC if len(taken) == 1 else 0
        taken.append(payload)
        return real(payload, *rest)

    monkeypatch.setattr(home.engine.journal, "append", append)
    agent.on_session_end(shown)
    assert 0 < home.engine.refusals.turns < 60
    arrive(home, *(message["content"] for message in shown))


CHILD = """
import pathlib, time
agent = provider("marketing")
agent.sync_turn("question 1", "answer 1", session_id="s1")
engine = engine_for(pathlib.Path(home), settings)[0]
while not list(pathlib.Path(home).glob("pgvector/refused/*.notes")):
    time.sleep(0.01)
number = 0
while not engine.refusals.turns:
    number += 1
    agent.sync_turn(f"{number} " + "filler " * 100, "", session_id=f"filler {number}")
while not engine.refusals.memories:
    number += 1
    agent.on_memory_write("add", "memory", f"{number} " + "filler " * 100, metadata={})
agent.sync_turn("question 2", "answer 2", session_id="s1")
agent.sync_turn("long question " + "x" * 5000, "long answer " + "y" * 5000, session_id="s1")
agent.on_memory_write("add", "memory", "a fact " * 30, metadata={})
agent.on_delegation("find a venue", "the harbour hall", child_session_id="c1")
say(number)
time.sleep(600)
"""


def test_what_a_process_was_refused_before_it_died_is_recovered_by_the_next(home: AgentHome, host: Host) -> None:
    home.settings["bulk_sync_on_init"] = False
    long_turn = ("long question " + "x" * 5000, "long answer " + "y" * 5000)
    host.keep(
        "s1", ("user", "question 1"), ("assistant", "answer 1"), ("user", "question 2"), ("assistant", "answer 2")
    )
    host.keep("s1", ("user", long_turn[0]), ("assistant", long_turn[1]))
    dsn = home.dsn
    home.dsn, home.settings["journal_max_mb"] = "host=127.0.0.1 port=9 user=nobody", 1
    with home.start(CHILD) as child:
        assert child.stdout is not None
        fillers = int(child.stdout.readline())
        home.dsn = dsn
        wait_until(lambda: command(home, "status")["journal"]["refused_waiting"] == 9, every=0.5)
        assert "9 refused writes waiting: the journal is full" in found(home)
        child.send_signal(signal.SIGKILL)
    assert command(home, "status")["journal"]["refused_left"] == 6
    assert "6 refused writes left by processes that have ended" in found(home)
    del home.settings["journal_max_mb"]
    home.provider("somebody-else", session="s9")
    arrive_in(home, "s1", "question 1", "answer 1", "question 2", "answer 2", *long_turn,
              "Delegated: find a venue\nResult: the harbour hall")  # fmt: skip

    def memories_and_turns() -> list[str]:
        return [text for _, text in home.stored.memories("marketing")] + texts(home)

    wait_until(lambda: sum("filler" in text for text in memories_and_turns()) >= fillers, seconds=60)
    assert sum("filler" in text for text in memories_and_turns()) == fillers
    assert ("a fact " * 30).strip() in memories_and_turns()
    # What the dead process had set aside is gone; the living one has its own.
    assert len(list((home.path / "pgvector" / "refused").glob("*.notes"))) == 1
