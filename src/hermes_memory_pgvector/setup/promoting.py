"""Carries out a move: copies while agents write, holds them still for the last rows, compares, and lets homes follow.

Whoever is killed on the way leaves the old database in use, or a new one that has everything; running it again goes on.
Agents write to their journals all the time. While nobody may store, the records wait there; afterwards each record goes
to the one database that is open, whose watermarks say what it has.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings_file import data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import CareError, ConfigError, MemoryPluginError
from hermes_memory_pgvector.setup import database, env_file, new_settings, password, promotion, terminal
from hermes_memory_pgvector.setup.database import DEFAULT_ROLE
from hermes_memory_pgvector.setup.promotion import COPY, DONE, OPEN, Ends

if TYPE_CHECKING:
    from hermes_memory_pgvector.schema.copying import Pass
    from hermes_memory_pgvector.schema.moving import Side

CONNECT_SECONDS = 10.0
PASSWORD_BYTES = 24
LOCK_NAME = "promotion.lock"
FEW_ROWS = 2000
"""When a round copies no more than this, the rest is copied while writes wait."""
MOST_ROUNDS = 6
MOST_TRIES = 5
LEAVE_SECONDS = 20.0
STOP_SECONDS = 60.0


@dataclass(slots=True)
class Outcome:
    """What was done."""

    copied: int = 0
    rounds: int = 0
    rows: int = 0
    """How many rows were compared on both sides."""
    held_seconds: float = 0.0
    """How long writes waited in the journals."""
    role: str = ""
    followed: list[str] = field(default_factory=list)
    """Homes whose settings lead to the new database now."""
    left: dict[str, str] = field(default_factory=dict)
    """Homes whose settings could not be changed, and why."""
    stopped: bool = False
    indexes: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Login:
    """How agents are going to connect."""

    dsn: str
    role: str
    password: str | None
    """A password to give the role; None leaves it as it is."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only one who moves this installation."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    files.give(lock, files.owner_of(folder))
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CareError("another `promote` of this installation is at work; wait until it has finished") from None
        yield
    finally:
        os.close(lock)


def carry_out(ends: Ends, *, role: str | None, actor: tuple[str, str], quiet: bool) -> Outcome:
    """Move, or go on with a move that was interrupted. CareError when something is in the way; nothing is lost then."""
    outcome = Outcome()
    with alone(ends.folder), promotion.both_sides(ends) as (source, target):
        stage, _, problems = promotion.assess(ends, source, target)
        if problems:
            raise CareError("; ".join(problems))
        login = _login(ends, role)
        outcome.role = login.role
        if stage == COPY:
            login = _prepare(ends, source, target, login, outcome, quiet=quiet)
            _copy(ends, source, target, outcome, quiet=quiet)
            stage = OPEN
        if stage == OPEN:
            _open(ends, source, target, outcome, actor)
        _follow(ends, login, outcome, quiet=quiet)
        indexes = source.approximate_indexes()
        if not ends.is_back and not outcome.left:
            _wait_for_agents(source, quiet=quiet)
    if not ends.is_back and not outcome.left:
        _stop(ends, outcome, quiet=quiet)
    if stage != DONE:
        _build_indexes(ends, indexes, outcome, quiet=quiet)
    return outcome


# The agents' login.


def _login(ends: Ends, wanted: str | None) -> Login:
    """How agents connect to the new database; a role that others may use keeps its password."""
    if ends.is_back:
        from hermes_memory_pgvector.server.server import RUNTIME_ROLE

        return Login("", RUNTIME_ROLE, None)
    from hermes_memory_pgvector.postgres.conninfo import has_role, may_connect, user_of, with_login

    home, admin = ends.folder.parent, ends.own_dsn
    for each in ends.arrived:
        dsn = load(each).settings.dsn
        if may_connect(dsn, CONNECT_SECONDS):
            return Login(dsn, user_of(dsn), None)
    known = settings_file.dotenv(home).get(env_file.PASSWORD_VARIABLE, "")
    base = ends.agents_dsn or admin
    named = wanted or (user_of(ends.agents_dsn) if user_of(ends.agents_dsn or admin) != user_of(admin) else "")
    own = f"{DEFAULT_ROLE}_{home_id(home)[:8]}"
    for role in (named,) if named else (DEFAULT_ROLE, own):
        if not has_role(admin, role, CONNECT_SECONDS):
            made = known or secrets.token_urlsafe(PASSWORD_BYTES)
            return Login(with_login(base, role, made), role, made)
        for dsn in (with_login(base, role, known) if known else "", ends.agents_dsn):
            if dsn and user_of(dsn) == role and may_connect(dsn, CONNECT_SECONDS):
                return Login(dsn, role, None)
    if named:
        # Somebody else may be using that role: it keeps its password, which we need.
        return Login(password.complete(with_login(base, named, "")), named, None)
    made = known or secrets.token_urlsafe(PASSWORD_BYTES)
    return Login(with_login(base, own, made), own, made)


