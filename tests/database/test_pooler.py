"""Behind a real pgbouncer: transaction mode carries a fleet, and statement mode is named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testing.agent import PREAMBLE, AgentHome
from testing.command import Commands, with_password
from testing.embed_server import EmbedServer
from testing.pgbouncer import Mode, PgBouncer
from testing.postgres import DIM, MODEL, Database
from testing.replication import Single
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


FLEET = """
import logging, pathlib, random, time
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="LOG %(name)s: %(message)s")
me, seconds, pause = arguments[0], float(arguments[1]), float(arguments[2])
agents = {theme: provider(theme, f"s-{me}") for theme in ("sales", "support", "trading", "workshop")}
engine = engine_for(pathlib.Path(home), settings)[0]
agents["sales"].handle_tool_call("recall_conversation", {"query": "is anybody there?"})
say("ready")
sys.stdin.readline()
# Processes of a fleet do not all speak in the same instant.
time.sleep(random.uniform(0, pause))
end, round_, failed, asked = time.monotonic() + seconds, 0, 0, 0
while time.monotonic() < end:
    for theme, agent in agents.items():
        agent.sync_turn(f"Process {me} asks in round {round_} of {theme}", f"Process {me} answers in round {round_}",
                        session_id=f"s-{me}")
    if round_ % 4 == 0:
        agents["sales"].on_memory_write("add", "memory", f"Process {me} remembers round {round_}", {})
        asked += 2
        answer = agents["sales"].handle_tool_call("recall_conversation", {"query": f"what process {me} asks"})
        failed += '"error"' in answer
        agents["trading"].prefetch(f"what does process {me} ask in round {round_}")
    round_ += 1
    time.sleep(max(0.0, min(end, time.monotonic() + pause) - time.monotonic()))
arrived = engine.writer.flush(Deadline.after(120))
say(json.dumps({"rounds": round_, "asked": asked, "failed": failed, "arrived": arrived}))
sys.stdout.flush()
"""
PROCESSES, SECONDS, SERVER_CONNECTIONS = 50, 60.0, 10
LATE = ("within the time given", "did not answer in time", "no time was left", "works again after")
PAUSE = 2.0
"""Each process says eight turns in that time: 200 a second together, which two cores carry beside all of them."""


@pytest.mark.large
@pytest.mark.timeout(900)
def test_fifty_processes_for_a_minute_in_transaction_mode(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Nothing lost, nothing doubled, no question without an answer, and nothing to warn about but the time."""
    with (
        Single(tmp_path / "server") as server,
        PgBouncer(tmp_path / "pooler", server.runtime_dsn, "", pool_size=SERVER_CONNECTIONS) as pooler,
        EmbedServer(dim=DIM) as embedder,
    ):
        home = AgentHome.create(tmp_path / "home", server.database, embed_url=embedder.url, embed_model=MODEL)
        home.dsn = pooler.dsn
        told, reports = run_fleet(home)
        check_fleet(home, told, reports, record_property)


def run_fleet(home: AgentHome) -> tuple[Counter[str], list[dict[str, int]]]:
    """What the processes logged, and what each of them has done. They start one after another, as a fleet does."""
    children: list[subprocess.Popen[str]] = []
    try:
        for number in range(PROCESSES):
            child = subprocess.Popen(
                [sys.executable, "-c", PREAMBLE + FLEET, str(home.path), json.dumps(home.configuration), str(number),
                 str(SECONDS), str(PAUSE)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            children.append(child)
            assert child.stdout is not None
            assert child.stdout.readline().strip() == "ready"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        lines = [line for child in children for line in child.communicate(timeout=400)[0].splitlines()]
    finally:
        for child in children:
            child.kill()
            child.wait(30)
    told = Counter(line for line in lines if line.startswith("LOG"))
    return told, [json.loads(line) for line in lines if not line.startswith("LOG")]


def check_fleet(
    home: AgentHome,
    told: Counter[str],
    reports: list[dict[str, int]],
    record_property: Callable[[str, object], None],
) -> None:
    """Compare what is stored with what was acknowledged; then see whether anybody was told of trouble."""
    assert len(reports) == PROCESSES
    assert all(each["arrived"] for each in reports)
    turns = sum(8 * each["rounds"] for each in reports)
    memories = sum((each["rounds"] + 3) // 4 for each in reports)
    found = home.stored.rows(
        "SELECT count(*), count(DISTINCT (agent_identity, session_id, role, content)) FROM conversations"
    )
    assert found == [(turns, turns)]
    assert home.stored.rows("SELECT count(*), count(DISTINCT content) FROM memory_entries") == [(memories, memories)]
    for name, value in (("turns", turns), ("memories", memories), ("questions", sum(e["asked"] for e in reports))):
        record_property(name, value)
    assert sum(each["failed"] for each in reports) == 0, list(told.items())
    # A machine that has more to do lets fifty processes wait; whatever else they say is the pooler's doing.
    other = {line: count for line, count in told.items() if not any(words in line for words in LATE)}
    assert not other, "\n".join(f"{count} × {line}" for line, count in other.items())
