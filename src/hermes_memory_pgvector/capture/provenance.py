"""Which tools stand behind the words of a transcript, and so how far each answer is trusted. Pure.

The host shows tool calls only in the transcript. An answer that was written after a stranger's text was read in the
same turn is untrusted; one that only has such a text somewhere before it is exposed. What the user says is the user's
own, unless a program speaks for the user or a page was attached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, NamedTuple

from hermes_memory_pgvector.capture.transcript import Turn, is_host_text, turn_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.text.clean import text_of
from hermes_memory_pgvector.text.names import MAX_NAME_CHARS
from hermes_memory_pgvector.values import Trust

MEMORY_TOOL = "memory"
LOOKED_BACK = 2000
"""Messages that are read to find the last question, and before it, to see what the session was exposed to. Hosts
summarise earlier; what lies further back counts as a stranger's."""
QUESTION_CHARS = 100_000
MAX_CALLS = 200
"""How many calls of one message are looked at."""
_KINDS: tuple[tuple[str, str], ...] = (
    ("web_*", "web"), ("x_search", "web"),
    ("browser_*", "browser"), ("computer_use", "browser"),
    ("mcp_*", "mcp"),
    ("delegate_task", "subagent"), ("session_search", "sessions"),
)  # fmt: skip
_MAYBE = frozenset({"subagent", "sessions"})
"""What may have met a stranger's text, which the host does not tell."""
_LOCAL = (
    "memory", "todo", "clarify", "recall_memory", "recall_conversation", "terminal", "process", "read_terminal",
    "close_terminal", "execute_code", "read_file", "write_file", "patch", "search_files", "skills_list", "skill_*",
    "cronjob", "text_to_speech", "image_generate", "video_generate", "vision_analyze", "send_message", "project_*",
    "kanban_*", "ha_*", "tool_*",
)  # fmt: skip
"""The host's tools that work on what the user has; any other name is a stranger's."""
_RECALL_TOOLS = ("recall_memory", "recall_conversation")
_MARKED = '"untrusted": true'
"""How our own tools mark what they found."""
_STRANGERS = frozenset({"webhook"})
"""Platforms on which programs write in place of a user."""
_ATTACHED = "--- Attached Context ---"
_ATTACHED_PAGE = "@url:"


class Judgement(NamedTuple):
    """How far words are trusted, and the kinds of tools that make them untrusted."""

    trust: Trust
    tools: tuple[str, ...] = ()


@dataclass(slots=True)
class Seen:
    """What has been read up to a place in a transcript."""

    before: bool = False
    """Whether a stranger's text may stand before this exchange."""
    kinds: set[str] = field(default_factory=set)
    """The kinds of tools this exchange has used."""

    def next_exchange(self) -> None:
        """The user speaks again."""
        self.before = self.before or bool(self.kinds)
        self.kinds = set()

    def judgement(self) -> Judgement:
        """How far to trust what the assistant says now."""
        read = tuple(sorted(self.kinds - _MAYBE))
        if read:
            return Judgement(Trust.UNTRUSTED, read)
        return Judgement(Trust.EXPOSED if self.before or self.kinds else Trust.TRUSTED)


@dataclass(frozen=True, slots=True)
class Judge:
    """Reads transcripts by an operator's rules."""

    settings: Settings
    platform: str = ""

    def of_user(self, content: str) -> Judgement:
        """What the user has said."""
        if self.platform in _STRANGERS:
            return Judgement(Trust.UNTRUSTED, (self.platform,))
        if _ATTACHED in content and _ATTACHED_PAGE in content:
            return Judgement(Trust.UNTRUSTED, ("web",))
        return Judgement(Trust.TRUSTED)

    def of_exchange(self, messages: Any, question: Turn | None) -> tuple[Judgement | None, dict[str, Judgement]]:
        """The answer to the last question, and each call of the memory tool since; None without a transcript."""
        if not isinstance(messages, list | tuple) or not messages:
            return None, {}
        start = self._start(messages, question)
        seen = Seen(before=start > LOOKED_BACK)
        for message in messages[max(0, start - LOOKED_BACK) : start]:
            self._read(message, seen)
        seen.next_exchange()
        if question is not None and self.of_user(question.content).trust is Trust.UNTRUSTED:
            seen.kinds |= set(self.of_user(question.content).tools)
        calls: dict[str, Judgement] = {}
        for message in messages[start:]:
            calls |= self._memory_calls(message, seen)
            self._read(message, seen)
        return seen.judgement(), calls

    def of_transcript(self, messages: Any, max_chars: int) -> tuple[dict[Turn, Judgement], dict[str, Judgement]]:
        """Every answer of a transcript, and each call of the memory tool; equal answers share the worst judgement."""
        found: dict[Turn, Judgement] = {}
        calls: dict[str, Judgement] = {}
        seen = Seen()
        for message in messages if isinstance(messages, list | tuple) else ():
            calls |= self._memory_calls(message, seen)
            self.read(message, seen)
            if isinstance(message, Mapping) and message.get("role") == "assistant" and not message.get("tool_calls"):
                turn = turn_of("assistant", message.get("content"), max_chars)
                if turn is not None:
                    found[turn] = _worse(found.get(turn), seen.judgement())
        return found, calls

    def read(self, message: Any, seen: Seen) -> None:
        """Go on by one message of a transcript."""
        if _is_question(message):
            seen.next_exchange()
            seen.kinds |= set(self.of_user(text_of(message.get("content"), QUESTION_CHARS)).tools)
        self._read(message, seen)

    def _start(self, messages: Sequence[Any], question: Turn | None) -> int:
        """Where the last exchange begins: the host adds user messages of its own to one.

        One that began further back than is looked contains all that is.
        """
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
        return horizon or last or 0

    def _read(self, message: Any, seen: Seen) -> None:
        if not isinstance(message, Mapping):
            return
        if is_host_text(message):
            # It sums up a past that is no longer there to be read.
            seen.before = True
        for name, _ in _calls(message):
            seen.kinds |= self._kinds(name)
        if message.get("role") == "tool":
            tool = message.get("tool_name") or message.get("name")
            if isinstance(tool, str):
                seen.kinds |= self._kinds(tool)
                content = message.get("content")
                if tool in _RECALL_TOOLS and isinstance(content, str) and _MARKED in content:
                    seen.kinds.add("recall")

    def _memory_calls(self, message: Any, seen: Seen) -> dict[str, Judgement]:
        """The memory tool's calls in a message: the model had read no more than what stands before it."""
        if not isinstance(message, Mapping):
            return {}
        return {call: seen.judgement() for name, call in _calls(message) if name == MEMORY_TOOL and call}

    def _kinds(self, name: str) -> set[str]:
        folded = name[:MAX_NAME_CHARS].casefold()
        if any(fnmatchcase(folded, each) for each in self.settings.tools_of("trusted")):
            return set()
        kind = next((kind for pattern, kind in _KINDS if fnmatchcase(folded, pattern)), None)
        if any(fnmatchcase(folded, each) for each in self.settings.tools_of("untrusted")):
            return {"other" if kind is None or kind in _MAYBE else kind}
        if kind is None:
            return set() if any(fnmatchcase(folded, each) for each in _LOCAL) else {"other"}
        return {kind}


def _worse(one: Judgement | None, other: Judgement) -> Judgement:
    if one is None:
        return other
    order = list(Trust)
    trust = one.trust if order.index(one.trust) >= order.index(other.trust) else other.trust
    return Judgement(trust, tuple(sorted({*one.tools, *other.tools})))


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
