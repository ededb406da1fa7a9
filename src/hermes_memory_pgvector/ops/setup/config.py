"""`config`: the settings in force and where each comes from; a value is tried before it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hermes_memory_pgvector.config.settings import DECLARATIONS, GROUPS, Parsed, Settings, shown
from hermes_memory_pgvector.config.settings_file import (
    ENVIRONMENT,
    ENVIRONMENT_PREFIX,
    PROVIDER_NAME,
    has_section,
    load,
    secret,
    update,
)
from hermes_memory_pgvector.errors import ConfigError, DatabaseError, EmbeddingUnavailable, UsageError
from hermes_memory_pgvector.ops import new_settings, parts, password
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, Raw, command
from hermes_memory_pgvector.terminal.program import did_you_mean

EMPTY: Final = {"dsn": "(the embedded server)", "embed_url": "(the local model)", "allowed_themes": "(any)"}
"""What it means that a setting is empty."""


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One setting with its value in force."""

    group: str = column("about")
    name: str = column("setting")
    value: str = column("value")
    source: str = column("from")


@dataclass(frozen=True, slots=True)
class SettingsFacts(Facts):
    """The settings in force."""

    home: str = column("settings of")
    settings: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    held: str | None = None
    lines: tuple[SettingLine, ...] = aside(())
    notes: tuple[Note, ...] = aside(())

    @property
    def exit_code(self) -> int:
        """1 where a value or a file is wrong."""
        return int(bool(self.problems or self.troubles or self.held))


@dataclass(frozen=True, slots=True)
class SettingFacts(Raw):
    """One setting, for a script."""

    name: str
    value: Any
    source: str

    def as_text(self) -> str:
        """The value alone."""
        return f"{_told(self.name, self.value)}\n"


@dataclass(frozen=True, slots=True)
class ChangedSetting(Facts):
    """A setting that was written or taken out."""

    name: str
    changed: bool
    value: Any
    source: str
    notes: tuple[Note, ...] = aside(())


def config(memory: Memory, *, what: str, name: str | None, value: str | None, changed: bool, force: bool) -> Facts:
    """Show all settings or one, or change one."""
    home = memory.home
    if what == "show":
        return _shown(home, memory.parsed, only_changed=changed)
    if name is None or (what == "set" and value is None):
        raise UsageError(f"config {what} needs {'the name of a setting' if name is None else 'a value'}")
    if name not in DECLARATIONS:
        meant = did_you_mean(name, DECLARATIONS)
        raise UsageError(f"there is no setting {name!r}{meant or '; see: hermes-pgvector config show'}")
    if what == "get":
        return SettingFacts(name, shown(memory.parsed.settings, name), _source(memory.parsed.settings, name))
    if what == "set":
        return _set(home, name, str(value), force=force)
    return _unset(home, name)


def _shown(home: Path, parsed: Parsed, *, only_changed: bool) -> SettingsFacts:
    settings = parsed.settings
    names = [
        name
        for name, declaration in DECLARATIONS.items()
        if settings.is_set(name) or not (only_changed or declaration.is_rare)
    ]
    values = {name: {"value": shown(settings, name), "source": _source(settings, name)} for name in names}
    notes = [Note("problem", each) for each in (*parsed.problems, *parsed.troubles)]
    if settings.hold:
        notes.append(Note("problem", f"no database is used: {settings.hold}"))
    if not names:
        notes.append(Note("note", "every setting has its default", then=command("config", "show")))
    lines = tuple(_lines(values))
    return SettingsFacts(
        str(home), values, tuple(parsed.problems), tuple(parsed.troubles), settings.hold or None, lines, tuple(notes)
    )


def _lines(values: Mapping[str, Mapping[str, Any]]) -> Iterator[SettingLine]:
    """One line for each, below what it is about."""
    for group in GROUPS:
        head = group
        for name, given in values.items():
            if DECLARATIONS[name].group == group:
                yield SettingLine(head, name, _told(name, given["value"]), given["source"])
                head = " "


