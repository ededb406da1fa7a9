"""Changes of MEMORY.md beside a running agent, in any interleaving: no entry is lost, none comes back."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.memory_tool import MemoryStore

from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.mirror import edit_file, mirror
from hermes_memory_pgvector.ops.correct.add import add
from hermes_memory_pgvector.ops.correct.edit import edit
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.terminal.parse import RecordName
from testing.agent import AgentHome
from testing.postgres import Database, new_database

FIRST = [f"entry {number} of the first day" for number in range(6)]
_names = itertools.count(1)


class Beside:
    """A home whose agent, editor and operator change its file at the same time, each other entries of it."""

    def __init__(self, home: AgentHome) -> None:
        self.home = home
        self.expected = set(FIRST)
        self.unfiled: set[str] = set()
        self.refused = 0
        self._lock = threading.Lock()
        self.tool = MemoryStore(memory_char_limit=100_000, user_char_limit=100_000)
        self.tool.load_from_disk()
        self.agent = home.provider("marketing")
        engine = home.engine
        self.memory = Memory(home.path, lambda: nullcontext(engine.pool), lambda: nullcontext(engine))

    def changed(self, old: str | None, new: str | None) -> None:
        with self._lock:
            self.expected -= {old or ""}
            self.expected |= {new} if new else set()

    def by_the_agent(self, steps: list[tuple[str, bool]], own: list[str], pauses: list[float]) -> None:
        """The memory tool adds, rewrites and removes entries of its own, and the host announces some of it."""
        held = list(own)
        for (kind, is_announced), pause in zip(steps, itertools.cycle(pauses), strict=False):
            threading.Event().wait(pause)
            new = f"the agent's entry {next(_names)}"
            old = held.pop(0) if kind != "add" and held else None
            if old is None:
                action, done = "add", self.tool.add("memory", new)
            elif kind == "replace":
                action, done = "replace", self.tool.replace("memory", old, new)
            else:
                action, done, new = "remove", self.tool.remove("memory", old), ""
            assert done["success"], done
            if is_announced:
                self.agent.on_memory_write(action, "memory", new, metadata={"old_text": old} if old else {})
            self.changed(old, new or None)
            held += [new] if new else []

    def by_the_operator(self, own: list[str], puts_in: bool) -> None:
        """Entries get other words by `edit`; one more is put in."""
        for old in own:
            new = f"{old}, as the operator has it"
            ((number,),) = self.home.stored.rows("SELECT id FROM memory_entries WHERE content = %s", old)
            try:
                done = edit(self.memory, id=RecordName("m", int(number)), text=new, theme=None, execute=True)
            except CareError as error:
                if "has changed meanwhile" not in str(error) and "hermes is writing" not in str(error):
                    raise
                self.refused += 1
                continue
            assert done.executed
            self.changed(old, new)
        if puts_in:
            text = f"put in {next(_names)}"
            assert add(self.memory, text=text, theme="marketing", target="memory").id
            self.unfiled.add(text)

    def compared(self, times: int, pauses: list[float], stop: threading.Event) -> None:
        """The mirror compares again and again, in its own time."""
        for _, pause in zip(range(times), itertools.cycle(pauses), strict=False):
            self.home.engine.tasks.wake()
            if stop.wait(pause):
                return


def run(home: AgentHome, steps: list[tuple[str, bool]], seed: int, puts_in: bool) -> None:
    """One interleaving, and what is true after it."""
    chance = random.Random(seed)
    home.write_memories(*FIRST)
    home.provider("marketing")
    home.settle()
    home.mirror()
    beside = Beside(home)
    mine = FIRST[:]
    chance.shuffle(mine)
    stop = threading.Event()
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run_it() -> None:
            try:
                work()
            except BaseException as error:  # told by the test's own thread
                failures.append(error)

        return run_it

    pauses = [chance.random() / 50 for _ in range(5)]
    workers = [
        threading.Thread(target=guarded(lambda: beside.by_the_agent(steps, mine[:2], pauses))),
        threading.Thread(target=guarded(lambda: beside.by_the_operator(mine[2:4], puts_in))),
    ]
    watcher = threading.Thread(target=guarded(lambda: beside.compared(200, pauses, stop)))
    for each in (watcher, *workers):
        each.start()
    for each in workers:
        each.join(60)
    stop.set()
    watcher.join(60)
    assert not failures, failures
    home.settle()
    home.engine.mirror.look_again()
    home.mirror()
    fresh = MemoryStore(memory_char_limit=100_000, user_char_limit=100_000)
    fresh.load_from_disk()
    assert sorted(fresh.memory_entries) == sorted(beside.expected)
    rows = [str(content) for (content,) in home.stored.rows("SELECT content FROM memory_entries ORDER BY content")]
    assert rows == sorted(beside.expected | beside.unfiled)


@pytest.fixture(scope="module")
def shared_database(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    with new_database(postgres_server, template=migrated_template.name) as made:
        yield made


def interleave(database: Database, monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    joined, chance = edit_file._joined, random.Random(1)

    def slowly(pieces: Sequence[str | None]) -> str:
        """Between reading and writing there is time for others."""
        threading.Event().wait(chance.random() / 50)
        return joined(pieces)

    monkeypatch.setattr(edit_file, "_joined", slowly)

    @settings(max_examples=examples)
    @given(
        st.lists(st.tuples(st.sampled_from(("add", "replace", "remove")), st.booleans()), min_size=1, max_size=6),
        st.integers(0, 2**32),
        st.booleans(),
    )
    def check(steps: list[tuple[str, bool]], seed: int, puts_in: bool) -> None:
        folder = Path(tempfile.mkdtemp(prefix="beside-"))
        home = AgentHome.create(folder / "home", database)
        tables = "memory_entries, memory_operations, memory_files, journal_writers, dead_letters, pending_vectors"
        with psycopg.connect(database.owner_dsn, autocommit=True) as connection:
            connection.execute(f"TRUNCATE {tables} CASCADE".encode())
        monkeypatch.setitem(os.environ, "HERMES_HOME", str(home.path))
        try:
            run(home, steps, seed, puts_in)
        finally:
            home.close()
            shutil.rmtree(folder)

    check()


def test_no_entry_is_lost_or_comes_back_when_files_change_beside_an_agent(
    shared_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    interleave(shared_database, monkeypatch, 25)


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_no_entry_is_lost_or_comes_back_in_a_thousand_interleavings(
    shared_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    interleave(shared_database, monkeypatch, 1000)
