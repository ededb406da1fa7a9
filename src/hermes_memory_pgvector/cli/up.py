"""`up`: from nothing to a working memory in one command, safe to run again at any time."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import import_, left_behind, options, system_errors
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, data_folder, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, Held, MemoryPluginError, SchemaError
from hermes_memory_pgvector.ops import belonging as journal_database
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.ops import new_settings, parts, password, profiles
from hermes_memory_pgvector.ops.setup import dashboard_tab, demonstration, host_python, host_site, login, plugin_folder
from hermes_memory_pgvector.ops.setup.checks import examination
from hermes_memory_pgvector.ops.setup.host_python import HostPython
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.ops.setup.moving_in import Moving
    from hermes_memory_pgvector.store.browse import Theme

NAME = "up"
HELP = "set up everything; safe to run again"
GROUP = "set up"
EXAMPLES = (
    ("up", "give ~/.hermes a memory with an embedded Postgres"),
    ("up --all-profiles", "the root home and every profile, with one database"),
    ("up --dsn postgresql://ada@db.example.com/hermes", "use your own Postgres; the password is asked for"),
)

SERVER_SECONDS = 180.0
STOP_SECONDS = 60.0
CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """The database to migrate, and the role agents will connect as."""

    admin_dsn: str
    role: str
    new_login: login.Login | None = None
    """Chosen because the operator gave --dsn; written to the settings once the role exists."""
    is_ready: bool = False
    """The schema is already up to date, so no owner's login is needed."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--dsn", metavar="ADMIN_DSN", help="your own Postgres, with a login that may create tables")
    parser.add_argument("--runtime-role", metavar="ROLE", help="role the agents connect as (default: hermes)")
    parser.add_argument("--embed-url", metavar="URL", help="embedding endpoint (default: a local model)")
    parser.add_argument("--embed-model", metavar="MODEL", help="model the endpoint should use")
    parser.add_argument("--embed-key-env", metavar="VAR", help="environment variable that holds the endpoint's key")
    parser.add_argument(
        "--hermes-python", type=Path, metavar="PATH", help="Python, environment or `hermes` command that runs hermes"
    )
    parser.add_argument("--all-profiles", action="store_true", help="also every profile of this hermes installation")
    parser.add_argument(
        "--own-server", action="store_true", help="give this profile a Postgres of its own instead of the root home's"
    )
    parser.add_argument("--yes", action="store_true", help="answer every question with yes")
    parser.add_argument("--stop", action="store_true", help="stop the embedded server instead")


