"""What the real host does with whole homes while the embedded server runs: clone, rename, export, back up, restore."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.home import home_id, homes_of, identity
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, Urgency, codec
from hermes_memory_pgvector.server.folder import server_folder
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from hermes_memory_pgvector.values import AddTurn
from testing.cases import some_of
from testing.hermes_home import BareHome
from testing.llm_server import Say, ScriptedLLM
from testing.postgres import spoil

QUESTION = "At which gate does the night ferry to the outer islands depart on Sundays?"
ANSWER = "The night ferry to the outer islands departs from gate seven on Sundays."
OTHER = "Who repairs the brass clock in the reading room of the town library?"
OWN_SERVER = "deep"
"""This profile has a server of its own; the others share the root home's."""
OTHER_ANSWER = "The brass clock in the reading room is repaired by the watchmaker from Elm Street."


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLLM) -> Iterator[BareHome]:
    """A home with an embedded server that runs and has something stored."""
    home = BareHome.create(tmp_path_factory.mktemp("run"), llm, "")
    llm.when(QUESTION, Say(ANSWER))
    llm.when(OTHER, Say(OTHER_ANSWER))
    try:
        done = home.command("hermes-pgvector", "up")
        assert done.code == 0, done
        assert home.ask(QUESTION) == ANSWER
        yield home
    finally:
        stop_all(home.path)


@pytest.fixture(scope="module")
def cloned(running: BareHome) -> BareHome:
    """The same home after a profile was cloned from it, and another from that one, each with a chat of its own."""
    for name, source in (("work", "default"), ("deep", "work")):
        done = running.run("profile", "create", name, "--clone-all", "--clone-from", source, "--no-alias")
        assert done.code == 0, done
        assert "rror" not in done.out + done.err
        if name == OWN_SERVER:
            set_own = ("config", "set", "own_server", "true", "--hermes-home", str(profile(running, name)))
            assert running.command("hermes-pgvector", *set_own).code == 0
        done = running.run("-p", name, "-z", OTHER)
        assert done.out.strip() == OTHER_ANSWER, done
    return running


def stop_all(root: Path) -> None:
    for home in homes_of(root):
        EmbeddedPostgres(home / "pgvector").stop(Deadline.after(60), mode="immediate")


def recalled(home: BareHome, path: Path, words: str, *more: str) -> str:
    """What a home has stored about something."""
    done = home.command("hermes-pgvector", "recall", words, "--hermes-home", str(path), *more)
    return " ".join((done.out + done.err).split())


def server_of(path: Path) -> Path:
    return server_folder(path, settings_file.load(path).settings)


def profile(home: BareHome, name: str) -> Path:
    return home.path / "profiles" / name


def test_a_profile_is_cloned_while_the_server_runs(cloned: BareHome) -> None:
    homes = [cloned.path, profile(cloned, "work"), profile(cloned, "deep")]
    assert len({home_id(path) for path in homes}) == 3
    assert identity(profile(cloned, "deep")).predecessors == (
        home_id(profile(cloned, "work")),
        home_id(cloned.path),
    )
    for name in ("work", "deep"):
        assert "watchmaker" in recalled(cloned, profile(cloned, name), "brass clock watchmaker")
        assert "gate seven" not in recalled(cloned, profile(cloned, name), "night ferry gate")
    assert "gate seven" in recalled(cloned, cloned.path, "night ferry gate")
    assert "Elm Street" not in recalled(cloned, cloned.path, "brass clock watchmaker")
    root, deep = (server_of(path) for path in (cloned.path, profile(cloned, OWN_SERVER)))
    assert server_of(profile(cloned, "work")) == root
    assert deep != root
    assert EmbeddedPostgres(root).status().running
    assert EmbeddedPostgres(deep).status().running


@pytest.mark.parametrize("name", some_of({"shared server": "work", "own server": OWN_SERVER}, "shared server"))
def test_a_profile_is_renamed_and_exported_while_its_server_runs(cloned: BareHome, tmp_path: Path, name: str) -> None:
    before = EmbeddedPostgres(server_of(profile(cloned, name))).status().pid
    done = cloned.run("profile", "rename", name, "labour")
    assert done.code == 0, done
    assert EmbeddedPostgres(server_of(profile(cloned, "labour"))).status().pid == before
    assert "watchmaker" in recalled(cloned, profile(cloned, "labour"), "brass clock watchmaker", "--theme", name)
    try:
        if name == OWN_SERVER:
            _export_and_import(cloned, tmp_path)
    finally:
        cloned.run("profile", "rename", "labour", name)


