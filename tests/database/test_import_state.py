"""`import` of a state.db: every saying of a stored past once, under the theme, session and number of live traffic."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.ops.carry import import_
from hermes_memory_pgvector.ops.carry.state import AGAIN, NOT_A_CHAT, UNNAMED_API
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.host_state import fill, host_state
from testing.postgres import Database
from testing.stored import Stored
from testing.unchanged import nothing_changes
from testing.waiting import wait_until

KEY = "agent:main:telegram:dm:4915100000000"
ROWS = "SELECT agent_identity, session_id, role, content, ordinal FROM conversations ORDER BY 1, 2, ts, id"


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database.owner_dsn)


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime)
    return made


def imported(commands: Commands, *arguments: str, execute: bool = True) -> dict[str, Any]:
    done = commands.call("import", "state", *arguments, *(("--execute",) if execute else ()), "--json")
    assert done.code == 0, done.everything
    return summed(done.json)


def summed(document: dict[str, Any]) -> dict[str, Any]:
    themes = {each["theme"]: {name: each[name] for name in ("stored", "known")} for each in document["samples"]}
    totals = {name: sum(each[name] for each in themes.values()) for name in ("stored", "known")}
    assert totals["stored"] == document["counts"]["rows"]
    return {**totals, "themes": themes, "left_out": document["left_out"]}


def asked(number: int) -> str:
    return f"Question {number}: what did the harbour company pay for shipment {number}?"


def told(number: int) -> str:
    return f"Answer {number}: it paid {number * 7} guilders and a crate of tea."


def test_a_past_is_stored_once_with_its_times_and_a_second_run_stores_nothing(
    commands: Commands, stored: Stored
) -> None:
    messages = fill(commands.home, sessions=7, exchanges=200)
    dry = imported(commands, execute=False)
    assert (dry["stored"], stored.count("conversations")) == (messages, 0)
    first = imported(commands)
    assert (first["stored"], first["known"]) == (messages, 0)
    second = imported(commands)
    assert (second["stored"], second["known"]) == (0, messages)
    assert stored.count("conversations") == stored.count("pending_vectors") == messages
    ((earliest, latest),) = stored.rows(
        "SELECT extract(epoch FROM min(ts)), extract(epoch FROM max(ts)) FROM conversations"
    )
    assert (int(earliest), int(latest)) == (1_790_000_001, 1_790_000_000 + messages)
    ((action, counts),) = stored.rows("SELECT action, counts FROM audit_log")
    assert (action, counts) == ("import", {"stored": messages, "known": 0})


def test_noise_undone_words_pictures_and_skills_are_stored_as_live_traffic_does(
    commands: Commands, stored: Stored
) -> None:
    skill = (
        '[IMPORTANT: The user has invoked the "weather" skill. The full skill content is loaded below.]\n\nBody.\n\n'
        "The user has provided the following instruction alongside the skill invocation: "
        "Tell me what the weather in the harbour will be on Friday.\n\n[Runtime note: be brief]"
    )
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    with host_state(commands.home) as state:
        state.session("s1")
        state.exchange("s1", asked(1), told(1))
        state.exchange("s1", "ok thanks", "ok")
        state.exchange("s1", asked(2), told(2), active=0)
        state.exchange("s1", asked(1), told(3))
        state.say(
            "s1", "user", [{"type": "text", "text": "What bird is sitting on the fence in this picture?"}, picture]
        )
        state.say("s1", "assistant", "Let me look at the picture that you have sent me.", tool_calls='[{"id": "1"}]')
        state.say("s1", "tool", "a long result of a tool that nobody wants to remember at all")
        state.say("s1", "assistant", "It is a wheatear, to judge by the white rump and the pale brow.")
        state.exchange("s1", skill, "It will rain on Friday, with strong wind from the west.")
        state.say("s1", "user", "Somebody says this to somebody else in the same room as the agent.", observed=1)
        state.say("s1", "user", f"{asked(9)}\n<memory-context>\nrecalled words\n</memory-context>")
        state.say("s1", "assistant", "\x00json:not json at all")
        state.run("UPDATE sessions SET ended_at = 1")
    found = imported(commands)
    assert [(role, content, ordinal) for _, _, role, content, ordinal in stored.rows(ROWS)] == [
        ("user", asked(1), 1),
        ("assistant", told(1), 1),
        ("assistant", told(3), 1),
        ("user", "[1 image] What bird is sitting on the fence in this picture?", 1),
        ("assistant", "It is a wheatear, to judge by the white rump and the pale brow.", 1),
        ("user", "Tell me what the weather in the harbour will be on Friday.", 1),
        ("assistant", "It will rain on Friday, with strong wind from the west.", 1),
        ("user", asked(9), 1),
    ]
    assert found["left_out"] == {"taken back with /undo": 2, "too short to be worth keeping": 2, AGAIN: 1}
    assert imported(commands)["stored"] == 0


def test_every_session_goes_to_the_theme_that_live_traffic_gives_it(
    commands: Commands, stored: Stored, database: Database
) -> None:
    prompt = "You are helpful.\n## Shared memory (pgvector)\nYour memory theme is 'market'. What you save"
    with host_state(commands.home) as state:
        sessions: dict[str, dict[str, Any]] = {
            "cli": {},
            "dm": {"source": "telegram", "session_key": KEY, "user_id": "4915100000000"},
            "old-dm": {"source": "telegram", "user_id": "4915100000000"},
            "nobody": {"source": "telegram"},
            "job": {"source": "cron"},
            "helper": {"source": "subagent", "parent_session_id": "cli", "marks": {"_delegate_from": "cli"}},
            "api": {"source": "api_server"},
            "api-told": {"source": "api_server", "system_prompt": prompt},
            "dm-later": {"source": "telegram", "parent_session_id": "dm"},
        }
        for number, (name, columns) in enumerate(sessions.items()):
            state.session(name, **columns)
            state.exchange(name, asked(number), told(number))
        state.run("UPDATE sessions SET end_reason = 'compression' WHERE id = 'dm'")
    found = imported(commands)
    themes = {session: theme for theme, session, *_ in stored.rows(ROWS)}
    dm = themes["dm"]
    assert dm.startswith("dm-")
    assert themes == {"cli": "hermes", "dm": dm, "old-dm": dm, "dm-later": dm, "job": "hermes", "api-told": "market"}
    assert found["left_out"] == {
        NOT_A_CHAT: 2,
        "of chats whose partner the host did not record": 2,
        UNNAMED_API: 2,
    }
    assert imported(commands, "--theme", "Hermes")["themes"]["hermes"] == {"stored": 2, "known": 5}
    assert "4915100000000" not in stored.everything()
    edges = "SELECT session_id, metadata ->> 'delegated_to' FROM conversations WHERE role = 'tool'"
    assert stored.rows(edges) == [("cli", "helper")]
    home = AgentHome.create(commands.home, database)
    live = home.provider(KEY, "dm", platform="telegram")
    live.sync_turn(asked(77), told(77), session_id="dm")
    home.settle()
    home.close()
    assert stored.themes_of(asked(77)) == {dm}


def test_scheduled_jobs_are_imported_as_live_traffic_stores_them(commands: Commands, stored: Stored) -> None:
    with host_state(commands.home) as state:
        state.session("job", source="cron")
        state.exchange("job", asked(1), told(1))
    commands.call("config", "set", "write_contexts", "primary")
    found = imported(commands)
    assert (found["stored"], found["left_out"]) == (0, {NOT_A_CHAT: 2})
    commands.call("config", "unset", "write_contexts")
    assert imported(commands)["stored"] == 2
    platforms = "SELECT DISTINCT agent_identity, metadata ->> 'platform' FROM conversations"
    assert stored.rows(platforms) == [("hermes", "cron")]


def test_what_live_traffic_has_stored_is_found_in_its_own_theme(
    commands: Commands, database: Database, stored: Stored
) -> None:
    """The host keeps no key of API requests, and gives those of several themes one session id."""
    home = AgentHome.create(commands.home, database)
    for theme, session, numbers in (
        ("market", "api-1", (1, 2)),
        ("market", "shared", (3,)),
        ("trading", "shared", (4,)),
    ):
        agent = home.provider(theme, session)
        messages: list[dict[str, str]] = []
        for number in numbers:
            messages += [{"role": "user", "content": asked(number)}, {"role": "assistant", "content": told(number)}]
            agent.sync_turn(asked(number), told(number), session_id=session, messages=list(messages))
    home.settle()
    home.close()
    with host_state(commands.home) as state:
        state.session("api-1", "api_server")
        state.session("shared", "api_server")
        for number in (1, 2, 7):
            state.exchange("api-1", asked(number), told(number))
        for number in (3, 4, 8):
            state.exchange("shared", asked(number), told(number))
    found = imported(commands)
    assert (found["stored"], found["themes"]["market"]) == (2, {"stored": 2, "known": 4})
    assert found["left_out"] == {"of API sessions that several themes share": 6}
    assert stored.themes_of(asked(7)) == {"market"}
    assert stored.count("conversations") == 10


@pytest.mark.parametrize("scope", ["shared", "separate"])
def test_a_chat_of_another_profile_that_begins_alike_attracts_nothing(
    commands: Commands, database: Database, stored: Stored, scope: str
) -> None:
    """The host makes the id of an API session from its prompt and first message, whoever asks."""
    answer = told(1) if scope == "separate" else told(9)
    home = AgentHome.create(commands.home, database)
    agent = home.provider("coder", "api-1")
    agent.sync_turn(asked(1), answer, session_id="api-1")
    home.settle()
    home.close()
    (commands.home / "profiles" / "coder").mkdir(parents=True)
    commands.configure(**commands.config["memory"]["pgvector"], profile_scope=scope)
    with host_state(commands.home) as state:
        state.session("api-1", "api_server")
        for number in (1, 2):
            state.exchange("api-1", asked(number), told(number))
    assert imported(commands)["left_out"] == {UNNAMED_API: 4}
    assert imported(commands, "--theme", "hermes")["themes"] == {"hermes": {"stored": 4, "known": 0}}
    assert stored.themes_of(asked(2)) == {"hermes"}
    assert imported(commands)["stored"] == 0


def test_the_chats_of_a_profile_have_the_themes_that_its_own_agents_give_them(
    commands: Commands, database: Database, stored: Stored
) -> None:
    profile = commands.home / "profiles" / "coder"
    profile.mkdir(parents=True)
    with host_state(profile) as state:
        state.session("dm", "telegram", session_key=KEY, user_id="4915100000000")
        state.exchange("dm", asked(1), told(1))
    elsewhere = commands.folder / "elsewhere"
    with host_state(elsewhere) as state:
        state.session("dm", "telegram", session_key=KEY, user_id="4915100000000")
        state.exchange("dm", asked(2), told(2))
    for source in (profile, elsewhere):
        assert imported(commands, str(source / "state.db"))["stored"] == 2
    for path, number in ((profile, 11), (commands.home, 12)):
        home = AgentHome.create(path, database)
        home.provider(KEY, "dm", platform="telegram").sync_turn(asked(number), told(number), session_id="dm")
        home.settle()
        home.close()
    assert stored.themes_of(asked(1)) == stored.themes_of(asked(11)) != stored.themes_of(asked(12))
    assert stored.themes_of(asked(2)) == stored.themes_of(asked(12)), "another home's chats go on here"


def test_a_locked_a_missing_and_a_foreign_store_are_named_and_harm_nothing(
    commands: Commands, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_memory_pgvector.ops.host_past.WAIT_SECONDS", 0.1)
    with nothing_changes(Stored(database.owner_dsn)):
        done = commands.call("import", "state")
        assert done.code == 1
        assert "state.db" in done.err
        fill(commands.home, sessions=1, exchanges=2)
        path = commands.home / "state.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("PRAGMA journal_mode=DELETE")
            holder.execute("BEGIN EXCLUSIVE")
            done = commands.call("import", "state")
        assert done.code == 1
        assert "locked by another program" in done.err
        (tmp_path / "foreign").mkdir()
        (tmp_path / "foreign" / "state.db").write_bytes(b"this is not a database" * 100)
        done = commands.call("import", "state", str(tmp_path / "foreign" / "state.db"))
        assert done.code == 1
        assert "cannot be read (SQLITE_NOTADB)" in done.err


def test_an_old_store_without_newer_columns_is_read_beside_a_writer(commands: Commands, stored: Stored) -> None:
    with host_state(commands.home, is_old=True) as state:
        state.session("s1")
        state.exchange("s1", asked(1), told(1))
        state.connection.commit()
        state.exchange("s1", asked(2), told(2))
        # A host that is in the middle of a write, with a log that is not yet in the main file.
        assert imported(commands)["stored"] == 2
    assert imported(commands)["stored"] == 2
    assert stored.count("conversations") == 4


def test_sessions_that_are_each_others_parents_are_imported_all_the_same(commands: Commands) -> None:
    with host_state(commands.home) as state:
        for number, (name, parent) in enumerate((("one", "other"), ("other", "one"))):
            state.session(name, parent_session_id=parent, marks={"_branched_from": parent})
            state.exchange(name, asked(number), told(number))
    assert imported(commands)["stored"] == 4
    assert imported(commands)["stored"] == 0


def test_since_leaves_the_older_part_alone(commands: Commands) -> None:
    fill(commands.home, sessions=1, exchanges=10)
    found = imported(commands, "--since", "2026-09-21T14:13:31")
    assert found["stored"] + found["left_out"]["older than --since"] == 20
    assert found["stored"] == 10


@pytest.mark.parametrize("missing", [(0, 1), (1,), (2,), ()])
def test_what_is_missing_between_equal_words_is_stored_and_nothing_twice(
    commands: Commands, stored: Stored, database: Database, missing: tuple[int, ...]
) -> None:
    """The gap that refused writes leave, the newer part, and answers that took longer than the retry window."""
    days = [1_790_000_000 + day * 86_400 for day in range(3)]
    with host_state(commands.home) as state:
        state.session("s1")
        for day in days:
            state.say("s1", "user", asked(1), timestamp=day)
            for number in range(300):
                state.say("s1", "assistant", told(day + number), timestamp=day + number)
        state.run("UPDATE sessions SET ended_at = 1")
    assert imported(commands)["stored"] == 903
    # Live traffic has noted the questions with their answers, half an hour later.
    with psycopg.connect(database.owner_dsn) as connection:
        gone = [datetime.fromtimestamp(days[place], UTC) for place in missing]
        connection.execute("DELETE FROM conversations WHERE role = 'user' AND ts = ANY(%s)", (gone,))
        connection.execute("UPDATE conversations SET ts = ts + interval '30 minutes' WHERE role = 'user'")
    assert imported(commands)["stored"] == len(missing)
    assert imported(commands)["stored"] == 0
    kept = [day if place in missing else day + 1800 for place, day in enumerate(days)]
    times = "SELECT extract(epoch FROM ts)::bigint FROM conversations WHERE role = 'user' ORDER BY ts"
    assert stored.rows(times) == [(each,) for each in kept]


def test_since_and_then_everything_stores_each_saying_once(commands: Commands, stored: Stored) -> None:
    with host_state(commands.home) as state:
        state.session("s1")
        for _ in range(3):
            state.exchange("s1", asked(1), told(1))
            state.clock += 86_400
        state.run("UPDATE sessions SET ended_at = 1")
    assert imported(commands, "--since", "2026-09-23T00:00:00")["stored"] == 2
    assert imported(commands)["stored"] == 4
    assert imported(commands)["stored"] == 0
    assert stored.rows("SELECT count(*), count(DISTINCT ts) FROM conversations") == [(6, 6)]


def test_a_question_that_is_still_being_answered_waits_for_live_traffic(commands: Commands, stored: Stored) -> None:
    now = time.time()
    with host_state(commands.home) as state:
        state.session("s1", started_at=now - 7200)
        state.say("s1", "user", asked(1), timestamp=now - 7100)
        state.say("s1", "assistant", told(1), timestamp=now - 7000)
        state.say("s1", "user", asked(2), timestamp=now - 1000)
    found = imported(commands)
    assert found["left_out"] == {"still being answered: import again later": 1}
    with host_state(commands.home) as state:
        state.say("s1", "assistant", told(2), timestamp=now - 1)
    # It took longer than the time within which the same words count as the same turn.
    assert imported(commands)["left_out"] == {"still being answered: import again later": 2}
    assert stored.count("conversations") == 2


def test_live_traffic_and_an_import_of_the_same_sessions_double_nothing(
    commands: Commands, database: Database, stored: Stored
) -> None:
    home = AgentHome.create(commands.home, database)
    fill(commands.home, sessions=3, exchanges=100)
    agent = home.provider(None, "live")
    messages: list[dict[str, str]] = []
    is_over = threading.Event()
    rounds = 0

    def talk() -> None:
        with host_state(commands.home) as state:
            state.session("live", started_at=time.time())
            for number in range(60):
                for role, text in (("user", asked(number % 20)), ("assistant", told(number))):
                    state.say("live", role, text, timestamp=time.time())
                    messages.append({"role": role, "content": text})
                state.connection.commit()
                agent.sync_turn(asked(number % 20), told(number), session_id="live", messages=list(messages))
        is_over.set()

    talker = threading.Thread(target=talk)
    talker.start()
    while not is_over.is_set():
        imported(commands)
        rounds += 1
    talker.join()
    home.settle()
    imported(commands)
    home.close()
    assert rounds > 0
    # The same words within ten minutes are the same turn.
    assert stored.count("conversations") == 600 + 20 + 60
    assert len({(session, content) for _, session, _, content, _ in stored.rows(ROWS)}) == 680


def test_what_was_forgotten_or_renamed_here_is_not_brought_back(commands: Commands, stored: Stored) -> None:
    with host_state(commands.home) as state:
        for name in ("s1", "s2"):
            state.session(name)
            state.exchange(name, asked(1), told(1))
    assert imported(commands)["stored"] == 4
    assert commands.call("forget", "--session", "s1", "--theme", "hermes", "--execute").code == 0
    found = imported(commands)
    assert (found["stored"], found["known"], found["left_out"]) == (0, 2, {"that were forgotten here": 2})
    path = commands.folder / "out.jsonl"
    assert commands.call("export", "-o", str(path)).code == 0
    assert commands.call("forget", "--session", "s2", "--theme", "hermes", "--execute").code == 0
    assert commands.call("import", str(path), "--execute", "--json").json["counts"]["rows"] == 0
    assert stored.count("conversations") == 0


def test_the_offer_of_up_imports_when_told_to_and_is_silent_afterwards(commands: Commands, stored: Stored) -> None:
    def offered(*, yes: bool) -> list[str]:
        return [f"{note.text} {note.hint}" for note in import_.offer(commands.home, yes=yes)]

    assert offered(yes=True) == []
    messages = fill(commands.home, sessions=2, exchanges=3)
    (said,) = offered(yes=False)
    assert stored.count("conversations") == 0
    assert f"to import them: hermes-pgvector import {commands.home / 'state.db'}" in said
    assert len(offered(yes=True)) == 1
    assert stored.count("conversations") == messages
    assert offered(yes=True) == []
    (commands.home / "state.db").write_bytes(b"no database" * 100)
    (said,) = offered(yes=True)
    assert "past chats are left alone" in said


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.large)])
def test_a_killed_import_goes_on_where_it_was(commands: Commands, stored: Stored, kills: int) -> None:
    messages = fill(commands.home, sessions=10 * kills, exchanges=200)
    for _ in range(kills):
        before = stored.count("conversations")
        process = commands.start("import", "state", "--execute", "--json")

        def is_underway(before: int = before, process: subprocess.Popen[str] = process) -> bool:
            return stored.count("conversations") > before or process.poll() is not None

        wait_until(is_underway)
        time.sleep(random.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        commands.finish(process)
    last = summed(commands.run("import", "state", "--execute", "--json").json)
    assert last["stored"] + last["known"] == messages
    assert stored.count("conversations") == messages
    assert stored.count("pending_vectors") == messages
    assert imported(commands)["stored"] == 0
