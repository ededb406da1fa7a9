"""The settings as a form, and writing only those that were changed in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes_memory_pgvector.config.settings import DECLARATIONS, Parsed, Settings, plain
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, load, update
from hermes_memory_pgvector.setup import new_settings
from hermes_memory_pgvector.setup.in_force import in_force
from hermes_memory_pgvector.web.asked import CHANGED, Asked, Document, Refused

ENVIRONMENT = "environment"
MAPS = ("secret_rules",)
"""Settings that no line of text can hold."""
DEFAULTS = Settings()


def settings(asked: Asked) -> Document:
    """Every setting that operators change, with its value and where it comes from."""
    return _form(load(asked.home))


def change_settings(asked: Asked) -> Document:
    """Write what was changed: for each name the value that was shown and the new one; None means the default."""
    wanted = asked.body.get("changes")
    if not isinstance(wanted, Mapping) or not wanted:
        raise Refused("no setting was changed")
    parsed = load(asked.home)
    for name, change in wanted.items():
        if name not in DECLARATIONS or DECLARATIONS[name].secret or not isinstance(change, Mapping):
            raise Refused(f"{name} cannot be changed here; see: hermes-pgvector config set")
        value, source = in_force(parsed.settings, name)
        if source == ENVIRONMENT:
            raise Refused(f"{name} is set in the environment, which wins over config.yaml")
        if not _fits_a_field(parsed.settings, name):
            raise Refused(f"{name} does not fit into a field; change it in config.yaml, under memory.{PROVIDER_NAME}")
        if _text(value) != change.get("from"):
            raise Refused(f"{name} has been changed elsewhere; look at it again", CHANGED)
        if change.get("to") is not None and not isinstance(change.get("to"), str):
            raise Refused(f"{name} expects {DECLARATIONS[name].expects}")
    given: dict[str, Any] = {name: change["to"] for name, change in wanted.items() if change.get("to") is not None}
    # Everything is checked before anything is written.
    new_settings.check(asked.home, given)
    saved = new_settings.save(asked.home, given) if given else []
    for name in wanted:
        if name not in given:
            for layer in ("plugins", "memory"):
                if parsed.settings.set_by.get(name) == f"{layer}.{PROVIDER_NAME}":
                    update(asked.home, (layer, PROVIDER_NAME), {}, remove=(name,))
                    saved.append(name)
    return {**_form(load(asked.home)), "saved": sorted(saved)}


def _form(parsed: Parsed) -> Document:
    return {
        "settings": [
            _field(parsed.settings, name)
            for name, declaration in DECLARATIONS.items()
            if not declaration.secret and (not declaration.is_rare or parsed.settings.is_set(name))
        ],
        "problems": [*parsed.problems, *parsed.troubles],
    }


def _field(settings: Settings, name: str) -> Document:
    declaration = DECLARATIONS[name]
    value, source = in_force(settings, name)
    default = plain(getattr(DEFAULTS, name))
    return {
        "name": name,
        "help": declaration.help,
        "expects": declaration.expects,
        "choices": ["true", "false"] if isinstance(default, bool) else list(declaration.choices),
        "value": _text(value),
        "default": _text(default),
        "from": source,
        "fixed": _why_fixed(settings, name, source),
    }


def _why_fixed(settings: Settings, name: str, source: str) -> str:
    """Why a setting cannot be changed here; empty when it can."""
    if source == ENVIRONMENT:
        return "Set in the environment, which wins."
    return "" if _fits_a_field(settings, name) else f"Change it in config.yaml, under memory.{PROVIDER_NAME}."


def _fits_a_field(settings: Settings, name: str) -> bool:
    """Whether a list or a map means the same after it was a line of text: a theme may have a comma in its name."""
    value = getattr(settings, name)
    if name in MAPS or not isinstance(value, tuple):
        return name not in MAPS
    try:
        return bool(DECLARATIONS[name].parse(_text(plain(value))) == value)
    except ValueError:
        return False


def _text(value: Any) -> str:
    """A value as people type it."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items())
    return "" if value is None else str(value)
