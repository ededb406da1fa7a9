"""`backup create` and `backup restore`: everything that was acknowledged comes back once, wherever it is put."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.config.home import homes_of, pseudonym_key
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.ops.carry import archive
from hermes_memory_pgvector.schema.moving import differences
from hermes_memory_pgvector.server.server import SETTINGS, ConnectionInfo, EmbeddedPostgres
from testing.agent import PLAIN, AgentHome
from testing.command import Commands
from testing.journals import leave_in_journal
from testing.postgres import FAST, new_database, spoil
from testing.stored import Stored
from testing.unchanged import nothing_changes
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
    done = commands.call("import", str(file), "--execute", "--hermes-home", str(home))
    assert done.code == 0, done


def agent_home(home: Path) -> AgentHome:
    info = EmbeddedPostgres(home / "pgvector").ensure_running(Deadline.after(60))
    return AgentHome(home, "", Stored(info.owner_dsn), dict(PLAIN))


def stored(home: Path) -> Stored:
    return Stored(EmbeddedPostgres(home / "pgvector").ensure_running(Deadline.after(60)).owner_dsn)


def contents(home: Path) -> list[str]:
    return [text for (text,) in stored(home).rows("SELECT content FROM conversations ORDER BY content")]


def deliver(commands: Commands, home: Path) -> None:
    """Have a process bring all that the journals of a home hold."""
    delivering = agent_home(commands.home)
    delivering.path = home
    delivering.provider("live", "s9")
    asked = ("status", "--json", "--hermes-home", str(home))
    wait_until(lambda: commands.call(*asked).json["journal"]["waiting"] == 0)
    delivering.close()


def test_what_was_forgotten_after_a_backup_stays_out_when_it_is_put_back(installation: Commands) -> None:
    here, file = installation, installation.folder / "old.tar"
    coder = here.home / "profiles" / "coder"
    for home in (here.home, coder):
        (home / "memories").mkdir()
    live = agent_home(here.home)
    live.provider("live").sync_turn("Anna Schmidt moors at the quay", "Noted for Anna\u00a0Schmidt", session_id="s1")
    live.provider("live").on_memory_write("add", "memory", "Anna Schmidt likes tea", metadata={})
    live.settle()
    live.close()
    assert here.call("backup", "create", str(file), "--no-verify").code == 0
    done = here.call("forget", "--match", "anna schmidt", "--execute", "--json")
    assert (done.code, done.json["counts"]["turns"], done.json["counts"]["memories"]) == (0, 2, 1), done
    assert here.call("forget", "--theme", "coder", "--execute").code == 0
    assert "Saying 1 of hermes." in contents(here.home)
    with nothing_changes(stored(here.home)):
        assert here.call("backup", "restore", str(file)).code == 0
    back = here.call("backup", "restore", str(file), "--execute")
    assert back.code == 0, back
    said = " ".join(back.out.split())
    assert "2 memories, 10 turns, 2 themes" in said
    assert "forgotten since, and left out: 2 memories and 7 turns" in said
    assert "would be" not in said
    there = stored(here.home)
    assert "Schmidt" not in there.everything()
    assert there.themes() == {"hermes"}
    assert "Saying 1 of hermes." in contents(here.home)
    verified = here.call("forget", "--verify", str(done.json["receipt"]), "--match", "Anna Schmidt", "--json")
    assert (verified.code, "there is no receipt" in verified.err) == (1, True), verified

    aside = [*here.home.glob("pgvector/replaced-*"), *here.home.glob("pgvector/checkpoints/replaced-*")]

    # The profile beside it is this machine's, although nobody has reached the database from there yet.
    (coder / "memories" / "USER.md").write_text("Saying 1 of hermes.", encoding="utf-8")
    again = here.call("forget", "--match", "Saying 1 of hermes.", "--execute", "--json")
    assert (again.code, again.json["receipt"]) == (3, 3), again
    assert (coder / "memories" / "USER.md").read_text(encoding="utf-8") == ""
    assert len(aside) == len([each for each in aside if str(each) in again.out]) >= 2, again


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
            time.sleep(0.02)

    talker = threading.Thread(target=talk)
    talker.start()
    while len(said) < 20:
        time.sleep(0.01)
    before = list(said)
    file = here.folder / "memory.tar"
    done = here.call("backup", "create", str(file), "--json")
    is_over.set()
    talker.join()
    live.settle(seconds=120)
    live.close()
    assert done.code == 0, done
    assert done.json["counts"]["homes"] == 3
    sums = {each.home: each.sums for each in archive.manifest_of(file).servers}
    assert sums["profiles/walled"]["conversations"]["walled"][0] == 5
    assert "every table has the same rows" in str(done.json["notes"])
    assert file.stat().st_mode & 0o077 == 0
    assert [each.name for each in here.folder.iterdir() if each.name.startswith(".memory")] == [], (
        "nothing is left over"
    )
    with elsewhere(tmp_path / "there") as there:
        dry = there.call("backup", "restore", str(file))
        assert (dry.code, "dry run, nothing is changed" in dry.out) == (0, True), dry
        assert not there.home.exists() or not list(there.home.rglob("PG_VERSION"))
        done = there.call("backup", "restore", str(file), "--execute", "--json")
        assert done.code == 0, done
        restored = there.home / "profiles" / "coder"
        assert pseudonym_key(restored) == pseudonym_key(coder)
        for home in (there.home, there.home / "profiles" / "walled"):
            assert "backup restore" in {each for (each,) in stored(home).rows("SELECT action FROM audit_log")}
        for home in (there.home, restored):
            deliver(there, home)
        found = contents(there.home)
        assert len(found) == len(set(found)), "nothing is stored twice"
        assert {*before, WAITING} <= set(found), "nothing is missing"
        assert found.count("Delivered, and still in a file of the journal.") == 1
        assert contents(there.home / "profiles" / "walled") == [f"Saying {number} of walled." for number in range(5)]
        recalled = there.call("recall", "memory of coder", "--theme", "coder", "--hermes-home", str(restored))
        assert "A memory of coder." in recalled.out, recalled
        agent_home(there.home).provider("live", "s4").sync_turn("Said after the restore, and kept aside.", "ok")
        busy = there.call("backup", "restore", str(file), "--execute")
        assert (busy.code, "stop it first" in busy.err) == (1, True), busy
        agent_home(there.home).close()
        done = there.call("backup", "restore", str(file), "--execute", "--json")
        aside = re.findall(r"there before is in ([^;]+);", done.out)
        assert (done.code, len(aside) >= 3) == (0, True), done
        assert all(Path(each).exists() for each in aside)
        assert "Said after the restore, and kept aside." not in contents(there.home)


def test_a_backup_that_is_damaged_or_foreign_is_named_and_nothing_changes(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    commands.configure()
    assert commands.call("migrate").code == 0
    try:
        file = tmp_path / "memory.tar"
        done = commands.call("backup", "create", str(file), "--no-verify")
        assert (done.code, "temporary server" in done.out) == (0, False), done
        done = commands.call("backup", "verify", str(file))
        assert (done.code, "every table has the same rows" in " ".join(done.out.split())) == (0, True), done
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
            done = commands.call("backup", "restore", str(broken), "--execute")
            assert (done.code, reason in done.err) == (1, True), (reason, done)
        assert "No such file" in commands.call("backup", "restore", str(tmp_path / "nowhere.tar")).err
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
        assert "which it does not name" in commands.call("backup", "verify", str(broken)).err
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        for place in ("/dev/null/x.tar", str(pipe)):
            nowhere = commands.call("backup", "create", place)
            assert (nowhere.code, "cannot be written" in nowhere.err) == (1, True)
        assert pipe.is_fifo(), "root would replace a device, too"
        # A restore that compares differently is told.
        manifest = archive.manifest_of(file)
        other = {**manifest.servers[0].sums, "conversations": {"x": [1, "1"]}}
        assert differences(manifest.servers[0].sums, other) == ["conversations, x"]
    finally:
        stop(commands.home)


def test_a_postgres_of_ones_own_of_any_version_comes_back_here_or_there(
    tmp_path: Path, postgres_without_contrib: ConnectionInfo, postgres_server: ConnectionInfo
) -> None:
    """Copied into a server of ours whose dump is kept; restored into an embedded server, or into an empty database."""
    with contextlib.ExitStack() as stack:
        own, empty = (stack.enter_context(new_database(each)) for each in (postgres_without_contrib, postgres_server))
        here = Commands(tmp_path / "here")
        here.folder.mkdir()
        here.configure(dsn=own.owner_dsn)
        nothing = here.call("backup", "create", "--hermes-home", str(tmp_path))
        assert (nothing.code, "there is no database" in nothing.err) == (1, True)
        assert here.call("migrate").code == 0
        bring(here, here.home, "hermes")
        with psycopg.connect(own.owner_dsn) as owner:
            spoil(owner)
        file = here.folder / "memory.tar"
        done = here.call("backup", "create", str(file))
        assert (done.code, "every table has the same rows" in " ".join(done.out.split())) == (0, True), done
        refused = here.call("backup", "restore", str(file), "--execute")
        assert (refused.code, "replaces none in a Postgres of your own" in " ".join(refused.err.split())) == (1, True)

        with elsewhere(tmp_path / "there") as there:
            assert there.call("backup", "restore", str(file), "--execute").code == 0
            assert contents(there.home) == [f"Saying {number} of hermes." for number in range(5)]
            assert "A memory of hermes." in there.call("recall", "memory of hermes", "--theme", "hermes").out
        other = Commands(tmp_path / "other")
        other.folder.mkdir()
        other.configure(dsn=empty.owner_dsn)
        assert other.call("backup", "restore", str(file), "--execute").code == 0
        assert len(Stored(empty.owner_dsn).turns("hermes")) == 5
        assert "A memory of hermes." in other.call("recall", "memory of hermes", "--theme", "hermes").out


def test_roles_rights_and_large_objects_do_not_break_a_backup(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    commands.configure()
    try:
        assert commands.call("migrate").code == 0
        bring(commands, commands.home, "hermes")
        info = EmbeddedPostgres(commands.home / "pgvector").ensure_running(Deadline.after(60))
        with psycopg.connect(info.owner_dsn) as owner:
            spoil(owner)
        file = tmp_path / "memory.tar"
        assert commands.call("backup", "create", str(file)).code == 0
        done = commands.call("backup", "restore", str(file), "--execute")
        assert done.code == 0, done
        assert contents(commands.home) == [f"Saying {number} of hermes." for number in range(5)]
        assert "A memory of hermes." in commands.call("recall", "memory of hermes", "--theme", "hermes").out
    finally:
        stop(commands.home)


@pytest.mark.large
def test_a_restore_that_was_killed_is_run_again(tmp_path: Path) -> None:
    commands = Commands(tmp_path / "here")
    commands.configure()
    assert commands.call("migrate").code == 0
    bring(commands, commands.home, "hermes")
    file = commands.folder / "memory.tar"
    try:
        assert commands.call("backup", "create", str(file)).code == 0
        for attempt in range(8):
            process = commands.start("backup", "restore", str(file), "--execute")
            time.sleep(random.random() * 6)
            process.send_signal(signal.SIGKILL)
            commands.finish(process)
            done = commands.run("backup", "restore", str(file), "--execute", "--json")
            assert done.code == 0, (attempt, done)
            assert contents(commands.home) == [f"Saying {number} of hermes." for number in range(5)]
            assert commands.run("backup", "create", str(file), "--no-verify", "--json").json["counts"] == {
                "memories": 1,
                "turns": 5,
                "themes": 1,
                "homes": 1,
            }
            for each in (commands.home / "pgvector").glob("replaced-*"):
                shutil.rmtree(each)
    finally:
        stop(commands.home)