# Copying.


def _prepare(ends: Ends, source: Side, target: Side, login: Login, outcome: Outcome, *, quiet: bool) -> Login:
    """Make the tables and the agents' role, and close the database until it has everything."""
    from hermes_memory_pgvector.postgres.conninfo import may_connect
    from hermes_memory_pgvector.schema import moving

    if login.password is not None:
        # A run that goes on after this one was killed finds the password there.
        env_file.put(ends.folder.parent, env_file.PASSWORD_VARIABLE, login.password)
    owner = target.dsn

    def migrate(role_password: str | None) -> None:
        done = database.apply(
            owner, login.role, None, role_password=role_password, adopt_model="", quiet=True, may_be_closed=True
        )
        outcome.notes += [notice for notice in done.notices if notice not in outcome.notes]

    with terminal.step("tables", quiet=quiet) as said:
        migrate(login.password)
        for side in (source, target):
            side.refresh()
        here = source.mark()
        _close(target, here.id)
        if moving.copy_models(source, target):
            migrate(None)
            _close(target, here.id)
        said.append(ends.new_place)
    if ends.is_back:
        return login
    if may_connect(login.dsn, CONNECT_SECONDS):
        if promotion.installation_at(login.dsn) != here.id:
            raise CareError(
                f'the agents\' login does not see the tables that were made in schema "{target.facts.schema}": '
                "both logins have to lead to the same database and search_path; nothing was moved"
            )
        return login
    outcome.notes.append(
        f'role "{login.role}" could not be created or cannot log in: agents use the login given with --to; '
        "to separate them later: hermes-pgvector migrate --admin-dsn DSN --runtime-role ROLE"
    )
    return Login(ends.own_dsn, target.facts.user, None)


def _close(target: Side, installation: str) -> None:
    """Nobody writes to the new database before it has everything."""
    from hermes_memory_pgvector.schema.moving import Mark

    with target.connection.transaction():
        target.set_mark(Mark(installation, None, installation))


def _copy(ends: Ends, source: Side, target: Side, outcome: Outcome, *, quiet: bool) -> None:
    """Copy until both sides are alike, close the old one; the new one is complete and still closed then."""
    from hermes_memory_pgvector.schema import moving

    is_binary = moving.copies_binary(source, target)
    for number in range(1, MOST_ROUNDS + 1):
        text = "copying" if number == 1 else "copying what was written meanwhile"
        done = _round(text, source, target, is_binary=is_binary, quiet=quiet)
        outcome.copied += done.total
        outcome.rounds = number
        target.tidy([name for name, rows in done.copied.items() if rows > FEW_ROWS or number == 1])
        if done.total <= FEW_ROWS:
            break
    for _ in range(MOST_TRIES):
        if _finish(ends, source, target, outcome, is_binary=is_binary, quiet=quiet):
            return
        # A model was added meanwhile.
        moving.copy_models(source, target)
        _close(target, source.mark().id)
        outcome.copied += _round("copying a new model", source, target, is_binary=is_binary, quiet=quiet).total
    raise CareError("the embedding models keep changing; let `reembed` finish first, then run this again")


