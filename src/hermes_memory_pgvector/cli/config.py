"""`config`: show the settings and where each comes from, or change them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings import DECLARATIONS, Settings
from hermes_memory_pgvector.config.settings_file import (
    ENVIRONMENT_PREFIX,
    PROVIDER_NAME,
    load,
    update,
)
from hermes_memory_pgvector.errors import ConfigError, DatabaseError, UsageError
from hermes_memory_pgvector.ops import new_settings, parts, password
from hermes_memory_pgvector.ops.setup.in_force import in_force
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal import program as tree
from hermes_memory_pgvector.terminal import sink

NAME = "config"
HELP = "show the settings and where each comes from, or change them"
GROUP = "set up"
EXAMPLES = (
    ("config show --changed", "what differs from the defaults, and where it is set"),
    ("config set prefetch_limit 8", "give the model up to eight memories per turn"),
    ("config unset embed_url", "back to the local model"),
)

PASSWORD_VARIABLE = "PGPASSWORD"  # noqa: S105
EMPTY = {"dsn": "(the embedded server)", "embed_url": "(the local model)", "allowed_themes": "(any)"}
"""What it means that a setting is empty."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    actions = tree.actions_of(parser, "config_action")
    show = tree.add_action(
        actions,
        "show",
        "show all settings",
        options.add_common,
        example=("config show --all", "every setting there is"),
    )
    show.add_argument("--changed", action="store_true", help="only those that are not defaults")
    show.add_argument("--all", action="store_true", dest="with_rare", help="also settings that nobody needs to change")
    get = tree.add_action(
        actions,
        "get",
        "show the value in force of one setting",
        options.add_common,
        example=("config get embed_dim", "as the model has it, unless you have set it"),
    )
    change = tree.add_action(
        actions,
        "set",
        "check a value and write it to config.yaml",
        options.add_common,
        example=(
            "config set dsn postgresql://hermes@db.example.com/memory",
            "asks for the password and keeps it in .env",
        ),
    )
    unset = tree.add_action(
        actions,
        "unset",
        "remove one value from config.yaml",
        options.add_common,
        example=("config unset embed_url", "back to the local model"),
    )
    for each in (get, change, unset):
        each.add_argument("name", metavar="NAME", help="name of the setting; see: hermes-pgvector config show")
    change.add_argument("value", metavar="VALUE", help="its new value")
    change.add_argument("--force", action="store_true", help="write a dsn that does not answer now")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    if args.config_action is None:
        args.config_action_parser.print_help()
        return 2
    home = options.home_of(args)
    if args.config_action == "show":
        return _show(home, only_changed=args.changed, with_rare=args.with_rare, json=args.json)
    if args.name not in DECLARATIONS:
        meant = tree.did_you_mean(args.name, DECLARATIONS)
        raise UsageError(f"there is no setting {args.name!r}{meant or '; see: hermes-pgvector config show --all'}")
    if args.config_action == "get":
        return _get(home, args.name, json=args.json)
    if args.config_action == "set":
        return _set(home, args.name, args.value, force=args.force, json=args.json)
    return _unset(home, args.name, json=args.json)


def _show(home: Path, *, only_changed: bool, with_rare: bool, json: bool) -> int:
    parsed = load(home)
    settings = parsed.settings
    names = [
        name
        for name, declaration in DECLARATIONS.items()
        if settings.is_set(name) or (not only_changed and (with_rare or not declaration.is_rare))
    ]
    if json:
        values = {name: _as_json(settings, name) for name in names}
        terminal.as_json(
            {
                "home": str(home),
                "settings": values,
                "problems": list(parsed.problems),
                "troubles": list(parsed.troubles),
                "held": settings.hold or None,
            }
        )
    else:
        terminal.say(f"Settings of {home}")
        terminal.table(
            ("setting", "value", "from"),
            [_row(settings, name) for name in names],
        )
        for problem in parsed.problems:
            terminal.bullet("problem", problem)
        for trouble in parsed.troubles:
            terminal.bullet("problem", trouble, "fix it")
        if settings.hold:
            terminal.bullet("problem", f"no database is used: {settings.hold}")
    return 1 if parsed.problems or parsed.troubles or settings.hold else 0


def _get(home: Path, name: str, *, json: bool) -> int:
    settings = load(home).settings
    if json:
        terminal.as_json({"name": name, **_as_json(settings, name)})
    else:
        value, source = in_force(settings, name)
        terminal.say(_text(name, value))
        if sink.is_terminal():
            terminal.say(terminal.styled(f"from {source}", "faint"))
    return 0


def _set(home: Path, name: str, value: str, *, force: bool, json: bool) -> int:
    try:
        DECLARATIONS[name].parse(value)
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"{name} expects {DECLARATIONS[name].expects}; nothing was changed") from None
    if name == "dsn" and not value:
        changed = new_settings.unset_dsn(home)
    elif name == "dsn":
        changed = new_settings.save_dsn(home, _checked_dsn(value, force=force))
    else:
        changed = bool(new_settings.save(home, {name: value}))
    return _say_change(home, name, changed=changed, json=json)


def _checked_dsn(dsn: str, *, force: bool) -> str:
    """A connection string that leads somewhere, with the password that was asked for."""
    problem = parts.obstacle(Settings(dsn=dsn))
    if problem:
        raise ConfigError(f"{problem}; nothing was changed")
    if force or "${" in dsn:
        return dsn
    try:
        complete = password.complete(dsn)
    except DatabaseError as error:
        raise type(error)(f"{error}. Nothing was changed; to write it all the same, add --force") from None
    if complete == dsn and PASSWORD_VARIABLE in os.environ:
        terminal.bullet(
            "warning",
            f"the password comes from {PASSWORD_VARIABLE}, which agents may not have",
            "put it into ~/.pgpass, where they find it too",
        )
    return complete


def _unset(home: Path, name: str, *, json: bool) -> int:
    if name == "dsn":
        return _say_change(home, name, changed=new_settings.unset_dsn(home), json=json)
    before = load(home).settings
    layers = [layer for layer in ("plugins", "memory") if before.set_by.get(name) == f"{layer}.{PROVIDER_NAME}"]
    for layer in layers:
        update(home, (layer, PROVIDER_NAME), {}, remove=(name,))
    return _say_change(home, name, changed=bool(layers), json=json)


def _say_change(home: Path, name: str, *, changed: bool, json: bool) -> int:
    settings = load(home).settings
    value, layer = in_force(settings, name)
    if json:
        terminal.as_json({"name": name, "changed": changed, "value": value, "from": layer})
        return 0
    terminal.bullet("ok", f"{name} = {_text(name, value)} ({layer}){'' if changed else ', unchanged'}")
    if layer == "environment":
        terminal.bullet("warning", f"the environment variable {ENVIRONMENT_PREFIX}{name.upper()} overrides config.yaml")
    return 0


def _as_json(settings: Settings, name: str) -> dict[str, Any]:
    value, source = in_force(settings, name)
    return {"value": value, "from": source}


def _row(settings: Settings, name: str) -> tuple[Any, ...]:
    value, source = in_force(settings, name)
    if source == "default":
        return name, _text(name, value), terminal.styled(source, "faint")
    return terminal.styled(name, "strong"), _text(name, value), source


def _text(name: str, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return EMPTY.get(name, "(none)")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={word}" for key, word in value.items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
