"""The past that hermes itself has written: imported, it is what live traffic had stored."""

from __future__ import annotations

import importlib
import json
import threading
from typing import Any

import pytest

from hermes_memory_pgvector.capture.scaffolding import typed_by_user
from testing.hermes import MakeHome
from testing.hermes_home import HermesHome
from testing.llm_server import Call, Say, ScriptedLLM
from testing.waiting import wait_until

skill_commands: Any = importlib.import_module("agent.skill_commands")
DRIVER = """
import contextlib, io, json, os, sys, time
from cli import HermesCLI
import cli as host
steps = json.loads(sys.argv[1])
said = io.StringIO()
with contextlib.redirect_stdout(said):
    shell = HermesCLI(compact=True)
    for step in steps:
        if isinstance(step, list):
            shell.chat(step)
        elif step == "/undo":
            shell.undo_last(prefill=False)
        elif step == "/new":
            shell.new_session(silent=True)
        elif step.startswith("/"):
            shell.process_command(step)
        else:
            shell.chat(step)
        if shell.agent is not None and shell.agent._memory_manager is not None:
            shell.agent._memory_manager.flush_pending(timeout=30)
    host._active_agent_ref = shell.agent
    host._run_cleanup()
os.write(1, json.dumps(said.getvalue()).encode() + b"\\n")
os._exit(0)
"""
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TURNS = (
    "SELECT agent_identity, session_id, role, content, metadata ->> 'delegated_to' FROM conversations"
    " WHERE hidden_by IS NULL ORDER BY 1, 2, 3, 4"
)
PARENTS = (
    "SELECT DISTINCT session_id, parent_session_id FROM conversations WHERE session_id IN"
    " (SELECT session_id FROM conversations WHERE parent_session_id IS NOT NULL) AND role <> 'tool' ORDER BY 1"
)


def question(number: int) -> str:
    return f"Question {number}: how many barrels of cider are there in cellar number {number} of the old mill?"


def _round(start: int) -> list[Any]:
    """More of everything, in a session of its own."""
    numbers = range(start, start + 12)
    return ["/new", *map(question, numbers), question(start), "/undo", "/branch", *map(question, numbers[:4])]


def imported(home: HermesHome, source: HermesHome) -> dict[str, Any]:
    done = home.command("hermes-pgvector", "import", str(source.path / "state.db"), "--execute", "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    known = sum(each["known"] for each in found["samples"])
    return {"stored": found["counts"]["rows"], "known": known, "left_out": found["left_out"]}


@pytest.mark.parametrize(
    ("in_place", "rounds"),
    [(True, 1), pytest.param(False, 1, marks=pytest.mark.large), pytest.param(True, 5, marks=pytest.mark.large)],
    ids=["compressed in place", "compressed into a new session", "some hundred messages"],
)
def test_an_imported_past_is_what_live_traffic_stores(
    make_home: MakeHome, llm: ScriptedLLM, *, in_place: bool, rounds: int
) -> None:
    """Undo, a branch, repeated words, a helper, a picture, a compression and a new session, by the host itself."""
    goal = "Count the bridges within the old town walls and say how many there are"
    llm.when("ask a helper about the bridges", Call("delegate_task", {"goal": goal}), Say("The helper counts bridges."))
    llm.when(goal, Say("Seven bridges cross the river within the old town walls, two of them for trains."))
    live, empty = make_home(sections={"compression": {"in_place": in_place}}), make_home()
    steps: list[Any] = [
        *map(question, (0, 1, 2)),
        "/undo",
        *map(question, (3, 1)),
        "/branch",
        *map(question, (1, 4)),
        "please ask a helper about the bridges in the old town today",
        [{"type": "text", "text": "What kind of bird is sitting on the fence in this picture?"}, PICTURE],
        *map(question, range(10, 18)),
        "/compress",
        *map(question, (11, 20)),
        "/undo",
        question(21),
        "/new",
        question(1),
    ]
    more = [step for number in range(1, rounds) for step in _round(100 * number)]
    said = live.python(DRIVER, json.dumps([*steps, *more]))
    assert "Compacting context" in said
    stored = live.stored.rows(TURNS)
    assert len(stored) > 30
    found = imported(empty, live)
    assert empty.stored.rows(TURNS) == stored
    assert set(empty.stored.rows(PARENTS)) <= set(live.stored.rows(PARENTS))
    assert empty.stored.rows(PARENTS)
    assert (found["stored"], found["left_out"]["taken back with /undo"]) == (len(stored), 4 + 2 * (rounds - 1))
    assert len(stored) > 100 or rounds == 1
    for home in (live, empty):
        again = imported(home, live)
        assert (again["stored"], again["known"]) == (0, len(stored))


@pytest.mark.large
def test_a_gateway_that_goes_on_writing_loses_and_doubles_nothing(make_home: MakeHome) -> None:
    """The store is imported again and again while requests of several themes are answered."""
    home = make_home()
    said = [(f"theme-{number % 3}", question(number)) for number in range(24)]
    rounds: list[dict[str, Any]] = []
    with home.gateway() as gateway:
        is_over = threading.Event()

        def keep_importing() -> None:
            while not is_over.is_set() or not rounds:
                rounds.append(imported(home, home))

        importer = threading.Thread(target=keep_importing)
        importer.start()
        try:
            answers = gateway.chat_all(said, at_once=3)
        finally:
            is_over.set()
            importer.join()
        assert all(answer.status == 200 for answer in answers)
        wait_until(lambda: home.stored.count("conversations") >= 2 * len(said))
    imported(home, home)
    stored = home.stored.rows("SELECT agent_identity, content FROM conversations WHERE role = 'user' ORDER BY 1, 2")
    assert stored == sorted(said), "each question once, in its own theme"
    assert home.stored.count("conversations") == 2 * len(said)
    assert imported(home, home)["stored"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "Plain words that nobody has wrapped into a skill.",
        skill_commands._SKILL_INVOCATION_PREFIX + '"x" skill. ' + skill_commands._SINGLE_SKILL_MARKER + " body",
        skill_commands._SKILL_INVOCATION_PREFIX + '"x" skill. ' + skill_commands._SINGLE_SKILL_MARKER + " body "
        + skill_commands._SINGLE_SKILL_INSTRUCTION + "Sort my mail." + skill_commands._RUNTIME_NOTE + " brief]",
        skill_commands._SKILL_INVOCATION_PREFIX + '"x"' + skill_commands._BUNDLE_MARKER
        + skill_commands._BUNDLE_USER_INSTRUCTION + "Sort my mail." + skill_commands._BUNDLE_FIRST_SKILL_BLOCK + "x]",
        skill_commands._SKILL_INVOCATION_PREFIX + "something else]",
    ],
)  # fmt: skip
def test_skills_are_taken_off_as_the_host_does(text: str) -> None:
    assert typed_by_user(text) == skill_commands.extract_user_instruction_from_skill_message(text)
