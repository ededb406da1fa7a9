"""Moving an installation from the embedded server to a Postgres of the operator's own, or back: what it would take.

All homes that use the one database move together. Nothing here changes anything but that it starts the embedded server.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.home import ID_NAME, home_id, homes_of
from hermes_memory_pgvector.config.settings_file import (
    PROVIDER_NAME,
    current_provider,
    data_folder,
    has_dsn_variable,
    load,
    secret,
)
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, Held, MemoryPluginError
from hermes_memory_pgvector.setup import parts, password
from hermes_memory_pgvector.setup.database import ADMIN_VARIABLE

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.schema.moving import Mark, Side

EMBEDDED = "embedded"
START_SECONDS = 120.0

COPY, OPEN, FOLLOW, DONE = "copy", "open", "follow", "done"


@dataclass(frozen=True, slots=True)
class Ends:
    """From where to where, and who goes along."""

    is_back: bool
    """Whether it goes to the embedded server."""
    folder: Path
    """The embedded server's."""
    homes: tuple[Path, ...]
    """Those whose settings still lead to the old database."""
    arrived: tuple[Path, ...]
    """Those whose settings lead to the new one."""
    own_dsn: str
    """The owner's login to the operator's Postgres."""
    agents_dsn: str
    """A login of the agents' that the operator has named; empty when one is to be made."""
    own_place: str
    """The operator's Postgres, in words."""

    @property
    def old_place(self) -> str:
        """Where the memories are now."""
        return self.own_place if self.is_back else _embedded_place()

    @property
    def new_place(self) -> str:
        """Where they go."""
        return _embedded_place() if self.is_back else self.own_place


@dataclass(frozen=True, slots=True)
class Plan:
    """What a move would do."""

    ends: Ends
    stage: str
    """What comes next: copy everything, open the new database, let homes follow, or nothing."""
    counts: Mapping[str, int]
    """How many rows each table has."""
    themes: int
    bytes: int
    target: str
    """What is at the other end, in a few words."""
    server: str
    """Which server that is; empty when there is none yet."""
    problems: tuple[str, ...]


def ends_of(home: Path, to: str, admin: str | None) -> Ends:
    """Where a move would go from this home; ConfigError when the home's settings do not fit it."""
    from hermes_memory_pgvector.store.installation import place

    settings = load(home).settings
    if settings.hold:
        raise Held(settings.hold)
    folder = parts.server_folder(home, settings)
    is_back = to.strip().lower() == EMBEDDED
    if is_back:
        own = admin or _admin_at(home, settings.dsn) or settings.dsn
        if not own:
            raise ConfigError("this home uses the embedded server already")
        return _with_homes(home, folder, _login_of(own), "", place(settings.dsn or own), is_back=True)
    if settings.dsn and place(settings.dsn) != place(to):
        raise ConfigError(
            f"this home uses {place(settings.dsn)}, not the embedded server; to move from one Postgres to another, "
            "dump and restore it, then run: hermes-pgvector config set dsn DSN"
        )
    given = admin or _admin_at(home, to)
    own = _login_of(given or to)
    return _with_homes(home, folder, own, to if given else "", place(to), is_back=False)


def _admin_at(home: Path, dsn: str) -> str:
    """The owner's login that is kept for this home, if it leads to the same place."""
    from hermes_memory_pgvector.store.installation import place

    kept = secret(home, ADMIN_VARIABLE) or ""
    return kept if kept and dsn and place(kept) == place(dsn) else ""


def _login_of(dsn: str) -> str:
    """The connection string with a password that works.

    PGPASSWORD is taken from the environment: it is meant for this login, and libpq would use it for the embedded server
    as well, before that one's own password file.
    """
    from hermes_memory_pgvector.postgres.conninfo import split_password, user_of, with_login

    given = os.environ.pop("PGPASSWORD", "")
    return password.complete(with_login(dsn, user_of(dsn), given) if given and not split_password(dsn)[1] else dsn)


