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
from hermes_memory_pgvector.config.settings import DECLARATIONS, EMBEDDER_PARTS
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import new_settings, parts

EMBEDDER = tuple(f"embed_{part}" for part in EMBEDDER_PARTS)


def below(home: Path) -> list[Path]:
    """The homes of all profiles of this installation."""
    return homes_of(home)[1:]


def join(home: Path) -> list[str]:
    """Give a profile the database of its root home, if it has none of its own, and the embedder of that database.

    Returns the settings that changed.
    """
    from hermes_memory_pgvector.server.folder import has_data

    root, changed = root_of(home), []
    ours, theirs = load(home).settings, load(root).settings
    has_own = ours.dsn or ours.own_server or has_data(settings_file.data_folder(home))
    if root != home and theirs.dsn and not theirs.hold and not has_own:
        new_settings.save_dsn(home, theirs.dsn)
        changed.append("dsn")
    if not shares_database(home):
        return changed
    other = [name for name in EMBEDDER if getattr(ours, name) != getattr(theirs, name)]
    key = theirs.embed_api_key_env
    secret = settings_file.dotenv(root).get(key) if key and "embed_api_key_env" in other else None
    if secret and not settings_file.secret(home, key):
        settings_file.set_variable(home, key, secret)
    changed += new_settings.save(home, {name: getattr(theirs, name) for name in other if theirs.is_set(name)})
    for name in other:
        if not theirs.is_set(name):
            layer = ours.set_by[name].partition(".")[0]
            settings_file.update(home, (layer, settings_file.PROVIDER_NAME), {}, remove=(name,))
            changed.append(name)
    return changed


def shares_database(home: Path) -> bool:
    """Whether a profile uses the database that its root home uses."""
    root = root_of(home)
    if root == home:
        return False
    from hermes_memory_pgvector.store.installation import place

    ours, theirs = load(home).settings, load(root).settings
    if ours.dsn or theirs.dsn:
        return bool(ours.dsn and theirs.dsn) and place(ours.dsn) == place(theirs.dsn)
    return parts.server_folder(home, ours) == parts.server_folder(root, theirs)


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
