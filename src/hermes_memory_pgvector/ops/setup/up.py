"""`up`: from nothing to a working memory in one command, safe to run again at any time."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.access import check_makeable
from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, Held, MemoryPluginError, SchemaError, UsageError
from hermes_memory_pgvector.ops import belonging, migration, new_settings, parts, password, profiles
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.ops.setup import demonstration, doctor, host_python, plugin_folder
from hermes_memory_pgvector.ops.setup.checks import Finding, examine
from hermes_memory_pgvector.ops.setup.host_python import HostPython
from hermes_memory_pgvector.terminal import progress, sink
from hermes_memory_pgvector.terminal.ask import confirm
from hermes_memory_pgvector.terminal.fields import aside
from hermes_memory_pgvector.terminal.operation import WORK_REMAINS, Course, Facts, Note, Operation, Option, command

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings

SERVER_SECONDS: Final = 180.0
STOP_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 10.0
PASSWORD_BYTES: Final = 24
Notes = Iterator[Note]


@dataclass(frozen=True, slots=True)
class Target:
    """The database to migrate, and the role agents will connect as."""

    admin_dsn: str
    role: str
    password: str | None = None
    """Of the role, because the operator gave --dsn; written to the settings once the role exists."""
    is_ready: bool = False
    """The schema is already up to date, so no owner's login is needed."""


@dataclass(frozen=True, slots=True)
class Stopped(Facts):
    """Whether an embedded server was running."""

    stopped: bool
    notes: tuple[Note, ...] = aside(())


@dataclass(frozen=True, slots=True)
class SetUp(Facts):
    """What was set up, and what is still to do."""

    home: str
    changed: tuple[str, ...]
    exit_code: int
    recalled: str | None
    profiles: tuple[str, ...]
    checks: tuple[Finding, ...]
    notes: tuple[Note, ...] = aside(())


def up(
    memory: Memory, *, stop: bool, own_database: bool, embed_url: str | None, embed_model: str | None,
    embed_key_env: str | None, **given: Any,
) -> Facts | Course:  # fmt: skip
    """Each step with a line of its own; at the end all checks and a first recall."""
    home = root_of(memory.home) if given["all_profiles"] else memory.home
    if stop:
        return _stopped(home)
    if own_database and (given["all_profiles"] or given["dsn"] or root_of(home) == home):
        raise UsageError("--own-database is for one profile: name its home, and neither --all-profiles nor --dsn")
    check_makeable(home)
    named = {
        "embed_url": embed_url, "embed_model": embed_model, "embed_api_key_env": embed_key_env,
        "own_server": own_database or None,
    }  # fmt: skip
    settings = {name: value for name, value in named.items() if value is not None}
    return Course(_Setup(home, **given, settings=settings).steps())


def _stopped(home: Path) -> Stopped:
    folder, was_running = parts.server_folder(home, load(home).settings), False
    if folder.is_dir():
        from hermes_memory_pgvector.server.server import EmbeddedPostgres

        was_running = EmbeddedPostgres(folder).stop(Deadline.after(STOP_SECONDS))
    if not was_running:
        return Stopped(False, (Note("ok", "no embedded server was running"),))
    return Stopped(True, (Note("ok", "embedded server stopped", "it starts again when it is needed"),))


