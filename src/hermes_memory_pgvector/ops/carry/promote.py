"""`promote`: move everything to another database, while agents talk.

    source says    target is                  what comes next
    it is here     without memories of ours   say where it moves to: from now on writes wait in the journals
    it moves       without memories of ours   copy and compare, in one transaction that also opens the target
    it moves       the same, and in use       let the homes follow
    it is here     anything else              nothing: a sentence says what is there

Whoever is killed on the way leaves one of these rows, and runs it again. `--cancel` lets writers in again while the
target is not in use. The source says for ever where its memories have gone.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings_file import data_folder, has_dsn_variable, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import CareError, ConfigError, MemoryPluginError
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.ops import new_settings, parts, password
from hermes_memory_pgvector.ops.carry.ends import Ends, alone, ends_of, shown
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.ops.migration import DEFAULT_ROLE
from hermes_memory_pgvector.server.folder import restorable
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.operation import Note, Operation, Option, Plan, command

if TYPE_CHECKING:
    from hermes_memory_pgvector.schema.moving import Mark, Side

CONNECT_SECONDS = 10.0
PASSWORD_BYTES = 24
LEAVE_SECONDS = 20.0
STOP_SECONDS = 60.0
COPY, FOLLOW = "copy", "follow"
NOUNS = {"memory_entries": "memories", "conversations": "turns", "memory_operations": "events"}


@dataclass(frozen=True, slots=True)
class AgentLogin:
    """How agents are going to connect."""

    dsn: str
    role: str
    password: str | None
    """A password to give the role; None leaves it as it is."""


def promote(memory: Memory, *, to: str, admin_dsn: str | None, cancel: bool, execute: bool) -> Plan:
    """Move, or go on with a move that was interrupted; or take it back."""
    ends = ends_of(memory.home, to, admin_dsn)
    if cancel:
        return _cancel(ends, execute=execute)
    if not execute:
        return _plan(ends)
    with alone(ends.source.folder):
        return _carry_out(ends, memory.home)


PROMOTE = Operation(
    "promote",
    "move everything to a Postgres of your own, or back to the embedded server, while agents talk",
    (
        Option("--to", "the new database: an administrator's login, or `embedded`", required=True, show=shown,
               metavar="DSN"),
        Option("--admin-dsn", "login that owns the tables there; --to then names the agents' login", show=shown,
               metavar="DSN"),
        Option("--cancel", "take back a move that is not finished", is_flag=True),
    ),
    promote,
    (
        ("promote --to postgresql://admin@db.example.com/memory", "what would move, and whether it can"),
        ("promote --to postgresql://admin@db.example.com/memory --execute", "move; agents go on meanwhile"),
        ("promote --to embedded --execute", "back to the embedded server"),
    ),
    group="move",
    changes=True,
    on_page=False,
)  # fmt: skip


def _plan(ends: Ends) -> Plan:
    if not ends.source.is_there:
        raise ConfigError(f"there is no embedded database in {ends.source.folder}")
    with ends.source.opened() as source:
        if ends.target.is_there:
            with ends.target.opened() as target:
                stage = _stage(ends, source, target)
        else:
            stage = _stage(ends, source, None)
        counts = _counted(source.counts()) if stage == COPY else {"homes": len(ends.homes)}
        notes = [
            Note("note", f"from {ends.source.place} to {ends.target.place}; writes wait in the journals meanwhile"),
            *(Note("note", f"would follow: {each}") for each in ends.homes),
        ]
    return Plan("move", "", counts, notes=notes if any(counts.values()) else ())


def _stage(ends: Ends, source: Side, target: Side | None) -> str:
    """What comes next; CareError when something is in the way."""
    here = _usable_source(ends, source)
    place = ends.target.place
    if target is None:
        return _may_copy(here, place)
    there = target.mark()
    if there is not None and there.id == here.id and there.moved_to is None:
        if here.moved_to is None:
            raise CareError(
                f"{place} holds a copy of this installation that is in use: what was written there would be lost; "
                "name another database, or another schema by its search_path"
            )
        return FOLLOW
    obstacle = target.obstacle()
    if obstacle:
        raise CareError(f"{place}: {obstacle}")
    is_free = target.is_unused() if there is not None else not _is_taken(target)
    if not is_free and (there is None or there.id != here.id):
        raise CareError(
            f'{place} holds the memories of another installation in schema "{target.facts.schema}"; they are never '
            "mixed. Name another database, or another schema (options=-csearch_path=…), or bring in the rows one by "
            "one: hermes-pgvector import"
        )
    return _may_copy(here, place)


def _may_copy(here: Mark, place: str) -> str:
    if here.moved_to not in (None, place):
        raise CareError(
            f"the memories have moved, or are on their way, to {here.moved_to}; name that, or take it back: "
            "hermes-pgvector promote --cancel --to DSN"
        )
    return COPY


def _is_taken(target: Side) -> bool:
    return any(target.has_table(name) for name in ("memory_entries", "conversations"))


def _usable_source(ends: Ends, source: Side) -> Mark:
    mark = source.mark()
    if mark is None:
        raise CareError(f"{ends.source.place} has no tables of ours; run: hermes-pgvector migrate")
    if not source.owns_tables():
        raise CareError(
            f'{ends.source.place}: login "{source.facts.user}" does not own the tables; give the owner\'s: --admin-dsn'
        )
    others = source.other_homes([home_id(each) for each in (*ends.homes, *ends.arrived)])
    if others and not ends.source.is_embedded:
        raise CareError(
            f"{len(others)} other homes have used {ends.source.place} within a week; it would be closed to them; "
            "take out your own themes with: hermes-pgvector export --theme NAME"
        )
    for home in ends.homes:
        parsed = load(home)
        for trouble in (*map(str, parsed.troubles), parsed.settings.hold):
            if trouble:
                raise CareError(f"{home}: {trouble}")
        by_variable = parsed.settings.set_by.get("dsn") == "environment" and not has_dsn_variable(home)
        if ends.target.is_embedded and by_variable:
            raise CareError(
                f"{home}: dsn comes from the environment variable HERMES_PGVECTOR_DSN; put it into config.yaml"
            )
    if ends.target.is_embedded and not ends.target.is_there:
        problem = parts.obstacle(dataclasses.replace(load(ends.target.folder.parent).settings, dsn="", hold=""))
        if problem:
            raise CareError(problem)
    return mark


def _carry_out(ends: Ends, home: Path) -> Plan:
    """Move. What goes wrong before everything has arrived is said with the way on and the way back."""
    login = _login(ends)
    notes: list[Note] = []
    _leave_no_dump(ends)
    with ends.source.opened() as source, ends.target.opened() as target:
        stage = _stage(ends, source, target)
        counts: Mapping[str, int] = {}
        if stage == COPY:
            login = _make_tables(ends, target, login, notes)
            counts = _copy(ends, source, target)
            _audit(ends, target, home, counts)
        left = _follow(ends, login)
        has_index = source.has_approximate_index()
        if ends.source.is_embedded and not left:
            _wait_for_agents(source)
        if stage == COPY and has_index:
            _build_index(target)
    if ends.source.is_embedded and not left:
        notes.append(_stop(ends))
    notes += [Note("ok", f"{each} uses {ends.target.place} now") for each in ends.homes if str(each) not in left]
    remaining = [Note("problem", f"{each}: {reason}", "mend that and run this again") for each, reason in left.items()]
    done = f"moved to {ends.target.place}, as {login.role}"
    return Plan("move", done, _counted(counts) if counts else {"homes": len(ends.homes)}, (), True, notes, remaining)


def _copy(ends: Ends, source: Side, target: Side) -> Mapping[str, int]:
    from hermes_memory_pgvector.schema import moving

    source.shut(ends.target.place)
    try:
        with progress.shown("copying", total=sum(source.counts().values()), unit="row") as bar:
            return moving.move(source, target, bar.phase, bar.advance)
    except CareError:
        # Nothing was committed there, so nothing was moved.
        source.reopen()
        raise
    except MemoryPluginError as error:
        back = "hermes-pgvector promote --cancel --to DSN --execute"
        raise type(error)(
            f"{error}; writes wait in the journals until you run this again, or take it back: {back}"
        ) from None


def _counted(rows: Mapping[str, int]) -> dict[str, int]:
    counts = {noun: rows.get(name, 0) for name, noun in NOUNS.items()}
    return counts | {"vectors": sum(number for name, number in rows.items() if "_vectors_" in name)}


def _audit(ends: Ends, target: Side, home: Path, rows: Mapping[str, int]) -> None:
    from hermes_memory_pgvector.ops import audit

    told = f"from {ends.source.place} to {ends.target.place}"[:200]
    counts = {"rows": sum(rows.values())}
    audit.record(target.connection, audit.operator(home), "promote", subject=told, counts=counts)


# The agents' login.


def _login(ends: Ends) -> AgentLogin:
    """How agents connect to the new database; a role that others may use keeps its password."""
    if ends.target.is_embedded:
        from hermes_memory_pgvector.server.server import RUNTIME_ROLE

        return AgentLogin("", RUNTIME_ROLE, None)
    from hermes_memory_pgvector.postgres.conninfo import has_role, may_connect, user_of, with_login

    home, admin = ends.source.folder.parent, ends.target.login
    for each in ends.arrived:
        dsn = load(each).settings.dsn
        if may_connect(dsn, CONNECT_SECONDS):
            return AgentLogin(dsn, user_of(dsn), None)
    # A run that was killed has left the password there.
    known = settings_file.dotenv(home).get(settings_file.PASSWORD_VARIABLE, "")
    made = known or secrets.token_urlsafe(PASSWORD_BYTES)
    base = ends.agents_login or admin
    named = user_of(base) if user_of(base) != user_of(admin) else ""
    own = f"{DEFAULT_ROLE}_{home_id(home)[:8]}"
    for role in (named,) if named else (DEFAULT_ROLE, own):
        dsn = with_login(base, role, made)
        if not has_role(admin, role, CONNECT_SECONDS):
            return AgentLogin(dsn, role, made)
        for known_dsn in (dsn, ends.agents_login):
            if known_dsn and user_of(known_dsn) == role and may_connect(known_dsn, CONNECT_SECONDS):
                return AgentLogin(known_dsn, role, None)
    if named:
        # Somebody else may be using that role: it keeps its password, which we need.
        return AgentLogin(password.complete(with_login(base, named, "")), named, None)
    return AgentLogin(with_login(base, own, made), own, made)


def _make_tables(ends: Ends, target: Side, login: AgentLogin, notes: list[Note]) -> AgentLogin:
    """Make the tables and the agents' role; the login that agents can really use."""
    from hermes_memory_pgvector.postgres.conninfo import may_connect
    from hermes_memory_pgvector.schema.moving import open_side

    if login.password is not None:
        # A run that goes on after this one was killed finds the password there.
        settings_file.set_variable(ends.source.folder.parent, settings_file.PASSWORD_VARIABLE, login.password)
    done = database.apply(
        target.dsn, login.role, None, role_password=login.password, adopt_model="", may_be_closed=True
    )
    notes += [Note("note", notice) for notice in done.notices]
    target.refresh()
    if ends.target.is_embedded:
        return login
    if may_connect(login.dsn, CONNECT_SECONDS):
        with open_side(login.dsn) as agents:
            if agents.mark() != target.mark():
                raise CareError(
                    f'the agents\' login does not see the tables that were made in schema "{target.facts.schema}": '
                    "both logins have to lead to the same database and search_path; nothing was moved"
                )
        return login
    notes.append(
        Note(
            "note",
            f'role "{login.role}" could not be created or cannot log in: agents use the login given with --to',
            "to separate them later",
            command("migrate", "--admin-dsn", "DSN", "--runtime-role", "ROLE"),
        )
    )
    return AgentLogin(ends.target.login, target.facts.user, None)


