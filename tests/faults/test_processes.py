"""However a process ends, what its hooks returned for arrives once."""

from __future__ import annotations

import random
import shutil
import signal
import sys
from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.store import watermarks
from testing.agent import AgentHome
from testing.command import Commands
from testing.faulty import FaultyServer, expect, heard, outage, say
from testing.interpreters import PYENV, interpreters, other_environment
from testing.postgres import Database
from testing.proxy import Proxy
from testing.waiting import wait_until

# Says each number after both of its hooks have returned.
WRITES = """
first, last = int(arguments[0]), int(arguments[1])
agent = provider("marketing")
for number in range(first, last):
    agent.sync_turn(f"question {number}", f"answer {number}", session_id="s1")
    agent.on_memory_write("add", "memory", f"fact {number}", {})
    say(number)
"""
# A signal that comes just before a wait without an end is only seen by Python after it.
WAITS = WRITES + "\nimport threading\nwhile not threading.Event().wait(0.2):\n    pass\n"
ENDINGS = {
    "falls off the end": "",
    "sys.exit": "sys.exit(0)",
    "sys.exit in a thread's shadow": "import threading; threading.Thread(target=sys.exit).start(); sys.exit(3)",
    "os._exit": "os._exit(0)",
    "an unhandled exception": "raise RuntimeError",
    "SIGTERM": "import signal; os.kill(os.getpid(), signal.SIGTERM)",
    "SIGTERM with a handler": (
        "import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); os.kill(os.getpid(), signal.SIGTERM)\n"
        "signal.pause()"
    ),
    "SIGINT": "import signal; os.kill(os.getpid(), signal.SIGINT)",
    "abort": "os.abort()",
}


# Other Pythons differ in how threads and exit handlers end, which these endings meet.
ELSEWHERE = {"falls off the end", "sys.exit in a thread's shadow"}
LAST_WORDS = [
    pytest.param(
        ending,
        python,
        id=f"{name}-{Path(python).parent.parent.name}",
        marks=[] if python == sys.executable or name in ELSEWHERE else [pytest.mark.large],
    )
    for name, ending in ENDINGS.items()
    for python in interpreters()
]


@pytest.mark.parametrize(("ending", "python"), LAST_WORDS)
def test_what_was_said_last_is_there_however_the_process_ends(home: AgentHome, ending: str, python: str) -> None:
    with home.start(WRITES + ending, "1", "21", python=python, **other_environment(python)) as child:
        assert child.stdout is not None
        told = [int(line) for line in child.stdout]
    assert told == list(range(1, 21)), f"the child could not write: exit code {child.returncode}"
    home.provider()
    expect(home, *range(1, 21))


@pytest.mark.parametrize("ending", ["", "sys.exit(0)"])
def test_a_clean_exit_delivers_by_itself(home: AgentHome, ending: str) -> None:
    """Nobody else lives to adopt the journal: the exit handler delivers."""
    home.run(WRITES + ending, "1", "21")
    assert heard(home) == (list(range(1, 21)), list(range(1, 21)))


@pytest.mark.parametrize("rounds", [5, pytest.param(12, marks=pytest.mark.large)])
def test_kill_minus_nine_at_random_moments_loses_and_doubles_nothing(home: AgentHome, rounds: int) -> None:
    chance = random.Random(11)
    acknowledged: list[int] = []
    started = 0
    for _ in range(rounds):
        with home.start(WRITES, str(started), str(started + 100_000)) as child:
            assert child.stdout is not None
            for _ in range(chance.randrange(1, 120)):
                acknowledged.append(int(child.stdout.readline()))
            child.kill()
            acknowledged += [int(line) for line in child.stdout if line.endswith("\n")]
        started = acknowledged[-1] + 10
    home.provider()
    wait_until(lambda: set(acknowledged) <= set(heard(home)[0]))
    home.settle()
    turns, facts = heard(home)
    for found in (turns, facts):
        assert len(found) == len(set(found)), "stored twice"
        assert set(acknowledged) <= set(found), "lost"
        # A hook may have done its work without living to say so.
        assert len(found) <= len(acknowledged) + rounds


