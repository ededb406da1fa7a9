"""`hermes -z`: one chat in a process of its own, which ends with os._exit."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from hermes_memory_pgvector.config.home import homes_of
from hermes_memory_pgvector.ops.setup import plugin_folder
from testing.hermes import MakeHome
from testing.hermes_home import HermesHome
from testing.llm_server import Call, Say, ScriptedLLM

EDGES = "SELECT session_id, metadata ->> 'delegated_to' FROM conversations WHERE role = 'tool'"


def test_a_chat_lands_in_theme_hermes_with_both_sides_and_vectors(hermes_home: HermesHome, llm: ScriptedLLM) -> None:
    question = "Which day does the orchard cooperative deliver its pears to the market hall?"
    answer = "The orchard cooperative delivers pears every second Thursday before sunrise."
    llm.when(question, Say(answer))
    assert hermes_home.ask(question) == answer
    assert [turn[::2] for turn in hermes_home.stored.turns("hermes")] == [("user", question), ("assistant", answer)]
    assert hermes_home.stored.turns_with_vector("hermes") == 2
    assert hermes_home.stored.themes() == {"hermes"}


def test_a_memory_of_one_home_is_in_the_request_of_another_and_never_stored_as_something_said(
    make_home: MakeHome, hermes_home: HermesHome, llm: ScriptedLLM
) -> None:
    fact = "The lighthouse keeper's daughter is allergic to walnuts"
    llm.when("remember the walnuts", Call("memory", {"action": "add", "target": "user", "content": fact}), Say("Kept."))
    hermes_home.ask("Please remember the walnuts and the lighthouse keeper's daughter.")
    assert hermes_home.stored.memories("hermes") == [("user", fact)]
    question = "Is the lighthouse keeper's daughter allergic to walnuts or to almonds?"
    make_home(dsn=hermes_home.dsn).ask(question)
    (request,) = llm.about(question)
    assert fact in request.recalled
    assert fact not in request.system
    said = [content for _, _, content in hermes_home.stored.turns("hermes")]
    assert question in said
    assert not any("memory-context" in content or fact in content for content in said)


def test_what_the_host_shows_anyway_is_not_recalled_beside_it(hermes_home: HermesHome, llm: ScriptedLLM) -> None:
    fact = "The night train to the coast has no dining car on weekdays"
    llm.when("note the dining car", Call("memory", {"action": "add", "content": fact}), Say("Kept."))
    hermes_home.ask("Please note the dining car of the night train to the coast.")
    question = "Does the night train to the coast have a dining car on weekdays?"
    hermes_home.ask(question)
    (request,) = llm.about(question)
    assert fact in request.system
    assert fact not in request.recalled


def test_a_delegation_leaves_an_edge_and_a_turn(hermes_home: HermesHome, llm: ScriptedLLM) -> None:
    goal = "Find out how many bridges cross the river within the old town walls"
    found = "Seven bridges cross the river within the old town walls, two of them for trains."
    llm.when(
        "ask a helper about bridges", Call("delegate_task", {"goal": goal}), Say("The helper counted seven bridges.")
    )
    llm.when(goal, Say(found))
    hermes_home.ask("Please ask a helper about bridges in the old town.")
    if not hermes_home.stored.rows(EDGES):
        # Some hosts report a helper's work as they end, and wait for nobody: the next process delivers it.
        hermes_home.ask("Which other bridges of the old town are worth a visit in the spring?")
    sessions = {session for _, session, _ in hermes_home.stored.turns("hermes")}
    ((parent, child),) = hermes_home.stored.rows(EDGES)
    assert parent in sessions
    assert child
    assert any(found in content for _, _, content in hermes_home.stored.turns("hermes"))


def test_a_profile_keeps_its_own_theme(hermes_home: HermesHome) -> None:
    coder = hermes_home.path / "profiles" / "coder"
    coder.mkdir(parents=True)
    shutil.copy(hermes_home.config_file, coder / "config.yaml")
    for home in homes_of(hermes_home.path):
        plugin_folder.install(home)
    question = "Which compiler flags does the coder profile prefer for release builds?"
    done = hermes_home.run("-p", "coder", "-z", question)
    assert done.code == 0, done
    assert hermes_home.stored.themes() == {"coder"}


@pytest.mark.large
def test_short_words_are_not_kept(hermes_home: HermesHome, llm: ScriptedLLM) -> None:
    llm.when("thanks a lot", Say("ok"))
    hermes_home.ask("thanks a lot")
    assert hermes_home.stored.turns("hermes") == []


def test_memory_md_is_imported_and_follows_hand_edits(hermes_home: HermesHome) -> None:
    memories = hermes_home.path / "memories"
    memories.mkdir()

    def write(name: str, text: str, *, seconds_ago: float) -> None:
        # A file that has just been written is looked at a little later, when a chat of one question may be over.
        (memories / name).write_text(text, encoding="utf-8")
        os.utime(memories / name, (time.time() - seconds_ago,) * 2)

    write("MEMORY.md", "The ferry leaves at six\n§\nThe harbour master is called Ines", seconds_ago=60)
    write("USER.md", "Prefers short answers", seconds_ago=60)
    hermes_home.ask("What do you know about the harbour and its ferry so far?")
    expected = [
        ("memory", "The ferry leaves at six"),
        ("memory", "The harbour master is called Ines"),
        ("user", "Prefers short answers"),
    ]
    assert sorted(hermes_home.stored.memories("hermes")) == expected
    write("MEMORY.md", "The ferry leaves at seven\n§\nThe harbour master is called Ines", seconds_ago=5)
    hermes_home.ask("And what do you know about the harbour and its ferry now?")
    expected[0] = ("memory", "The ferry leaves at seven")
    assert sorted(hermes_home.stored.memories("hermes")) == expected
