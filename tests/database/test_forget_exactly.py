"""What was named is gone for good under every name, whoever brings it again; what nobody named stays and arrives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from database.test_forget import CANARY, Home

from hermes_memory_pgvector.care import forgetting
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.journal.lock import WriterLock
from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.store import erasure
from hermes_memory_pgvector.values import AddMemory, Moment, RemoveMemory
from testing.postgres import Database
from testing.waiting import wait_until

SAID = f"{CANARY} called about the delivery"


@pytest.fixture
def home(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    made = Home(tmp_path, database)
    yield made
    made.close()


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def arrive(home: Home, theme: str = "bystander") -> None:
    """Have a process deliver whatever waits."""
    home.provider(theme, "now").sync_turn("Good morning to everybody", "Good morning to you", session_id="now")
    home.settle()
    wait_until(lambda: home.stored.turns(theme, "Good morning to you") != [])
    # Journals that others have left come after a process's own.
    wait_until(lambda: nothing_waits(home))
    home.close()


def nothing_waits(home: Home) -> bool:
    marks = dict(home.stored.rows("SELECT writer, position FROM journal_writers"))
    journal = home.engine.journal
    return not any(journal.depth(each, marks.get(each, 0)).records for each in journal.writers())


def contents(home: Home, theme: str) -> set[str]:
    return {content for _, _, content in home.stored.turns(theme)}


def test_a_renamed_theme_keeps_what_was_forgotten_and_nothing_else_out(home: Home, tmp_path: Path) -> None:
    for theme in ("sales", "marketing"):
        home.provider(theme, "s1").sync_turn(SAID, f"Noted by {theme}", session_id="s1")
    home.provider("sales", "s2").on_delegation(f"Find {CANARY}", "Found", child_session_id="c1")
    home.settle()
    home.close()
    export = tmp_path / "old.jsonl"
    assert home.commands.call("export", "--output", str(export)).code == 0
    late = replace(home.turn("Sales said this before anybody forgot", theme="sales", session="late"))

    # Marketing is forgotten whole, and sales a text, before sales becomes marketing.
    assert home.commands.call("forget", "--theme", "marketing", "--execute").code == 0
    assert home.commands.call("forget", "--theme", "sales", "--match", CANARY, "--execute").code == 0
    assert home.commands.call("theme", "merge", "sales", "marketing", "--execute").code == 0
    moved = home.commands.call("forget", "--theme", "sales")
    assert (moved.code, "merged into 'marketing'" in moved.err) == (1, True)

    # Nobody named what sales had still to deliver; what the older export has was named.
    home.journal(late)
    arrive(home)
    assert "Sales said this before anybody forgot" in contents(home, "marketing")
    imported = home.commands.call("import", "jsonl", str(export), "--json")
    assert imported.code == 0, imported
    assert home.stored.turns("marketing", CANARY) == []
    assert "Noted by marketing" not in contents(home, "marketing")
    assert "Noted by sales" in contents(home, "marketing")
    assert home.stored.count("delegations") == 0

    # Forgotten under the new name is forgotten under the old one, in files, too.
    home.journal(replace(late, content="Pelicans of sales wait for more"))
    assert home.commands.call("forget", "--theme", "marketing", "--execute").code == 0
    assert home.hits("Pelicans of sales") == []
    home.journal(late)
    arrive(home)
    assert contents(home, "marketing") == set()


def test_what_is_said_anew_after_the_forgetting_is_stored(home: Home) -> None:
    agent = home.provider()
    agent.on_delegation(f"Find the number of {CANARY}", "It is 4711", child_session_id="c1")
    home.settle()
    home.close()
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    assert home.stored.turns("marketing", CANARY) == []
    assert home.stored.count("delegations") == 0
    home.provider().on_delegation(f"Find the number of {CANARY}", "It is 4711", child_session_id="c1")
    home.settle()
    home.close()
    assert len(home.stored.turns("marketing", CANARY)) == 1
    assert home.stored.count("delegations") == 1
    new = {"kind": "turn", "theme": "marketing", "session": "s8", "role": "user", "content": SAID, "ordinal": 1}
    lines = [{"kind": "hermes-pgvector", "format": 1}]
    for at, session in ((datetime.now(UTC), "s8"), (datetime(2020, 1, 1, tzinfo=UTC), "s9")):
        lines.append({**new, "session": session, "at": at.isoformat()})
    (home.path / "new.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert home.commands.call("import", "jsonl", str(home.path / "new.jsonl")).code == 0
    assert [session for _, session, _ in home.stored.turns("marketing", SAID)] == ["s8"]


def test_an_interrupted_request_goes_on_with_the_same_receipt(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The theme is gone when the command is run again, and rows whose clock was ahead are gone, too."""
    ahead = Moment(*[int((datetime.now(UTC) + timedelta(days=400)).timestamp() * 1e6)] * 2)
    home.provider("trading", "s1").sync_turn(SAID, "Noted for trading", session_id="s1")
    home.provider("trading", "s1").on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
    home.settle()
    home.close()
    future = [
        replace(home.turn(f"{CANARY} comes from the future", theme="trading", session="s2"), when=ahead),
        AddMemory("trading", "memory", f"{CANARY} will like tea", ahead, "home"),
    ]
    home.journal(*future)  # type: ignore[arg-type]
    arrive(home)
    assert {content for _, content in home.stored.memories("trading")} == {
        f"{CANARY} likes tea", f"{CANARY} will like tea",
    }  # fmt: skip

    with monkeypatch.context() as patched:
        patched.setattr(forgetting, "redact_folder", killed)
        with suppress(KeyboardInterrupt):
            home.commands.call("forget", "--theme", "trading", "--execute")
    assert "trading" not in home.stored.themes()
    assert home.hits()
    ((number,),) = home.stored.rows("SELECT id FROM erasure_receipts WHERE finished_at IS NULL")
    unfinished = home.commands.call("forget", "--verify", str(number))
    assert (unfinished.code, "never finished" in unfinished.everything) == (1, True)
    assert home.commands.call("forget", "--theme", "trading", "--json").json["unfinished"] == number
    told = home.commands.call("forget", "--theme", "trading")
    assert "was interrupted; --execute goes on with it" in told.everything

    done = home.commands.call("forget", "--theme", "trading", "--execute", "--json")
    assert (done.code, done.json["resumed"], done.json["receipt"]["id"]) == (0, True, number)
    assert (done.json["counts"]["turns"], done.json["counts"]["memories"]) == (3, 2)
    assert home.hits() == []
    assert home.commands.call("forget", "--verify", str(number)).code == 0
    assert home.commands.call("forget", "--theme", "trading", "--execute").code == 1

    # The same journal again: what was dated ahead stays forgotten.
    home.journal(*future)  # type: ignore[arg-type]
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("DELETE FROM journal_writers")
    arrive(home, "again")
    assert "trading" not in home.stored.themes()


