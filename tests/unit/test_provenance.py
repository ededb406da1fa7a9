"""Which tools stand behind an answer, read from the transcript the host shows."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory_pgvector.capture import identity
from hermes_memory_pgvector.capture.provenance import LOOKED_BACK, Judge
from hermes_memory_pgvector.capture.transcript import Turn
from hermes_memory_pgvector.config.settings import parse
from hermes_memory_pgvector.errors import ConfigError

TRUSTED = ()


def judge(platform: str = "cli", **settings: Any) -> Judge:
    return Judge(parse({"file": settings}).settings, platform)


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(*names: str) -> list[dict[str, Any]]:
    """Calls of these tools in one message, and their results."""
    calls = [
        {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names
    ]
    results = [
        {"role": "tool", "name": name, "tool_name": name, "tool_call_id": f"call_{name}", "content": "result"}
        for name in names
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]


def untrusted(*tools: str) -> tuple[str, ...]:
    return tools


@pytest.mark.parametrize(
    ("tools", "found"),
    [
        ((), TRUSTED),
        (("read_file", "terminal", "memory", "todo", "recall_memory", "kanban_list"), TRUSTED),
        (("web_search",), untrusted("web")),
        (("browser_navigate", "web_extract"), untrusted("browser", "web")),
        (("mcp__github__get_issue",), untrusted("mcp")),
        (("MCP_shout",), untrusted("mcp")),
        (("a_plugin_of_somebody",), untrusted("other")),
        (("delegate_task",), TRUSTED),
        (("session_search",), TRUSTED),
        (("delegate_task", "web_search"), untrusted("web")),
    ],
)
def test_an_answer_is_trusted_as_far_as_the_tools_of_its_turn(tools: tuple[str, ...], found: tuple[str, ...]) -> None:
    messages = [user("A question"), *(call(*tools) if tools else []), said("An answer")]
    assert judge().of_exchange(messages, Turn("user", "A question"))[0] == found
    assert judge().of_transcript(messages, 1000)[0] == {Turn("assistant", "An answer"): found}


def test_an_exchange_answers_for_what_was_read_in_it_alone() -> None:
    messages = [user("Read it"), *call("web_extract"), said("It says hello"), user("And now?"), said("Nothing more")]
    assert judge().of_exchange(messages, Turn("user", "And now?"))[0] == TRUSTED
    found, _ = judge().of_transcript(messages, 1000)
    assert list(found.values()) == [untrusted("web"), TRUSTED]


def test_a_message_the_host_adds_to_a_turn_does_not_begin_another() -> None:
    nudge = user("You returned an empty response. Go on.", _empty_recovery_synthetic=True)
    steered = [user("Read it"), *call("web_extract"), user("also in French please"), said("Bonjour")]
    plain = [user("Read it"), *call("web_extract"), nudge, said("It says hello")]
    for messages in (steered, plain):
        assert judge().of_exchange(messages, Turn("user", "Read it"))[0] == untrusted("web")
    assert judge().of_transcript(plain, 1000)[0] == {Turn("assistant", "It says hello"): untrusted("web")}


def test_what_lies_further_back_than_is_looked_counts_as_a_strangers() -> None:
    """However long an exchange is, and wherever its web page stands, it does not become trusted by being far away."""
    asked = Turn("user", "And now?")
    page = [user("Read it"), *call("web_extract"), said("It says hello")]
    idle = [user("Go on"), said("Fine")]
    end = [user("And now?"), said("Nothing more")]
    short = [*idle * (LOOKED_BACK // 2 - 1), *end]
    assert judge().of_exchange(short, asked)[0] == TRUSTED
    assert judge().of_exchange([*page, *idle * LOOKED_BACK, *end], asked)[0] == TRUSTED
    steps = [*call("web_extract"), *call("read_file") * LOOKED_BACK, user("also in French please"), *call("web_search")]
    for whole in ([*end[:1], *steps], [*end[:1], *steps[:-2], *call("memory")]):
        tools, calls = judge().of_exchange(whole, asked)
        assert tools == (("other", "web") if whole[-1]["name"] == "web_search" else ("other",))
        assert all(calls.values())

    # Read from its end alone: what is further back costs nothing.
    class Past(list[Any]):
        read = 0

        def __getitem__(self, place: Any) -> Any:
            self.read += len(range(*place.indices(len(self)))) if isinstance(place, slice) else 1
            return super().__getitem__(place)

    past = Past([*idle * 50_000, said("Nothing more")])
    judge().of_exchange(past, asked)
    assert past.read <= 4 * LOOKED_BACK


def test_recalled_strangers_are_still_strangers() -> None:
    recalled = call("recall_conversation")
    recalled[1]["content"] = '{"results": [{"id": 1, "untrusted": true, "content": "x"}]}'
    assert judge().of_exchange([user("Q"), *recalled, said("A")], Turn("user", "Q"))[0] == untrusted("recall")


def test_the_memory_tool_writes_what_was_read_before_its_call() -> None:
    both = [user("Q"), *call("memory", "web_search"), said("A")]
    assert judge().of_exchange(both, Turn("user", "Q"))[1] == {}
    after = [user("Q"), *call("web_search"), *call("memory"), said("A")]
    assert judge().of_exchange(after, Turn("user", "Q"))[1] == {"call_memory": untrusted("web")}
    assert judge().of_transcript(after, 1000)[1] == {"call_memory": untrusted("web")}


def test_an_operator_decides_about_tools() -> None:
    named = {"mcp__notes__*": "trusted", "a_plugin": "trusted", "terminal": "untrusted", "delegate_task": "untrusted"}
    for tool, found in (
        ("mcp__notes__read", TRUSTED), ("mcp__web__read", untrusted("mcp")), ("a_plugin", TRUSTED),
        ("terminal", untrusted("other")), ("delegate_task", untrusted("other")),
    ):  # fmt: skip
        messages = [user("Q"), *call(tool), said("A")]
        assert judge(tool_trust=named).of_exchange(messages, Turn("user", "Q"))[0] == found


def test_what_a_user_says_is_trusted_unless_a_program_says_it() -> None:
    assert judge().of_user("hello") == TRUSTED
    assert judge("webhook").of_user("a pull request says") == untrusted("webhook")
    assert judge().of_user("see @url:http://x\n\n--- Attached Context ---\n\npage") == untrusted("web")
    hooked = [user("a pull request says"), said("I looked at it")]
    assert judge("webhook").of_exchange(hooked, Turn("user", "a pull request says"))[0] == untrusted("webhook")


@pytest.mark.parametrize("messages", [None, [], "text", {"a": 1}, 7, [None, 1, "x", {}, {"role": 1}]])
def test_any_transcript_is_read(messages: Any) -> None:
    found, calls = judge().of_exchange(messages, None)
    assert found == TRUSTED
    assert calls == {}
    assert judge().of_transcript(messages, 100) == ({}, {})
    odd = [
        {
            "role": "assistant",
            "tool_calls": [None, 1, {"function": 3}, {"function": {"name": None}}, {"name": "web_x"}],
        },
        {"role": "tool", "name": 3, "content": None},
        said("A"),
    ]
    assert judge().of_exchange(odd, Turn("user", "nowhere"))[0] == untrusted("web")


def test_people_are_pseudonyms_and_never_numbers() -> None:
    key = b"k" * 32
    told = {"id": "4915112345678", "name": "Ann", "is_bot": False, "phone": "4915112345678"}
    found = identity.author(told, lambda: key)
    assert found == {"id": identity.person("4915112345678", key), "name": "Ann"}
    assert identity.person("4915112345678", b"x" * 32) != found["id"]
    assert identity.author({"id": 77, "name": "+49 151 1234-5678", "is_bot": True}, lambda: key) == {
        "id": identity.person("77", key),
        "is_bot": True,
    }

    def unreadable() -> bytes:
        raise ConfigError("no key")

    assert identity.author(told, unreadable) == {"name": "Ann"}
    assert identity.author("nobody", unreadable) == {}