def run(args: argparse.Namespace) -> int:
    """Run each step and show how long it took; end with all checks and a first recall."""
    home = (args.hermes_home or settings_file.default_home()).expanduser().absolute()
    settings_file.start_for(home)
    if args.all_profiles:
        home = root_of(home)
    system_errors.check_access(home)
    if args.stop:
        return _stop(home, json=args.json)
    if args.own_server and (args.all_profiles or args.dsn or root_of(home) == home):
        raise ConfigError("--own-server is for one profile: name its home, and neither --all-profiles nor --dsn")
    system_errors.check_makeable(home)
    quiet = args.json
    if not quiet:
        terminal.say(f"Setting up the memory of {home}")
    home.mkdir(parents=True, exist_ok=True)
    for trouble in load(home).troubles:
        raise ConfigError(f"{trouble}; fix it, then run this again")
    before = {each: left_behind.server_in_use(each) for each in (home, *profiles.below(home))}
    changed = _settings(home, args, quiet=quiet)
    if not args.dsn:
        changed += _join(home, quiet=quiet)
    settings = load(home).settings
    host = _prepare_host(home, args, quiet=quiet)
    target = _find_database(home, settings, args, quiet=quiet)
    wanted = _migrate(home, settings, target, quiet=quiet)
    _accept_database(home, quiet=quiet)
    if host is not None:
        host = host_site.connect(home, host, quiet=quiet)
        if host.sees_package:
            changed += _activate(home, quiet=quiet)
    copied = left_behind.offer(home, before[home], yes=args.yes, quiet=quiet)
    others = [
        _set_up_profile(each, host, before[each], may_move=args.yes, quiet=quiet)
        for each in (profiles.below(home) if args.all_profiles else ())
    ]
    if args.dsn and not args.all_profiles and not quiet:
        _name_profiles_left(home, before)
    findings = list(examination.examine(home))
    if host is not None and not host.sees_package:
        # What is missing there, and the command for it, is said at the end.
        findings = [each for each in findings if each.name != "host"]
    code = examination.exit_code(findings)
    shown = None
    if code == 0:
        shown = demonstration.show(home, quiet=quiet)
    if quiet and args.yes and code == 0 and host is not None and host.sees_package:
        changed += _turn_tab_on(home)
    is_done = not wanted.problem and (host is None or host.sees_package)
    if quiet:
        terminal.as_json(
            {
                "home": str(home),
                "changed": changed,
                "copied": copied,
                "exit_code": code or (0 if is_done else 3),
                "hermes_python": None if host is None else str(host.path),
                "hermes_sees_package": None if host is None else host.sees_package,
                "recalled": shown,
                "profiles": others,
                "checks": [{"name": each.name, "level": each.level, "text": each.text} for each in findings],
            }
        )
    else:
        for finding in findings:
            if finding.level != "ok":
                examination.tell(finding, within_up=True)
        terminal.bullet("ok" if code == 0 else "problem", f"doctor: {examination.summary(findings)}")
        if code == 0:
            _offer_chats((home, *(profiles.below(home) if args.all_profiles else ())), yes=args.yes)
        if code == 0 and host is not None and host.sees_package:
            _offer_tab(home, yes=args.yes)
        _say_next(home, host, code)
    return code or (0 if is_done else 3)


def _prepare_host(home: Path, args: argparse.Namespace, *, quiet: bool) -> HostPython | None:
    """Find the Python that runs hermes and put the libraries for it into the home; None when there is no hermes."""
    found = host_python.find(home, args.hermes_python)
    try:
        host_site.carry(home, found, quiet=quiet)
    except ConfigError as error:
        # The database is worth having all the same; what is left to do is said at the end.
        if not quiet:
            terminal.bullet("problem", str(error))
    if args.hermes_python is not None and found is not None:
        host_python.remember(home, found)
    return found


def _stop(home: Path, *, json: bool) -> int:
    folder = parts.server_folder(home, load(home).settings)
    if not folder.is_dir():
        was_running = False
    else:
        from hermes_memory_pgvector.server.server import EmbeddedPostgres

        was_running = EmbeddedPostgres(folder).stop(Deadline.after(STOP_SECONDS))
    if json:
        terminal.as_json({"stopped": was_running})
    else:
        text = "embedded server stopped" if was_running else "no embedded server was running"
        terminal.bullet("ok", text, "it starts again when it is needed" if was_running else "")
    return 0


def _settings(home: Path, args: argparse.Namespace, *, quiet: bool) -> list[str]:
    """Write the settings given on the command line."""
    named = {"embed_url": args.embed_url, "embed_model": args.embed_model, "embed_api_key_env": args.embed_key_env}
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if args.own_server:
        given["own_server"] = True
    if not given:
        return []
    with terminal.step("settings", quiet=quiet) as said:
        changed = new_settings.save(home, given)
        said.append(", ".join(changed) if changed else "unchanged")
    return changed


