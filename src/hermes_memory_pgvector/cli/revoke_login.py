"""`revoke-login`: take a login's themes and rights away."""

from __future__ import annotations

import argparse

from hermes_memory_pgvector.cli import granting, options
from hermes_memory_pgvector.setup import terminal

NAME = "revoke-login"
HELP = "take all themes and rights from a login that was granted some (needs the owner's login)"
GROUP = "run"
EXAMPLES = (("revoke-login laptop", "that machine sees nothing any more; its memories stay"),)
REMEDY = "hermes-pgvector revoke-login LOGIN --admin-dsn OWNER_DSN"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    granting.configure(parser)
    parser.add_argument("login", metavar="LOGIN", help="a login that `grants` lists")


def run(args: argparse.Namespace) -> int:
    """Revoke."""
    from hermes_memory_pgvector.admin import logins
    from hermes_memory_pgvector.care import actor

    operator = actor.operator(options.home_of(args))
    with granting.as_owner(args, "take rights from logins", REMEDY) as owner:
        done = logins.revoke(owner, args.login, actor=operator.name, home_id=operator.home_id)
    if args.json:
        terminal.as_json({"login": args.login, "revoked": True, "notices": done.notices})
        return 0
    terminal.bullet("ok", f"{terminal.one_line(args.login)} sees nothing any more; what it wrote stays")
    for notice in done.notices:
        terminal.bullet("note", notice)
    return 0
