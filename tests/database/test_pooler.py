"""Behind a real pgbouncer: transaction mode carries a fleet, and statement mode is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.pgbouncer import Mode, PgBouncer
from testing.postgres import Database
from testing.waiting import wait_until

Start = Callable[..., PgBouncer]
TURNS = """
for number in range(int(arguments[0])):
    agent = provider(f"theme-{number % 4}", f"s{os.getpid()}")
    agent.sync_turn(f"Question {number} of process {os.getpid()}", f"Answer {number} of process {os.getpid()}",
                    session_id=f"s{os.getpid()}")
    if number % 5 == 0:
        say(agent.handle_tool_call("recall_conversation", {"query": "question", "scope": "current"}))
import pathlib
engine = engine_for(pathlib.Path(home), settings)[0]
assert engine.writer.flush(Deadline.after(60))
"""


@pytest.fixture
def pooler(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    running: list[PgBouncer] = []

    def start(mode: Mode, pool_size: int = 10) -> PgBouncer:
        _, password = with_password(database.runtime_dsn)
        made = PgBouncer(
            tmp_path_factory.mktemp("pooler"), database.runtime_dsn, password, mode=mode, pool_size=pool_size
        )
        running.append(made.__enter__())
        return made

    yield start
    for each in running:
        each.__exit__(None, None, None)


def test_four_processes_share_three_connections(database: Database, pooler: Start, tmp_path: Path) -> None:
    home = AgentHome.create(tmp_path / "home", database)
    home.dsn = pooler("transaction", pool_size=3).dsn
    children = [home.start(TURNS, "10") for _ in range(4)]
    for child in children:
        out, _ = child.communicate(timeout=120)
        assert child.returncode == 0
        assert '"error"' not in out
    assert home.stored.rows("SELECT count(*), count(DISTINCT content) FROM conversations") == [(80, 80)]


def test_statement_mode_is_named_in_the_log_and_by_doctor(
    database: Database, pooler: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = AgentHome.create(tmp_path / "home", database)
    home.dsn = pooler("statement").dsn
    home.provider().sync_turn("A question that waits", "An answer that waits", session_id="s1")
    wait_until(lambda: "statement mode" in caplog.text)
    home.close()
    assert home.stored.rows("SELECT count(*) FROM conversations") == [(0,)]
    commands = Commands(tmp_path)
    commands.configure(dsn=home.dsn, embed_url="http://127.0.0.1:9/")
    told = commands.call("doctor", "--json")
    assert told.code != 0
    assert "pool_mode = transaction" in told.out