@dataclass
class _Setup:
    """Setting up one home, and with --all-profiles those below it."""

    home: Path
    dsn: str | None
    runtime_role: str | None
    hermes_python: Path | None
    all_profiles: bool
    yes: bool
    settings: dict[str, Any]
    changed: list[str] = field(default_factory=list)
    host: HostPython | None = None
    wanted: migration.Wanted | None = None

    def steps(self) -> Generator[Note | str, None, SetUp]:
        """All steps in order."""
        from hermes_memory_pgvector.ops.carry.import_ import offer

        home = self.home
        yield f"Setting up the memory of {home}"
        home.mkdir(parents=True, exist_ok=True)
        for trouble in load(home).troubles:
            raise ConfigError(f"{trouble}; fix it, then run this again")
        homes = [home, *(profiles.below(home) if self.all_profiles else ())]
        before = {each: _server_in_use(each) for each in homes}
        yield from self._settings()
        yield from self._libraries()
        target = yield from self._database()
        yield from self._schema(target)
        yield from _accepted(home)
        yield from self._hosted()
        for each in homes[1:]:
            yield from self._profile(each)
        for each in homes:
            yield from _rows_left(each, before[each])
        findings = tuple(self._examined())
        code = doctor.exit_code(findings)
        yield from doctor.notes(each for each in findings if each.level != "ok")
        recalled = None
        if code == 0:
            recalled = yield from demonstration.show(home)
        yield Note("ok" if code == 0 else "problem", f"{'doctor':<17} {doctor.summary(findings)}")
        # A script that reads JSON imports for itself.
        for each in homes if code == 0 and not sink.is_document() else ():
            yield from offer(each, yes=self.yes)
        is_done = not (self.wanted and self.wanted.problem) and (self.host is None or self.host.sees_package)
        notes = tuple(_next(home, self.host, code))
        code = code or (0 if is_done else WORK_REMAINS)
        below = tuple(map(str, homes[1:]))
        return SetUp(str(home), tuple(self.changed), code, recalled, below, findings, notes)

    def _settings(self) -> Notes:
        """Write the settings given on the command line; a profile takes over those of the database it shares."""
        changed = new_settings.save(self.home, self.settings) if self.settings else []
        if not self.dsn:
            changed += profiles.join(self.home)
        if changed:
            self.changed += changed
            yield Note("ok", f"{'settings':<17} {', '.join(changed)}")

    def _libraries(self) -> Notes:
        """Find the Python that runs hermes and put the libraries for it into the home."""
        self.host = host_python.find(self.home, self.hermes_python)
        try:
            yield from host_python.carry(self.home, self.host)
        except ConfigError as error:
            # The database is worth having all the same; what is left to do is said at the end.
            yield Note("problem", str(error))
        if self.hermes_python is not None and self.host is not None:
            host_python.remember(self.home, self.host)

    def _database(self) -> Generator[Note, None, Target]:
        """Find or start the database."""
        home, settings, role = self.home, load(self.home).settings, self.runtime_role
        if self.dsn:
            from hermes_memory_pgvector.postgres.conninfo import brief

            admin = password.complete(self.dsn)
            with progress.shown("your Postgres") as step:
                role, own, is_others = _login(home, settings, admin, role)
                step.said.append(brief(admin))
            if is_others:
                _confirm_password(role, yes=self.yes)
            yield step.note
            return Target(admin, role, own)
        if settings.hold:
            raise Held(settings.hold)
        if settings.dsn:
            admin = migration.admin_dsn(home, settings, None)
            with progress.shown("your Postgres") as step:
                step.said.append(f"{parts.describe_database(home, settings)}, as configured")
                is_ready = _is_ready(home, settings)
            yield step.note
            return Target(admin, role or migration.role_for(settings, admin), is_ready=is_ready)
        return (yield from self._embedded(settings))

    def _embedded(self, settings: Settings) -> Generator[Note, None, Target]:
        from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres

        problem = parts.obstacle(settings)
        if problem:
            raise ConfigError(problem)
        state = "running" if parts.has_embedded_data(self.home, settings) else "created and started"
        with progress.shown("database") as step:
            folder = parts.server_folder(self.home, settings)
            server = EmbeddedPostgres(folder)
            info = server.ensure_running(Deadline.after(SERVER_SECONDS))
            step.said.append(f"embedded Postgres {server.status().binaries_version}, {state}")
            if folder != data_folder(self.home):
                step.said.append(f"shared with {folder.parent}")
        yield step.note
        return Target(info.owner_dsn, RUNTIME_ROLE)

    def _schema(self, target: Target) -> Notes:
        home, settings = self.home, load(self.home).settings
        with progress.shown("schema") as step:
            wanted = self.wanted = migration.wanted_model(home, settings)
            done = None
            if not target.is_ready:
                done = migration.apply(
                    target.admin_dsn, target.role, wanted.spec, adopt_model=settings.embed_model,
                    role_password=target.password,
                )  # fmt: skip
            step.said.append("tables made" if done and done.applied else "up to date")
            if done and done.adopted_memories + done.adopted_turns:
                step.said.append(f"{done.adopted_memories + done.adopted_turns:,} rows adopted")
            if wanted.spec is not None and not (done and done.kept_model):
                step.said.append(f"{wanted.spec.name} ({wanted.spec.dim})")
        yield step.note
        if target.password:
            yield _saved_login(home, target.admin_dsn, target.role, target.password)
        for notice in done.notices if done else ():
            yield Note("note", notice)
        if done:
            yield from migration.left(done, wanted)
        elif wanted.problem:
            yield Note("warning", f"vectors have to wait: {wanted.problem}", "then", command("migrate"))

    def _hosted(self) -> Notes:
        """Put the plugin folder into the home, and make us the host's memory provider."""
        if self.host is None:
            return
        with progress.shown("plugin folder") as step:
            change = plugin_folder.install(self.home)
            places = " and ".join(str(each.relative_to(self.home)) for each in plugin_folder.places(self.home))
            step.said.append(f"{change}: {places}")
        yield step.note
        self.host = host_python.examine(self.home, self.host)
        if self.host.sees_package:
            is_new = settings_file.set_provider(self.home, PROVIDER_NAME)
            self.changed += ["memory.provider"] if is_new else []
            yield Note("ok", f"{'provider':<17} memory.provider is {PROVIDER_NAME}{'' if is_new else ', unchanged'}")

    def _profile(self, home: Path) -> Notes:
        """Give one profile the memory of its root home: settings, plugin folder, provider; each keeps its own theme."""
        changed = profiles.join(home)
        if profiles.shares_database(home):
            yield from _accepted(home)
        if self.host is not None and self.host.sees_package:
            plugin_folder.install(home)
            changed += ["memory.provider"] if settings_file.set_provider(home, PROVIDER_NAME) else []
        settings = load(home).settings
        where, theme = parts.describe_database(home, settings), parts.profile_theme(home, settings)
        self.changed += [f"profiles/{home.name}: {each}" for each in changed]
        yield Note("ok", f"profile {home.name}: theme {theme}, {where}; {', '.join(changed) or 'unchanged'}")

    def _examined(self) -> Iterator[Finding]:
        """All checks; what hermes cannot import, and the command for it, is said at the end."""
        is_waiting = self.host is None or not self.host.sees_package
        with progress.shown("checking"):
            yield from (each for each in examine(self.home) if each.name != "host" or not is_waiting)


