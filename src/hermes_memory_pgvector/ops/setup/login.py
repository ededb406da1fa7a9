"""The login agents use in a Postgres of the operator's own: a role of its own, with its password in .env."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.ops import new_settings
from hermes_memory_pgvector.ops.migration import DEFAULT_ROLE

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings

CONNECT_SECONDS = 10.0
PASSWORD_BYTES = 24


@dataclass(frozen=True, slots=True)
class Login:
    """The role agents connect as, and its password."""

    role: str
    password: str
    replaces_password: bool = False
    """The role exists and has another one, which others may be using."""


def choose(home: Path, settings: Settings, admin: str, wanted_role: str | None) -> Login:
    """The login for this home's agents; a role that others may be using keeps its password."""
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.postgres.conninfo import has_role, may_connect, user_of, with_login

    known = settings_file.dotenv(home).get(settings_file.PASSWORD_VARIABLE, "")
    before = user_of(settings.dsn) if settings.dsn else ""
    is_reusable = known and before and wanted_role in (None, before)
    if is_reusable and may_connect(with_login(admin, before, known), CONNECT_SECONDS):
        return Login(before, known)
    password = known if known and before == wanted_role else secrets.token_urlsafe(PASSWORD_BYTES)
    if wanted_role:
        return Login(wanted_role, password, has_role(admin, wanted_role, CONNECT_SECONDS))
    if not has_role(admin, DEFAULT_ROLE, CONNECT_SECONDS):
        return Login(DEFAULT_ROLE, password)
    # Another home may be using that role; a new password would lock it out.
    return Login(f"{DEFAULT_ROLE}_{home_id(home)[:8]}", password)


def save(home: Path, admin: str, login: Login) -> bool:
    """Write the agents' login to the settings; False when it does not work and the admin's login is written instead."""
    from hermes_memory_pgvector.postgres.conninfo import may_connect, with_login

    own = with_login(admin, login.role, login.password)
    works = may_connect(own, CONNECT_SECONDS)
    new_settings.save_dsn(home, own if works else admin)
    return works
