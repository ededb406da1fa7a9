"""Which tools stand behind the words of a transcript, and so whether an answer is trusted. Pure.

The host shows tool calls only in the transcript. An answer is untrusted if a stranger's text was read before it in its
exchange. What the user says is the user's own, unless a program speaks for the user or a page was attached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from typing import Any

from hermes_memory_pgvector.capture.transcript import Turn, is_host_text, turn_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.text.clean import text_of
from hermes_memory_pgvector.text.names import MAX_NAME_CHARS

MEMORY_TOOL = "memory"
LOOKED_BACK = 2000
"""Messages that are read to find the last question; what lies further back in one exchange counts as a stranger's."""
QUESTION_CHARS = 100_000
MAX_CALLS = 200
"""How many calls of one message are looked at."""
_KINDS: tuple[tuple[str, str], ...] = (
    ("web_*", "web"), ("x_search", "web"),
    ("browser_*", "browser"), ("computer_use", "browser"),
    ("mcp_*", "mcp"),
)  # fmt: skip
_LOCAL = (
    "memory", "todo", "clarify", "recall_memory", "recall_conversation", "terminal", "process", "read_terminal",
    "close_terminal", "execute_code", "read_file", "write_file", "patch", "search_files", "skills_list", "skill_*",
    "cronjob", "text_to_speech", "image_generate", "video_generate", "vision_analyze", "send_message", "project_*",
    "kanban_*", "ha_*", "tool_*", "delegate_task", "session_search",
)  # fmt: skip
"""The host's tools that work on what the user has, as far as the host tells; any other name is a stranger's."""
_RECALL_TOOLS = ("recall_memory", "recall_conversation")
_MARKED = '"untrusted": true'
"""How our own tools mark what they found."""
_STRANGERS = frozenset({"webhook"})
"""Platforms on which programs write in place of a user."""
_ATTACHED = "--- Attached Context ---"
_ATTACHED_PAGE = "@url:"
Tools = tuple[str, ...]
"""The kinds of tools that make words untrusted; empty for trusted ones."""


@dataclass(slots=True)
class Judge:
    """Goes through an exchange by an operator's rules."""

    settings: Settings
    platform: str = ""
    kinds: set[str] = field(default_factory=set)
    """The kinds of untrusted tools that the exchange has used so far."""

    @property
    def tools(self) -> Tools:
        """What is behind the words of the assistant now."""
        return tuple(sorted(self.kinds))

    def of_user(self, content: str) -> Tools:
        """What is behind the words of the user."""
        if self.platform in _STRANGERS:
            return (self.platform,)
        return ("web",) if _ATTACHED in content and _ATTACHED_PAGE in content else ()

    def of_exchange(self, messages: Any, question: Turn | None) -> tuple[Tools, dict[str, Tools]]:
        """What is behind the answer to the last question, and behind each untrusted call of the memory tool since."""
        self.kinds = set(self.of_user("" if question is None else question.content))
        calls: dict[str, Tools] = {}
        if isinstance(messages, list | tuple):
            start = self._start(messages, question)
            if start is None:
                start = len(messages) - LOOKED_BACK
                self.kinds.add("other")
            for message in messages[start:]:
                calls |= self._memory_calls(message)
                self._read(message)
        return self.tools, calls

    def of_transcript(self, messages: Any, max_chars: int) -> tuple[dict[Turn, Tools], dict[str, Tools]]:
        """The same of every answer of a transcript; equal answers share all that is behind them."""
        found: dict[Turn, Tools] = {}
        calls: dict[str, Tools] = {}
        for message in messages if isinstance(messages, list | tuple) else ():
            calls |= self._memory_calls(message)
            self.read(message)
            if isinstance(message, Mapping) and message.get("role") == "assistant" and not message.get("tool_calls"):
                turn = turn_of("assistant", message.get("content"), max_chars)
                if turn is not None:
                    found[turn] = tuple(sorted({*found.get(turn, ()), *self.kinds}))
        return found, calls

    def read(self, message: Any) -> None:
        """Go on by one message of a transcript."""
        if _is_question(message):
            self.kinds = set(self.of_user(text_of(message.get("content"), QUESTION_CHARS)))
        self._read(message)

    def _start(self, messages: Sequence[Any], question: Turn | None) -> int | None:
        """Where the last exchange begins, None for too far back: the host adds user messages of its own to one."""
        last = None
        horizon = max(0, len(messages) - LOOKED_BACK)
        for place in range(len(messages) - 1, horizon - 1, -1):
            if not _is_question(messages[place]):
                continue
            if question is None or question.content in text_of(
                messages[place].get("content"), len(question.content) + 1000
            ):
                return place + 1
            last = place + 1 if last is None else last
        return None if horizon else last or 0

    def _read(self, message: Any) -> None:
        if not isinstance(message, Mapping):
            return
        for name, _ in _calls(message):
            self.kinds |= _kind(name[:MAX_NAME_CHARS], self.settings.tool_trust)
        tool = message.get("tool_name") or message.get("name")
        if message.get("role") == "tool" and isinstance(tool, str):
            self.kinds |= _kind(tool[:MAX_NAME_CHARS], self.settings.tool_trust)
            content = message.get("content")
            if tool in _RECALL_TOOLS and isinstance(content, str) and _MARKED in content:
                self.kinds.add("recall")

    def _memory_calls(self, message: Any) -> dict[str, Tools]:
        """The memory tool's calls in a message: the model had read no more than what stands before it."""
        if not self.kinds or not isinstance(message, Mapping):
            return {}
        return {call: self.tools for name, call in _calls(message) if name == MEMORY_TOOL and call}


@lru_cache(1024)
def _kind(name: str, said_of_tools: tuple[tuple[str, Any], ...]) -> frozenset[str]:
    """The kind of an untrusted tool, alone; nothing for a trusted one."""
    folded = name.casefold()
    said = {said for pattern, said in said_of_tools if fnmatchcase(folded, pattern)}
    if "trusted" in said or (not said and any(fnmatchcase(folded, each) for each in _LOCAL)):
        return frozenset()
    return frozenset([next((kind for pattern, kind in _KINDS if fnmatchcase(folded, pattern)), "other")])


def _is_question(message: Any) -> bool:
    """Whether a message is the user's, and not one the host has added to keep a turn going."""
    return (
        isinstance(message, Mapping)
        and message.get("role") == "user"
        and not is_host_text(message)
        and not any(isinstance(key, str) and key.endswith("_synthetic") for key in message)
    )


def _calls(message: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """The name and id of each tool call in a message."""
    calls = message.get("tool_calls")
    for call in islice(calls, MAX_CALLS) if isinstance(calls, list | tuple) else ():
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        name = function.get("name") if isinstance(function, Mapping) else call.get("name")
        if isinstance(name, str):
            call_id = call.get("id")
            yield name, call_id if isinstance(call_id, str) else ""
