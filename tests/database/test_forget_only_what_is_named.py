"""Forgetting takes what somebody names, and nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from database.test_forget import Home

from hermes_memory_pgvector.care import verification
from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.store import receipts
from testing.postgres import Database
from testing.unchanged import nothing_changes


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
        _, at = receipts.begin(connection, "operator", "", ["match"])
    assert at <= datetime.now(UTC) + timedelta(minutes=1)


def test_a_file_that_cannot_be_read_is_not_called_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = verification._holds

    def holds(path: Path, needles: Sequence[bytes]) -> bool:
        if path.name == "closed":
            raise PermissionError
        return real(path, needles)

    monkeypatch.setattr(verification, "_holds", holds)
    for name in ("holding", "clean", "closed"):
        (tmp_path / name).write_bytes(b"a Quokka" if name == "holding" else b"nothing")
    paths = [tmp_path / name for name in ("holding", "clean", "closed", "gone")]
    assert verification._search(paths, [b"Quokka"]) == (1, 1)
