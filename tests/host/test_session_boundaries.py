"""Undo, compression, /new and exit, in the order in which the host's own MemoryManager reports them."""

from __future__ import annotations

import json
from typing import Any

from testing.hermes_home import HermesHome

DRIVER = """
import inspect, json, os, sys
from agent.memory_manager import MemoryManager
from plugins.memory import load_memory_provider
session, *steps = json.loads(sys.argv[1])
manager = MemoryManager()
manager.add_provider(load_memory_provider("pgvector"))
manager.initialize_all(session_id=session, platform="cli", hermes_home=os.environ["HERMES_HOME"],
                       agent_context="primary", agent_identity="default", agent_workspace="hermes")
class Store:
    # The host's own store, by its own code.
    def said(self, session, question, answer):
        from hermes_state import SessionDB
        store = SessionDB()
        store.create_session(session_id=session, source="cli")
        store.append_message(session, "user", question)
        store.append_message(session, "assistant", answer)
    def rewind(self, session, exchanges):
        from hermes_state import SessionDB
        store = SessionDB()
        recent = store.list_recent_user_messages(session, limit=10)
        store.rewind_to_message(session, recent[exchanges - 1]["id"])
told = []
for name, arguments, keywords in steps:
    step = getattr(Store() if name in ("said", "rewind") else manager, name, None)
    if step is None and name == "flush_pending":
        continue  # a host before 0.17 reports a turn on the spot
    known = inspect.signature(step).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in known.values())
    # A host before 0.15.2 reports no transcript with a turn.
    keywords = {key: value for key, value in keywords.items() if takes_all or key in known}
    told.append(step(*arguments, **keywords))
manager.shutdown_all()
print(json.dumps([repr(answer) for answer in told]))
sys.stdout.flush()
os._exit(0)
"""

Message = dict[str, str]
Step = tuple[str, list[Any], dict[str, Any]]


def turn(number: int) -> list[Message]:
    return [
        {"role": "user", "content": f"Question {number} asks for the number of barrels in cellar {number}."},
        {"role": "assistant", "content": f"Answer {number}: there are {number * 11} barrels in cellar {number}."},
    ]


def reported(session: str, number: int, messages: list[Message] | None = None) -> Step:
    user, assistant = turn(number)
    keywords: dict[str, Any] = {"session_id": session}
    if messages is not None:
        keywords["messages"] = messages
    return "sync_all", [user["content"], assistant["content"]], keywords


FLUSHED: Step = ("flush_pending", [], {"timeout": 20})


def drive(home: HermesHome, session: str, *steps: Step) -> list[str]:
    answers = home.python(DRIVER, json.dumps([session, *steps]))
    return [str(answer) for answer in answers]


def stored(home: HermesHome) -> list[str]:
    return [content for (content,) in home.stored.rows("SELECT content FROM conversations WHERE hidden_by IS NULL")]


def words(*numbers: int) -> list[str]:
    return [message["content"] for number in numbers for message in turn(number)]


def test_the_end_of_a_session_stores_nothing_twice(hermes_home: HermesHome) -> None:
    messages = turn(1) + turn(2)
    drive(
        hermes_home, "s1",
        reported("s1", 1, turn(1)), reported("s1", 2, messages), ("on_session_end", [messages], {}),
    )  # fmt: skip
    assert sorted(stored(hermes_home)) == sorted(words(1, 2))


def test_the_end_of_a_session_brings_what_was_never_reported(hermes_home: HermesHome) -> None:
    drive(hermes_home, "s1", reported("s1", 1), FLUSHED, ("on_session_end", [turn(1) + turn(2)], {}))
    assert sorted(stored(hermes_home)) == sorted(words(1, 2))


def test_the_same_session_in_a_later_process_stores_nothing_twice(hermes_home: HermesHome) -> None:
    drive(hermes_home, "s1", reported("s1", 1, turn(1)), FLUSHED, ("on_session_end", [turn(1)], {}))
    messages = turn(1) + turn(2)
    drive(hermes_home, "s1", reported("s1", 2, messages), FLUSHED, ("on_session_end", [messages], {}))
    assert sorted(stored(hermes_home)) == sorted(words(1, 2))


def test_undo_takes_back_the_last_turn(hermes_home: HermesHome) -> None:
    undo: Step = ("on_session_switch", ["s1"], {"parent_session_id": "", "reset": False, "rewound": True})
    drive(
        hermes_home, "s1",
        reported("s1", 1, turn(1)), reported("s1", 2, turn(1) + turn(2)), FLUSHED, undo,
        reported("s1", 3, turn(1) + turn(3)), FLUSHED, ("on_session_end", [turn(1) + turn(3)], {}),
    )  # fmt: skip
    assert sorted(stored(hermes_home)) == sorted(words(1, 3))