def test_verify_searches_what_forget_erases(home: Home) -> None:
    author = {"id": "77", "name": CANARY}
    agent = home.provider("work", f"{CANARY}-1")
    agent.sync_turn("What about the harbour budget", "It is fine", session_id=f"{CANARY}-1", turn_author=author)
    agent.on_memory_write("add", "memory", "Likes coffee", metadata={"asked_by": CANARY, "session_id": f"{CANARY}-1"})
    agent.on_delegation("Count the boats", "Twelve", child_session_id=f"{CANARY}-child")
    home.settle()
    home.close()
    home.journal(replace(home.turn("This waits", theme="work", session=f"{CANARY}-1"), metadata={"author": author}))
    done = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert done.code == 0, done
    assert (done.json["counts"]["stamps"], done.json["counts"]["journal_items"]) == (2, 3)
    assert contents(home, "work") >= {"What about the harbour budget", "It is fine"}
    ((metadata,),) = home.stored.rows("SELECT metadata FROM conversations WHERE content LIKE '%%harbour%%'")
    assert "author" not in metadata
    receipt = str(done.json["receipt"]["id"])
    verified = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--json")
    assert (verified.code, verified.json["passed"]) == (0, True), verified
    assert any("names alone" in each for each in verified.json["besides"])

    # What is said later is new; a leftover among it is one all the same.
    agent = home.provider("work", "s2")
    agent.sync_turn(SAID, "Heard of that", session_id="s2")
    home.settle()
    home.close()
    again = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--json")
    assert (again.code, any("said after" in each for each in again.json["besides"])) == (0, True), again
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute(
            "UPDATE memory_entries SET metadata = jsonb_build_object('asked_by', %s::text), updated_at = '2020-01-01'",
            (CANARY,),
        )
    failed = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--json")
    assert failed.code == 1
    assert [each["where"] for each in failed.json["checks"] if each["found"] > 0] == ["table memory_entries"]
    # Told to look into one theme alone, it finds nothing of another.
    assert home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--theme", "elsewhere").code == 0