def _with_homes(home: Path, folder: Path, own: str, agents: str, own_place: str, *, is_back: bool) -> Ends:
    embedded, served = [], []
    for each in homes_of(home):
        settings = load(each).settings
        if parts.server_folder(each, settings) != folder or not _is_ours(each):
            continue
        if _leads_to(settings, own_place):
            served.append(each)
        elif not settings.dsn:
            embedded.append(each)
    homes, arrived = (served, embedded) if is_back else (embedded, served)
    return Ends(is_back, folder, tuple(homes), tuple(arrived), own, agents, own_place)


def _leads_to(settings: Settings, own_place: str) -> bool:
    from hermes_memory_pgvector.store.installation import place

    return bool(settings.dsn) and place(settings.dsn) == own_place


def _is_ours(home: Path) -> bool:
    """Whether a home uses this memory, or did."""
    try:
        uses = current_provider(home) == PROVIDER_NAME
    except ConfigError:
        uses = False
    return uses or (data_folder(home) / ID_NAME).exists()


@contextmanager
def embedded_side(ends: Ends) -> Iterator[Side]:
    """The owner's connection to the embedded server, which is started for it."""
    from hermes_memory_pgvector.schema.moving import open_side
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    info = EmbeddedPostgres(ends.folder).ensure_running(Deadline.after(START_SECONDS))
    with open_side(info.owner_dsn) as side:
        yield side


@contextmanager
def own_side(ends: Ends) -> Iterator[Side]:
    """The owner's connection to the operator's Postgres."""
    from hermes_memory_pgvector.schema.moving import open_side

    with open_side(ends.own_dsn) as side:
        yield side


@contextmanager
def both_sides(ends: Ends) -> Iterator[tuple[Side, Side]]:
    """The old database and the new one."""
    with embedded_side(ends) as embedded, own_side(ends) as own:
        yield (own, embedded) if ends.is_back else (embedded, own)


def plan(ends: Ends) -> Plan:
    """What a move would do, and what is in its way."""
    from hermes_memory_pgvector.server.folder import has_data

    problems = list(_home_problems(ends))
    if not has_data(ends.folder):
        if not ends.is_back:
            where = "" if ends.homes else f"; {len(ends.arrived)} homes use {ends.own_place} already"
            raise ConfigError(f"there is no embedded database in {ends.folder}{where}")
        problems += _without_server(ends)
        with own_side(ends) as source:
            found = _source_problems(ends, source)
            return _planned(ends, source, COPY, "a new embedded server", "", [*problems, *found])
    with both_sides(ends) as (source, target):
        stage, state, found = assess(ends, source, target)
        server = f'Postgres {target.facts.version}, schema "{target.facts.schema}"'
        return _planned(ends, source, stage, state, server, [*problems, *found])


def _planned(ends: Ends, source: Side, stage: str, target: str, server: str, problems: list[str]) -> Plan:
    from hermes_memory_pgvector.store.schema import wanted_version

    is_readable = source.version() == wanted_version()
    counts = source.counts() if is_readable else {}
    themes = source.theme_count() if is_readable else 0
    return Plan(ends, stage, counts, themes, source.facts.bytes, target, server, tuple(problems))


def assess(ends: Ends, source: Side, target: Side) -> tuple[str, str, list[str]]:
    """What comes next, what is at the other end in a few words, and what is in the way."""
    from hermes_memory_pgvector.schema import moving

    problems = _source_problems(ends, source)
    obstacle = moving.obstacle(target)
    if obstacle:
        problems.append(f"{ends.new_place}: {obstacle}")
    if problems:
        return COPY, "not usable", problems
    here = source.mark()
    there = _mark_of(target)
    if here.moved_to is not None:
        return _after_closing(ends, here, there)
    if there is not None and there.id == here.id:
        if there.filled_from == here.id:
            return COPY, "a copy of this installation that was begun", []
        if there.moved_to is not None:
            return COPY, "an earlier copy of this installation, not in use", []
        return COPY, "in use", [
            f"{ends.new_place} holds a copy of this installation that is in use: what was written there would be lost; "
            "name another database, or another schema by its search_path"
        ]  # fmt: skip
    if there is None and not any(target.has_table(name) for name in ("memory_entries", "conversations")):
        return COPY, "empty", []
    if there is not None and target.is_unused() and there.filled_from in (None, here.id):
        return COPY, "our tables, without rows", []
    return COPY, "another installation", [
        f'{ends.new_place} holds the memories of another installation in schema "{target.facts.schema}"; they are '
        "never mixed. Name another database, or another schema (options=-csearch_path=…), or bring in the rows "
        "one by one: hermes-pgvector export, then import jsonl"
    ]  # fmt: skip


