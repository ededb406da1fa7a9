"""What the login of a home may do with a theme, found out before a server offers tools for it.

An assistant that is told "remembered" for what an operator has to allow first would be misled.
"""

from __future__ import annotations

from pathlib import Path

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, MemoryPluginError
from hermes_memory_pgvector.setup import parts
from hermes_memory_pgvector.store import gate
from hermes_memory_pgvector.store.reach import within

LOOK_SECONDS = 5.0


def why_reads_only(home: Path, settings: Settings, theme: str) -> str:
    """Why the home's login may not write to a theme; empty when it may, or while the database does not say.

    ConfigError when it was not granted the theme at all. The embedded server has the fleet's own login alone.
    """
    if not settings.dsn:
        return ""
    deadline = Deadline.after(LOOK_SECONDS)
    try:
        with (
            parts.open_pool(home, settings) as pool,
            pool.transaction(deadline, reach=within(theme, own=theme)) as connection,
        ):
            granted = gate.rights(connection)
    except MemoryPluginError:
        return ""
    if granted is None:
        return ""
    if not granted.has_theme and not (granted.may_write and granted.may_create):
        raise ConfigError(gate.not_granted(granted.login, [theme]))
    return "" if granted.may_write else gate.reads_only(granted.login)