def test_a_removal_that_waits_is_dropped_only_if_it_means_what_is_forgotten(home: Home) -> None:
    for theme in ("one", "two"):
        agent = home.provider(theme, "s1")
        agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={"session_id": "s1"})
        agent.on_memory_write("add", "memory", "Green tea is sold out", metadata={"session_id": "s3"})
        agent.on_memory_write("add", "user", f"{CANARY} likes tea", metadata={"session_id": "s3"})
        agent.sync_turn("Go on with the next step", "Going on", session_id="s1")
        agent.sync_turn("Go on with the next step", "Going on further", session_id="s1")
    home.settle()
    home.close()
    when = home.turn("x").when
    ((holder,),) = home.stored.rows("SELECT DISTINCT home_id FROM memory_operations")
    removals = [
        RemoveMemory("one", "memory", "Green tea", when, holder),
        RemoveMemory("one", "memory", f"{CANARY} likes", when, holder, f"{CANARY} likes tea"),
        RemoveMemory("two", "memory", f"{CANARY} likes", when, holder),
    ]
    ((entry,),) = home.stored.rows(
        "SELECT id FROM memory_entries WHERE agent_identity = 'one' AND target = 'memory' AND content LIKE 'Zan%%'"
    )
    ((second,),) = home.stored.rows(
        "SELECT id FROM conversations WHERE agent_identity = 'one' AND content LIKE 'Go on%%' AND ordinal = 2"
    )
    waiting = AddMemory("one", "user", "Says hello", when, holder, metadata={"session_id": "s3"})
    home.journal(*removals, waiting)  # type: ignore[arg-type]
    third = replace(home.turn("Go on with the next step", theme="one", session="s1"), ordinal=3)
    home.journal(third)
    done = home.commands.call("forget", "--id", f"m{entry}", "--id", f"t{second}", "--execute", "--json")
    assert (done.json["counts"]["memories"], done.json["counts"]["turns"]) == (1, 1), done
    assert home.commands.call("forget", "--verify", str(done.json["receipt"]["id"])).code == 0
    arrive(home)
    # What sales of the same words there are elsewhere stays, or goes because somebody removed it there.
    assert home.stored.memories("one") == [("user", f"{CANARY} likes tea"), ("user", "Says hello")]
    assert home.stored.memories("two") == [("memory", "Green tea is sold out"), ("user", f"{CANARY} likes tea")]
    ordinals = home.stored.rows(
        "SELECT ordinal FROM conversations WHERE agent_identity = 'one' AND content LIKE 'Go on%%' ORDER BY 1"
    )
    assert ordinals == [(1,), (3,)]
    payloads = b"".join(path.read_bytes() for path in (home.folder / "journal").iterdir() if path.is_file())
    assert b'"theme":"two","target":"memory"' in payloads

    # A session's memories are those it wrote: another session's word for the same stands.
    same = AddMemory("two", "user", f"{CANARY} likes tea", home.turn("x").when, holder, metadata={"session_id": "s9"})
    assert home.commands.call("forget", "--theme", "two", "--session", "s3", "--execute").code == 0
    assert home.stored.memories("two") == []
    home.journal(same)  # type: ignore[arg-type]
    arrive(home, "later")
    assert home.stored.memories("two") == [("user", f"{CANARY} likes tea")]


