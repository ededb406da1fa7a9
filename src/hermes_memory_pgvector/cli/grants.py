"""`grants`: who may see what."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import granting
from hermes_memory_pgvector.setup import terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.admin.logins import Login

NAME = "grants"
HELP = "list the logins that see only some themes (needs the owner's login)"
GROUP = "run"
EXAMPLES = (("grants", "who may see what"),)
REMEDY = "hermes-pgvector grants --admin-dsn OWNER_DSN"
configure = granting.configure


def run(args: argparse.Namespace) -> int:
    """List them."""
    from hermes_memory_pgvector.admin import logins

    with granting.as_owner(args, "look at logins", REMEDY) as owner:
        found = logins.listed(owner)
    if args.json:
        terminal.as_json({"logins": [asdict(each) for each in found]})
        return 0
    if not found:
        terminal.wrap(["No login was granted single themes: all agents use the fleet's own, which sees them all."], 0)
        return 0
    rows = [(each.login, rights(each), ", ".join((*each.themes, *each.begun)) or "none yet") for each in found]
    terminal.table(("login", "may", "themes"), rows)
    for each in found:
        if not each.exists:
            terminal.bullet("warning", f"{terminal.one_line(each.login)} cannot log in: there is no such role")
    return 0


def rights(login: Login) -> str:
    """What a login may do in its themes."""
    if not login.may_write:
        return "read"
    return "read, write, begin themes" if login.may_create else "read, write"