def _find_database(home: Path, settings: Settings, args: argparse.Namespace, *, quiet: bool) -> Target:
    """Find or start the database."""
    if args.dsn:
        from hermes_memory_pgvector.postgres.conninfo import brief

        admin = password.complete(args.dsn)
        with terminal.step("your Postgres", quiet=quiet) as said:
            chosen = login.choose(home, settings, admin, args.runtime_role)
            said.append(brief(admin))
        if chosen.replaces_password:
            _confirm_password(chosen.role, yes=args.yes, quiet=quiet)
        return Target(admin, chosen.role, new_login=chosen)
    if settings.hold:
        raise Held(settings.hold)
    if settings.dsn:
        admin = database.admin_dsn(home, settings, None)
        role = args.runtime_role or database.role_for(settings, admin)
        with terminal.step("your Postgres", quiet=quiet) as said:
            said.append(f"{parts.describe_database(home, settings)}, as configured")
            is_ready = _is_ready(home, settings)
        return Target(admin, role, is_ready=is_ready)
    from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres

    problem = parts.obstacle(settings)
    if problem:
        raise ConfigError(problem)
    is_new = not parts.has_embedded_data(home, settings)
    with terminal.step("embedded Postgres", quiet=quiet) as said:
        folder = parts.server_folder(home, settings)
        server = EmbeddedPostgres(folder)
        info = server.ensure_running(Deadline.after(SERVER_SECONDS))
        status = server.status()
        said.append(f"{'created and started' if is_new else 'running'}, version {status.binaries_version}")
        if folder != data_folder(home):
            said.append(f"shared with {folder.parent}")
    return Target(info.owner_dsn, RUNTIME_ROLE)


def _confirm_password(role: str, *, yes: bool, quiet: bool) -> None:
    """Ask before a role that others may be using gets a new password; ConfigError if it keeps its own."""
    question = f'   Role "{role}" exists. Give it a new password, so that only this home can log in as {role}?'
    if not (yes if quiet else terminal.confirm(question, yes=yes)):
        raise ConfigError(
            f'role "{role}" exists and keeps its password. To give it a new one, which locks out whoever uses it now, '
            "add --yes; to use it with the password it has, set dsn to that login: hermes-pgvector config set dsn …"
        )


def _is_ready(home: Path, settings: Settings) -> bool:
    """Whether the configured database already has the schema and the vector tables we need."""
    from hermes_memory_pgvector.store import schema
    from hermes_memory_pgvector.store.current_model import current_model

    with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(CONNECT_SECONDS)) as connection:
        try:
            schema.verify(connection)
        except SchemaError:
            return False
        model = current_model(connection)
    wanted = database.wanted_model(home, settings).spec
    # Without an answer from the embedder, nothing says that another model is wanted.
    return wanted is None or (model is not None and (model.name, model.dim) == (wanted.name, wanted.dim))


def _migrate(home: Path, settings: Settings, target: Target, *, quiet: bool) -> database.Wanted:
    with terminal.step("schema", quiet=quiet) as said:
        wanted = database.wanted_model(home, settings)
        if target.is_ready:
            said.append("up to date")
            return wanted
        outcome = database.apply(
            target.admin_dsn,
            target.role,
            wanted.spec,
            role_password=target.new_login.password if target.new_login else None,
            adopt_model=settings.embed_model,
            quiet=quiet,
            tells_steps=False,
        )
        said.append("tables made" if outcome.applied else "up to date")
        if outcome.adopted_memories or outcome.adopted_turns:
            said.append(f"{terminal.number(outcome.adopted_memories + outcome.adopted_turns)} rows adopted")
        if wanted.spec is not None and outcome.kept_model is None:
            said.append(f"{wanted.spec.name} ({wanted.spec.dim})")
    if target.new_login:
        _save_login(home, target.admin_dsn, target.new_login, quiet=quiet)
    if not quiet:
        for notice in outcome.notices:
            terminal.bullet("note", notice)
        if outcome.kept_model is not None:
            database.tell_kept_model(outcome.kept_model, wanted)
        if wanted.problem:
            terminal.bullet(
                "warning", f"vectors have to wait: {wanted.problem}", "fix it and run: hermes-pgvector migrate"
            )
    return wanted