def _round(text: str, source: Side, target: Side, *, is_binary: bool, quiet: bool) -> Pass:
    from hermes_memory_pgvector.schema.copying import Copying

    started = time.monotonic()
    with source.one_moment():
        total = sum(source.counts().values())
        with terminal.progress(text, total=total, unit="row", quiet=quiet) as bar:
            begin: Callable[[str], None] = bar.phase if bar.is_watched else (lambda _: None)
            copying = Copying(
                source.connection, target.connection, is_binary=is_binary, begin=begin, advance=bar.advance
            )
            done = copying.bring_in_line(source.tables())
    if not quiet:
        took = max(0.001, time.monotonic() - started)
        rate = f", {terminal.number(round(done.total / took))}/s" if done.total > FEW_ROWS else ""
        terminal.bullet("ok", f"{text}: {terminal.count(done.total, 'row')}{rate}, {terminal.seconds(took)}")
    return done


def _finish(ends: Ends, source: Side, target: Side, outcome: Outcome, *, is_binary: bool, quiet: bool) -> bool:
    """With nobody writing: copy the last rows, compare everything, close the old database; False to copy once more."""
    from hermes_memory_pgvector.schema.copying import Copying

    with terminal.step("comparing", quiet=quiet) as said, source.held_still():
        began = time.monotonic()
        if source.models() != target.models():
            return False
        copying = Copying(source.connection, target.connection, is_binary=is_binary)
        tables = source.tables()
        done = copying.bring_in_line(tables)
        differing = copying.differences(tables)
        if differing:
            first = differing[0]
            raise CareError(
                f"{terminal.count(len(differing), 'theme')} differ after copying: {first.table} of "
                f"{terminal.one_line(first.theme) or 'all themes'} has {first.here} rows here and {first.there} there; "
                f"{ends.old_place} stays in use, nothing was changed there"
            )
        with target.connection.transaction():
            target.set_sequences(source.sequences())
        source.set_mark(replace(source.mark(), moved_to=ends.new_place))
        outcome.copied += done.total
        outcome.rows = sum(done.rows.values())
        said.append(f"{terminal.number(outcome.rows)} rows, the checksums of every theme are equal")
    outcome.held_seconds = round(time.monotonic() - began, 3)
    return True


def _open(ends: Ends, source: Side, target: Side, outcome: Outcome, actor: tuple[str, str]) -> None:
    """Let agents write to the new database; the old one is closed."""
    from hermes_memory_pgvector.store import audit_log

    with target.connection.transaction():
        target.set_mark(replace(target.mark(), moved_to=None, filled_from=None))
        audit_log.insert(
            target.connection,
            actor=actor[0],
            home_id=actor[1],
            action="promote",
            theme="",
            subject=f"from {ends.old_place} to {ends.new_place}"[:200],
            counts={"rows": outcome.rows or sum(source.counts().values())},
        )


# Following.


def _follow(ends: Ends, login: Login, outcome: Outcome, *, quiet: bool) -> None:
    """Lead the homes to the new database; running processes notice within seconds."""
    from hermes_memory_pgvector.store import installation

    for home in ends.homes:
        try:
            # First the journal, then the settings: whoever reads the new ones must be allowed to go there.
            installation.accept(data_folder(home), home_id(home), ends.new_place)
            if ends.is_back:
                new_settings.unset_dsn(home, keeps_password=True)
            else:
                new_settings.save_dsn(home, login.dsn)
        except MemoryPluginError as error:
            outcome.left[str(home)] = str(error)
            if not quiet:
                terminal.bullet("problem", f"{home}: {error}")
        else:
            outcome.followed.append(str(home))
            if not quiet:
                terminal.bullet("ok", f"{home}: uses {ends.new_place} now")


def _wait_for_agents(source: Side, *, quiet: bool) -> None:
    """Let processes leave by themselves, so that no question of theirs is cut off."""
    deadline = Deadline.after(LEAVE_SECONDS)
    with terminal.step("running agents", quiet=quiet) as said:
        while source.agents() and not deadline.is_over:
            time.sleep(0.2)
        said.append("have left the embedded server" if not deadline.is_over else "are cut off")


def _stop(ends: Ends, outcome: Outcome, *, quiet: bool) -> None:
    from hermes_memory_pgvector.server.server import EmbeddedPostgres

    with terminal.step("embedded server", quiet=quiet) as said:
        outcome.stopped = EmbeddedPostgres(ends.folder).stop(Deadline.after(STOP_SECONDS))
        said.append(f"stopped; its data stays in {ends.folder}")


