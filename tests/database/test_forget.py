"""What is forgotten is gone from every place, and does not come back by any door."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, Urgency, codec
from hermes_memory_pgvector.mirror import edit_file, mirror
from hermes_memory_pgvector.ops.forget import bars, drain, host, request
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.flush import EmptyJournal
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.server.binaries import installed_binaries
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.values import AddTurn, Moment
from testing.command import Commands, with_password
from testing.host_state import host_state
from testing.postgres import Database, new_database
from testing.stored import Stored
from testing.unchanged import nothing_changes
from testing.waiting import wait_until

CANARY = "Zanzibar Quokka"
OTHER = "The harbour pilot boat is moored at the northern quay tonight"
LONG = f"{CANARY} told a very long story about saffron. " + "It goes on and on about the quay and the tide. " * 40


class Home:
    """A home whose agent and operator live in this process."""

    def __init__(self, folder: Path, database: Database) -> None:
        runtime, password = with_password(database.runtime_dsn)
        self.commands = Commands(folder, [password])
        self.commands.configure(dsn=runtime, embed_url="http://127.0.0.1:9/", embed_on_write=False, turn_min_chars=1)
        self.path = self.commands.home
        (self.path / "memories").mkdir(exist_ok=True)
        self.folder = self.path / "pgvector"
        self.stored = Stored(database.owner_dsn)
        self.database = database

    def provider(self, theme: str = "marketing", session: str = "s1") -> PgvectorMemoryProvider:
        made = PgvectorMemoryProvider()
        made.initialize(
            session, hermes_home=str(self.path), platform="api_server", agent_context="primary",
            gateway_session_key=theme, agent_identity="default", agent_workspace="hermes",
        )  # fmt: skip
        return made

    @property
    def engine(self) -> Any:
        return engine_for(self.path)[0]

    def settle(self) -> None:
        wait_until(lambda: self.engine.writer.flush(Deadline.after(1)))
        self.engine.tasks.wake()
        wait_until(lambda: not self.engine.mirror.is_due())

    def close(self) -> None:
        close_all(Deadline.after(10))

    def memory_file(self, *entries: str, target: str = "MEMORY.md") -> None:
        (self.path / "memories" / target).write_text("\n§\n".join(entries), encoding="utf-8")

    def memory_text(self, target: str = "MEMORY.md") -> str:
        return (self.path / "memories" / target).read_text(encoding="utf-8")

    def state_db(self, *messages: tuple[str, str, str]) -> None:
        with host_state(self.path) as store:
            store.clock = time.time() - 3600
            for session in dict.fromkeys(session for session, _, _ in messages):
                store.session(session, ended_at=store.clock + 60)
            for session, role, content in messages:
                store.say(session, role, content)

    def journal(self, *items: AddTurn) -> None:
        """A journal that a process left behind before its records arrived."""
        journal = Journal(self.folder / "journal", max_bytes=1 << 20)
        journal.open()
        journal.append(codec.encode(items), Urgency.TURN)
        journal.close(Deadline.after(5))

    def turn(self, content: str, *, theme: str = "marketing", session: str = "s1", is_live: bool = True) -> AddTurn:
        return AddTurn(theme, session, "user", content, 1, Clock().now(), is_live)

    def dump(self) -> str:
        program = installed_binaries()[0].program("pg_dump")
        done = subprocess.run(
            [program, f"--dbname={self.database.owner_dsn}"], capture_output=True, text=True, check=True
        )
        return done.stdout

    def hits(self, text: str = CANARY) -> list[str]:
        """Every place that holds a text: tables, statistics, and files below the plugin's folder."""
        words = text.lower()
        found = ["tables"] * (words in self.stored.everything().lower())
        found += ["dump"] * (words in self.dump().lower())
        lexeme = words.split()[0]
        found += ["lexemes"] * (lexeme in self.stored.everything().lower())
        found += ["letters"] * any(
            text.encode() in bytes(payload) for (payload,) in self.stored.rows("SELECT payload FROM dead_letters")
        )
        statistics = self.stored.rows("SELECT s::text FROM pg_stats AS s WHERE schemaname = 'public'")
        found += ["statistics"] * any(lexeme in str(row).lower() for row in statistics)
        for path in self.folder.rglob("*"):
            if path.is_file() and words.encode() in path.read_bytes().lower():
                found.append(str(path.relative_to(self.folder)))
        return found


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)