def _accept_database(home: Path, *, quiet: bool) -> None:
    """Whoever runs `up` means this database: what waits in the journal goes there."""
    settings = load(home).settings
    journal_database.accept_configured(home)
    try:
        with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(CONNECT_SECONDS)) as connection:
            is_new = journal_database.accept_connected(home, settings, connection)
    except MemoryPluginError:
        # The checks that follow say what keeps agents from connecting.
        return
    if is_new and not quiet:
        where = parts.describe_database(home, settings)
        terminal.bullet("note", f"this home's journal now goes to {where}")


def _save_login(home: Path, admin: str, new_login: login.Login, *, quiet: bool) -> None:
    works = login.save(home, admin, new_login)
    if quiet:
        return
    if works:
        terminal.bullet("ok", f"agents connect as {new_login.role}; its password is in {home / '.env'}")
    else:
        terminal.bullet(
            "warning",
            f'role "{new_login.role}" could not be created or cannot log in: agents use the login given with --dsn',
            "to separate them later: hermes-pgvector migrate --admin-dsn … --runtime-role ROLE, then set dsn",
        )


def _activate(home: Path, *, quiet: bool) -> list[str]:
    """Make us the host's memory provider."""
    with terminal.step("memory.provider", quiet=quiet) as said:
        is_new = settings_file.set_provider(home, PROVIDER_NAME)
        said.append(f"set to {PROVIDER_NAME}" if is_new else f"{PROVIDER_NAME}, unchanged")
    return ["memory.provider"] if is_new else []


def _offer_chats(homes: Sequence[Path], *, yes: bool) -> None:
    """Ask for each home whether to bring in what hermes has kept of its chats."""
    for each in homes:
        try:
            import_.offer(each, yes=yes)
        except MemoryPluginError as error:
            again = f"hermes-pgvector import state --hermes-home {shlex.quote(str(each))}"
            terminal.bullet("problem", f"past chats of {each} are left alone: {error}", f"to try again: {again}")


def _offer_tab(home: Path, *, yes: bool) -> None:
    """Ask whether the host's dashboard shall show the memory tab, unless that is settled."""
    if dashboard_tab.state_of(home) != "off":
        return
    if terminal.confirm("show the memory as a tab of hermes' dashboard?", default=True, yes=yes):
        dashboard_tab.turn_on(home)
        terminal.bullet("ok", "memory tab: on, from the next start of `hermes dashboard`")
    else:
        terminal.bullet("note", "to see the memory as a tab of hermes' dashboard", dashboard_tab.ENABLE_COMMAND)


def _turn_tab_on(home: Path) -> list[str]:
    if dashboard_tab.state_of(home) != "off":
        return []
    dashboard_tab.turn_on(home)
    return ["plugins.enabled"]


def _offer_move(home: Path, *, may_move: bool, quiet: bool) -> bool:
    """Offer to bring the memories of a profile's own server into the root home's database; True when that was done."""
    if not profiles.has_own_server(home) or load(home).settings.own_server or load(root_of(home)).settings.dsn:
        return False
    from hermes_memory_pgvector.ops.setup.moving_in import look, move_in

    try:
        question = _move_question(home, look(home))
    except MemoryPluginError as error:
        if not quiet:
            terminal.bullet("problem", f"profile {home.name} keeps its own Postgres: {error}")
        return False
    if not (may_move if quiet else terminal.confirm(question, yes=may_move)):
        return False
    try:
        with terminal.progress(f"moving profile {home.name}", unit="row", quiet=quiet) as bar:
            tally = move_in(home, bar.advance)
    except MemoryPluginError as error:
        if not quiet:
            terminal.bullet("problem", f"profile {home.name} keeps its own Postgres: {error}")
        return False
    if not quiet:
        moved = terminal.count(tally.new, "row")
        terminal.bullet("ok", f"profile {home.name}: {moved} moved; the old data is kept in {data_folder(home)}")
    return True


