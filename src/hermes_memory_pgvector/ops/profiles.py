"""What a profile takes over from its root home when both use one database.

The vectors of a database are of one model, so whoever shares it embeds with the same endpoint. A root home with a
Postgres of the operator's own shares that; otherwise all profiles use the root home's embedded server.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.home import homes_of, root_of
from hermes_memory_pgvector.config.settings import DECLARATIONS, DEFAULTS, EMBEDDER_PARTS, Settings
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import belonging, new_settings
from hermes_memory_pgvector.server.folder import has_data

EMBEDDER = tuple(f"embed_{part}" for part in EMBEDDER_PARTS)


def below(home: Path) -> list[Path]:
    """The homes of all profiles of this installation."""
    return homes_of(home)[1:]


def join(home: Path) -> list[str]:
    """Give a profile the database of its root home, if it has none of its own, and the embedder of that database.

    Returns the settings that changed.
    """
    root, changed = root_of(home), []
    ours, theirs = load(home).settings, load(root).settings
    has_own = ours.dsn or ours.own_server or has_data(settings_file.data_folder(home))
    if root != home and theirs.dsn and not theirs.hold and not has_own:
        new_settings.save_dsn(home, theirs.dsn)
        changed.append("dsn")
    if not shares_database(home):
        return changed
    other = [name for name in EMBEDDER if getattr(ours, name) != getattr(theirs, name)]
    if other:
        write_embedder(root, home, theirs)
    return changed + sorted(other)


def write_embedder(home: Path, other: Path, described: Settings) -> None:
    """Let another home embed as this one does; what is the default anyway is not written."""
    key = described.embed_api_key_env
    if other != home and key and not settings_file.secret(other, key) and settings_file.dotenv(home).get(key):
        settings_file.set_variable(other, key, settings_file.dotenv(home)[key])
    wanted = {name: getattr(described, name) for name in EMBEDDER}
    if described.uses_local_model:
        # As somebody would write it who never had an endpoint.
        wanted = {**{name: DEFAULTS[name] for name in EMBEDDER}, "embed_dim": described.embed_dim}
    below = settings_file.SECTIONS[0].split(".")
    changes: dict[str, Any] = {}
    removed: list[str] = []
    for name, value in wanted.items():
        if value == DEFAULTS[name] and not settings_file.has_section(other, (*below, name)):
            removed.append(name)
        else:
            changes[name] = "" if value is None else value
    settings_file.update(other, ("memory", settings_file.PROVIDER_NAME), changes, remove=removed)


def shares_database(home: Path) -> bool:
    """Whether a profile uses the database that its root home uses."""
    return root_of(home) != home and belonging.database_of(home) == belonging.database_of(root_of(home))


def embedding_home(home: Path) -> Path:
    """The home whose settings say which model the vectors of a home's database are of."""
    return root_of(home) if shares_database(home) else home


def check_embedder(home: Path, values: Mapping[str, Any]) -> None:
    """ConfigError for a setting that would switch the model of a database that others use, too."""
    given = [name for name in EMBEDDER if values.get(name) is not None]
    if not given or not shares_database(home):
        return
    theirs = load(root_of(home)).settings
    if all(DECLARATIONS[name].parse(values[name]) == getattr(theirs, name) for name in given):
        return
    raise ConfigError(
        f"profile {home.name} shares the root home's database, whose vectors are of one model; set {', '.join(given)} "
        f"for {root_of(home)} and then run: hermes-pgvector up --all-profiles; or give the profile a database of its "
        "own: up --own-database"
    )
