"""`config`: show the settings and where each comes from, or change them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings import DECLARATIONS, Settings, shown
from hermes_memory_pgvector.config.settings_file import (
    ACCEPT_COMMAND,
    ENVIRONMENT_PREFIX,
    PROVIDER_NAME,
    accept,
    load,
    update,
)
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.setup import new_settings, parts, terminal
from hermes_memory_pgvector.setup.journal_database import accept_configured

NAME = "config"
HELP = "show the settings and where each comes from, or change them"
GROUP = "set up"
EXAMPLES = (
    ("config show --changed", "what differs from the defaults, and where it is set"),
    ("config set prefetch_limit 8", "give the model up to eight memories per turn"),
    ("config unset embed_url", "back to the local model"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    parser.set_defaults(config_parser=parser)
    actions = parser.add_subparsers(dest="config_action", metavar="ACTION")
    show = actions.add_parser("show", help="show all settings")
    show.add_argument("--changed", action="store_true", help="only those that are not defaults")
    show.add_argument("--all", action="store_true", dest="with_rare", help="also settings that nobody needs to change")
    options.add_common(show)
    get = actions.add_parser("get", help="show one value")
    get.add_argument("name", metavar="NAME")
    options.add_common(get)
    change = actions.add_parser("set", help="write one value to config.yaml")
    change.add_argument("name", metavar="NAME")
    change.add_argument("value", metavar="VALUE")
    options.add_common(change)
    unset = actions.add_parser("unset", help="remove one value from config.yaml")
    unset.add_argument("name", metavar="NAME")
    options.add_common(unset)
    taken = actions.add_parser("accept", help="accept config.yaml and .env as they are, although settings are missing")
    options.add_common(taken)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    if args.config_action is None:
        args.config_parser.print_help()
        return 2
    home = options.home_of(args)
    if args.config_action == "show":
        return _show(home, only_changed=args.changed, with_rare=args.with_rare, json=args.json)
    if args.config_action == "accept":
        return _accept(home, json=args.json)
    if args.name not in DECLARATIONS:
        terminal.complain(f"hermes-pgvector: there is no setting {args.name!r}; see: hermes-pgvector config show")
        return 2
    if args.config_action == "get":
        return _get(home, args.name, json=args.json)
    if args.config_action == "set":
        return _set(home, args.name, args.value, json=args.json)
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
        values = {name: {"value": shown(settings, name), "from": _layer(settings, name)} for name in names}
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
            [(name, _text(shown(settings, name)), _layer(settings, name)) for name in names],
        )
        for problem in parsed.problems:
            terminal.bullet("problem", problem)
        for trouble in parsed.troubles:
            terminal.bullet("problem", trouble, f"fix it, or accept it as it is: {ACCEPT_COMMAND}")
        if settings.hold:
            terminal.bullet("problem", f"no database is used: {settings.hold}")
    return 1 if parsed.problems or parsed.troubles or settings.hold else 0


def _get(home: Path, name: str, *, json: bool) -> int:
    settings = load(home).settings
    if json:
        terminal.as_json({"name": name, "value": shown(settings, name), "from": _layer(settings, name)})
    else:
        terminal.say(_text(shown(settings, name)))
    return 0


def _set(home: Path, name: str, value: str, *, json: bool) -> int:
    try:
        DECLARATIONS[name].parse(value)
    except (ValueError, TypeError, OverflowError):
        terminal.complain(f"hermes-pgvector: {name} expects {DECLARATIONS[name].expects}; nothing was changed")
        return 2
    if name == "dsn" and value:
        problem = parts.obstacle(Settings(dsn=value))
        if problem:
            raise ConfigError(f"{problem}; nothing was changed")
        changed = new_settings.save_dsn(home, value)
    else:
        changed = bool(new_settings.save(home, {name: value}))
        if name == "dsn":
            accept_configured(home)
    return _say_change(home, name, changed=changed, json=json)


def _accept(home: Path, *, json: bool) -> int:
    parsed = accept(home)
    if json:
        terminal.as_json({"home": str(home), "accepted": True, "set": sorted(parsed.settings.set_by)})
    else:
        chosen = terminal.count(len(parsed.settings.set_by), "setting")
        terminal.bullet("ok", f"{home / 'config.yaml'} accepted as it is: {chosen} not at the default")
    return 0


def _unset(home: Path, name: str, *, json: bool) -> int:
    before = load(home).settings
    layers = [layer for layer in ("plugins", "memory") if before.set_by.get(name) == f"{layer}.{PROVIDER_NAME}"]
    for layer in layers:
        update(home, (layer, PROVIDER_NAME), {}, remove=(name,))
    if name == "dsn" and layers:
        accept_configured(home)
    return _say_change(home, name, changed=bool(layers), json=json)


def _say_change(home: Path, name: str, *, changed: bool, json: bool) -> int:
    settings = load(home).settings
    layer = _layer(settings, name)
    if json:
        terminal.as_json({"name": name, "changed": changed, "value": shown(settings, name), "from": layer})
        return 0
    terminal.bullet("ok", f"{name} = {_text(shown(settings, name))} ({layer}){'' if changed else ', unchanged'}")
    if layer == "environment":
        terminal.bullet("warning", f"the environment variable {ENVIRONMENT_PREFIX}{name.upper()} overrides config.yaml")
    return 0


def _layer(settings: Settings, name: str) -> str:
    return settings.set_by.get(name, "default")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "(none)"
    if isinstance(value, dict):
        return ", ".join(f"{key}={name}" for key, name in value.items()) or "(none)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "(none)" if value is None or value == "" else str(value)
