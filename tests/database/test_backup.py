"""`backup` and `restore-backup`: everything that was acknowledged comes back once, wherever it is put."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector.config.home import homes_of, pseudonym_key
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.server.server import SETTINGS, EmbeddedPostgres
from hermes_memory_pgvector.setup import archive, backup
from hermes_memory_pgvector.store import sums
from testing.agent import PLAIN, AgentHome
from testing.command import Commands
from testing.journals import leave_in_journal
from testing.postgres import FAST
from testing.stored import Stored
from testing.waiting import wait_until

WAITING = "A word of the profile that only its journal holds."


@pytest.fixture(autouse=True)
def _quick_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that do not wait for the disk."""
    for setting, value in FAST.items():
        monkeypatch.setitem(SETTINGS, setting, value)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Commands]:
    """A root home, a profile that shares its server, and one with a server of its own; each with rows."""
    made = Commands(tmp_path / "here")
    made.configure(allowed_themes=["hermes", "coder", "walled", "live"])
    for name, section in (("coder", "{}"), ("walled", "{own_server: true}")):
        home = made.home / "profiles" / name
        home.mkdir(parents=True)
        (home / "config.yaml").write_text(f"memory: {{provider: pgvector, pgvector: {section}}}\n", encoding="utf-8")
    try:
        for home, theme in zip(homes_of(made.home), ("hermes", "coder", "walled"), strict=True):
            if theme != "coder":
                done = made.call("migrate", "--hermes-home", str(home))
                assert done.code == 0, done
            bring(made, home, theme)
            pseudonym_key(home)
        yield made
    finally:
        stop(made.home)


@contextlib.contextmanager
def elsewhere(folder: Path) -> Iterator[Commands]:
    """Another machine's empty home."""
    made = Commands(folder)
    folder.mkdir()
    try:
        yield made
    finally:
        stop(made.home)


def stop(root: Path) -> None:
    for home in homes_of(root):
        EmbeddedPostgres(home / "pgvector").stop(Deadline.after(60), mode="immediate")


def bring(commands: Commands, home: Path, theme: str) -> None:
    turn = {"kind": "turn", "theme": theme, "session": "s1", "role": "user", "at": "2026-01-02T03:04:05+00:00"}
    rows: list[dict[str, Any]] = [{**turn, "content": f"Saying {number} of {theme}."} for number in range(5)]
    rows.append({"kind": "memory", "theme": theme, "target": "memory", "content": f"A memory of {theme}.",
                 "created_at": "2026-01-02"})  # fmt: skip
    file = commands.folder / "rows.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    done = commands.call("import", "jsonl", str(file), "--hermes-home", str(home))
    assert done.code == 0, done


def agent_home(home: Path) -> AgentHome:
    info = EmbeddedPostgres(home / "pgvector").ensure_running(Deadline.after(60))
    return AgentHome(home, "", Stored(info.owner_dsn), dict(PLAIN))


def stored(home: Path) -> Stored:
    return Stored(EmbeddedPostgres(home / "pgvector").ensure_running(Deadline.after(60)).owner_dsn)


def contents(home: Path) -> list[str]:
    return [text for (text,) in stored(home).rows("SELECT content FROM conversations ORDER BY content")]


def test_what_was_acknowledged_comes_back_once_on_another_machine(installation: Commands, tmp_path: Path) -> None:
    here = installation
    coder = here.home / "profiles" / "coder"
    leave_in_journal(coder, "coder", WAITING)
    live = agent_home(here.home)
    agent = live.provider("live", "s3")
    agent.sync_turn("Delivered, and still in a file of the journal.", "So it is in both, and is stored once.")
    live.settle()
    said: list[str] = []
    is_over = threading.Event()

    def talk() -> None:
        while not is_over.is_set():
            words = f"Said while the backup is being made, number {len(said)}."
            agent.sync_turn(words, "ok", session_id="s3")
            said.append(words)
            time.sleep(0.001)

    talker = threading.Thread(target=talk)
    talker.start()
    while len(said) < 20:
        time.sleep(0.01)
    before = list(said)
    file = here.folder / "memory.tar"
    done = here.call("backup", "--output", str(file), "--json")
    is_over.set()
    talker.join()
    live.settle()
    live.close()
    assert done.code == 0, done
    assert done.json["homes"] == [".", "profiles/coder", "profiles/walled"]
    assert done.json["themes"]["walled"] == {"memories": 1, "turns": 5}
    assert file.stat().st_mode & 0o077 == 0
    assert [each.name for each in here.folder.iterdir() if each.name.startswith(".memory")] == [], (
        "nothing is left over"
    )
    with elsewhere(tmp_path / "there") as there:
        dry = there.call("restore-backup", str(file))
        assert (dry.code, "dry run, nothing is changed" in dry.out) == (0, True), dry
        assert not there.home.exists() or not list(there.home.rglob("PG_VERSION"))
        done = there.call("restore-backup", str(file), "--execute", "--json")
        assert (done.code, done.json["replaces"], done.json["troubles"]) == (0, False, []), done
        assert load(there.home).settings.allowed_themes == load(here.home).settings.allowed_themes
        restored = there.home / "profiles" / "coder"
        assert pseudonym_key(restored) == pseudonym_key(coder)
        for home in (there.home, restored):
            delivering = agent_home(there.home)
            delivering.path = home
            delivering.provider("live", "s9")
            delivering.settle()
            if home == restored:
                wait_until(lambda: stored(there.home).themes_of(WAITING) == {"coder"})
            delivering.close()
        found = contents(there.home)
        assert len(found) == len(set(found)), "nothing is stored twice"
        assert {*before, WAITING} <= set(found), "nothing is missing"
        assert found.count("Delivered, and still in a file of the journal.") == 1
        assert contents(there.home / "profiles" / "walled") == [f"Saying {number} of walled." for number in range(5)]
        recalled = there.call("recall", "memory of coder", "--theme", "coder", "--hermes-home", str(restored))
        assert "A memory of coder." in recalled.out, recalled
        refused = there.call("restore-backup", str(file), "--execute")
        assert (refused.code, "add --replace" in refused.err) == (1, True)
        agent_home(there.home).provider("live", "s4").sync_turn("Said after the restore, and kept aside.", "ok")
        busy = there.call("restore-backup", str(file), "--replace", "--execute")
        assert (busy.code, "stop it first" in busy.err) == (1, True), busy
        agent_home(there.home).close()
        done = there.call("restore-backup", str(file), "--replace", "--execute", "--json")
        assert (done.code, done.json["replaces"]) == (0, True), done
        assert all(Path(each).exists() for each in done.json["aside"])
        assert "Said after the restore, and kept aside." not in contents(there.home)


