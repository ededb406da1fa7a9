"""The large fault battery: a million acknowledged writes, two hundred kills, and a database that keeps failing.

    python -m tests.faults.battery [--scale 0.01] [--no-tests] [--seed 7]

Several processes write turns and memories through the real provider, into one home, and are killed with SIGKILL at
random moments while Postgres is stopped, frozen, locked, cut off and made read-only. A write is acknowledged when its
hook has returned, which the writing process notes in shared memory. Afterwards everything is drained and compared with
what was acknowledged. Then the fault tests run, and every line of the table says what had to hold and whether it did.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres
from testing.proxy import Proxy

from . import configuration
from .check import Verdict, check
from .copies import copy_and_deliver
from .writer import MEMORY_LOG, PAUSE_SLOT, SLOT_BYTES, Life, Shared, live

TESTS = Path(__file__).resolve().parents[2]

WRITES = 1_050_000
KILLS = 220
DATABASE_FAULTS = 36
WRITERS_AT_ONCE = 4
MAX_JOURNAL_BYTES = 12 * 1024 * 1024
# Commits of the last moments are lost when the server is stopped hard, as with an asynchronous standby.
SERVER_SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


@dataclass
class Stage:
    """Where it all happens."""

    home: Path
    server: EmbeddedPostgres
    proxy: Proxy
    owner_dsn: str
    runtime_dsn: str
    settings: dict[str, Any]

    def admin(self, statement: str) -> None:
        with psycopg.connect(self.owner_dsn, autocommit=True, application_name="faults", connect_timeout=10) as owner:
            owner.execute(statement.encode())

    @property
    def pids(self) -> list[int]:
        main = self.server.status().pid
        assert main is not None
        return [main, *(int(line) for line in Path(f"/proc/{main}/task/{main}/children").read_text().split())]


def stop_hard(stage: Stage) -> None:
    stage.server.stop(Deadline.after(60), mode="immediate")
    time.sleep(1.0)
    stage.server.ensure_running(Deadline.after(120))


def restart(stage: Stage) -> None:
    stage.server.stop(Deadline.after(60), mode="fast")
    stage.server.ensure_running(Deadline.after(120))


def freeze(stage: Stage) -> None:
    pids = stage.pids
    _signal(pids, signal.SIGSTOP)
    time.sleep(2.0)
    _signal(pids, signal.SIGCONT)


def _signal(pids: Iterable[int], what: signal.Signals) -> None:
    for pid in pids:
        # A backend may have ended since it was listed; the others must not stay frozen for it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


def terminate(stage: Stage) -> None:
    for _ in range(5):
        stage.admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hermes-pgvector'")
        time.sleep(0.2)


def read_only(stage: Stage) -> None:
    name = conninfo_to_dict(stage.owner_dsn)["dbname"]
    stage.admin(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    terminate(stage)
    with psycopg.connect(stage.owner_dsn, autocommit=True) as owner:
        owner.execute("SET default_transaction_read_only = off")
        owner.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
    terminate(stage)


def lock(stage: Stage) -> None:
    with psycopg.connect(stage.owner_dsn, application_name="faults") as owner:
        owner.execute("LOCK TABLE conversations, memory_entries IN ACCESS EXCLUSIVE MODE")
        time.sleep(2.0)


def no_connections(stage: Stage) -> None:
    stage.admin(f"ALTER ROLE {RUNTIME_ROLE} CONNECTION LIMIT 0")
    terminate(stage)
    stage.admin(f"ALTER ROLE {RUNTIME_ROLE} CONNECTION LIMIT -1")


def copied_home(stage: Stage) -> None:
    copy_and_deliver(stage.home, stage.settings)


def network(mode: Any) -> Callable[[Stage], None]:
    def act(stage: Stage) -> None:
        stage.proxy.mode = mode
        time.sleep(2.0)
        stage.proxy.mode = "pass"

    return act


def rewrite_configuration(stage: Stage) -> None:
    configuration.rewrite(stage.home, stage.settings)


FAULTS: dict[str, Callable[[Stage], None]] = {
    "Postgres stopped hard, its last commits lost": stop_hard,
    "Postgres restarted": restart,
    "Postgres frozen for two seconds": freeze,
    "every backend terminated, five times": terminate,
    "database read-only": read_only,
    "tables locked for two seconds": lock,
    "no connections allowed": no_connections,
    "connections reset": network("reset"),
    "network silent for two seconds": network("blackhole"),
    "network slow": network("delay"),
    "configuration rewritten under load": rewrite_configuration,
    "the home copied while in use, and its copy delivering too": copied_home,
}


def set_up(folder: Path) -> Stage:
    home = folder / "home"
    home.mkdir()
    server = EmbeddedPostgres(folder / "server" / "pgvector", extra_settings=SERVER_SETTINGS)
    info = server.ensure_running(Deadline.after(120))
    with psycopg.connect(info.owner_dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE faults")
    owner, runtime = (make_conninfo(dsn, dbname="faults") for dsn in (info.owner_dsn, info.runtime_dsn))
    migrate.apply(owner, runtime_role=RUNTIME_ROLE, model=NewModel("faults", 64))
    with psycopg.connect(owner, autocommit=True) as admin:
        # The first hard stop must not take the tables along.
        admin.execute("CHECKPOINT")
    settings = {
        "dsn": runtime, "embed_url": "http://127.0.0.1:9/", "embed_on_write": False, "bulk_sync_on_init": False,
        "turn_min_chars": 1, "journal_max_mb": 4096,
    }  # fmt: skip
    configuration.write(home, settings)
    proxy = Proxy(server.folder.socket_path())
    proxy.__enter__()
    return Stage(home, server, proxy, owner, runtime, settings)


def through_proxy(stage: Stage) -> str:
    given = conninfo_to_dict(stage.runtime_dsn)
    password = Path(str(given.pop("passfile"))).read_text().strip().rsplit(":", 1)[1]
    return make_conninfo(**{**given, "host": "127.0.0.1", "port": str(stage.proxy.port), "password": password})  # type: ignore[arg-type]


class Battery:
    """Starts writers, kills them, and breaks the database meanwhile."""

    def __init__(self, stage: Stage, folder: Path, *, writes: int, kills: int, faults: int, seed: int) -> None:
        self.stage = stage
        self.folder = folder
        self.kills = kills
        self.faults_wanted = faults
        self.quota = writes // kills + 1
        self.chance = random.Random(seed)
        self.shared = Shared(folder / "shared", kills + WRITERS_AT_ONCE + 1, create=True)
        self.done_faults: Counter[str] = Counter()
        self.killed = 0
        self.lives: list[Life] = []
        self.over = threading.Event()
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload([live.__module__])

    def run(self) -> None:
        breaker = threading.Thread(target=self._break, name="breaker")
        breaker.start()
        running: dict[Life, tuple[BaseProcess, int]] = {}
        try:
            while self.killed < self.kills:
                while len(running) < WRITERS_AT_ONCE and len(self.lives) < self.kills:
                    life = self._life()
                    process: BaseProcess = self.context.Process(target=live, args=(life,), daemon=True)
                    process.start()
                    # Killed somewhere within its work, most of them while they write, some while they only deliver.
                    running[life] = (process, self.chance.randrange(self.quota // 2, int(self.quota * 1.5) + 2))
                time.sleep(0.02)
                self._hold_back()
                for life, (process, at) in list(running.items()):
                    if not process.is_alive():
                        raise RuntimeError(f"writer {life.number} ended by itself with {process.exitcode}")
                    written = self.shared.get(life.number)
                    if written >= at and self._may_kill():
                        process.kill()
                        process.join()
                        del running[life]
                        self.killed += 1
        finally:
            self.over.set()
            for left, _ in running.values():
                left.kill()
            breaker.join()

    def _may_kill(self) -> bool:
        """Kills wait for their share of the faults, so that both happen all along."""
        done = sum(self.done_faults.values())
        return self.killed <= self.kills * (done + 1) / self.faults_wanted

    def _life(self) -> Life:
        number = len(self.lives)
        settings = {} if configuration.reads_file(number) else dict(self.stage.settings)
        if number % WRITERS_AT_ONCE == 0:
            settings["dsn"] = through_proxy(self.stage)
        life = Life(
            number, str(self.stage.home), json.dumps(settings), str(self.folder / "shared"), self.shared.slots,
            int(self.quota * 1.7), str(self.folder / MEMORY_LOG),
        )  # fmt: skip
        self.lives.append(life)
        return life

    def _hold_back(self) -> None:
        """Writers pause while the journals are large: appending is far faster than storing."""
        waiting = 0
        for path in (self.stage.home / "pgvector" / "journal").glob("*"):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            waiting += status.st_size if status.st_mode & 0o200 else 0
        self.shared.set(PAUSE_SLOT, int(waiting > MAX_JOURNAL_BYTES))

    def _break(self) -> None:
        names = list(FAULTS)
        while sum(self.done_faults.values()) < self.faults_wanted:
            # Spread over the run: the next fault is due when its share of the kills has happened.
            due = self.kills * (sum(self.done_faults.values()) - 0.5) / self.faults_wanted
            while self.killed < due and not self.over.wait(0.1):
                pass
            if self.over.is_set():
                return
            name = names[sum(self.done_faults.values()) % len(names)]
            FAULTS[name](self.stage)
            self.done_faults[name] += 1


def drain(stage: Stage) -> float:
    """Empty every journal; returns the seconds it took."""
    begun = time.monotonic()
    agent = PgvectorMemoryProvider(stage.settings)
    agent.initialize("drain", hermes_home=str(stage.home), gateway_session_key="drain", agent_context="primary")
    engine = engine_for(stage.home, stage.settings)[0]
    end = time.monotonic() + 1800
    while time.monotonic() < end:
        with psycopg.connect(stage.owner_dsn) as owner:
            marks = {
                str(writer): int(seq) for writer, seq in owner.execute("SELECT writer, position FROM journal_writers")
            }
        others = [writer for writer in engine.journal.writers() if writer != engine.journal.writer]
        if not any(engine.journal.depth(writer, marks.get(writer, 0)).records for writer in others):
            break
        engine.writer.wake()
        time.sleep(0.5)
    close_all(Deadline.after(20))
    return time.monotonic() - begun


def run_tests(verdicts: list[Verdict]) -> None:
    """The fault tests, small and large, one line each."""
    import pytest

    class Collector:
        def __init__(self) -> None:
            self.outcomes: dict[str, Counter[str]] = {}

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            name = report.nodeid.split("[")[0]
            if report.when == "call" or report.failed:
                self.outcomes.setdefault(name, Counter())[report.outcome] += 1

    # The tests of every day try the same examples each time; here new ones are looked for.
    os.environ["HYPOTHESIS_PROFILE"] = "search"
    # The tests look at what is logged, which only the battery does not want to see.
    logging.getLogger("hermes_memory_pgvector").setLevel(logging.NOTSET)
    collector = Collector()
    folders = [str(TESTS / name) for name in ("faults", "property")]
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        # An empty mark also chooses the tests that are too large for every day.
        code = pytest.main(["-q", "-p", "no:cacheprovider", "-m", "", *folders], plugins=[collector])
    if code != pytest.ExitCode.OK:
        print(told.getvalue())
    verdicts.append(
        Verdict("the fault tests ran to their end", f"{len(collector.outcomes)} tests", bool(collector.outcomes))
    )
    for name, outcomes in collector.outcomes.items():
        sentence = name.rsplit("::test_", 1)[-1].replace("_", " ")
        verdicts.append(Verdict(sentence, f"{outcomes.total()} cases", outcomes["passed"] == outcomes.total()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the full battery")
    parser.add_argument("--no-tests", action="store_true", help="only the writes and kills")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    logging.getLogger("hermes_memory_pgvector").setLevel(logging.CRITICAL)
    scale = arguments.scale
    kills, faults = max(4, round(KILLS * scale)), max(4, round(DATABASE_FAULTS * scale))
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    begun = time.monotonic()
    stage = set_up(folder)
    try:
        battery = Battery(stage, folder, writes=round(WRITES * scale), kills=kills, faults=faults, seed=arguments.seed)
        battery.run()
        wrote = time.monotonic() - begun
        drained = drain(stage)
        verdicts = check(stage.owner_dsn, battery.lives, battery.shared, folder / MEMORY_LOG, battery.killed)
        verdicts += configuration.check(stage.home)
        for name, count in battery.done_faults.items():
            verdicts.append(Verdict(name, f"{count} times", True))
    finally:
        stage.proxy.__exit__(None, None, None)
        stage.server.stop(Deadline.after(60), mode="immediate")
    if not arguments.no_tests:
        run_tests(verdicts)
    shutil.rmtree(folder, ignore_errors=True)
    for verdict in verdicts:
        print(verdict.line())
    print(f"\nwritten and killed in {wrote:.0f} s, drained in {drained:.0f} s, all in {time.monotonic() - begun:.0f} s")
    held = all(verdict.held for verdict in verdicts)
    print("every invariant held" if held else "AN INVARIANT WAS BROKEN")
    return 0 if held else 1


assert SLOT_BYTES == 8  # a single aligned store: a kill never leaves half of a number

if __name__ == "__main__":
    sys.exit(main())
