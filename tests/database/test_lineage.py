"""`sessions --tree`: which session went on from which and how, and who worked for whom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.care.lineage import MOST, grown
from hermes_memory_pgvector.store.browse import Relative
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database

QUESTION = "Where do we moor the harbour pilot boat tonight, and who says so?"


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_url="http://127.0.0.1:9/")
    return made


def outline(trees: Sequence[dict[str, Any]]) -> list[Any]:
    return [(each["session_id"], each["via"], outline(each["children"])) for each in trees]


def test_what_the_host_says_of_sessions_is_a_tree(
    agent_home: AgentHome, database: Database, commands: Commands
) -> None:
    agent = agent_home.provider("market", session="first")
    agent.sync_turn(QUESTION, "At the northern quay, says the harbour master.", session_id="first")
    agent.on_delegation("look up the tide", "high at nine", child_session_id="helper")
    agent.on_session_switch("copy", parent_session_id="first", reason="branch")
    agent.sync_turn(QUESTION + " In a branch.", "At the northern quay, as in the first one.", session_id="copy")
    agent.on_session_switch("shorter", parent_session_id="copy", reason="compression")
    agent.sync_turn(QUESTION + " After compression.", "At the northern quay, as ever before.", session_id="shorter")
    agent.on_session_switch("other", parent_session_id="shorter", reset=True, reason="new_session")
    agent.sync_turn(QUESTION + " Anew.", "At the southern quay, for once, since it is Sunday.", session_id="other")
    agent.on_session_switch("first", parent_session_id="other", reason="resume")
    agent.sync_turn(QUESTION + " Resumed.", "Still at the northern quay of the harbour.", session_id="first")
    agent_home.settle()
    told = commands.call("sessions", "--tree", "--json").json
    family: list[Any] = [("copy", "branch", [("shorter", "compression", [])]), ("helper", "delegation", [])]
    assert {tree[0]: sorted(tree[2]) for tree in outline(told["trees"])} == {"first": sorted(family), "other": []}
    after = {each["session_id"]: each["after"] for each in told["trees"]}
    assert after == {"first": "other", "other": "shorter"}
    one = commands.call("sessions", "--tree", "--theme", "market", "--limit", "1").out
    lines = [line.rstrip() for line in one.splitlines()]
    assert lines[0] == "market"
    assert lines[1].startswith("  first (5 turns, ")
    assert lines[2] == "  ├─ delegation: helper (no turns kept)"
    assert lines[3].startswith("  └─ branch: copy (2 turns")
    assert lines[4].startswith("     └─ compression: shorter (2 turns")
    assert "there is no theme" in commands.call("sessions", "--tree", "--theme", "nobody").everything


def test_other_themes_and_circles_stay_out_of_a_tree(database: Database, commands: Commands) -> None:
    with psycopg.connect(database.operator_dsn) as connection:
        for theme, session, parent in (
            ("a", "s1", None), ("a", "s2", "s1"), ("b", "s1", "s9"), ("b", "s3", "s1"),
            ("c", "x", "y"), ("c", "y", "x"), ("d", "\x1b[31mred", None),
        ):  # fmt: skip
            connection.execute(
                "INSERT INTO conversations (agent_identity, session_id, parent_session_id, role, content)"
                " VALUES (%s, %s, %s, 'user', %s)",
                (theme, session, parent, f"said in {theme}"),
            )
        connection.execute(
            "INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest)"
            " VALUES ('a', 's2', '', ''), ('b', 's3', '', '')"
        )
    trees = commands.call("sessions", "--tree", "--json").json["trees"]
    assert sorted((each["agent_identity"], *outline([each])) for each in trees) == [
        ("a", ("s1", None, [("s2", "continues", [])])),
        ("b", ("s9", None, [("s1", "continues", [("s3", "continues", [])])])),
        ("c", ("y", None, [("x", "continues", [])])),
        ("d", ("\x1b[31mred", None, [])),
    ]
    assert "\x1b" not in commands.call("sessions", "--tree").out


def test_a_long_chain_is_told(commands: Commands, database: Database) -> None:
    with psycopg.connect(database.operator_dsn) as connection:
        connection.execute(
            "INSERT INTO conversations (agent_identity, session_id, parent_session_id, role, content)"
            " SELECT 'a', 's' || n, 's' || n - 1, 'user', 'x' FROM generate_series(1, 400) AS n"
        )
    assert commands.call("sessions", "--tree", "--limit", "1", "--json").code == 0
    shown = commands.call("sessions", "--tree", "--limit", "1")
    assert len(shown.out.splitlines()) == MOST + 2


def test_a_session_is_its_own_parent_nowhere() -> None:
    def relative(name: str, parent: str | None, delegated_by: str | None = None) -> Relative:
        return Relative(name, 1, None, None, parent, "", delegated_by, None, "")

    found = grown("t", [relative("a", "a"), relative("b", None, "b"), relative("c", "a", "b")])
    assert [(each.session_id, [child.session_id for child in each.children]) for each in found] == [
        ("a", ["c"]),
        ("b", []),
    ]