def _set(home: Path, name: str, value: str, *, force: bool) -> ChangedSetting:
    try:
        DECLARATIONS[name].parse(value)
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"{name} expects {DECLARATIONS[name].expects}; nothing was changed") from None
    if name == "dsn" and not value:
        return _changed(home, name, new_settings.unset_dsn(home))
    if name == "dsn":
        return _changed(home, name, new_settings.save_dsn(home, _checked_dsn(value, force=force)))
    new_settings.check(home, {name: value})
    notes = _tried(home, name, value, force=force) if name.startswith("embed_") and "${" not in value else []
    return _changed(home, name, bool(new_settings.save(home, {name: value})), notes)


def _unset(home: Path, name: str) -> ChangedSetting:
    if name == "dsn":
        return _changed(home, name, new_settings.unset_dsn(home))
    before = load(home).settings
    where = before.set_by.get(name)
    # What stands there may be overridden, wrong, or the default.
    layers = [
        layer for layer in ("plugins", "memory")
        if where == f"{layer}.{PROVIDER_NAME}"
        or (where in (None, ENVIRONMENT) and has_section(home, (layer, PROVIDER_NAME, name)))
    ]  # fmt: skip
    for layer in layers:
        update(home, (layer, PROVIDER_NAME), {}, remove=(name,))
    return _changed(home, name, bool(layers))


def _checked_dsn(dsn: str, *, force: bool) -> str:
    """A connection string that leads somewhere, with the password that was asked for."""
    problem = parts.obstacle(Settings(dsn=dsn))
    if problem:
        raise ConfigError(f"{problem}; nothing was changed")
    if force or "${" in dsn:
        return dsn
    try:
        return password.complete(dsn)
    except DatabaseError as error:
        raise type(error)(f"{error}. Nothing was changed; to write it all the same, add --force") from None


def _tried(home: Path, name: str, value: str, *, force: bool) -> list[Note]:
    """What `doctor` would say of the embedder and the database's vectors with this value."""
    from hermes_memory_pgvector.ops.setup import checks

    found = list(checks.of_embedder(home, replace(load(home).settings, **{name: DECLARATIONS[name].parse(value)})))
    if name == "embed_url" and value and not force:
        for each in found:
            if each.is_unreachable:
                raise EmbeddingUnavailable(
                    f"{each.text}. Nothing was changed: as long as it does not answer, new rows would wait for vectors "
                    "and recall would find words alone; to write it all the same, add --force"
                )
    return [Note(each.level, f"{each.name}: {each.text}", each.hint) for each in found]


def _changed(home: Path, name: str, changed: bool, notes: Iterable[Note] = ()) -> ChangedSetting:
    settings, before = load(home).settings, tuple(notes)
    variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
    # A variable that says the default is in force, too.
    is_pinned = not settings.is_set(name) and secret(home, variable) is not None
    value, source = shown(settings, name), ENVIRONMENT if is_pinned else _source(settings, name)
    told = [Note("ok", f"{name} = {_told(name, value)} ({source}){'' if changed else ', unchanged'}"), *before]
    if source == ENVIRONMENT:
        told.append(Note("warning", f"the environment variable {variable} overrides config.yaml"))
    return ChangedSetting(name, changed, value, source, tuple(told))


def _source(settings: Settings, name: str) -> str:
    return settings.set_by.get(name, "default")


def _told(name: str, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return EMPTY.get(name, "(none)")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={word}" for key, word in value.items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


CONFIG: Final = Operation(
    "config",
    "show the settings and where each comes from, or change them",
    (
        Option("what", "show all (default), get one, set it, or unset it", default="show",
               choices=("show", "get", "set", "unset")),
        Option("name", "the setting", metavar="NAME"),
        Option("value", "of set: its new value", metavar="VALUE"),
        Option("--changed", "of show: only those that are not defaults", is_flag=True),
        Option("--force", "of set: write a dsn or an embed_url that does not answer now", is_flag=True),
    ),
    config,
    (
        ("config show --changed", "what differs from the defaults, and where it is set"),
        ("config set prefetch_limit 8", "give the model up to eight memories per turn"),
        ("config set dsn postgresql://hermes@db.example.com/memory", "asks for the password and keeps it in .env"),
        ("config unset embed_url", "back to the local model"),
    ),
    group="set up",
    on_page=False,
)  # fmt: skip