@pytest.fixture
def home(tmp_path: Path, database: Database) -> Iterator[Home]:
    made = Home(tmp_path, database)
    yield made
    made.close()


def nothing_waits(home: Home) -> bool:
    with psycopg.connect(home.database.owner_dsn) as owner:
        return drain.waiting(owner, [home.path]) == 0


def by_every_door(home: Home) -> None:
    """The canary comes in by every door there is; something else stands beside it each time."""
    agent = home.provider()
    agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
    agent.on_memory_write("add", "memory", "Likes coffee", metadata={})
    agent.on_memory_write("replace", "memory", "Tea is out", metadata={"old_text": f"{CANARY} likes"})
    agent.on_memory_write("add", "user", f"{CANARY} is 52", metadata={})
    agent.sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    agent.sync_turn("What else is there to be done today?", "Nothing that I know of, enjoy the day", session_id="s1")
    agent.on_delegation(f"Find the number of {CANARY}", "It is 4711", child_session_id="c1")
    home.memory_file("Likes coffee", "Tea is out", f"{CANARY}\u00a0stands in the file", "Wifi is hummingbird")
    home.memory_file(f"{CANARY} is 52", target="USER.md")
    home.settle()
    home.close()
    home.journal(home.turn(f"{CANARY} waits in a journal"), home.turn("Somebody else waits beside it"))
    home.journal(home.turn(f"{CANARY} was imported", session="imported", is_live=False))
    home.state_db(("s9", "user", LONG), ("s9", "user", OTHER), ("s9", "assistant", "That was long, thank you"))
    lines = [{"kind": "hermes-pgvector", "format": 1}] + [
        {"kind": "turn", "theme": "marketing", "session": "elsewhere", "role": "user", "content": content,
         "ordinal": 1, "at": "2026-01-01T00:00:00+00:00"}
        for content in (f"{CANARY} came by an import", "Imported beside it")
    ]  # fmt: skip
    (home.path / "brought.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert home.commands.call("import", str(home.path / "brought.jsonl"), "--execute").code == 0
    with psycopg.connect(home.database.owner_dsn) as owner:
        payload = codec.encode([home.turn(f"{CANARY} was rejected"), home.turn("Rejected beside it")])
        for number, each in enumerate((payload, b"unreadable " + CANARY.encode())):
            owner.execute(
                "INSERT INTO dead_letters (writer, position, payload, reason) VALUES ('w', %s, %s, 'x')", (number, each)
            )
        owner.execute(
            "INSERT INTO recall_log (agent_identity, at, caller, kind, scope, query, milliseconds)"
            " VALUES ('marketing', now(), 'tool', 'turn', 'current', %s, 1)",
            (f"where is {CANARY}?",),
        )
        owner.execute("ANALYZE")


def test_a_text_that_came_by_every_door_is_forgotten_and_stays_forgotten(home: Home, tmp_path: Path) -> None:
    by_every_door(home)
    assert home.hits()
    shutil.copytree(home.folder, tmp_path / "old")
    assert home.commands.call("export", "--output", str(tmp_path / "old.jsonl")).code == 0
    assert CANARY in (tmp_path / "old.jsonl").read_text(encoding="utf-8")
    with nothing_changes(home.stored):
        dry = home.commands.call("forget", "--match", CANARY.upper(), "--json")
    assert dry.code == 0, dry.everything
    counts = dry.json["counts"]
    assert (counts["turns"], counts["memories"], counts["rejected"]) == (3, 2, 2)
    assert any(each["text"].startswith("2 records still in journals") for each in dry.json["notes"])
    assert (counts["entries"], [Path(each.partition(",")[0]).name for each in dry.json["files"]]) == (
        2, ["MEMORY.md", "USER.md"],
    )  # fmt: skip
    assert dry.json["host_messages"] == 1

    done = home.commands.call("forget", "--match", CANARY.upper(), "--execute", "--json")
    assert done.code == 0, done
    assert home.hits() == []
    assert home.memory_text() == "Likes coffee\n§\nTea is out\n§\nWifi is hummingbird"
    assert home.memory_text("USER.md") == ""
    receipt = str(done.json["receipt"])
    assert CANARY not in done.out

    # Nothing else went, and what waited beside it has arrived.
    assert {content for _, content in home.stored.memories("marketing")} == {"Likes coffee", "Tea is out"}
    assert home.stored.memories("hermes") == [("memory", "Wifi is hummingbird")]
    assert {content for _, _, content in home.stored.turns("marketing")} >= {OTHER, "Somebody else waits beside it"}

    # All that is left is the host's own, and it is said how to delete that; what libraries say is nobody's memory.
    library = home.folder / "checkpoints" / "libraries-3.11-x.sock"
    library.mkdir(parents=True)
    (library / "words.txt").write_text(CANARY, encoding="utf-8")
    passed = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--json")
    assert [(each["ours"], each["remedy"]) for each in passed.json["places"] if each["found"]] == [
        (False, "hermes sessions delete s9")
    ]
    assert passed.code == 3
    shutil.rmtree(library)
    assert home.commands.call("forget", "--verify", receipt).code == 0

    # The old journals again, as after a restored backup; old exports; what the host's own store still has.
    shutil.rmtree(home.folder / "journal")
    shutil.copytree(tmp_path / "old" / "journal", home.folder / "journal")
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("DELETE FROM journal_writers")
    home.provider(session="s2").sync_turn("A new day begins", "So it does, and a fine one", session_id="s2")
    waiting = {"A new day begins"}
    wait_until(lambda: {each for _, _, each in home.stored.turns("marketing")} >= waiting)
    home.settle()
    wait_until(lambda: nothing_waits(home))
    home.close()
    for source in ((str(tmp_path / "old.jsonl"),), (str(home.path / "brought.jsonl"),), ("state",)):
        brought = home.commands.call("import", *source, "--execute", "--json")
        assert brought.code == 0, brought
    assert "Imported beside it" in {content for _, _, content in home.stored.turns("marketing")}
    assert OTHER in {content for _, _, content in home.stored.turns("hermes")}
    everything = home.stored.everything().lower()
    assert home.stored.turns("marketing", CANARY) == []
    assert CANARY.lower() not in everything
    assert "zanzibar" not in everything

    (row,) = home.stored.rows("SELECT subject, counts FROM audit_log WHERE action = 'forget'")
    assert row[0] == f"receipt {receipt}"
    (home.folder / "journal" / "forgotten.bak").write_text(f"a copy with {CANARY} in it", encoding="utf-8")
    assert home.commands.call("forget", "--verify", receipt, "--match", CANARY).code == 1


def test_words_said_after_they_were_forgotten_are_new(home: Home) -> None:
    said = f"{CANARY} called about the delivery"
    agent = home.provider()
    agent.sync_turn(said, OTHER, session_id="s1")
    agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
    home.settle()
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    assert home.hits() == []
    # The transcript shows it again: that is the old turn.
    old = [{"role": "user", "content": said}, {"role": "assistant", "content": OTHER}]
    again = home.provider(session="s3")
    again.on_session_end(old)
    home.settle()
    assert [content for _, _, content in home.stored.turns("marketing", CANARY)] == []
    agent.sync_turn(said, "Again?", session_id="s4")
    agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
    home.memory_file(f"{CANARY} likes tea")
    home.settle()
    assert home.stored.turns("marketing", CANARY) == [("user", "s4", said)]
    assert home.stored.memories("marketing") == [("memory", f"{CANARY} likes tea")]


def test_an_entry_in_the_file_of_another_machine_stays_out(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.memory_file(f"{CANARY} likes tea", "Wifi is hummingbird")
    home.provider()
    home.settle()
    with monkeypatch.context() as patched:
        # Nobody here can edit the file.
        patched.setattr(host, "entries", lambda _: iter(()))
        assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    assert CANARY in home.memory_text()
    home.memory_file(f"{CANARY} likes tea", "Wifi is kolibri")
    home.settle()
    assert home.stored.memories("hermes") == [("memory", "Wifi is kolibri")]
    home.memory_file("Wifi is kolibri")
    home.settle()
    home.memory_file("Wifi is kolibri", f"{CANARY} likes tea")
    home.settle()
    assert {content for _, content in home.stored.memories("hermes")} == {"Wifi is kolibri", f"{CANARY} likes tea"}


def test_a_file_that_is_compared_for_the_first_time_does_not_bring_it_back(home: Home) -> None:
    agent = home.provider()
    agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
    home.settle()
    home.close()
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("DELETE FROM memory_files")
        owner.execute("UPDATE forgotten SET until = until + interval '1 second'")
    home.memory_file(f"{CANARY.upper()}  likes tea", "Wifi is hummingbird")
    home.provider(theme="hermes")
    home.settle()
    assert home.stored.memories("hermes") == [("memory", "Wifi is hummingbird")]


def test_what_is_written_into_the_file_afterwards_is_new_though_nobody_has_compared_it_since(home: Home) -> None:
    home.memory_file(f"{CANARY} likes tea", "Wifi is hummingbird")
    home.provider(theme="hermes")
    home.settle()
    home.close()
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    assert home.memory_text() == "Wifi is hummingbird"
    home.memory_file("Wifi is hummingbird", f"{CANARY} likes tea")
    home.provider(theme="hermes")
    home.settle()
    assert ("memory", f"{CANARY} likes tea") in home.stored.memories("hermes")


def test_an_old_file_that_is_put_back_does_not_bring_it_back(home: Home) -> None:
    home.memory_file(f"{CANARY} likes tea", "Wifi is hummingbird")
    home.provider(theme="hermes")
    home.settle()
    path = home.path / "memories" / "MEMORY.md"
    old, written = path.read_bytes(), path.stat().st_mtime
    home.close()
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    home.provider(theme="hermes")
    home.settle()
    path.write_bytes(old)
    os.utime(path, (written, written))
    home.settle()
    assert home.stored.memories("hermes") == [("memory", "Wifi is hummingbird")]
    home.memory_file("Wifi is kolibri", f"{CANARY} likes tea")
    home.settle()
    assert home.stored.memories("hermes") == [("memory", "Wifi is kolibri")]


@pytest.mark.parametrize(
    ("where", "statement"),
    [
        ("table of turns", "INSERT INTO conversations (agent_identity, session_id, role, content, ts) VALUES"
         " ('marketing', 's', 'user', %s, '2020-01-01')"),
        ("table of memories", "INSERT INTO memory_entries (agent_identity, target, content, updated_at) VALUES"
         " ('marketing', 'memory', %s, '2020-01-01')"),
        ("table of events", "INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part,"
         " action, content, at) VALUES ('marketing', 'memory', 1, 'w', 1, 1, 'add', %s, '2020-01-01')"),
    ],
)  # fmt: skip
def test_a_row_put_back_makes_the_proof_fail_and_is_named(home: Home, where: str, statement: str) -> None:
    agent = home.provider()
    said = f"{CANARY} called about the delivery"
    agent.sync_turn(said, OTHER, session_id="s1")
    agent.on_memory_write("add", "memory", said, metadata={})
    home.settle()
    home.close()
    receipt = str(home.commands.call("forget", "--match", CANARY, "--execute", "--json").json["receipt"])
    assert home.commands.call("forget", "--verify", receipt).code == 0
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute(statement.encode(), (said.upper().replace(" ", "\n"),))
    failed = home.commands.call("forget", "--verify", receipt, "--json")
    assert failed.code == 1
    assert [each["where"] for each in failed.json["places"] if each["found"]] == [where]
    assert "1 left of what can be taken out" in home.commands.call("forget", "--verify", receipt).out


def test_what_waits_in_a_journal_again_or_stands_in_a_file_is_named(home: Home) -> None:
    home.provider().sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.settle()
    home.close()
    old = home.turn(f"{CANARY} called about the delivery")
    receipt = str(home.commands.call("forget", "--match", CANARY, "--execute", "--json").json["receipt"])
    home.journal(old)
    failed = home.commands.call("forget", "--verify", receipt, "--json")
    assert failed.code == 1
    assert [each["where"].split()[0] for each in failed.json["places"] if each["found"]] == ["journals"]
    shutil.rmtree(home.folder / "journal")
    assert home.commands.call("forget", "--verify", receipt).code == 0
    home.memory_file(f"{CANARY} is 52", target="USER.md")
    left = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--json")
    assert (left.code, [Path(each["where"]).name for each in left.json["places"] if each["found"]]) == (3, ["USER.md"])


def test_a_running_process_stores_what_waits_and_lets_go_of_its_files(home: Home) -> None:
    agent = home.provider()
    agent.sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    done = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert done.code == 0, done
    assert done.json["counts"]["turns"] == 1
    assert home.hits() == []
    agent.sync_turn("Life goes on after that", "It does indeed, day by day", session_id="s1")
    home.settle()
    assert ("user", "s1", "Life goes on after that") in home.stored.turns("marketing")
    home.close()


def test_a_process_that_does_not_answer_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(EmptyJournal, "run", lambda _: 60.0)
    agent = home.provider()
    agent.sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.settle()
    done = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert done.code == 3
    assert ["has not emptied its journal" in each["text"] for each in done.json["left"]] == [True]
    assert home.stored.turns("marketing", CANARY) == []
    assert not list((home.folder / "journal").glob("*.flush"))


def test_forget_changes_both_files_or_none(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.provider().sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.settle()
    home.close()
    home.memory_file(f"{CANARY} likes tea", "Wifi is hummingbird")
    home.memory_file(f"{CANARY} is 52", target="USER.md")
    monkeypatch.setattr(edit_file, "LOCK_SECONDS", 0.1)
    with (home.path / "memories" / "USER.md.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = home.commands.call("forget", "--match", CANARY, "--execute")
    assert (done.code, "nothing was done" in done.err) == (1, True)
    assert (CANARY in home.memory_text(), CANARY in home.memory_text("USER.md")) == (True, True)
    assert len(home.stored.turns("marketing", CANARY)) == 1
    assert [home.stored.count(table) for table in ("receipts", "forgotten")] == [0, 0]
    assert not (home.folder / "forgotten.bars").exists()
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    assert (home.memory_text(), home.memory_text("USER.md")) == ("Wifi is hummingbird", "")


def test_a_server_whose_clock_is_ahead_refuses_nothing_new(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's own clock is ahead here, or the server's is: a mark reaches no further than the earlier of both."""
    home.provider("trading").sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.settle()
    home.close()
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("UPDATE conversations SET ts = '2099-01-01'")
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return tomorrow

    with monkeypatch.context() as patched:
        patched.setattr(request, "datetime", Ahead)
        assert home.commands.call("forget", "--theme", "trading", "--execute").code == 0
    assert home.stored.themes() == set()
    ((latest,),) = home.stored.rows("SELECT max(until) FROM forgotten")
    assert latest <= datetime.now(UTC)
    home.provider("trading").sync_turn("A fresh start for trading", "Good luck with it", session_id="s1")
    home.settle()
    assert len(home.stored.turns("trading")) == 2


@pytest.mark.parametrize("step", ["erase", "insert", "take_out", "committed", "keep"])
def test_whoever_is_killed_at_any_step_runs_it_again(home: Home, step: str) -> None:
    home.provider().sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.provider().on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
    home.memory_file(f"{CANARY} likes tea", "Wifi is hummingbird")
    home.settle()
    home.close()
    program = Path(home.path / "killed.py")
    program.write_text(KILLED, encoding="utf-8")
    command = [sys.executable, str(program), step, "--hermes-home", str(home.path), "forget", "--match", CANARY]
    done = subprocess.run([*command, "--execute"], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert home.stored.count("receipts") == (step in ("committed", "keep"))
    # Nothing is barred without a receipt: a backup that is put back now loses nothing.
    assert (home.folder / "forgotten.bars").exists() == (step == "keep")
    again = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert again.code == 0, again
    assert home.hits() == []
    assert home.memory_text() == "Wifi is hummingbird"
    assert barred(home) == set(home.stored.rows("SELECT encode(mark, 'hex'), receipt FROM forgotten"))
    receipts = home.commands.call("list", "receipts", "--json").json["rows"]
    assert all(
        home.commands.call("forget", "--verify", str(each["id"]), "--match", CANARY).code == 0 for each in receipts
    )


def barred(home: Home) -> set[tuple[str, int]]:
    lines = (home.folder / "forgotten.bars").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines))
    return {(mark, int(receipt)) for _, mark, _, receipt in map(str.split, lines)}


def test_what_a_home_could_not_remember_is_named_and_written_later(home: Home) -> None:
    home.provider().sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.memory_file(f"{CANARY} is 52", target="USER.md")
    home.settle()
    home.close()
    file = home.folder / "forgotten.bars"
    file.mkdir()
    done = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert (done.code, [str(file) in each["text"] for each in done.json["left"]]) == (3, [True]), done
    assert (home.hits(), home.memory_text("USER.md")) == ([], "")
    receipt = str(done.json["receipt"])
    assert home.commands.call("forget", "--verify", receipt).code == 3
    file.rmdir()
    assert home.commands.call("forget", "--verify", receipt).code == 0
    whole = file.read_text(encoding="utf-8")
    assert barred(home) == set(home.stored.rows("SELECT encode(mark, 'hex'), receipt FROM forgotten"))

    # The machine ended while it was written; whoever forgets next, even in vain, writes the rest.
    file.write_text(whole[: len(whole) // 3], encoding="utf-8")
    assert home.commands.call("forget", "m4711", "--execute").code == 1
    assert set(file.read_text(encoding="utf-8").splitlines()) >= set(whole.splitlines())


def test_a_number_of_a_receipt_is_above_that_of_every_mark(home: Home) -> None:
    home.provider().sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.settle()
    home.close()
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("INSERT INTO forgotten (mark, until, receipt) VALUES ('of before', '2026-01-01', 70)")
    numbers = [
        home.commands.call("forget", "--match", each, "--execute", "--json").json["receipt"] for each in (CANARY, OTHER)
    ]
    assert numbers == [71, 72]


KILLED = """
import itertools, os, signal, sys
import psycopg
from hermes_memory_pgvector.mirror import edit_file
from hermes_memory_pgvector.ops.forget import bars, host, rows
from hermes_memory_pgvector.store import marks
from hermes_memory_pgvector.command import main

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def killed_after(module, name):
    real = getattr(module, name)
    def run(*given, **named):
        done = real(*given, **named)
        kill()
    setattr(module, name, run)

def counted(cursor):
    real = cursor.execute
    def run(*given, **named):
        done = real(*given, **named)
        if next(statements) == int(step):
            kill()
        return done
    cursor.execute = run

step, statements = sys.argv.pop(1), itertools.count(1)
where = {"erase": (rows, "erase"), "insert": (marks, "insert"), "take_out": (host, "take_out"), "keep": (bars, "_add")}
if step == "committed":
    bars._add = kill
elif step.isdigit():
    counted(psycopg.Cursor)
    counted(psycopg.ServerCursor)
else:
    killed_after(*where[step])
sys.exit(main())
"""


PARTNER = "agent:main:whatsapp:dm:4915112345678"


def said_by_criterion(home: Home, criterion: str) -> list[str]:
    """The canary where a criterion means it, and somebody else beside it; the options that name it."""
    long_ago = Moment(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6), 1)
    home.provider("bystander", "s1").sync_turn(OTHER, "So it is, at the northern quay", session_id="s1")
    if criterion == "before":
        home.settle()
        home.close()
        home.journal(replace(home.turn(f"{CANARY} called", theme="hermes"), when=long_ago))
        return ["--before", "2026-02-01"]
    agent = home.provider(PARTNER if criterion == "user" else "hermes", "canary")
    agent.sync_turn(f"{CANARY} called about the delivery", f"Noted: {CANARY} called", session_id="canary")
    agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={"session_id": "canary"})
    if criterion in ("theme", "ids"):
        home.memory_file(f"{CANARY} likes tea", f"{CANARY} stands in the file")
        home.memory_file(f"{CANARY} is 52", target="USER.md")
    home.settle()
    home.close()
    if criterion == "ids":
        held = "SELECT left(kind, 1) || id FROM hermes_rows WHERE strpos(content, %s) > 0"
        return [name for (name,) in home.stored.rows(held, CANARY)]
    theme = next(theme for theme in home.stored.themes() if theme != "bystander")
    home.journal(home.turn(f"{CANARY} waits in a journal", theme=theme, session="canary"))
    return {"theme": ["--theme", "hermes"], "session": ["--session", "canary"], "user": ["--user", PARTNER]}[criterion]


@pytest.mark.parametrize("criterion", ["theme", "session", "user", "ids", "before"])
def test_whatever_names_it_nothing_of_it_is_left_and_nothing_comes_back(
    home: Home, tmp_path: Path, postgres_server: ConnectionInfo, criterion: str
) -> None:
    options = said_by_criterion(home, criterion)
    shutil.copytree(home.folder, tmp_path / "old")
    with new_database(postgres_server, template=home.database.name) as backup:
        _forgotten_for_good(home, tmp_path / "old", options, backup)


def _forgotten_for_good(home: Home, old: Path, options: list[str], backup: Database) -> None:
    assert home.hits()
    assert home.commands.call("export", "--output", str(old.with_suffix(".jsonl"))).code == 0
    done = home.commands.call("forget", *options, "--execute", "--json")
    assert done.code == 0, done
    assert home.hits() == []
    assert [path.read_text() for path in (home.path / "memories").iterdir() if CANARY in path.read_text()] == []
    assert home.commands.call("forget", "--verify", str(done.json["receipt"]), "--match", CANARY).code == 0

    # The old journals again, as after a restored backup, and an old export.
    shutil.rmtree(home.folder / "journal")
    shutil.copytree(old / "journal", home.folder / "journal")
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("DELETE FROM journal_writers")
    home.provider("bystander", "s2").sync_turn("A new day begins", "So it does, and a fine one", session_id="s2")
    home.settle()
    wait_until(lambda: nothing_waits(home))
    home.close()
    assert home.commands.call("import", str(old.with_suffix(".jsonl")), "--execute").code == 0
    assert CANARY.lower() not in home.stored.everything().lower()
    assert {content for _, _, content in home.stored.turns("bystander")} >= {OTHER, "A new day begins"}

    # A backup of before that is put back.
    with psycopg.connect(backup.owner_dsn) as restored:
        bars.apply(restored, [home.folder])
    assert CANARY.lower() not in Stored(backup.owner_dsn).everything().lower()
    assert OTHER in {content for _, _, content in Stored(backup.owner_dsn).turns("bystander")}, "nothing else went"


@pytest.mark.parametrize("apart", [pytest.param(1, marks=pytest.mark.large), 7])
@pytest.mark.timeout(600)
def test_whoever_is_killed_at_any_statement_has_forgotten_all_or_nothing(home: Home, apart: int) -> None:
    home.provider().sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.provider().on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
    home.memory_file(f"{CANARY} likes tea", "Wifi is hummingbird")
    home.settle()
    home.close()
    program = Path(home.path / "killed.py")
    program.write_text(KILLED, encoding="utf-8")
    command = [sys.executable, str(program)]
    request = ["--hermes-home", str(home.path), "forget", "--match", CANARY, "--execute"]
    for number in count(1, apart):
        done = subprocess.run([*command, str(number), *request], capture_output=True, text=True, check=False)
        held = home.stored.turns("marketing", CANARY), home.stored.memories("marketing")
        assert [bool(each) for each in held] == [home.stored.count("receipts") == 0] * 2, number
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert home.hits() == []
    assert home.memory_text() == "Wifi is hummingbird"


def test_a_theme_a_session_a_person_rows_and_what_is_old(home: Home) -> None:
    for theme, session in (("marketing", "s1"), ("marketing", "s2"), ("trading", "s1")):
        agent = home.provider(theme, session)
        agent.sync_turn(f"{theme} says something in {session}", f"And is answered in {session}", session_id=session)
        agent.on_memory_write("add", "memory", f"{theme} remembers {session}", metadata={"session_id": session})
        agent.on_delegation(f"Task of {theme}", "Done", child_session_id=f"{session}-child")
    partner = home.provider("agent:main:whatsapp:dm:4915112345678", "s5")
    partner.sync_turn("My number is secret", "I shall not tell", session_id="s5")
    home.settle()
    home.close()

    unknown = home.commands.call("forget", "--theme", "marketin")
    assert unknown.code == 1
    assert "did you mean marketing?" in unknown.err
    assert home.commands.call("forget").code == 2
    assert home.commands.call("forget", "--user", "anna").code == 1
    with nothing_changes(home.stored):
        assert home.commands.call("forget", "--theme", "marketing").code == 0
        assert home.commands.call("forget", "--before", "2020-01-01", "--json").json["counts"] == {}

    ((first,),) = home.stored.rows("SELECT min(id) FROM memory_entries WHERE agent_identity = 'marketing'")
    one = home.commands.call("forget", f"m{first}", "--execute", "--json").json["counts"]
    assert (one["memories"], one.get("turns", 0)) == (1, 0)
    session = home.commands.call("forget", "--session", "s2", "--execute", "--json").json["counts"]
    assert (session["memories"], session["turns"]) == (1, 3)
    person = home.commands.call("forget", "--user", "agent:main:whatsapp:dm:4915112345678", "--execute", "--json")
    assert person.json["counts"]["turns"] == 2
    theme = home.commands.call("cleanup", "--theme", "trading", "--execute", "--json").json["counts"]
    assert (theme["memories"], theme["turns"]) == (1, 3)
    assert home.stored.themes() == {"marketing"}
    assert len(home.stored.turns("marketing")) == 3
    rest = home.commands.call("forget", "--before", "2100-01-01", "--execute", "--json")
    assert rest.json["counts"]["turns"] == 3
    assert home.stored.themes() == set()
    assert len(home.commands.call("list", "receipts", "--json").json["rows"]) == 5
    # What was said in the theme before it was forgotten stays out, whoever brings it; what is said now is stored.
    then = Moment(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6), 1)
    home.journal(AddTurn("trading", "late", "user", "Never seen before", 1, then, True))
    home.provider("trading", "s7").sync_turn("A fresh start for trading", "Good luck with it", session_id="s7")
    home.settle()
    wait_until(lambda: len(home.stored.turns("trading")) == 2)


def test_an_event_and_a_rejected_record_go_by_their_names(home: Home) -> None:
    agent = home.provider()
    agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
    agent.on_memory_write("add", "memory", "Likes coffee", metadata={})
    agent.on_memory_write("replace", "memory", "Likes cocoa", metadata={"old_text": "Likes coffee"})
    home.settle()
    home.close()
    with psycopg.connect(home.database.owner_dsn) as owner:
        payload = codec.encode([home.turn(f"{CANARY} was rejected")])
        owner.execute(
            "INSERT INTO dead_letters (writer, position, payload, reason) VALUES ('w', 1, %s, 'x')", (payload,)
        )
    ((tea, letter),) = home.stored.rows("SELECT (SELECT min(id) FROM memory_operations), (SELECT id FROM dead_letters)")
    done = home.commands.call("forget", f"e{tea}", f"d{letter}", "--execute", "--json")
    assert (done.json["counts"]["memories"], done.json["counts"]["rejected"]) == (1, 1), done
    assert home.stored.memories("marketing") == [("memory", "Likes cocoa")]
    assert [row[0] for row in home.stored.rows("SELECT action FROM memory_operations ORDER BY id")] == [
        "add",
        "replace",
    ]
    assert home.stored.count("dead_letters") == 0
    both = home.commands.call("forget", "m1", "--match", CANARY)
    assert (both.code, "leave the other options out" in both.err) == (2, True)