def _after_closing(ends: Ends, here: Mark, there: Mark | None) -> tuple[str, str, list[str]]:
    if there is None or there.id != here.id or there.moved_to is not None:
        return COPY, "not where the memories went", [
            f"the memories have moved to {here.moved_to}, and {ends.new_place} does not have them; "
            f"name {here.moved_to}, or take the move back: hermes-pgvector promote --cancel --to DSN"
        ]  # fmt: skip
    if there.filled_from is not None:
        return OPEN, "complete, not opened yet", []
    return (FOLLOW if ends.homes else DONE), "complete, in use", []


def _mark_of(side: Side) -> Mark | None:
    """What a database says of itself; None for one without our tables, or with tables of an older version."""
    if not side.has_table("hermes_pgvector_installation"):
        return None
    return side.mark_if_known()


def installation_at(dsn: str) -> str:
    """The id of the installation that a login sees; empty when it sees none, or cannot connect."""
    from hermes_memory_pgvector.schema.moving import open_side

    try:
        with open_side(dsn) as side:
            found = side.mark_if_known() if side.has_table("hermes_pgvector_installation") else None
    except MemoryPluginError:
        return ""
    return "" if found is None else found.id


def _source_problems(ends: Ends, source: Side) -> list[str]:
    from hermes_memory_pgvector.store.schema import wanted_version

    if source.version() != wanted_version():
        return [
            f"{ends.old_place}: the schema is at version {source.version()}, {wanted_version()} is needed; "
            "run: hermes-pgvector migrate"
        ]
    problems = []
    for home in ends.homes if ends.is_back else ():
        found = installation_at(load(home).settings.dsn)
        if found not in ("", source.mark().id):
            problems.append(
                f"{home} uses another installation than the owner's login leads to: another schema, perhaps"
            )
    if not source.owns_tables():
        problems.append(f'{ends.old_place}: login "{source.facts.user}" does not own the tables; give --admin-dsn')
    mark = source.mark()
    if mark.filled_from is not None:
        problems.append(f"{ends.old_place} is itself a copy that is not complete")
    others = source.other_homes([home_id(each) for each in (*ends.homes, *ends.arrived)])
    if ends.is_back and others:
        problems.append(
            f"{len(others)} other homes have written to {ends.old_place} within a week; it would be closed to them; "
            "take out your own themes with: hermes-pgvector export --theme NAME"
        )
    return problems


def _home_problems(ends: Ends) -> Iterator[str]:
    """Settings that could not be changed when the time has come."""
    for home in ends.homes:
        parsed = load(home)
        for trouble in parsed.troubles:
            yield f"{home}: {trouble}"
        if parsed.settings.hold:
            yield f"{home}: {parsed.settings.hold}"
        if ends.is_back and parsed.settings.set_by.get("dsn") == "environment" and not has_dsn_variable(home):
            yield f"{home}: dsn comes from the environment variable HERMES_PGVECTOR_DSN; put it into config.yaml"


def _without_server(ends: Ends) -> Iterator[str]:
    settings = load(ends.folder.parent).settings
    try:
        problem = parts.obstacle(dataclasses.replace(settings, dsn="", hold=""))
    except MemoryPluginError as error:
        problem = str(error)
    if problem:
        yield problem


def _embedded_place() -> str:
    from hermes_memory_pgvector.store.installation import EMBEDDED as PLACE

    return PLACE
