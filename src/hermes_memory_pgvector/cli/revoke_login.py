"""`revoke-login`: take a login's themes and rights away."""

from __future__ import annotations

import argparse

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.setup import database, terminal

NAME = "revoke-login"
HELP = "take all themes and rights from a login that was granted some (needs the owner's login)"
GROUP = "run"
EXAMPLES = (("revoke-login laptop", "that machine sees nothing any more; its memories stay"),)
REMEDY = "hermes-pgvector revoke-login LOGIN --admin-dsn OWNER_DSN"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    options.add_admin_dsn(parser)
    parser.add_argument("login", metavar="LOGIN", help="a login that `grants` lists")


def run(args: argparse.Namespace) -> int:
    """Revoke."""
    from hermes_memory_pgvector.admin import logins
    from hermes_memory_pgvector.care import actor

    home = options.home_of(args)
    admin = database.admin_dsn(home, load(home).settings, args.admin_dsn, may_create=False)
    operator = actor.operator(home)
    with database.explaining_denial(admin, "take rights from logins", REMEDY):
        done = logins.revoke(admin, args.login, actor=operator.name, home_id=operator.home_id)
    if args.json:
        terminal.as_json({"login": args.login, "revoked": True, "notices": done.notices})
        return 0
    terminal.bullet("ok", f"{terminal.one_line(args.login)} sees nothing any more; what it wrote stays")
    for notice in done.notices:
        terminal.bullet("note", notice)
    return 0
