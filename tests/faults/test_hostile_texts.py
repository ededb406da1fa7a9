"""Ten megabytes of anything cost a hook milliseconds: whatever a text is made of, it is read once and not far."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.registry import close_all

SIZE = 10_000_000
ALLOWED_SECONDS = 0.15
"""Of CPU; the budget is a third of it, but other work shares the machine's caches."""


def filled(piece: str) -> str:
    return piece * (SIZE // len(piece))


TEXTS: dict[str, Callable[[], str]] = {
    "fences never closed": lambda: filled("<memory-context>"),
    "fences never opened": lambda: filled("</memory-context>"),
    "fences in pairs": lambda: filled("<memory-context></memory-context>"),
    "fences of all cases": lambda: filled("<MEMORY-context>x"),
    "half fences": lambda: filled("<memory-context"),
    "angle brackets": lambda: filled("<"),
    "lone surrogates": lambda: filled("\ud800"),
    "lone surrogates between letters": lambda: filled("a\udfff"),
    "NULs": lambda: filled("\x00"),
    "NULs between letters": lambda: filled("a\x00"),
    "spaces": lambda: filled(" "),
    "line feeds": lambda: filled("\n"),
    "umlauts": lambda: filled("ä"),
    "emoji": lambda: filled("👩‍👩‍👧"),
    "delimiters": lambda: filled("\n§\n"),
    "entries": lambda: "\n§\n".join(str(number) for number in range(SIZE // 10)),
    "carriage returns": lambda: filled("\r"),
    "acknowledgements": lambda: filled("ok!?. "),
    "summaries": lambda: filled("COMPACTION SUMMARY BELOW"),
    "notes": lambda: filled("[CONTEXT COMPACTION "),
    "words": lambda: filled("barrel "),
    "times": lambda: filled("3 days ago "),
    "numbers": lambda: filled("1"),
    "quotes": lambda: filled('"\\'),
    "one letter": lambda: filled("a"),
}
Agent = PgvectorMemoryProvider


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


HOOKS: dict[str, Callable[[Agent, str], object]] = {
    "sync_turn": lambda agent, text: agent.sync_turn(text, text, session_id="s1"),
    "sync_turn with a transcript": lambda agent, text: agent.sync_turn(
        text, text, session_id="s1", messages=[message("user", text), message("assistant", text)]
    ),
    "sync_turn in parts": lambda agent, text: agent.sync_turn([{"text": text}] * 1000, "answer", session_id="s1"),
    "sync_turn by an author": lambda agent, text: agent.sync_turn(
        "question", "answer", session_id="s1", turn_author={"name": text, text: text, "more": [text] * 64}
    ),
    "sync_turn of a session": lambda agent, text: agent.sync_turn("question", "answer", session_id=text),
    "on_turn_start": lambda agent, text: agent.on_turn_start(1, text),
    "on_session_end": lambda agent, text: agent.on_session_end([message("user", text)]),
    "on_pre_compress": lambda agent, text: agent.on_pre_compress([message("assistant", text)]),
    "on_session_switch": lambda agent, text: agent.on_session_switch(text, parent_session_id=text),
    "on_memory_write": lambda agent, text: agent.on_memory_write("add", "memory", text),
    "on_memory_write of old text": lambda agent, text: agent.on_memory_write(
        "replace", "memory", "new", metadata={"old_text": text, "previous_content": text, "session_id": text}
    ),
    "on_memory_write of any kind": lambda agent, text: agent.on_memory_write(text, text, text, metadata={"x": [text]}),
    "on_delegation": lambda agent, text: agent.on_delegation(text, text, child_session_id=text),
    "prefetch": lambda agent, text: agent.prefetch(text),
    "recall_memory": lambda agent, text: agent.handle_tool_call("recall_memory", {"query": text}),
    "recall_conversation": lambda agent, text: agent.handle_tool_call(
        "recall_conversation", {"query": "barrels", "since": text, "until": text, "scope": text, "limit": text}
    ),
    "a tool of any name": lambda agent, text: agent.handle_tool_call(text, {text: text}),
}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[[], Agent]]:
    """Providers of a home whose database and embedder cannot be reached: what is left is what a hook does itself."""
    (tmp_path / "memories").mkdir()
    configuration = {
        "dsn": "postgresql://nobody@127.0.0.1:9/none", "embed_url": "http://127.0.0.1:9/", "turn_min_chars": 1,
        "bulk_sync_on_init": False, "prefetch_budget": 0.5,
    }  # fmt: skip

    def make() -> Agent:
        made = PgvectorMemoryProvider(configuration)
        made.initialize("s1", hermes_home=str(tmp_path), gateway_session_key="marketing", platform="api_server")
        return made

    yield make
    close_all(Deadline.after(1))


@pytest.mark.parametrize("kind", TEXTS)
def test_ten_megabytes_of_anything_cost_a_hook_milliseconds(agent: Callable[[], Agent], kind: str) -> None:
    text = TEXTS[kind]()
    slow: dict[str, float] = {}
    for name, hook in HOOKS.items():
        least = cost(hook, agent(), text)
        for _ in range(2):
            # Once may be bad luck on a busy machine.
            least = least if least <= ALLOWED_SECONDS else min(least, cost(hook, agent(), text))
        if least > ALLOWED_SECONDS:
            slow[name] = round(least, 3)
    assert not slow, json.dumps(slow)


def cost(hook: Callable[[Agent, str], object], agent: Agent, text: str) -> float:
    """The CPU seconds a hook takes of its caller's thread."""
    begun = time.thread_time()
    hook(agent, text)
    return time.thread_time() - begun


def turns(count: int) -> list[dict[str, Any]]:
    return [message(role, f"{role} {n}: {'there are many barrels ' * 20}") for n in range(count // 2)
            for role in ("user", "assistant")]  # fmt: skip


def test_a_turn_costs_little_however_long_the_conversation_is(agent: Callable[[], Agent]) -> None:
    def say(speaker: Agent, transcript: list[dict[str, Any]]) -> float:
        user, answer = transcript[-2]["content"], transcript[-1]["content"]
        return cost(lambda who, _: who.sync_turn(user, answer, session_id="s1", messages=transcript), speaker, "")

    first, later = [], []
    for _ in range(3):
        speaker, transcript = agent(), turns(20_000)
        first.append(say(speaker, transcript))
        for number in range(5):
            transcript += [message("user", f"And in cellar {number}?"), message("assistant", f"There are {number}.")]
            later.append(say(speaker, transcript))
    assert min(first) < ALLOWED_SECONDS / 3, "the first transcript was read in too much detail"
    assert min(later) < ALLOWED_SECONDS / 3, "a long transcript was read in too much detail"


def test_nested_metadata_is_not_looked_at_without_end(agent: Callable[[], Agent]) -> None:
    nested: Any = "deep"
    for _ in range(6):
        nested = [nested] * 64
    hook: Callable[[Agent, str], object] = lambda who, _: who.on_memory_write("add", "memory", "x", {"n": nested})  # noqa: E731
    assert cost(hook, agent(), "") < ALLOWED_SECONDS