def test_a_process_killed_while_its_transaction_waits_loses_nothing(home: AgentHome, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as holder, home.start(WAITS, "1", "11") as child:
        holder.execute("LOCK TABLE memory_entries IN ACCESS EXCLUSIVE MODE")
        assert child.stdout is not None
        for _ in range(10):
            child.stdout.readline()
        # Its turns are inserted and not committed: the transaction waits for the memories.
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        wait_until(lambda: home.stored.rows(waiting, database.name) != [(0,)])
        child.kill()
        child.wait(10)
        holder.rollback()
    home.provider()
    expect(home, *range(1, 11))


def test_a_process_killed_before_it_learns_of_its_commit_doubles_nothing(
    far_home: AgentHome, proxy: Proxy, database: Database
) -> None:
    proxy.hold_answer_to = b"COMMIT"
    with far_home.start(WAITS, "1", "11") as child:
        assert proxy.held.wait(30)
        proxy.hold_answer_to = None
        wait_until(lambda: far_home.stored.count("conversations") or far_home.stored.count("memory_entries"))
        assert child.stdout is not None
        assert [child.stdout.readline() for _ in range(10)][-1] == "10\n"
        child.kill()
    far_home.provider()
    expect(far_home, *range(1, 11))


def test_a_process_killed_while_it_adopts_leaves_the_rest_to_the_next(home: AgentHome, database: Database) -> None:
    idle = "from hermes_memory_pgvector.writer.writer import Writer\nWriter.run_once = lambda self: 60.0\n"
    with home.start(idle + WAITS, "1", "31") as first:
        assert first.stdout is not None
        for _ in range(30):
            first.stdout.readline()
        first.kill()
    with psycopg.connect(database.owner_dsn) as holder, home.start(WAITS, "31", "32") as second:
        holder.execute("LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE")
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        wait_until(lambda: home.stored.rows(waiting, database.name) != [(0,)])
        assert second.stdout is not None
        second.stdout.readline()
        second.kill()
        second.wait(10)
        holder.rollback()
    home.provider()
    expect(home, *range(1, 32))


def test_an_older_process_leaves_a_newer_ones_records_to_it(home: AgentHome, tmp_path: Path) -> None:
    newer = "from hermes_memory_pgvector.journal import codec\ncodec.VERSION = 2\n"
    keeps = "from hermes_memory_pgvector.writer.writer import Writer\nWriter.run_once = lambda self: 60.0\n"
    code, _ = home.run(newer + keeps + WRITES + "os._exit(0)", "1", "4")
    assert code == 0
    say(home, 4, 5)
    expect(home, 4, 5)
    wait_until(lambda: home.engine.writer.for_newer)
    assert home.stored.count("dead_letters") == 0
    commands, here = Commands(tmp_path), ("--hermes-home", str(home.path), "--json")
    variables = {"HERMES_PGVECTOR_DSN": home.dsn}
    assert commands.call("status", *here, variables=variables).json["journal"]["for_newer_version"] == 1
    assert "newer version" in commands.call("doctor", *here, variables=variables).out
    with home.start(newer + WAITS, "6", "7") as child:
        try:
            wait_until(lambda: set(heard(home)[0]) >= {1, 2, 3, 6})
        finally:
            child.kill()
    home.engine.writer._checked_at = 0.0
    home.engine.writer.wake()
    wait_until(lambda: not home.engine.writer.for_newer)
    expect(home, 1, 2, 3, 4, 5, 6)
    assert home.stored.count("dead_letters") == 0


@pytest.mark.parametrize("count", [6, pytest.param(50, marks=pytest.mark.large)])
def test_many_processes_share_one_folder(home: AgentHome, count: int) -> None:
    children = [home.start(WRITES, str(n * 100), str(n * 100 + 15)) for n in range(count)]
    for child in children:
        child.communicate(timeout=300)
        assert child.returncode == 0
    home.provider()
    expect(home, *(n * 100 + k for n in range(count) for k in range(15)), seconds=120)


@pytest.mark.parametrize("count", [4, pytest.param(50, marks=pytest.mark.large)])
def test_many_homes_share_one_database(home: AgentHome, database: Database, tmp_path: Path, count: int) -> None:
    """More processes than the server has connections for: they take turns, and what waits for one is not lost."""
    homes = [AgentHome.create(tmp_path / f"home {n}", database) for n in range(count)]
    children = [each.start(WRITES, str(n * 100), str(n * 100 + 15)) for n, each in enumerate(homes)]
    for child in children:
        child.communicate(timeout=300)
        assert child.returncode == 0
    for each in homes:
        if _waiting(each):
            # Its process found no connection before its time was over: the next one of that home delivers.
            each.provider()
            each.settle()
        each.close()
    expect(home, *(n * 100 + k for n in range(count) for k in range(15)), seconds=120)


def test_a_copied_journal_folder_doubles_nothing(home: AgentHome, server: FaultyServer) -> None:
    """A home restored from a backup, or copied to another machine, brings its journal along."""
    server.stop()
    say(home, 1, 2, 3)
    outage(home)
    home.close()
    journal = home.path / "pgvector" / "journal"
    copy = shutil.copytree(home.path, home.path.with_name("copy"))
    assert list(journal.iterdir())
    server.start()
    copied = AgentHome(copy, home.dsn, home.stored, home.settings)
    for each in (home, copied):
        each.provider()
    expect(home, 1, 2, 3)
    wait_until(lambda: not _waiting(copied) and not _waiting(home))
    assert heard(home) == ([1, 2, 3], [1, 2, 3])


def test_a_forked_child_and_its_parent_each_deliver_their_own(home: AgentHome) -> None:
    script = """
agent = provider("marketing")
def write(number):
    agent.sync_turn(f"question {number}", f"answer {number}", session_id="s1")
    agent.on_memory_write("add", "memory", f"fact {number}", {})
write(1)
for number in range(2, 6):
    if os.fork() == 0:
        write(number)
        agent.shutdown()
        os._exit(0)
    write(number + 10)
for _ in range(4):
    os.wait()
agent.shutdown()
"""
    code, _ = home.run(script, PYTHONWARNINGS="ignore")
    assert code == 0
    home.provider()
    expect(home, 1, 2, 3, 4, 5, 12, 13, 14, 15)


def test_a_gateway_that_is_terminated_delivers_what_was_said_last(home: AgentHome) -> None:
    script = "import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n" + WAITS
    with home.start(script, "1", "6") as child:
        assert child.stdout is not None
        for _ in range(5):
            child.stdout.readline()
        child.send_signal(signal.SIGTERM)
    assert heard(home) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])


def test_at_most_six_threads_and_no_connection_once_idle(home: AgentHome) -> None:
    script = """
import threading
from hermes_memory_pgvector.deadline import Deadline
agents = [provider(f"theme {n}") for n in range(50)]
for n, agent in enumerate(agents):
    agent.sync_turn(f"question {n}", f"answer {n}", session_id="s1")
    agent.prefetch(f"question {n}")
assert engine_for(agents[0]._home, settings)[0].writer.flush(Deadline.after(30))
say(sum(thread.name.startswith("hermes-pgvector") for thread in threading.enumerate()))
os._exit(0)
"""
    code, out = home.run(script)
    assert code == 0
    assert 1 <= int(out) <= 6


def _waiting(home: AgentHome) -> int:
    engine = home.engine
    writers = engine.journal.writers()
    with engine.pool.connection(Deadline.after(10)) as connection:
        marks = watermarks.read(connection, writers)
    return sum(engine.journal.depth(writer, marks.get(writer, 0)).records for writer in writers)


def test_every_supported_python_on_this_machine_is_tried() -> None:
    minors = {tuple(path.name.split(".")[:2]) for path in PYENV.glob("3.1[1234]*")}
    assert len(interpreters()) >= max(1, len(minors))