@pytest.mark.large
def test_a_deleted_profile_leaves_nothing_and_takes_nothing_along(cloned: BareHome) -> None:
    before = EmbeddedPostgres(server_of(cloned.path)).status().pid
    done = cloned.run("profile", "create", "brief", "--clone-all", "--clone-from", "work", "--no-alias")
    assert done.code == 0, done
    told = cloned.run("-p", "brief", "pgvector", "mute", "t999999")
    assert told.code == 1, told
    dry = cloned.run("-p", "brief", "pgvector", "forget", "--theme", "work")
    assert "hermes -p brief pgvector forget --theme work --execute" in dry.out
    assert json.loads(cloned.run("-p", "brief", "pgvector", "status", "--json").out)["home"] == str(
        profile(cloned, "brief")
    )
    done = cloned.run("profile", "delete", "brief", "--yes")
    assert done.code == 0, done
    assert not profile(cloned, "brief").exists()
    assert EmbeddedPostgres(server_of(cloned.path)).status().pid == before
    assert "gate seven" in recalled(cloned, cloned.path, "night ferry gate")
    assert "watchmaker" in recalled(cloned, profile(cloned, "work"), "brass clock watchmaker")
    assert cloned.run("pgvector", "doctor").code == 0


def _export_and_import(cloned: BareHome, tmp_path: Path) -> None:
    before = EmbeddedPostgres(profile(cloned, "labour") / "pgvector").status().pid
    done = cloned.run("profile", "export", "labour", "-o", str(tmp_path / "labour.tar.gz"))
    assert done.code == 0, done
    done = cloned.run("profile", "import", str(tmp_path / "labour.tar.gz"), "--name", "imported")
    assert done.code == 0, done
    assert home_id(profile(cloned, "imported")) != home_id(profile(cloned, "labour"))
    assert "watchmaker" in recalled(
        cloned, profile(cloned, "imported"), "brass clock watchmaker", "--theme", OWN_SERVER
    )
    assert EmbeddedPostgres(profile(cloned, "labour") / "pgvector").status().pid == before


def test_every_home_has_its_memory_after_backup_and_import(cloned: BareHome, tmp_path: Path) -> None:
    waiting = "The lighthouse keeper leaves the key below the third flower pot."
    journal = Journal(cloned.path / "pgvector" / "journal", max_bytes=1 << 20)
    journal.open()
    when = Clock().now()
    journal.append(codec.encode([AddTurn("hermes", "s1", "user", waiting, 1, when, True)]), Urgency.TURN)
    journal.close(Deadline.after(5))
    with psycopg.connect(
        EmbeddedPostgres(cloned.path / "pgvector").ensure_running(Deadline.after(60)).owner_dsn
    ) as owner:
        spoil(owner)
    done = cloned.run("backup", "-o", str(tmp_path / "home.zip"))
    assert done.code == 0, done
    assert "Backup complete" in done.out
    homes = homes_of(cloned.path)
    assert f"{len({server_of(path) for path in homes})} memory-provider file(s)" in done.out
    before = {home_id(path) for path in homes}
    stop_all(cloned.path)
    lost = cloned.path.rename(tmp_path / "lost")
    new = BareHome(tmp_path / "new" / "hermes", tmp_path / "new" / "user")
    new.user.mkdir(parents=True)
    try:
        done = new.run("import", str(tmp_path / "home.zip"))
        assert done.code == 0, done
        assert "gate seven" in recalled(new, new.path, "night ferry gate")
        for path in homes_of(new.path)[1:]:
            assert "watchmaker" in recalled(new, path, "brass clock watchmaker", "--scope", "all")
        assert {home_id(path) for path in homes_of(new.path)}.isdisjoint(before)
        assert "flower pot" not in recalled(new, new.path, "key of the lighthouse keeper")
        assert new.ask(QUESTION) == ANSWER
        found = json.loads(recalled(new, new.path, "key of the lighthouse keeper", "--json"))
        assert [hit["content"] for hit in found["results"]].count(waiting) == 1
    finally:
        stop_all(new.path)
        lost.rename(cloned.path)