def _confirm_password(role: str, *, yes: bool) -> None:
    """Ask before a role that others may be using gets a new password; ConfigError if it keeps its own."""
    question = f'   Role "{role}" exists. Give it a new password, so that only this home can log in as {role}?'
    if not confirm(question, yes=yes):
        raise ConfigError(
            f'role "{role}" exists and keeps its password. To give it a new one, which locks out whoever uses it now, '
            "add --yes; to use it with the password it has, set dsn to that login: hermes-pgvector config set dsn DSN"
        )


def _is_ready(home: Path, settings: Settings) -> bool:
    """Whether the configured database has the schema, and vectors of a model; of which one, `doctor` says."""
    from hermes_memory_pgvector.store import schema
    from hermes_memory_pgvector.store.models import current_model

    with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(CONNECT_SECONDS)) as connection:
        try:
            schema.verify(connection)
        except SchemaError:
            return False
        return current_model(connection) is not None


def _login(home: Path, settings: Settings, admin: str, wanted: str | None) -> tuple[str, str, bool]:
    """The agents' role, its password, and whether that would replace one that others may be using."""
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.postgres.conninfo import has_role, may_connect, user_of, with_login

    known = settings_file.dotenv(home).get(settings_file.PASSWORD_VARIABLE, "")
    before = user_of(settings.dsn) if settings.dsn else ""
    is_reusable = known and before and wanted in (None, before)
    if is_reusable and may_connect(with_login(admin, before, known), CONNECT_SECONDS):
        return before, known, False
    new = known if known and before == wanted else secrets.token_urlsafe(PASSWORD_BYTES)
    is_there = has_role(admin, wanted or migration.DEFAULT_ROLE, CONNECT_SECONDS)
    if wanted or not is_there:
        return wanted or migration.DEFAULT_ROLE, new, is_there
    # Another home may be using that role; a new password would lock it out.
    return f"{migration.DEFAULT_ROLE}_{home_id(home)[:8]}", new, False


