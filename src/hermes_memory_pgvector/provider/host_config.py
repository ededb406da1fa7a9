"""The configuration as the host's wizard, dashboard and status page see it.

The host writes every field of the schema on each save, most of them as text. We give it the current values as defaults
and write only what differs, so that saving one field never changes another.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.config import home as home_identity
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.redaction import redact_dsn
from hermes_memory_pgvector.config.settings import DECLARATIONS, Settings, is_shown, plain, shown
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.server.folder import PostgresFolder, dump_path, restorable, server_folder

logger = logging.getLogger(__name__)

DUMP_SECONDS = 120.0


def schema(settings: Settings) -> list[dict[str, Any]]:
    """The fields the operator is asked for, each with its current value as the default."""
    fields = []
    for name, declaration in DECLARATIONS.items():
        if not declaration.in_wizard:
            continue
        entry: dict[str, Any] = {
            "key": name,
            "description": declaration.help,
            "required": False,
        }
        if declaration.secret:
            # The host then keeps it out of config.yaml and never sends it to a browser.
            entry |= {"secret": True, "env_var": settings_file.ENVIRONMENT_PREFIX + name.upper()}
        else:
            entry["default"] = str(shown(settings, name))
        if declaration.choices:
            entry["choices"] = list(declaration.choices)
        fields.append(entry)
    return fields


def save(home: Path, values: Mapping[str, Any]) -> list[str]:
    """Write what differs from the current values; return the names that changed."""
    from hermes_memory_pgvector.ops import new_settings

    current = settings_file.load(home).settings
    given = {
        name: _literal(value)
        for name, value in values.items()
        if name in DECLARATIONS and value is not None and not _is_in_force(name, value, current)
    }
    return new_settings.save(home, given)


def status(settings: Settings, home: Path) -> dict[str, Any]:
    """What `hermes memory status` shows."""
    told: dict[str, Any] = {
        "database": redact_dsn(settings.dsn) if settings.dsn else f"embedded ({server_folder(home, settings)})",
        "embedding": parts.describe_embedder(home, settings),
    }
    for name in settings.set_by:
        if name not in ("dsn", "embed_url", "embed_model"):
            told[name] = shown(settings, name)
    return told


def identity_signature(settings: Settings) -> dict[str, Any]:
    """The settings that decide a message's theme, as a comparable hash."""
    names = ("allowed_themes", "identity_aliases", "bench_mode", "profile_scope")
    text = json.dumps({name: plain(getattr(settings, name)) for name in names}, sort_keys=True)
    return {"pgvector": hashlib.sha256(text.encode()).hexdigest()[:16]}


@functools.cache
def replays_blocks() -> bool:
    """Whether the host sends a block again with each later turn; before 0.19 the model saw it once."""
    try:
        from agent.turn_context import compose_user_api_content  # noqa: F401
    except ImportError:
        return False
    return True


def backup_paths(home: Path, settings: Settings) -> list[str]:
    """Fresh dumps of the embedded databases of this home and its profiles.

    The host's backup takes the root home with all profiles, whichever of them it is run for, and asks one provider for
    what lies outside.
    """
    folders: list[Path] = []
    for each in home_identity.homes_of(home):
        own = settings if each == home else settings_file.load(each).settings
        if not own.dsn and not own.hold:
            folders.append(server_folder(each, own))
    return [path for folder in dict.fromkeys(folders) for path in _dumped(folder)]


def _dumped(folder: Path) -> list[str]:
    from hermes_memory_pgvector.server.dump import dump_embedded

    home = folder.parent
    if not PostgresFolder(folder).data.is_dir():
        # Restored and not used since: the dump it came with is all there is.
        waiting = restorable(folder)
        return [] if waiting is None else [str(waiting)]
    target = dump_path(home_identity.home_id(home))
    if target is None:
        logger.warning("the backup has no copy of the memory database: this user has no home folder to put it in")
        return []
    try:
        made = dump_embedded(folder, target, Deadline.after(DUMP_SECONDS))
    except MemoryPluginError as error:
        logger.warning("the backup has no copy of the memory database of %s: %s", home, error)
        return []
    return [str(target)] if made else []


def _is_in_force(name: str, value: Any, settings: Settings) -> bool:
    if is_shown(settings, name, value):
        return True
    current = plain(getattr(settings, name))
    return value == current or (isinstance(value, str) and value.strip() == str(current))


def _literal(value: Any) -> Any:
    """A list or map that the host has turned into text, parsed again."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return value
