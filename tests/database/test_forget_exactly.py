"""What was named is gone for good under every name, whoever brings it again; what nobody named stays and arrives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from database.test_forget import CANARY, OTHER, Home, nothing_waits

from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.values import AddMemory, RemoveMemory
from testing.postgres import Database
from testing.waiting import wait_until

SAID = f"{CANARY} called about the delivery"


@pytest.fixture
def home(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    made = Home(tmp_path, database)
    yield made
    made.close()


def arrive(home: Home, theme: str = "bystander") -> None:
    """Have a process deliver whatever waits."""
    home.provider(theme, "now").sync_turn("Good morning to everybody", "Good morning to you", session_id="now")
    home.settle()
    wait_until(lambda: home.stored.turns(theme, "Good morning to you") != [])
    # Journals that others have left come after a process's own.
    wait_until(lambda: nothing_waits(home))
    home.close()


def contents(home: Home, theme: str) -> set[str]:
    return {content for _, _, content in home.stored.turns(theme)}


def test_a_renamed_theme_keeps_what_was_forgotten_and_nothing_else_out(home: Home, tmp_path: Path) -> None:
    for theme in ("sales", "marketing"):
        home.provider(theme, "s1").sync_turn(SAID, f"Noted by {theme}", session_id="s1")
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
    imported = home.commands.call("import", str(export), "--execute", "--json")
    assert imported.code == 0, imported
    assert home.stored.turns("marketing", CANARY) == []
    assert "Noted by marketing" not in contents(home, "marketing")
    assert "Noted by sales" in contents(home, "marketing")

    # Forgotten under the new name is forgotten under the old one, also what waits.
    home.journal(replace(late, content="Pelicans of sales wait for more"))
    assert home.commands.call("forget", "--theme", "marketing", "--execute").code == 0
    assert home.hits("Pelicans of sales") == []
    home.journal(late)
    arrive(home)
    assert contents(home, "marketing") == set()


def test_what_is_said_anew_after_the_forgetting_is_stored(home: Home) -> None:
    agent = home.provider()
    agent.on_delegation(f"Find the number of {CANARY}", "It is 4711", child_session_id="c1")
    agent.sync_turn(SAID, OTHER, session_id="s1")
    home.settle()
    home.close()
    assert home.commands.call("forget", "--match", CANARY, "--execute").code == 0
    assert home.stored.turns("marketing", CANARY) == []
    home.provider().on_delegation(f"Find the number of {CANARY}", "It is 4711", child_session_id="c1")
    home.settle()
    home.close()
    assert len(home.stored.turns("marketing", CANARY)) == 1
    new = {"kind": "turn", "theme": "marketing", "session": "s8", "role": "user", "content": SAID, "ordinal": 1}
    lines = [{"kind": "hermes-pgvector", "format": 1}]
    for at, session in ((datetime.now(UTC), "s8"), (datetime(2020, 1, 1, tzinfo=UTC), "s9")):
        lines.append({**new, "session": session, "at": at.isoformat()})
    (home.path / "new.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert home.commands.call("import", str(home.path / "new.jsonl"), "--execute").code == 0
    assert [session for _, session, _ in home.stored.turns("marketing", SAID)] == ["s8"]


def test_metadata_lose_what_is_named_and_turns_their_speaker(home: Home) -> None:
    author = {"id": "77", "name": CANARY}
    agent = home.provider("work", f"{CANARY}-1")
    agent.sync_turn("What about the harbour budget", "It is fine", session_id=f"{CANARY}-1", turn_author=author)
    agent.on_memory_write("add", "memory", "Likes coffee", metadata={"asked_by": CANARY, "session_id": f"{CANARY}-1"})
    home.settle()
    home.close()
    done = home.commands.call("forget", "--match", CANARY, "--execute", "--json")
    assert done.code == 0, done
    assert done.json["counts"] == {"metadata": 3}
    assert contents(home, "work") >= {"What about the harbour budget", "It is fine"}
    ((metadata,),) = home.stored.rows("SELECT metadata FROM conversations WHERE content LIKE '%%harbour%%'")
    assert "author" not in metadata
    receipt = str(done.json["receipt"])
    verified = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--json")
    assert verified.code == 0, verified

    # What is said later is new; a leftover among it is one all the same.
    agent = home.provider("work", "s2")
    agent.sync_turn(SAID, "Heard of that", session_id="s2")
    home.settle()
    home.close()
    again = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--json")
    assert ([each["where"].split()[0] for each in again.json["places"] if each["found"]], again.json["new"]) == (
        ["journals"], 1,
    ) or (again.code, again.json["new"]) == (0, 1)  # fmt: skip
    with psycopg.connect(home.database.owner_dsn) as owner:
        owner.execute(
            "UPDATE memory_entries SET metadata = jsonb_build_object('asked_by', %s::text), updated_at = '2020-01-01'",
            (CANARY,),
        )
    failed = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--json")
    assert failed.code == 1
    assert "table of memories" in [each["where"] for each in failed.json["places"] if each["found"]]
    # Told to look into one theme alone, it finds no rows of another.
    elsewhere = home.commands.call("forget", "--verify", receipt, "--match", CANARY, "--theme", "elsewhere", "--json")
    assert [each for each in elsewhere.json["places"] if each["found"] and each["where"].startswith("table")] == []


def test_a_word_more_or_less_is_another_and_what_follows_a_turn_is_found_without_its_words(home: Home) -> None:
    agent = home.provider("work", "s1")
    agent.sync_turn(SAID, "Zanzibar alone is a place", session_id="s1")
    agent.sync_turn("The tide was high", "And the boats were out", session_id="s1")
    home.settle()
    home.close()
    assert home.commands.call("forget", "--match", SAID, "--execute").code == 0
    assert contents(home, "work") == {"Zanzibar alone is a place", "The tide was high", "And the boats were out"}
    rows = home.stored.rows("SELECT content, lexemes::text FROM conversations ORDER BY id")
    assert ["quokka" in str(lexemes) for _, lexemes in rows] == [False, False, False]
    assert "zanzibar" in str(rows[1][1])


def test_a_removal_that_waits_means_what_it_meant(home: Home) -> None:
    for theme in ("one", "two"):
        agent = home.provider(theme, "s1")
        agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={"session_id": "s1"})
        agent.on_memory_write("add", "memory", "Green tea is sold out", metadata={"session_id": "s3"})
        agent.on_memory_write("add", "user", f"{CANARY} likes tea", metadata={"session_id": "s3"})
    home.settle()
    home.close()
    when = home.turn("x").when
    ((holder,),) = home.stored.rows("SELECT DISTINCT home_id FROM memory_operations")
    ((entry,),) = home.stored.rows(
        "SELECT id FROM memory_entries WHERE agent_identity = 'one' AND target = 'memory' AND content LIKE 'Zan%%'"
    )
    done = home.commands.call("forget", f"m{entry}", "--execute", "--json")
    assert done.json["counts"]["memories"] == 1, done
    # Said before, and late: what may quote the entry names what it means, or nothing.
    home.journal(
        RemoveMemory("one", "memory", f"{CANARY} likes", when, holder, f"{CANARY} likes tea"),  # type: ignore[arg-type]
        RemoveMemory("one", "memory", "Green tea", when, holder),  # type: ignore[arg-type]
        RemoveMemory("two", "memory", f"{CANARY} likes", when, holder),  # type: ignore[arg-type]
        AddMemory("one", "memory", f"{CANARY.upper()} likes  tea", when, holder),  # type: ignore[arg-type]
    )
    arrive(home)
    assert home.stored.memories("one") == [("user", f"{CANARY} likes tea")]
    assert home.stored.memories("two") == [("memory", "Green tea is sold out"), ("user", f"{CANARY} likes tea")]
    assert home.stored.rows("SELECT count(*) FROM memory_operations WHERE agent_identity = 'one' AND target = 'memory'"
                            " AND old_text LIKE 'Zan%%'") == [(0,)]  # fmt: skip

    # A session's memories are those it wrote: another session's word for the same stands.
    same = AddMemory("two", "user", f"{CANARY} likes tea", home.turn("x").when, holder, metadata={"session_id": "s9"})
    assert home.commands.call("forget", "--theme", "two", "--session", "s3", "--execute").code == 0
    assert home.stored.memories("two") == []
    home.journal(same)  # type: ignore[arg-type]
    arrive(home, "later")
    assert home.stored.memories("two") == [("user", f"{CANARY} likes tea")]


def test_another_home_is_named_and_what_it_delivers_late_stays_out(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    here, there = Home(tmp_path / "here", database), Home(tmp_path / "there", database)
    try:
        agent = there.provider("fleet", "s1")
        agent.sync_turn(SAID, OTHER, session_id="s1")
        agent.on_memory_write("add", "memory", f"{CANARY} likes tea", metadata={})
        agent.on_memory_write("replace", "memory", "Tea is out", metadata={"old_text": f"{CANARY} likes"})
        there.settle()
        there.close()
        there.journal(
            there.turn(SAID.upper(), theme="fleet", session="s2"),
            there.turn("Something else that waits over there", theme="fleet", session="s2"),
        )
        arrive(here)
        done = here.commands.call("forget", "--match", CANARY, "--execute", "--json")
        assert done.code == 0, done
        ((other,),) = here.stored.rows("SELECT DISTINCT home_id FROM memory_operations")
        assert any(f"home {other}" in each["text"] for each in done.json["notes"])

        there.provider("bystander", "now").sync_turn("Good morning", "Good morning to you", session_id="now")
        there.settle()
        wait_until(lambda: nothing_waits(there))
        there.close()
        assert "Something else that waits over there" in contents(there, "fleet")
        assert there.stored.memories("fleet") == [("memory", "Tea is out")]
        assert here.commands.call("forget", "--verify", str(done.json["receipt"]), "--match", CANARY).code == 0
    finally:
        there.close()
        here.close()
