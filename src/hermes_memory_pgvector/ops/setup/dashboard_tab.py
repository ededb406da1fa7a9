"""The memory tab of the host's dashboard: whether the host shows it, and turning it on or off.

The host loads a tab only from plugins that `plugins.enabled` of the root home's config.yaml names, and not from those
that `plugins.disabled` names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, section, update

ENABLE_COMMAND = f"hermes plugins enable {PROVIDER_NAME} --no-allow-tool-override"

State = Literal["on", "off", "refused", "elsewhere"]


def state_of(home: Path) -> State:
    """Whether the tab shows; "refused" when the operator has disabled it, "elsewhere" for the home of a profile."""
    if root_of(home) != home:
        return "elsewhere"
    if PROVIDER_NAME in _names(home, "disabled"):
        return "refused"
    return "on" if PROVIDER_NAME in _names(home, "enabled") else "off"


def turn_on(home: Path) -> None:
    """Have the host show the tab, from the next start of its dashboard on."""
    update(home, ("plugins",), {"enabled": [*_names(home, "enabled"), PROVIDER_NAME]})


def turn_off(home: Path) -> None:
    """Take our name off the list again."""
    update(home, ("plugins",), {"enabled": [name for name in _names(home, "enabled") if name != PROVIDER_NAME]})


def _names(home: Path, key: str) -> list[Any]:
    found = section(home, ("plugins", key))
    return list(found) if isinstance(found, list) else []
