"""What keeps this memory out of chats although it is installed: settings of hermes that it says little of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, current_provider, section
from hermes_memory_pgvector.errors import ConfigError

TOOLSET = "memory"
_WITH_MEMORY = frozenset({TOOLSET, "coding", "all", "*"})
_WEBHOOK = "hermes-webhook"
"""The one bundle of a platform that has no memory."""
ONLY_BUILT_IN = (
    "put it back; to switch off MEMORY.md and USER.md alone: hermes config set memory.memory_enabled false, "
    "and memory.user_profile_enabled"
)


@dataclass(frozen=True, slots=True)
class KeptOut:
    """One setting that does, and what undoes it."""

    reason: str
    remedy: str = ""
    is_off: bool = True
    """Nothing is stored or recalled; else only the recall tools are missing."""


def reasons(home: Path) -> Iterator[KeptOut]:
    """Everything in the home's config.yaml that keeps the memory, or its tools, out of chats."""
    try:
        name = current_provider(home)
    except ConfigError as error:
        yield KeptOut(str(error))
        return
    if name != PROVIDER_NAME:
        said = f"memory.provider is {name!r}" if name else "memory.provider is not set"
        yield KeptOut(f"the memory is off: {said}", f"hermes config set memory.provider {PROVIDER_NAME}")
    if PROVIDER_NAME in _names(section(home, ("plugins", "disabled"))):
        text = f"hermes has disabled the plugin {PROVIDER_NAME} (plugins.disabled), as an update does after a conflict"
        yield KeptOut(text, f"hermes plugins enable {PROVIDER_NAME}")
    if TOOLSET in _names(section(home, ("agent", "disabled_toolsets"))):
        yield _without_tools("agent.disabled_toolsets names the toolset memory")
    platforms = section(home, ("platform_toolsets",))
    if isinstance(platforms, Mapping):
        lacking = [str(each) for each, listed in platforms.items() if _lacks_memory(listed)]
        if lacking:
            yield _without_tools(f"platform_toolsets lists no memory for {', '.join(sorted(lacking))}")


def _without_tools(where: str) -> KeptOut:
    return KeptOut(f"{where}, and the recall tools go with it", ONLY_BUILT_IN, is_off=False)


def _names(listed: Any) -> list[str]:
    return [str(each) for each in listed] if isinstance(listed, list) else []


def _lacks_memory(listed: Any) -> bool:
    """Whether a platform's list leaves the memory out; hermes' own bundles, hermes-cli and the like, have it."""
    names = _names(listed)
    has = any(each in _WITH_MEMORY or (each.startswith("hermes-") and each != _WEBHOOK) for each in names)
    return isinstance(listed, list) and not has