def _saved_login(home: Path, admin: str, role: str, word: str) -> Note:
    """Write the agents' login to the settings, or the administrator's where that does not work."""
    from hermes_memory_pgvector.postgres.conninfo import may_connect, with_login

    own = with_login(admin, role, word)
    works = may_connect(own, CONNECT_SECONDS)
    new_settings.save_dsn(home, own if works else admin)
    if works:
        return Note("ok", f"agents connect as {role}; its password is in {home / '.env'}")
    return Note(
        "warning",
        f'role "{role}" could not be created or cannot log in: agents use the login given with --dsn',
        "to separate them later: hermes-pgvector migrate --admin-dsn OWNER_DSN --runtime-role ROLE, then set dsn",
    )


def _accepted(home: Path) -> Notes:
    """Whoever runs `up` means this database: what waits in the journal goes there."""
    settings = load(home).settings
    belonging.accept_configured(home)
    try:
        with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(CONNECT_SECONDS)) as connection:
            is_new = belonging.accept_connected(home, settings, connection)
    except MemoryPluginError:
        # The checks that follow say what keeps agents from connecting.
        return
    if is_new:
        yield Note("note", f"this home's journal now goes to {parts.describe_database(home, settings)}")


def _server_in_use(home: Path) -> Path | None:
    """The folder of the embedded server that a home uses; None when it uses another database, or none yet."""
    settings = load(home).settings
    if settings.dsn or settings.hold or not parts.has_embedded_data(home, settings):
        return None
    return parts.server_folder(home, settings)


def _rows_left(home: Path, before: Path | None) -> Notes:
    """What stays in the embedded server that a home used before."""
    if before is not None and before != _server_in_use(home):
        theme = () if root_of(home) == home else ("--theme", parts.profile_theme(home, load(home).settings))
        copy = command("import", str(before), *theme, "--execute", "--hermes-home", str(home))
        told = f"{home}: its memories stay in the embedded server; to bring them along"
        yield Note("warning", told, then=copy)


def _next(home: Path, host: HostPython | None, code: int) -> Notes:
    """What to type now."""
    if code:
        yield Note("problem", "Some checks failed. Mend them and run this again", "for details", command("doctor"))
        return
    if host is not None and not host.sees_package:
        told = f"The memory is ready, but hermes cannot use it yet: {host_python.shortcoming(host)}"
        yield Note("warning", told, "when that is put right", command("up"))
        return
    if host is None:
        told = "Ready. hermes-agent is not installed; recall works from the command line"
        yield Note("ok", told, "when you have installed it", command("up"))
        yield Note("note", "to put something in", then=command("add", "The lathe needs bearing SKF-6203"))
    else:
        is_default, is_profile = home == settings_file.default_home().absolute(), root_of(home) != home
        start = f"hermes -p {home.name}" if is_profile else "hermes" if is_default else f"HERMES_HOME={home} hermes"
        yield Note("ok", "Ready. Talk to your agent", start)
    yield Note("note", "what it remembers", then=command("list"))
    yield Note("note", "how it is", then=command("status"))


UP: Final = Operation(
    "up",
    "set up everything; safe to run again",
    (
        Option("--dsn", "your own Postgres, with a login that may create tables", metavar="ADMIN_DSN"),
        Option("--runtime-role", "role the agents connect as (default: hermes)", metavar="ROLE"),
        Option("--embed-url", "embedding endpoint (default: a local model)", metavar="URL"),
        Option("--embed-model", "model the endpoint should use", metavar="MODEL"),
        Option("--embed-key-env", "environment variable that holds the endpoint's key", metavar="VAR"),
        Option("--hermes-python", "Python, environment or `hermes` command that runs hermes", Path, metavar="PATH"),
        Option("--all-profiles", "also every profile of this hermes installation", is_flag=True),
        Option("--own-database", "give this profile a Postgres of its own instead of the root home's",
               is_flag=True),
        Option("--yes", "answer every question with yes", is_flag=True),
        Option("--stop", "stop the embedded server instead", is_flag=True),
    ),
    up,
    (
        ("up", "give ~/.hermes a memory with an embedded Postgres"),
        ("up --all-profiles", "the root home and every profile, with one database"),
        ("up --dsn postgresql://ada@db.example.com/hermes", "use your own Postgres; the password is asked for"),
    ),
    group="set up",
    on_page=False,
    needs_home=False,
    aliases={"install": {}},
)  # fmt: skip