def _build_indexes(ends: Ends, wanted: Sequence[str | None], outcome: Outcome, *, quiet: bool) -> None:
    """Build the approximate indexes that the old database had; searches work without them meanwhile."""
    if not wanted:
        return
    from hermes_memory_pgvector.schema.vector_indexes import VectorIndexes

    with ExitStack() as stack:
        # The embedded server stays up as long as its side is open.
        dsn = stack.enter_context(promotion.embedded_side(ends)).dsn if ends.is_back else ends.own_dsn
        indexes = stack.enter_context(VectorIndexes.open(dsn))
        for theme in wanted:
            with terminal.step("index of all themes" if theme is None else f"index of {theme}", quiet=quiet) as said:
                try:
                    _ = indexes.create_all() if theme is None else indexes.create_theme(theme, force=True)
                except (ConfigError, CareError) as error:
                    said.append(str(error))
                else:
                    outcome.indexes += 1


# Taking it back, and the end of the old server.


def cancel(ends: Ends, *, execute: bool) -> str:
    """Take back a move that has not led any home to the new database; a sentence about what was, or would be, done."""
    with alone(ends.folder), promotion.both_sides(ends) as (source, target):
        here = source.mark()
        if here.moved_to is None:
            return f"{ends.old_place} is in use as before; there is nothing to take back"
        if ends.arrived:
            raise CareError(
                f"{ends.arrived[0]} uses {ends.new_place} already; finish the move first, then, to go back: "
                f"hermes-pgvector promote --to {'DSN' if ends.is_back else 'embedded'}"
            )
        there = target.mark() if target.has_table("hermes_pgvector_installation") else None
        if here.moved_to != ends.new_place and (there is None or there.id != here.id):
            raise CareError(f"the memories have moved to {here.moved_to}; name that database with --to")
        if execute:
            if there is not None and there.id == here.id:
                # The new one is closed first: at no moment may both be written to.
                with target.connection.transaction():
                    target.set_mark(replace(there, moved_to=None, filled_from=here.id))
            with source.connection.transaction():
                source.set_mark(replace(here, moved_to=None))
        verb = "is" if execute else "would be"
        return f"{ends.old_place} {verb} in use again; the copy in {ends.new_place} stays closed"


def drop_embedded(home: Path, *, execute: bool) -> tuple[Path, int]:
    """Delete the data of an embedded server that everybody has left; its folder, and how many bytes that frees.

    With it goes the dump that the host's backup made of it: a home without data starts from its dump, so the memories
    as they were then would come back beside those that have moved.
    """
    from hermes_memory_pgvector.server.folder import restorable
    from hermes_memory_pgvector.server.server import EmbeddedPostgres
    from hermes_memory_pgvector.store import installation

    settings = load(home).settings
    if not settings.dsn:
        raise CareError("this home uses the embedded server; move first: hermes-pgvector promote --to DSN")
    ends = promotion.ends_of(home, settings.dsn, None)
    server = EmbeddedPostgres(ends.folder)
    if not server.folder.data.is_dir():
        raise CareError(f"there is no embedded database in {ends.folder}")
    if ends.homes:
        raise CareError(f"{', '.join(map(str, ends.homes))} still uses the embedded server; finish the move first")
    was_running = server.status().running
    with alone(ends.folder):
        with promotion.embedded_side(ends) as side:
            mark = side.mark()
        if not was_running:
            server.stop(Deadline.after(STOP_SECONDS))
        if mark.moved_to is None:
            raise CareError("the memories of the embedded server have not moved anywhere; nothing was deleted")
        with promotion.own_side(ends) as own:
            found = installation.identify(own.connection)
            if found is None or found.installation != mark.id or not own.mark().is_in_use:
                raise CareError(
                    f"{ends.own_place} does not have the memories of the embedded server; nothing was deleted"
                )
        freed = server.folder.data_bytes()
        dump = restorable(ends.folder)
        if dump is not None:
            freed += dump.stat().st_size
        if execute:
            server.stop(Deadline.after(STOP_SECONDS))
            with server.folder.exclusive(Deadline.after(STOP_SECONDS)):
                while (dump := restorable(ends.folder)) is not None:
                    dump.unlink()
                shutil.rmtree(server.folder.data)
                shutil.rmtree(server.folder.path / "secrets", ignore_errors=True)
    return ends.folder, freed