def test_a_backup_that_is_damaged_or_foreign_is_named_and_nothing_changes(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    commands.configure()
    assert commands.call("migrate").code == 0
    try:
        file = tmp_path / "memory.tar"
        done = commands.call("backup", "--output", str(file), "--verify", "--json")
        assert (done.code, done.json["verified"], done.json["differing"]) == (0, True, []), done
        whole = file.read_bytes()
        broken = tmp_path / "broken.tar"
        at = whole.index(b"PGDMP") + 2000
        for data, reason in (
            (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "servers/0.dump is not what was written"),
            (whole[: len(whole) // 2], "damaged"),
            (b"no archive at all", "is not a backup of ours"),
            (b"", "is not a backup of ours"),
        ):
            broken.write_bytes(data)
            done = commands.call("restore-backup", str(broken), "--execute")
            assert (done.code, reason in done.err) == (1, True), (reason, done)
        assert "No such file" in commands.call("restore-backup", str(tmp_path / "nowhere.tar")).err
        unpacked = tmp_path / "unpacked"
        unpacked.mkdir()
        with tarfile.open(file) as tar:
            for member in tar.getmembers():
                content = tar.extractfile(member)
                if content is not None:
                    (unpacked / member.name).parent.mkdir(parents=True, exist_ok=True)
                    (unpacked / member.name).write_bytes(content.read())
        (unpacked / "evil").write_bytes(b"x")
        with tarfile.open(broken, "w") as tar:
            for name in ("manifest.json", "servers/0.dump"):
                tar.add(unpacked / name, arcname=name)
            tar.add(unpacked / "evil", arcname="../evil")
        assert "which it does not name" in commands.call("restore-backup", str(broken)).err
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        for place in ("/dev/null/x.tar", str(pipe)):
            nowhere = commands.call("backup", "--output", place)
            assert (nowhere.code, "cannot be written" in nowhere.err) == (1, True)
        assert pipe.is_fifo(), "root would replace a device, too"
        # A restore that compares differently is told.
        manifest = archive.check(file)
        other = {**manifest.servers[0].sums, "conversations": {"x": [1, "1"]}}
        assert sums.differences(manifest.servers[0].sums, other) == ["conversations, x"]
    finally:
        stop(commands.home)


def test_a_postgres_of_ones_own_is_backed_up_with_its_own_tools(tmp_path: Path) -> None:
    commands = Commands(tmp_path, ["s3cretword"])
    done = commands.call("backup", "--hermes-home", str(tmp_path))
    assert (done.code, "there is no embedded server" in done.err) == (1, True)
    commands.configure(dsn="postgresql://ada:s3cretword@db.example/memory")
    done = commands.call("backup")
    assert done.code == 1
    assert "pg_dump --format=custom --file=memory.dump" in " ".join(done.err.split())
    assert "user=ada" in done.err or "ada@db.example" in done.err


@pytest.mark.large
def test_a_restore_that_was_killed_is_run_again(tmp_path: Path) -> None:
    commands = Commands(tmp_path / "here")
    commands.configure()
    assert commands.call("migrate").code == 0
    bring(commands, commands.home, "hermes")
    file = commands.folder / "memory.tar"
    try:
        assert commands.call("backup", "--output", str(file)).code == 0
        for attempt in range(8):
            process = commands.start("restore-backup", str(file), "--replace", "--execute")
            time.sleep(random.random() * 6)
            process.send_signal(signal.SIGKILL)
            commands.finish(process)
            done = commands.run("restore-backup", str(file), "--replace", "--execute", "--json")
            assert done.code == 0, (attempt, done)
            assert contents(commands.home) == [f"Saying {number} of hermes." for number in range(5)]
            assert backup.make(commands.home, file).themes == {"hermes": (1, 5)}
            for each in (commands.home / "pgvector").glob("replaced-*"):
                shutil.rmtree(each)
    finally:
        stop(commands.home)