def _move_question(home: Path, moving: Moving) -> str:
    """The question before a move, with what would be moved and what becomes one."""
    question = f"   Profile {home.name} has a Postgres of its own with {_held(moving.brought)}."
    for theme in moving.there:
        own = next(each for each in moving.brought if each.theme == theme.theme)
        question += (
            f" The shared database has a theme {theme.theme}, too: its {_held([theme])} and the profile's"
            f" {_held([own])} become one theme."
        )
    return f"{question} Move them into the shared database?"


def _held(themes: Sequence[Theme]) -> str:
    memories, turns = sum(each.memories for each in themes), sum(each.turns for each in themes)
    return f"{terminal.count(memories, 'memory', 'memories')} and {terminal.count(turns, 'turn')}"


def _join(home: Path, *, quiet: bool) -> list[str]:
    """Have a profile take over the database and model of its root home, and say what it had chosen otherwise."""
    joined = profiles.join(home)
    if joined.replaced and not quiet:
        told = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in joined.replaced.items())
        terminal.bullet(
            "note",
            f"profile {home.name} embeds as {profiles.SHARED} do: {told}",
            f"for a model of its own: hermes-pgvector up --own-server --hermes-home {home}",
        )
    return list(joined.changed)


def _name_profiles_left(home: Path, before: Mapping[Path, Path | None]) -> None:
    """Profiles that shared the embedded server go on with it until they are told otherwise."""
    names = [each.name for each in profiles.below(home) if before[each] == data_folder(home)]
    if names:
        terminal.bullet(
            "note",
            f"profiles that stay with the embedded server in {data_folder(home)}: {', '.join(names)}",
            f"to bring them along: hermes-pgvector up --all-profiles --hermes-home {home}",
        )


def _set_up_profile(
    home: Path, host: HostPython | None, before: Path | None, *, may_move: bool, quiet: bool
) -> dict[str, Any]:
    """Give one profile the memory of its root home: settings, plugin folder, provider; each keeps its own theme."""
    has_moved = _offer_move(home, may_move=may_move, quiet=quiet)
    changed = [*_join(home, quiet=quiet), *(["database"] if has_moved else [])]
    settings = load(home).settings
    has_own = profiles.has_own_server(home)
    if not has_own:
        _accept_database(home, quiet=True)
    copied = not has_moved and left_behind.offer(home, before, yes=may_move, quiet=quiet)
    if host is not None and host.sees_package:
        plugin_folder.install(home)
        if settings_file.set_provider(home, PROVIDER_NAME):
            changed.append("memory.provider")
    where = "a Postgres of its own" if has_own else parts.describe_database(home, settings)
    if not quiet:
        theme = parts.profile_theme(home, settings)
        terminal.bullet("ok", f"profile {home.name}: theme {theme}, {where}{'' if changed else ', unchanged'}")
    return {"home": str(home), "changed": changed, "own_server": has_own, "database": where, "copied": copied}


def _say_next(home: Path, host: HostPython | None, code: int) -> None:
    terminal.say()
    where = "" if home == settings_file.default_home().absolute() else f"HERMES_HOME={home} "
    again = terminal.command("up")
    if code:
        terminal.say(f"Some checks failed. Fix them and run this again. For details: {terminal.command('doctor')}")
        return
    if host is not None and not host.sees_package:
        terminal.say(f"The memory is ready, but hermes cannot use it yet: {host_site.shortcoming(host)}.")
        terminal.say(f"When that is put right:           {again}")
        return
    if host is None:
        terminal.say("Ready. hermes-agent is not installed; recall works from the command line.")
        terminal.say(f"When you have installed it:       {again}")
    else:
        is_profile = root_of(home) == settings_file.default_home().absolute() != home
        talk = f"hermes -p {home.name}" if is_profile else f"{where}hermes"
        terminal.say(f"Ready. Talk to your agent:        {talk}")
    terminal.say(f"See what it remembers:            {terminal.command('status')}")
    terminal.say(f'Search it yourself:               {terminal.command("recall")} "what did we decide"')
