"""A home that is copied and its copy: two homes on one database, neither of which deletes what the other holds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_memory_pgvector.config import home as home_identity
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.mirror.mirror import Mirror
from testing.agent import AgentHome
from testing.postgres import Database
from testing.waiting import wait_until


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are compared at once."""
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)


@pytest.fixture
def copied(agent_home: AgentHome, database: Database, tmp_path: Path) -> Iterator[AgentHome]:
    """A copy, as `cp -a` makes it, of a home that holds two entries and has one turn waiting in its journal."""
    agent_home.write_memories("Wifi is hummingbird", "Servers run Debian")
    agent = agent_home.provider()
    compared(agent_home)
    agent.sync_turn("When does the ferry leave?", "It leaves at nine.", session_id="s1")
    agent_home.settle()
    agent_home.run('provider("marketing").sync_turn("left behind", "in the journal", session_id="s2"); os._exit(0)')
    place = tmp_path / "copied" / "hermes"
    place.parent.mkdir()
    subprocess.run(["cp", "-a", str(agent_home.path), str(place)], check=True)
    copy = AgentHome.create(place, database)
    yield copy
    copy.close()


def compared(home: AgentHome) -> list[str]:
    """What is stored when everything announced has arrived and the files have been compared."""
    home.settle()
    home.mirror()
    return [str(content) for (content,) in home.stored.rows("SELECT content FROM memory_entries ORDER BY 1")]


def start(home: AgentHome) -> list[str]:
    """A process begins and has done its comparison."""
    home.close()
    home.provider()
    return compared(home)


def holders(home: AgentHome, content: str) -> set[str]:
    """The homes that hold an entry."""
    return {
        str(holder)
        for (holder,) in home.stored.rows(
            "SELECT jsonb_object_keys(homes) FROM memory_entries WHERE content = %s",
            content,
        )
    }


def test_two_homes_that_go_different_ways_keep_each_others_entries(agent_home: AgentHome, copied: AgentHome) -> None:
    both = ["Servers run Debian", "Wifi is hummingbird"]
    assert start(copied) == both
    copied.write_memories("Wifi is hummingbird", "Servers run Debian", "Only the copy knows")
    agent_home.write_memories("Wifi is hummingbird", "Servers run Debian", "Only the original knows")
    everything = ["Only the copy knows", "Only the original knows", *both]
    start(copied)
    assert start(agent_home) == everything
    for _ in range(2):
        assert start(copied) == everything
        assert start(agent_home) == everything
    agent_home.write_memories("Only the original knows")
    start(agent_home)
    assert start(copied) == everything
    copied.write_memories("Only the copy knows")
    assert start(copied) == ["Only the copy knows", "Only the original knows"]


def test_what_waits_in_both_journals_is_stored_once(agent_home: AgentHome, copied: AgentHome) -> None:
    def turns() -> list[str]:
        query = "SELECT content FROM conversations WHERE session_id = 's2' ORDER BY ts, role DESC"
        return [str(content) for (content,) in agent_home.stored.rows(query)]

    for home in (copied, agent_home, copied):
        start(home)
        wait_until(lambda: turns() == ["left behind", "in the journal"])
    assert agent_home.stored.rows("SELECT count(*) FROM conversations") == [(4,)]
    assert agent_home.stored.rows("SELECT count(*) FROM dead_letters") == [(0,)]


def test_a_copy_with_an_older_file_deletes_nothing(agent_home: AgentHome, copied: AgentHome) -> None:
    """The original is stopped, and has written since the copy's file was made."""
    agent_home.write_memories("Wifi is hummingbird", "Servers run Debian", "Written later")
    everything = start(agent_home)
    agent_home.close()
    copied.write_memories("Wifi is hummingbird")
    assert start(copied) == everything
    copied.write_memories("Wifi is kolibri")
    assert compared(copied) == ["Servers run Debian", "Wifi is hummingbird", "Wifi is kolibri", "Written later"]


def test_a_copy_that_keeps_the_id_and_has_an_older_file_deletes_nothing(
    agent_home: AgentHome, copied: AgentHome, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It stands where the original, which is stopped, has stood, as after a restore."""
    id_before = home_identity.home_id(agent_home.path)
    agent_home.write_memories("Wifi is hummingbird", "Servers run Debian 13", "Written later")
    everything = start(agent_home)
    agent_home.provider("marketing").on_memory_write("add", "memory", "Only told", {})
    agent_home.settle()
    agent_home.close()
    agent_home.path.rename(tmp_path / "stopped")
    copied.path.rename(agent_home.path)
    everything = sorted([*everything, "Only told", "Servers run Debian"])
    for _ in range(2):
        assert start(agent_home) == everything
    assert caplog.text.count("is older than it was") == 1
    assert home_identity.home_id(agent_home.path) == id_before
    agent_home.write_memories("Wifi is hummingbird", "Servers run Debian", "Written by the copy")
    assert compared(agent_home) == sorted([*everything, "Written by the copy"])
    agent_home.write_memories("Wifi is hummingbird")
    assert compared(agent_home) == sorted({*everything} - {"Servers run Debian"})


def test_the_heir_of_a_home_that_is_gone_deletes_nothing_by_an_older_file(
    agent_home: AgentHome, copied: AgentHome
) -> None:
    former = home_identity.home_id(agent_home.path)
    agent_home.write_memories("Wifi is hummingbird", "Servers run Debian", "Written later")
    everything = start(agent_home)
    agent_home.close()
    copied.write_memories("Wifi is kolibri", "Servers run Debian")
    inherit(copied, former)
    assert compared(copied) == sorted([*everything, "Wifi is kolibri"])
    assert holders(copied, "Written later") == {former}
    copied.write_memories("Servers run Debian")
    assert compared(copied) == everything


def inherit(home: AgentHome, former: str) -> None:
    """What the first comparison of a home does that inherits from another."""
    home.provider("marketing")
    engine = home.engine
    heir = Mirror(
        home.path, engine.home_id, engine.pool, engine.clock, max_chars=1000, wants_vectors=False, inherits=(former,)
    )
    heir.run("hermes", lambda: engine.writer.flush(Deadline.after(30)))


def test_the_heir_of_a_home_that_is_gone_lets_its_entries_go(agent_home: AgentHome, copied: AgentHome) -> None:
    """As after a restore into an embedded database, which nobody else uses."""
    former = home_identity.home_id(agent_home.path)
    agent_home.close()
    inherit(copied, former)
    heir = copied.engine.home_id
    assert heir != former
    assert holders(copied, "Wifi is hummingbird") == {heir}
    copied.write_memories("Servers run Debian")
    assert compared(copied) == ["Servers run Debian"]
