"""`grant`: give a machine or a minion a login of its own that sees its themes and nothing else."""

from __future__ import annotations

import argparse
import secrets
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import granting, options
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import terminal
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.admin.logins import Login

NAME = "grant"
HELP = "give a machine its own login that sees only its themes (needs the owner's login)"
GROUP = "run"
EXAMPLES = (
    ("grant laptop --themes research,shared", "reads and writes two themes"),
    ("grant screen --themes 'team-*' --read-only", "reads every theme whose name begins with team-"),
    ("grant gateway --themes support --create", "also begins new themes, which are then its own"),
    ("grant laptop --home 3f2a91c0 --themes research", "takes over the journal of a home that used another login"),
)
PASSWORD_BYTES = 24
REMEDY = "hermes-pgvector grant LOGIN --themes THEMES --admin-dsn OWNER_DSN"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    granting.configure(parser)
    parser.add_argument("login", metavar="LOGIN", help="name of the login; its role is made if there is none")
    parser.add_argument(
        "--themes",
        metavar="A,B",
        help="all it gets: names, or patterns such as team-*; themes it has begun stay its own",
    )
    parser.add_argument("--read-only", action="store_true", help="it recalls; what is said there waits in the journal")
    parser.add_argument("--create", action="store_true", help="it may begin themes that nobody has used")
    parser.add_argument(
        "--home", metavar="ID", action="append", default=[], help="a home whose journal and files it takes over"
    )
    parser.add_argument("--ask-password", action="store_true", help="type a password instead of having one made")
    parser.add_argument("--new-password", action="store_true", help="give a login that exists a new password")


def run(args: argparse.Namespace) -> int:
    """Grant, and show the password once."""
    from hermes_memory_pgvector.admin import logins
    from hermes_memory_pgvector.care import actor
    from hermes_memory_pgvector.store.conninfo import has_role

    if args.read_only and args.create:
        raise ConfigError("--read-only and --create cannot go together: who begins a theme writes to it")
    themes = None
    if args.themes is not None:
        themes = tuple(dict.fromkeys(name for each in args.themes.split(",") if (name := theme_name(each))))
    # A new password or another home changes nothing of what a login may do.
    keeps = themes is None and not args.read_only and not args.create
    wanted = logins.Wanted(args.login, themes, not args.read_only, args.create, tuple(args.home), keeps)
    operator = actor.operator(options.home_of(args))
    with granting.as_owner(args, "make logins", REMEDY, may_create=True) as owner:
        is_new = not has_role(owner, args.login, logins.CONNECT_SECONDS)
        password = _typed(args.login) if args.ask_password else None
        made = secrets.token_urlsafe(PASSWORD_BYTES) if password is None and (is_new or args.new_password) else None
        done = logins.grant(owner, wanted, password=password or made, actor=operator.name, home_id=operator.home_id)
    assert done.login is not None
    if args.json:
        terminal.as_json({**asdict(done.login), "is_new_role": done.is_new_role, "password": made})
        return 0
    terminal.bullet("ok", f"{terminal.one_line(args.login)} {_rights(done.login)} {_themes(done.login)}")
    if args.home:
        terminal.bullet("ok", f"it goes on with {terminal.count(done.rows_of_homes, 'record')} of the home's journals")
    if made is not None:
        terminal.bullet("note", f"password, shown only now: {made}")
        terminal.bullet(
            "note",
            "on that machine, put it into .env of the hermes home as HERMES_PGVECTOR_PASSWORD, and set the login:",
            f"hermes-pgvector config set dsn postgresql://{args.login}@HOST/DATABASE",
        )
    return 0


def _typed(login: str) -> str:
    if not terminal.can_ask():
        raise ConfigError("--ask-password needs a terminal; leave it out, and a password is made and shown")
    typed = terminal.ask_secret(f"   New password for {terminal.one_line(login)}:")
    if not typed or typed != terminal.ask_secret("   The same again:"):
        raise ConfigError("nothing was changed: the password is empty, or the two differ")
    return typed


def _rights(login: Login) -> str:
    if not login.may_write:
        return "reads"
    return "reads, writes and begins themes, and has" if login.may_create else "reads and writes"


def _themes(login: Login) -> str:
    names = [*login.themes, *login.begun]
    return ", ".join(terminal.one_line(name) for name in names) or "no theme yet"
