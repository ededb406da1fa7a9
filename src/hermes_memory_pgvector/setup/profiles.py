"""What a profile takes over from its root home when both use one database.

The vectors of a database are of one model, so whoever shares it embeds with the same endpoint. A root home with a
Postgres of the operator's own shares that; otherwise all profiles use the root home's embedded server.
"""

from __future__ import annotations

from pathlib import Path

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.home import homes_of, root_of
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.setup import new_settings, parts

EMBEDDER = ("embed_url", "embed_model", "embed_dim", "embed_protocol", "embed_api_key_env")


def below(home: Path) -> list[Path]:
    """The homes of all profiles of this installation."""
    return homes_of(home)[1:]


def has_own_server(home: Path) -> bool:
    """Whether a profile has an embedded server of its own."""
    settings = load(home).settings
    return root_of(home) != home and not settings.dsn and parts.server_folder(home, settings).parent == home


def join(home: Path) -> list[str]:
    """Give a profile the database and embedder of its root home, as far as it has none; the names that changed."""
    root = root_of(home)
    if root == home:
        return []
    from hermes_memory_pgvector.store.installation import place

    ours, theirs = load(home).settings, load(root).settings
    if ours.dsn and place(ours.dsn) != place(theirs.dsn):
        return []
    changed = []
    if not ours.dsn and theirs.dsn and not theirs.hold and not ours.own_server and not has_own_server_data(home):
        new_settings.save_dsn(home, theirs.dsn)
        changed.append("dsn")
    elif not ours.dsn and parts.server_folder(home, ours).parent == home:
        return []
    wanted = {name: getattr(theirs, name) for name in EMBEDDER if theirs.is_set(name) and not ours.is_set(name)}
    key = theirs.embed_api_key_env
    secret = settings_file.dotenv(root).get(key) if key and "embed_api_key_env" in wanted else None
    if secret and not settings_file.secret(home, key):
        from hermes_memory_pgvector.setup import env_file

        env_file.put(home, key, secret)
    return [*changed, *(new_settings.save(home, wanted) if wanted else [])]


def has_own_server_data(home: Path) -> bool:
    """Whether a database of the profile's own exists."""
    from hermes_memory_pgvector.server.folder import has_data

    return has_data(settings_file.data_folder(home))
