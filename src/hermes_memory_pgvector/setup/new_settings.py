"""Settings an operator gives: checked before they are written, and the journal told when they name a database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import is_shown
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import env_file
from hermes_memory_pgvector.setup.journal_database import accept_configured

_PLAIN_PASSWORD = re.compile(r"[^\s'\"#\\$`]+")


def save(home: Path, values: Mapping[str, Any]) -> list[str]:
    """Write the values to config.yaml; return the names that changed."""
    _check_endpoint(home, values)
    changed = settings_file.save(home, values)
    if "dsn" in changed:
        accept_configured(home)
    return changed


def save_dsn(home: Path, dsn: str) -> bool:
    """Make this the connection string in force; its password goes to .env. False when it already was."""
    from hermes_memory_pgvector.store.conninfo import split_password, user_of, with_login

    if settings_file.load(home).settings.dsn == dsn:
        accept_configured(home)
        return False
    bare, password = split_password(dsn)
    if not password or not _PLAIN_PASSWORD.fullmatch(password) or "${" in password:
        # A reference, or a password that .env readers understand differently from each other: written as given.
        changed = settings_file.save(home, {"dsn": dsn})
    else:
        env_file.put(home, env_file.PASSWORD_VARIABLE, password)
        reference = f"${{{env_file.PASSWORD_VARIABLE}}}"
        changed = settings_file.save(home, {"dsn": with_login(bare, user_of(bare), reference)})
    accept_configured(home)
    return bool(changed)


def _check_endpoint(home: Path, values: Mapping[str, Any]) -> None:
    """Refuse a new embedding endpoint that is not a valid address, or that carries a credential."""
    from hermes_memory_pgvector.embedding.url import parse_endpoint

    url = values.get("embed_url")
    if not isinstance(url, str) or not url.strip() or "${" in url:
        return
    if is_shown(settings_file.load(home).settings, "embed_url", url):
        return
    try:
        parse_endpoint(url)
    except ConfigError as error:
        raise ConfigError(f"{error}; nothing was changed") from None
