"""What else may be wrong with a home when an engine is made: no write that can be kept is lost for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_memory_pgvector import hook_guard
from hermes_memory_pgvector.runtime import processes
from testing.agent import AgentHome
from testing.command import Commands
from testing.faulty import expect, say
from testing.postgres import Database
from testing.waiting import wait_until


def file(name: str, content: str | bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def directory(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).mkdir(parents=True)


DAMAGES = {
    "home id: bytes": file("home-id", b"\xff\xfe\x00"),
    "home id: empty": file("home-id", b""),
    "home id: a folder": directory("home-id"),
    "key of pseudonyms: a folder": directory("identity.key"),
    "host's store: a folder": directory("../state.db"),
    "host's memories: a file": file("../memories", b""),
}


@pytest.fixture(autouse=True)
def nothing_failed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_guard, "failures", hook_guard.HookFailures())


@pytest.fixture
def home(tmp_path: Path, database: Database) -> Iterator[AgentHome]:
    made = AgentHome.create(tmp_path / "hermes", database)
    (made.path / "memories").rmdir()
    yield made
    made.close(2.0)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_of_ours_loses_no_write(home: AgentHome, damage: Callable[[Path], None]) -> None:
    damage(home.path / "pgvector")
    say(home, 1)
    expect(home, 1)
    ((latest,),) = home.stored.rows("SELECT max(ts) < now() + interval '1 day' FROM conversations")
    assert latest, "a damaged clock orders nothing into the far future"


def test_variables_that_cannot_be_read_keep_every_write_until_they_can(home: AgentHome) -> None:
    directory(".env")(home.path)
    say(home, 1)
    assert home.engine.journal.appended == 2
    (home.path / ".env").rmdir()
    say(home, 2)
    expect(home, 1, 2)


@pytest.mark.parametrize("name", ["pgvector", "pgvector/journal"])
def test_what_no_journal_can_take_is_counted_and_told(
    home: AgentHome, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    file(name, b"")(home.path)
    warnings: list[str] = []
    agent = home.provider("marketing", warning_callback=warnings.append)
    agent.sync_turn("question 1", "answer 1", session_id="s1")
    agent.on_memory_write("add", "memory", "fact 1", metadata={})
    refusals = home.engine.recorder
    assert (refusals.turns, refusals.memories) == (2, 1)
    assert "refused" in caplog.text
    assert len(warnings) == 1
    (home.path / name).unlink()
    agent.sync_turn("question 2", "answer 2", session_id="s1")
    agent.on_memory_write("add", "memory", "fact 2", metadata={})
    wait_until(lambda: {text for _, text in home.stored.memories("marketing")} == {"fact 1", "fact 2"})
    turns = ["answer 1", "answer 2", "question 1", "question 2"]
    wait_until(lambda: sorted(text for _, _, text in home.stored.turns("marketing")) == turns)


@pytest.mark.parametrize(
    "dsn",
    [
        "not a dsn", "postgresql://u:hunter2@[::1/db", "host=/nowhere port=abc", "postgresql://u:hunter2%zz@h/db",
        "host=/nowhere connect_timeout=abc", "service=nobody_has_this", "host=/nowhere options='-c x", "${TEST_NO_DSN}",
        "host=/nowhere password=hunter2 sslmode=perhaps", f"postgresql://u:hunter2@{'ü' * 80}/db", "dbname=\ud800",
    ],
)  # fmt: skip
def test_a_wrong_dsn_keeps_every_write_for_the_right_one(
    home: AgentHome, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    right, home.dsn = home.dsn, dsn
    say(home, 1)
    wait_until(lambda: home.engine.writer.breaker.is_open)
    assert home.engine.journal.appended == 2
    home.close(1.0)
    home.dsn = right
    say(home, 2)
    expect(home, 1, 2)
    assert hook_guard.failures.count == 0
    assert "hunter2" not in caplog.text


def test_while_nobody_knows_who_speaks_nothing_goes_into_another_theme(
    home: AgentHome, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = home.path / "pgvector" / "identity.key"
    key.mkdir(parents=True)
    agent = home.provider("agent:main:whatsapp:dm:+4915112345678")
    agent.sync_turn("question 1", "answer 1", session_id="s1")
    agent.on_memory_write("add", "memory", "fact 1", metadata={})
    assert agent.prefetch("question") == ""
    assert agent.system_prompt_block() == ""
    assert "the key for pseudonyms cannot be read" in caplog.text
    assert hook_guard.failures.count == 5
    key.rmdir()
    agent.sync_turn("question 2", "answer 2", session_id="s1")
    home.settle()
    (theme,) = home.stored.themes()
    assert theme.startswith("dm-")
    assert [text for _, _, text in home.stored.turns(theme)] == ["question 2", "answer 2"]

    def told() -> str:
        home.engine.tasks.wake()
        return " ".join(shot.latest_failure for shot in processes.read_all(home.engine.journal.directory))

    assert "cannot be read" in wait_until(told)
    commands = Commands(tmp_path)
    commands.configure(dsn=home.dsn, embed_url="http://127.0.0.1:9")
    assert "5 hook calls failed" in commands.call("doctor").out
    assert "5 hook calls failed" in commands.call("status").out
