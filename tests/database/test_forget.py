"""What is forgotten is gone from every place, and does not come back by any door."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from docs.pages import page

from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, Urgency, codec
from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.server.binaries import installed_binaries
from hermes_memory_pgvector.values import AddTurn, Moment
from testing.command import Commands, with_password
from testing.host_state import host_state
from testing.postgres import Database
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
    home.memory_file("Likes coffee", "Tea is out", f"{CANARY} stands in the file", "Wifi is hummingbird")
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
    assert home.commands.call("import", "jsonl", str(home.path / "brought.jsonl")).code == 0
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
    assert dry.code == 0, dry
    assert dry.json["counts"] == {
        "turns": 3, "memories": 2, "history": 4, "delegations": 0, "dead_letters": 2, "journal_items": 8,
        "recall_log": 1, "stamps": 0,
    }  # fmt: skip
    assert [Path(each["path"]).name for each in dry.json["files"]] == ["MEMORY.md", "USER.md"]
    assert dry.json["host_messages"] == 1

    done = home.commands.call("forget", "--match", CANARY.upper(), "--execute", "--json")
    assert done.code == 0, done
    assert home.hits() == []
    receipt = done.json["receipt"]["id"]
    assert CANARY not in done.out

    # Nothing else went.
    assert {content for _, content in home.stored.memories("marketing")} == {"Likes coffee", "Tea is out"}
    assert home.stored.memories("hermes") == [("memory", "Wifi is hummingbird")]
    assert {content for _, _, content in home.stored.turns("marketing")} >= {OTHER}

    passed = home.commands.call("forget", "--verify", str(receipt), "--match", CANARY, "--json")
    assert [each for each in passed.json["checks"] if each["found"]] == []
    assert (passed.code, passed.json["passed"]) == (0, True)
    assert any("backups" in each for each in passed.json["unverified"])

    # The old journals again, as after a restored backup; the file with the entry in it; the host's store.
    shutil.rmtree(home.folder / "journal")
    shutil.copytree(tmp_path / "old" / "journal", home.folder / "journal")
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("DELETE FROM journal_writers")
    home.provider(session="s2").sync_turn("A new day begins", "So it does, and a fine one", session_id="s2")
    home.memory_file("Likes coffee", f"{CANARY} stands in the file", "Wifi is kolibri")
    waiting = {"Somebody else waits beside it"}
    wait_until(lambda: {each for _, _, each in home.stored.turns("marketing")} >= waiting)
    home.settle()
    # The process has cleaned the files that were put back, too.
    wait_until(lambda: home.hits() == [])
    home.close()
    # Old exports, and what the host's own store still has of the sessions.
    for source in (("jsonl", str(tmp_path / "old.jsonl")), ("jsonl", str(home.path / "brought.jsonl")), ("state",)):
        brought = home.commands.call("import", *source, "--json")
        assert brought.code == 0, brought
    assert "Imported beside it" in {content for _, _, content in home.stored.turns("marketing")}
    assert OTHER in {content for _, _, content in home.stored.turns("hermes")}
    everything = home.stored.everything().lower()
    assert home.stored.turns("marketing", CANARY) == []
    assert CANARY.lower() not in everything
    assert "zanzibar" not in everything
    assert {content for _, content in home.stored.memories("hermes")} == {"Wifi is kolibri"}

    (row,) = home.stored.rows("SELECT subject, counts FROM audit_log WHERE action = 'forget'")
    assert (row[0], row[1]["turns"]) == (f"receipt {receipt}", 3)

    assert home.commands.call("forget", "--verify", str(receipt), "--match", CANARY).code == 0
    (home.folder / "journal" / "forgotten.bak").write_text(f"a copy with {CANARY} in it", encoding="utf-8")
    assert home.commands.call("forget", "--verify", str(receipt), "--match", CANARY).code == 1


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


def test_an_entry_is_withheld_until_the_file_was_seen_without_it(home: Home) -> None:
    home.memory_file(f"{CANARY} likes tea", "Wifi is hummingbird")
    home.provider()
    home.settle()
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    home.memory_file(f"{CANARY} likes tea", "Wifi is kolibri")
    home.settle()
    assert home.stored.memories("hermes") == [("memory", "Wifi is kolibri")]
    home.memory_file("Wifi is kolibri")
    home.settle()
    home.memory_file("Wifi is kolibri", f"{CANARY} likes tea")
    home.settle()
    assert {content for _, content in home.stored.memories("hermes")} == {"Wifi is kolibri", f"{CANARY} likes tea"}


@pytest.mark.parametrize(
    ("where", "statement"),
    [
        ("conversations", "INSERT INTO conversations (agent_identity, session_id, role, content, ts) VALUES"
         " ('marketing', 's', 'user', %s, '2020-01-01')"),
        ("memory_operations", "INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part,"
         " action, previous, at) VALUES ('marketing', 'memory', 1, 'w', 1, 1, 'remove', %s, '2020-01-01')"),
    ],
)  # fmt: skip
def test_a_leftover_makes_the_proof_fail(home: Home, where: str, statement: str) -> None:
    agent = home.provider()
    said = f"{CANARY} called about the delivery"
    agent.sync_turn(said, OTHER, session_id="s1")
    agent.on_memory_write("add", "memory", said, metadata={})
    home.settle()
    home.close()
    receipt = home.commands.call("forget", "--match", CANARY, "--execute", "--json").json["receipt"]["id"]
    assert home.commands.call("forget", "--verify", str(receipt)).code == 0
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute(statement.encode(), (said,))
    failed = home.commands.call("forget", "--verify", str(receipt), "--json")
    assert failed.code == 1
    assert [each["where"] for each in failed.json["checks"] if each["found"] > 0] == [f"table {where}"]


def test_a_leftover_in_a_file_or_a_lost_tombstone_makes_the_proof_fail(home: Home) -> None:
    home.provider().sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.settle()
    home.close()
    old = home.turn(f"{CANARY} called about the delivery")
    receipt = home.commands.call("forget", "--match", CANARY, "--execute", "--json").json["receipt"]["id"]
    home.journal(old)
    failed = home.commands.call("forget", "--verify", str(receipt), "--json")
    assert failed.code == 1
    assert [each["where"].split()[0] for each in failed.json["checks"] if each["found"] > 0] == ["journal"]
    shutil.rmtree(home.folder / "journal")
    assert home.commands.call("forget", "--verify", str(receipt)).code == 0
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("DELETE FROM tombstones")
    assert home.commands.call("forget", "--verify", str(receipt), "--json").json["intact"] is False


def test_a_running_process_takes_it_out_of_the_file_it_is_writing_to(home: Home) -> None:
    agent = home.provider()
    agent.sync_turn(f"{CANARY} called about the delivery", OTHER, session_id="s1")
    home.settle()
    done = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert done.code == 0, done
    assert home.hits() == []
    agent.sync_turn("Life goes on after that", "It does indeed, day by day", session_id="s1")
    home.settle()
    assert ("user", "s1", "Life goes on after that") in home.stored.turns("marketing")
    home.close()


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
    assert home.commands.call("forget").code == 1
    keys = {name: set(home.commands.call(*name.split(), "--json").json) for name in (
        "forget --theme marketing", "prune --days 900",
    )}  # fmt: skip
    for name, found in keys.items():
        (line,) = [
            each
            for each in page("docs/reference/json.md").text.splitlines()
            if each.startswith(f"| `{name.split()[0]}` |")
        ]
        assert found == set(re.findall(r"`(\w+)`", line.split(" | ")[1].partition("; `moved`")[0]))
    assert home.commands.call("forget", "--user", "anna").code == 1
    with nothing_changes(home.stored):
        assert home.commands.call("forget", "--theme", "marketing").code == 0
        assert home.commands.call("forget", "--before", "2020-01-01", "--json").json["counts"]["turns"] == 0

    ((first,),) = home.stored.rows("SELECT min(id) FROM memory_entries WHERE agent_identity = 'marketing'")
    one = home.commands.call("forget", "--id", f"m{first}", "--execute", "--json").json["counts"]
    assert (one["memories"], one.get("turns", 0)) == (1, 0)
    session = home.commands.call("forget", "--session", "s2", "--execute", "--json").json["counts"]
    assert (session["memories"], session["turns"], session["delegations"]) == (1, 3, 1)
    person = home.commands.call("forget", "--user", "agent:main:whatsapp:dm:4915112345678", "--execute", "--json")
    assert person.json["counts"]["turns"] == 2
    theme = home.commands.call("cleanup", "--theme", "trading", "--execute", "--json").json["counts"]
    assert (theme["memories"], theme["turns"], theme["delegations"]) == (1, 3, 1)
    assert home.stored.themes() == {"marketing"}
    assert len(home.stored.turns("marketing")) == 3
    rest = home.commands.call("forget", "--before", "2100-01-01", "--execute", "--json")
    assert rest.json["counts"]["turns"] == 3
    assert home.stored.themes() == set()
    assert len(home.commands.call("forget", "--receipts", "--json").json) == 5
    # What was said in the theme before it was forgotten stays out, whoever brings it; what is said now is stored.
    then = Moment(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6), 1)
    home.journal(AddTurn("trading", "late", "user", "Never seen before", 1, then, True))
    home.provider("trading", "s7").sync_turn("A fresh start for trading", "Good luck with it", session_id="s7")
    home.settle()
    wait_until(lambda: len(home.stored.turns("trading")) == 2)
