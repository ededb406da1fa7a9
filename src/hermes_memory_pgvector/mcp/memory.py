"""The memory as another agent uses it: the provider's own tools under a theme that the operator has named.

What is remembered is held by no home, so no MEMORY.md takes it away. Nobody tells what such an agent has read, so its
words are untrusted once it has recalled something untrusted.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import CareError, ConfigError, JournalError
from hermes_memory_pgvector.journal import Urgency
from hermes_memory_pgvector.ops.correct.changing import one_entry
from hermes_memory_pgvector.ops.memory import memory_of
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.recall.tools import TOOL_NAMES, BadArgument, error
from hermes_memory_pgvector.runtime.registry import engine_for
from hermes_memory_pgvector.text.clean import clean
from hermes_memory_pgvector.text.names import printable, theme_name
from hermes_memory_pgvector.values import MCP_HOLDER, TARGETS, AddMemory, RowOrigin

REMEMBER: Final = "remember"
SYNC_SECONDS: Final = 1.0
STORE_SECONDS: Final = 1.0
NAME_CHARS: Final = 100
MARKED: Final = '"untrusted": true'
"""How recall marks a hit; within a text the quotation marks are escaped."""
REMEMBER_TOOL: Final[Mapping[str, Any]] = {
    "name": REMEMBER,
    "description": "Save one fact, preference, convention or decision for all agents of this theme. It is kept for "
    "good and found by recall_memory.",
    "parameters": {
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "One fact, in a sentence or two."},
            "target": {
                "type": "string",
                "enum": list(TARGETS),
                "default": "memory",
                "description": "memory: facts, conventions, decisions. user: what concerns the person.",
            },
        },
        "required": ["content"],
    },
}


class SharedMemory:
    """One theme of one home's memory for one client; never raises for what it sends."""

    def __init__(self, home: Path, theme: str, *, crosses: bool = False, may_write: bool = True) -> None:
        self._home = home
        self._overrides = None if crosses else {"cross_theme": "deny"}
        self._session_id = f"mcp-{secrets.token_hex(4)}"
        self._has_read_strangers = False
        self.client = ""
        """What the client calls itself."""
        self._provider = PgvectorMemoryProvider(self._overrides)
        profile = home.name if home.parent.name == "profiles" else "default"
        self._provider.initialize(
            self._session_id, hermes_home=str(home), platform="mcp", gateway_session_key=theme, agent_identity=profile,
            agent_workspace="hermes",
        )  # fmt: skip
        self.theme = self._provider.theme
        _, parsed = engine_for(home, self._overrides)
        name = theme_name(theme)
        name = dict(parsed.settings.identity_aliases).get(name, name)
        if self.theme not in (name, f"{profile}/{name}"):
            raise ConfigError(f"theme {printable(name)!r} is private, another profile's, or not in allowed_themes")
        own = [each for each in self._provider.get_tool_schemas() if may_write or each["name"] in TOOL_NAMES]
        self.tools: dict[str, Mapping[str, Any]] = {each["name"]: each for each in own}
        if may_write:
            self.tools[REMEMBER] = REMEMBER_TOOL

    @property
    def introduction(self) -> str:
        """What the client is told about this memory."""
        writes = f" {REMEMBER} saves one fact for all agents of this theme." if REMEMBER in self.tools else ""
        return f"{self._provider.system_prompt_block()}{writes}"

    def call(self, name: Any, arguments: Any) -> str:
        """The JSON answer to one call; an error is `{"error": …}`."""
        given = arguments if isinstance(arguments, Mapping) else {}
        tool = self.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            return error(f"There is no tool with that name; there are {', '.join(self.tools)}.")
        known = tool["parameters"]["properties"]
        unknown = next((str(key) for key in given if key not in known), None)
        if unknown is not None:
            return error(f"{name} does not take {printable(unknown)!r}; it takes {', '.join(known)}.")
        if name != REMEMBER:
            text = self._provider.handle_tool_call(name, dict(given))
            self._has_read_strangers |= MARKED in text
            return text
        try:
            return self._remember(given.get("content"), given.get("target") or "memory")
        except BadArgument as problem:
            return error(str(problem))
        except CareError as problem:
            return error(f"Nothing was stored: {problem}.")
        except JournalError as problem:
            return error(f"Nothing was stored: {problem}. Try again later.")

    def _remember(self, content: Any, target: Any) -> str:
        engine, _ = engine_for(self._home, self._overrides)
        if target not in TARGETS:
            raise BadArgument("target is 'memory' (facts, decisions) or 'user' (what concerns the person).")
        if not isinstance(content, str) or not content.strip():
            raise BadArgument("Give the content: one fact, in a sentence or two.")
        told = {
            "platform": "mcp", "session_id": self._session_id, "client": printable(clean(self.client))[:NAME_CHARS],
            "served_by": engine.home_id,
        }  # fmt: skip
        strangers = {"tools": ["recall"]} if self._has_read_strangers else {}
        item = AddMemory(
            self.theme, target, one_entry(memory_of(self._home), content), when=engine.clock.now(),
            home_id=MCP_HOLDER, written_by=RowOrigin.MCP,
            untrusted=self._has_read_strangers,
            metadata={key: value for key, value in told.items() if value} | strangers,
        )  # fmt: skip
        engine.append([item], Urgency.MEMORY, Deadline.after(SYNC_SECONDS))
        # It is safe now. A moment more, and the same client finds it, too.
        if not engine.settings.hold and not engine.writer.breaker.is_open:
            engine.writer.flush(Deadline.after(STORE_SECONDS))
        return json.dumps({"remembered": True, "agent_identity": self.theme, "target": target}, ensure_ascii=False)
