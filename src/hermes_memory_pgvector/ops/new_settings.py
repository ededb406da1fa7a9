"""Settings an operator gives: checked before they are written, and the journal told when they name a database."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.redaction import REFERENCE
from hermes_memory_pgvector.config.settings import DECLARATIONS, is_shown
from hermes_memory_pgvector.embedding.configured import setting_fault
from hermes_memory_pgvector.embedding.url import parse_endpoint
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.belonging import accept_configured

_PLAIN_PASSWORD = re.compile(r"[^\s'\"#\\$`]+")


def save(home: Path, values: Mapping[str, Any]) -> list[str]:
    """Write the values to config.yaml; return the names that changed."""
    check(home, values)
    changed = settings_file.save(home, values)
    if "dsn" in changed:
        accept_configured(home)
    return changed


def save_dsn(home: Path, dsn: str) -> bool:
    """Make this the connection string in force; its password goes to .env. False when it already was."""
    from hermes_memory_pgvector.postgres.conninfo import split_password, user_of, with_login

    if settings_file.load(home).settings.dsn == dsn:
        accept_configured(home)
        return False
    bare, password = split_password(dsn)
    if not password or not _PLAIN_PASSWORD.fullmatch(password) or "${" in password:
        # A reference, or a password that .env readers understand differently from each other: written as given.
        if password and not REFERENCE.fullmatch(password):
            _close(home / "config.yaml")
        changed = settings_file.save(home, {"dsn": dsn})
    else:
        settings_file.set_variable(home, settings_file.PASSWORD_VARIABLE, password)
        reference = f"${{{settings_file.PASSWORD_VARIABLE}}}"
        changed = settings_file.save(home, {"dsn": with_login(bare, user_of(bare), reference)})
    accept_configured(home)
    return bool(changed)


def _close(path: Path) -> None:
    """Keep others from reading a file before a password goes into it."""
    try:
        if path.exists() and path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise ConfigError(
            f"{path} can be read by others and cannot be closed to them ({error.strerror}); nothing was changed"
        ) from None


def unset_dsn(home: Path, *, keeps_password: bool = False) -> bool:
    """Go back to the embedded server: the connection string goes, and its password with it. False when none was set.

    A process that the host has given the password keeps it in its environment. `keeps_password` lets the same password
    be used again.
    """
    section = (settings_file.PROVIDER_NAME,)
    had = [layer for layer in ("plugins", "memory") if settings_file.has_section(home, (layer, *section, "dsn"))]
    for layer in had:
        settings_file.update(home, (layer, *section), {}, remove=("dsn",))
    # The host's form keeps the whole string in .env.
    variable = f"{settings_file.ENVIRONMENT_PREFIX}DSN"
    names = (variable,) if keeps_password else (settings_file.PASSWORD_VARIABLE, variable)
    gone = [settings_file.remove_variable(home, name) for name in names]
    if had or any(gone):
        accept_configured(home)
    return bool(had) or any(gone)


def check(home: Path, values: Mapping[str, Any]) -> None:
    """ConfigError for a value that cannot work, alone or with the settings it joins; contacts nobody."""
    given = {name: value for name, value in values.items() if name in DECLARATIONS and value is not None}
    for name, value in given.items():
        declaration = DECLARATIONS[name]
        try:
            declaration.parse(value)
        except (ValueError, TypeError, OverflowError):
            raise ConfigError(f"{name} expects {declaration.expects}; nothing was changed") from None
    if "dsn" not in given and "own_server" not in given:
        from hermes_memory_pgvector.ops.profiles import check_embedder

        check_embedder(home, given)
    _check_embedder_settings(home, given)


def _check_embedder_settings(home: Path, values: Mapping[str, Any]) -> None:
    """Refuse a value that makes the embedder's settings unusable; what was unusable before is not its fault."""
    concerned = {name: value for name, value in values.items() if name.startswith("embed_")}
    # What a variable will hold is not known yet: it may be set after the setting that refers to it.
    if not concerned or any(isinstance(value, str) and "${" in value for value in concerned.values()):
        return
    before = settings_file.load(home).settings
    url = concerned.get("embed_url")
    if isinstance(url, str) and url.strip() and not is_shown(before, "embed_url", url):
        try:
            parse_endpoint(url)
        except ConfigError as error:
            raise ConfigError(f"{error}; nothing was changed") from None
    parsed = {name: DECLARATIONS[name].parse(value) for name, value in concerned.items()}
    fault = setting_fault(home, dataclasses.replace(before, **parsed))
    if fault and not setting_fault(home, before):
        raise ConfigError(f"{fault}; nothing was changed")
