"""Forgetting takes what somebody names, and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from database.test_forget import Home

from hermes_memory_pgvector.care import verification
from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.store import erasure, receipts
from testing.postgres import Database
from testing.unchanged import nothing_changes
from testing.waiting import wait_until


@pytest.fixture
def home(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    made = Home(tmp_path, database)
    yield made
    made.close()


def test_an_empty_option_is_refused_and_a_dry_run_leaves_no_file(home: Home) -> None:
    home.provider("work", "s1").sync_turn("The quay is closed today", "It opens again tomorrow", session_id="s1")
    home.settle()
    home.close()
    home.journal(home.turn("This one waits in a journal"))
    for lock in (home.folder / "journal").glob("*.lock"):
        lock.unlink()
    files = sorted((home.folder / "journal").iterdir())
    with nothing_changes(home.stored):
        assert home.commands.call("forget", "--theme", "work").code == 0
        assert sorted((home.folder / "journal").iterdir()) == files
        for option, *rest in (
            ("--session", "", "--theme", "work"),
            ("--session", "\0", "--theme", "work"),
            ("--theme", "", "--before", "2100-01-01"),
            ("--theme", " ", "--session", "s1"),
            ("--identities", " , ", "--before", "2100-01-01"),
            ("--user", " ", "--before", "2100-01-01"),
        ):
            refused = home.commands.call("forget", option, *rest, "--execute")
            assert (refused.code, f"{option} is empty" in refused.err) == (1, True), (option, rest, refused)
        assert "at least three" in home.commands.call("forget", "--match", "", "--theme", "work", "--execute").err
        pruned = home.commands.call("prune", "--theme", "", "--older-than", "2100-01-01", "--execute")
        assert (pruned.code, "--theme is empty" in pruned.err) == (1, True)


def test_the_servers_clock_says_until_when(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(hours=1)

    monkeypatch.setattr(receipts, "datetime", Ahead)
    with psycopg.connect(database.owner_dsn) as connection:
        at = receipts.begin(connection, "operator", "", ["match"]).until.at
    assert at <= datetime.now(UTC) + timedelta(minutes=1)


def test_a_file_that_cannot_be_read_is_not_called_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = verification._holds

    def holds(path: Path, needles: Sequence[bytes], excused: Sequence[bytes] = ()) -> bool:
        if path.name == "closed":
            raise PermissionError
        return real(path, needles, excused)

    monkeypatch.setattr(verification, "_holds", holds)
    for name in ("holding", "clean", "closed"):
        (tmp_path / name).write_bytes(b"a Quokka" if name == "holding" else b"nothing")
    paths = [tmp_path / name for name in ("holding", "clean", "closed", "gone")]
    assert verification._search(paths, [b"Quokka"]) == (1, 1)


def test_words_name_what_says_them_and_a_session_only_itself(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Please go on with the next step"
    for session in ("a", "b", "telegram-9"):
        agent = home.provider("work", session)
        agent.sync_turn(said, f"Going on in session {session}", session_id=session)
    agent.on_memory_write("add", "memory", "Likes coffee", metadata={"platform": "telegram", "session_id": "b"})
    agent.sync_turn("The secret Quokka plan is this one", "Understood and noted", session_id="q")
    agent.sync_turn("What about the harbour budget then", "It is ready for review", session_id="q")
    home.settle()
    home.close()
    home.journal(home.turn(said, theme="work", session="c"))

    # What the host stamps on things is no reason to erase them: only the stamp would go.
    named = home.commands.call("forget", "--match", "telegram", "--json").json["counts"]
    assert (named["memories"], named["stamps"], named["history"], named["turns"]) == (0, 1, 1, 1)

    # Others said the same: their turns stay, and those that wait still come.
    done = home.commands.call("forget", "--session", "a", "--execute", "--json").json
    assert done["counts"]["turns"] == 2
    verified = home.commands.call("forget", "--verify", str(done["receipt"]["id"]), "--json")
    assert verified.code == 0, verified
    home.provider("work", "z").sync_turn("Good morning to everybody", "Good morning to you", session_id="z")
    home.settle()
    wait_until(lambda: {session for _, session, _ in home.stored.turns("work", said)} == {"b", "c", "telegram-9"})
    home.close()

    # Killed right after the rows: nothing beside them is found by their words.
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(erasure, "change_dead_letter", killed)
    monkeypatch.setattr(erasure, "hashes_of_items", killed)
    with suppress(KeyboardInterrupt):
        home.commands.call("forget", "--match", "Quokka", "--execute")
    lexemes = [row for (row,) in home.stored.rows("SELECT lexemes::text FROM conversations WHERE session_id = 'q'")]
    assert len(lexemes) == 3
    assert not any("quokka" in each for each in lexemes)