def test_undo_of_several_turns_takes_back_all_of_them(hermes_home: HermesHome) -> None:
    """The host does not say how much it cut; its own store does."""
    undo: Step = ("on_session_switch", ["s1"], {"parent_session_id": "", "reset": False, "rewound": True})
    said: list[Step] = [("said", ["s1", *words(number)], {}) for number in (1, 2, 3)]
    drive(
        hermes_home, "s1",
        said[0], reported("s1", 1, turn(1)), said[1], reported("s1", 2, turn(1) + turn(2)),
        said[2], reported("s1", 3, turn(1) + turn(2) + turn(3)), FLUSHED, ("rewind", ["s1", 2], {}), undo,
        ("said", ["s1", *words(4)], {}), reported("s1", 4, turn(1) + turn(4)), FLUSHED,
        ("on_session_end", [turn(1) + turn(4)], {}),
    )  # fmt: skip
    assert sorted(stored(hermes_home)) == sorted(words(1, 4))


def test_undo_in_one_session_leaves_others_alone(hermes_home: HermesHome) -> None:
    undo: Step = ("on_session_switch", ["s2"], {"parent_session_id": "", "reset": False, "rewound": True})
    drive(hermes_home, "s1", reported("s1", 1, turn(1)), FLUSHED)
    drive(hermes_home, "s2", reported("s2", 2, turn(2)), FLUSHED, undo)
    assert sorted(stored(hermes_home)) == sorted(words(1))


def test_compression_keeps_every_turn_once(hermes_home: HermesHome) -> None:
    """The host ends the old session with the question in flight, switches, and reports the turn under the new id."""
    question, answer = turn(3)
    long = [*turn(1), *turn(2), question]
    summary = {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Barrels were counted in two cellars."}
    drive(
        hermes_home, "s1",
        reported("s1", 1, turn(1)), reported("s1", 2, turn(1) + turn(2)), FLUSHED,
        ("on_pre_compress", [long], {}), ("on_session_end", [long], {}),
        ("on_session_switch", ["s1-b"], {"parent_session_id": "s1", "reset": False, "reason": "compression"}),
        reported("s1-b", 3, [summary, question, answer]), FLUSHED,
        ("on_session_end", [[summary, question, answer]], {}),
    )  # fmt: skip
    assert sorted(stored(hermes_home)) == sorted(words(1, 2, 3))


def test_compression_in_place_keeps_every_turn_once(hermes_home: HermesHome) -> None:
    question, answer = turn(3)
    long = [*turn(1), *turn(2), question]
    summary = {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Barrels were counted in two cellars."}
    drive(
        hermes_home, "s1",
        reported("s1", 1, turn(1)), reported("s1", 2, turn(1) + turn(2)), FLUSHED,
        ("on_pre_compress", [long], {}), ("on_session_end", [long], {}),
        ("on_session_switch", ["s1"], {"parent_session_id": "s1", "reset": False, "reason": "compression"}),
        reported("s1", 3, [summary, question, answer]), FLUSHED,
        ("on_session_end", [[summary, question, answer]], {}),
    )  # fmt: skip
    assert sorted(stored(hermes_home)) == sorted(words(1, 2, 3))


def test_a_new_session_does_not_inherit_the_old_ones_turns(hermes_home: HermesHome) -> None:
    """After /new without a further turn the host ends the new session with the old session's messages."""
    drive(
        hermes_home, "s1",
        reported("s1", 1, turn(1)), FLUSHED, ("on_session_end", [turn(1)], {}),
        ("on_session_switch", ["s2"], {"parent_session_id": "s1", "reset": True, "reason": "new_session"}),
        ("on_session_end", [turn(1)], {}),
    )  # fmt: skip
    assert sorted(stored(hermes_home)) == sorted(words(1))
    assert {session for _, session, _ in hermes_home.stored.turns("hermes")} == {"s1"}


def test_a_picture_is_one_turn_however_it_is_reported(hermes_home: HermesHome) -> None:
    text = "What kind of bird is sitting on the fence in this picture of mine?"
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    answer = "It is a wheatear, to judge by the white rump and the pale brow."
    messages: list[dict[str, Any]] = [{"role": "user", "content": parts}, {"role": "assistant", "content": answer}]
    drive(
        hermes_home, "s1",
        ("sync_all", [f"[1 image] {text}", answer], {"session_id": "s1", "messages": messages}),
        FLUSHED, ("on_session_end", [messages], {}),
    )  # fmt: skip
    said = stored(hermes_home)
    assert len(said) == 2
    assert "base64" not in "".join(said)


def test_hooks_survive_arguments_of_any_kind(hermes_home: HermesHome) -> None:
    nonsense: list[Any] = [None, 7, {"role": "user"}, {"role": "user", "content": [None, {"type": "text"}]}, []]
    answers = drive(
        hermes_home, "s1",
        ("on_session_end", [nonsense], {}), ("on_pre_compress", [nonsense], {}),
        ("on_session_switch", [""], {}), ("on_delegation", ["", ""], {}),
        ("on_memory_write", ["explode", "nowhere", ""], {"metadata": None}),
        ("on_memory_write", ["remove", "memory", ""], {"metadata": {"old_text": ""}}),
        ("prefetch_all", ["\x00 \ud800 nonsense"], {}),
        ("handle_tool_call", ["recall_memory", {"query": None, "limit": "many", "scope": []}], {}),
        reported("s1", 1), FLUSHED,
    )  # fmt: skip
    assert sorted(stored(hermes_home)) == sorted(words(1))
    assert "error" in answers[7]