# Following.


def _follow(ends: Ends, login: AgentLogin) -> dict[str, str]:
    """Lead the homes to the new database, which running processes notice within seconds; those that could not."""
    from hermes_memory_pgvector.store import installation

    left = {}
    for home in ends.homes:
        try:
            # First the journal, then the settings: whoever reads the new ones must be allowed to go there.
            installation.accept(data_folder(home), home_id(home), ends.target.place)
            if ends.target.is_embedded:
                new_settings.unset_dsn(home, keeps_password=True)
            else:
                new_settings.save_dsn(home, login.dsn)
        except MemoryPluginError as error:
            left[str(home)] = str(error)
    return left


def _wait_for_agents(source: Side) -> None:
    """Let processes leave by themselves, so that no question of theirs is cut off."""
    deadline = Deadline.after(LEAVE_SECONDS)
    while source.agents() and not deadline.is_over:
        time.sleep(0.2)


def _stop(ends: Ends) -> Note:
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    server = EmbeddedPostgres(ends.source.folder)
    server.stop(Deadline.after(STOP_SECONDS))
    return Note(
        "note", f"the embedded server is stopped; delete its data when you no longer need it: {server.folder.data}"
    )


def _leave_no_dump(ends: Ends) -> None:
    """A new embedded server would start from the dump that the host's backup has made of an earlier one."""
    if ends.target.is_embedded and not ends.target.is_there:
        while (dump := restorable(ends.target.folder)) is not None:
            dump.rename(dump.with_suffix(f".dump-before-{int(time.time())}"))


def _build_index(target: Side) -> None:
    """Build the approximate index that the old database had; searches work without it meanwhile."""
    from hermes_memory_pgvector.schema import vector_indexes

    vector_indexes.create(target.dsn)


# Taking it back.


def _cancel(ends: Ends, *, execute: bool) -> Plan:
    """Let writers in again where they were, as long as the target is not in use."""
    with alone(ends.source.folder), ends.source.opened() as source:
        here = source.mark()
        if here is None or here.moved_to is None:
            return Plan("take back")
        if ends.target.place != here.moved_to:
            raise CareError(f"the memories have moved, or are on their way, to {here.moved_to}; name that with --to")
        there: Any = None
        if ends.target.is_there:
            with ends.target.opened() as target:
                there = target.mark()
        if there is not None and there.id == here.id and there.moved_to is None:
            raise CareError(
                f"everything has arrived in {ends.target.place}, which is in use; finish the move first, then, to go "
                f"back: hermes-pgvector promote --to {'embedded' if ends.source.is_embedded else 'DSN'}"
            )
        if execute:
            source.reopen()
        return Plan("take back", f"{ends.source.place} is in use again; taken back", {"moves": 1}, executed=execute)