def test_versions_that_do_not_know_what_is_forgotten_are_named(home: Home) -> None:
    arrive(home)
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("INSERT INTO journal_writers (writer, position, home_id) VALUES ('w', 1, 'elsewhere')")
    plan = home.commands.call("forget", "--match", CANARY, "--json").json
    assert ["older version" in each and "elsewhere" in each for each in plan["older"]] == [True]
    done = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert done.code == 3
    assert any("older version" in each for each in done.json["receipt"]["unreached"])
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute("UPDATE journal_writers SET updated_at = '2020-01-01' WHERE writer = 'w'")
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0


def test_every_writer_waits_only_for_a_few_rows(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go in portions; journals are read and judged while writers may write."""
    for number in range(5):
        home.provider("work", "s1").sync_turn(f"{SAID} {number}", f"And answered {number}", session_id="s1")
    home.settle()
    home.close()
    portions: list[int] = []
    real = erasure.erase_turns

    def counted(*given: object, **named: object) -> None:
        portions.append(len(given[4]))  # type: ignore[arg-type]
        real(*given, **named)  # type: ignore[arg-type]

    def judged(payload: bytes) -> object:
        with psycopg.connect(home.database.owner_dsn, autocommit=True) as writer:
            asked = writer.execute("SELECT pg_try_advisory_xact_lock_shared(hashtextextended('hermes-gate', 7))")
            assert asked.fetchone() == (True,)
        return decode(payload)

    decode = codec.decode
    monkeypatch.setattr(forgetting, "ERASED_TOGETHER", 2)
    monkeypatch.setattr(erasure, "erase_turns", counted)
    monkeypatch.setattr(codec, "decode", judged)
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    assert portions == [2, 2, 1]
    assert home.hits() == []
    assert len(home.stored.turns("work")) == 5


def test_a_journal_that_is_being_sent_is_cleaned_afterwards(tmp_path: Path, database: Database) -> None:
    here, there = Home(tmp_path / "here", database), Home(tmp_path / "there", database)
    try:
        there.journal(there.turn(f"A word about {CANARY} that waits", theme="fleet", session="s2"))
        arrive(here)
        assert here.commands.call("forget", "--match", CANARY, "--execute").code == 0
        (file,) = (there.folder / "journal").glob("*.00000001")
        lock = WriterLock.take(file.parent, file.stem, create=False)
        assert lock is not None
        try:
            there.provider("fleet", "s3")
            wait_until(lambda: there.engine.cleaning.receipt > 0)
            assert there.hits() != []
        finally:
            lock.release()
        wait_until(lambda: there.hits() == [])
    finally:
        here.close()
        there.close()


def test_another_home_cleans_its_files_and_what_it_delivers_late_stays_out(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    here, there = Home(tmp_path / "here", database), Home(tmp_path / "there", database)
    try:
        agent = there.provider("fleet", "s1")
        agent.sync_turn(SAID, "Heard over there", session_id="s1")
        agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
        agent.on_memory_write("replace", "memory", "Tea is out", metadata={"old_text": f"{CANARY} likes"})
        there.settle()
        there.close()
        there.journal(
            there.turn(f"A word about {CANARY} that nobody has seen yet", theme="fleet", session="s2"),
            there.turn("Something else that waits over there", theme="fleet", session="s2"),
        )
        there.memory_file("Tea is out", f"{CANARY} stands in the other file")
        assert [path for path in there.hits() if path.startswith("journal")] != []
        arrive(here)
        done = here.commands.call("forget", "--match", CANARY, "--execute", "--json")
        assert done.code == 0, done
        ((other,),) = here.stored.rows("SELECT DISTINCT home_id FROM memory_operations")
        told = [each for each in done.json["receipt"]["unreached"] if f"home {other}" in each]
        assert ["its processes take it out of its journal" in each for each in told] == [True]
        assert [path for path in there.hits() if path.startswith("journal")] != []

        there.provider("bystander", "now").sync_turn("Good morning", "Good morning to you", session_id="now")
        there.settle()
        wait_until(lambda: [path for path in there.hits() if not path.startswith("memories")] == [])
        there.close()
        assert "Something else that waits over there" in contents(there, "fleet")
        assert there.stored.memories("fleet") == [("memory", "Tea is out")]
        assert here.commands.call("forget", "--verify", str(done.json["receipt"]["id"]), "--match", CANARY).code == 0
    finally:
        there.close()
        here.close()
