"""Reads the settings of a home from config.yaml and the environment, and writes them back.

Layers, the later winning: `plugins.pgvector` (read for compatibility) < `memory.pgvector` (where the host's wizard and
dashboard look) < environment `HERMES_PGVECTOR_<NAME>` < values given by an embedding program.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config import last_good
from hermes_memory_pgvector.config.settings import (
    DECLARATIONS,
    DEFAULTS,
    REFERENCE,
    Parsed,
    accepts,
    is_shown,
    parse,
    plain,
    unknown_names,
    without_password,
)
from hermes_memory_pgvector.config.sources import ENVIRONMENT, Configuration, Document, Reading, parse_yaml
from hermes_memory_pgvector.errors import ConfigError

ENVIRONMENT_PREFIX = "HERMES_PGVECTOR_"
PROVIDER_NAME = "pgvector"
SECTIONS = (f"plugins.{PROVIDER_NAME}", f"memory.{PROVIDER_NAME}")
PATIENCE_SECONDS = 1.5
"""How long a command waits for a file that is being rewritten."""
ACCEPT_COMMAND = "hermes-pgvector config accept"
MOST_TRIES = 20


_ABSENT = object()


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - as a string
    except OSError:
        return os.sep  # the folder was deleted


_FIRST_FOLDER = _working_folder()
_configurations: dict[Path, Configuration] = {}
_guard = threading.Lock()
_writing = threading.Lock()


def default_home() -> Path:
    """The hermes home of this process: $HERMES_HOME, else ~/.hermes."""
    given = os.environ.get("HERMES_HOME", "").strip()
    try:
        return absolute(given or Path.home() / ".hermes")
    except RuntimeError:
        # A user without HOME and without a name: like the host, use a folder below the working directory.
        return absolute(given or ".hermes")


def absolute(home: str | Path) -> Path:
    """A home's path, whatever the working directory becomes: another one must not be taken for an empty home."""
    with contextlib.suppress(RuntimeError):
        home = Path(home).expanduser()
    return Path(_FIRST_FOLDER, home)


def data_folder(home: Path) -> Path:
    """The folder for this plugin's own files: journal, embedded server, identity."""
    return home / PROVIDER_NAME


def load(home: Path, overrides: Mapping[str, Any] | None = None, *, is_hasty: bool = False) -> Parsed:
    """The current settings of a home, and a list of what is wrong with them; never raises.

    Waits for a file that is just being rewritten, unless the caller is hasty and earlier settings are known.
    """
    reading = _of(home).read(None if is_hasty else PATIENCE_SECONDS)
    environment = {**_known(reading.variables), **os.environ}
    layers: dict[str, Mapping[str, Any]] = {
        name: {key: _resolve(value, environment) for key, value in section.items()}
        for name, section in reading.sections.items()
    }
    layers[ENVIRONMENT] = _from_environment(environment)
    layers["program"] = dict(overrides or {})
    kept = _of(home).kept()[0]
    parsed = parse(layers, kept.sections if kept is not None else None)
    unknown = [
        f"{name} ({layer}): there is no such setting"
        for layer in ("memory.pgvector", "program")
        for name in unknown_names(layers.get(layer, {}))
    ]
    settings = dataclasses.replace(parsed.settings, hold=_hold(home, reading, layers))
    return Parsed(settings, (*parsed.problems, *unknown), reading.troubles)


def secret(home: Path, name: str) -> str | None:
    """The value of an environment variable, which may be set only in the home's .env file."""
    if not name:
        return None
    return os.environ.get(name) or dotenv(home).get(name)


def sources(home: Path) -> tuple[Path, ...]:
    """The files that the settings of a home come from."""
    return home / "config.yaml", home / ".env", data_folder(home) / last_good.FILE_NAME


def keep(home: Path) -> None:
    """Save the current settings for processes that find the files broken: without secrets, and only when they changed.

    Not for hooks: it writes.
    """
    configuration, folder = _of(home), data_folder(home)
    reading = configuration.read(None)
    if reading.troubles or reading.document is None or not folder.is_dir():
        return
    kept = configuration.kept()[0]
    if kept is None and reading.document.is_missing:
        return
    good = _good(reading, reading.document, configuration.variables_digest, kept)
    if kept != good:
        last_good.keep(folder, good)


def accept(home: Path) -> Parsed:
    """Accept the files as they are now, although settings are missing; ConfigError when they cannot be read."""
    configuration, folder = _of(home), data_folder(home)
    for watched in (configuration.document, configuration.variables):
        problem = watched.accept()
        if problem:
            raise ConfigError(f"{problem}; fix it first, nothing was accepted")
    reading = configuration.read(None)
    if folder.is_dir() and reading.document is not None:
        last_good.keep(folder, _good(reading, reading.document, configuration.variables_digest, None))
    return load(home)


def save(home: Path, values: Mapping[str, Any]) -> list[str]:
    """Write settings that differ from the current ones to `memory.pgvector`; return the names that changed.

    A value equal to the current one is not written, so saving one field never pins another to its default.
    """
    current = load(home).settings
    changes: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in values.items():
        declaration = DECLARATIONS.get(name)
        if declaration is None:
            continue
        if is_shown(current, name, value):
            continue
        try:
            parsed = DEFAULTS[name] if value is None else declaration.parse(value)
        except (ValueError, TypeError, OverflowError):
            problems.append(f"{name}: expects {declaration.expects}")
            continue
        if parsed != getattr(current, name):
            changes[name] = plain(parsed)
    if problems:
        raise ConfigError("; ".join(problems))
    if changes:
        update(home, ("memory", PROVIDER_NAME), changes)
    return sorted(changes)


def set_provider(home: Path, name: str) -> bool:
    """Make `name` the host's memory provider; False when it already was."""
    if current_provider(home) == name:
        return False
    update(home, ("memory",), {"provider": name})
    return True


def has_section(home: Path, names: tuple[str, ...]) -> bool:
    """Whether config.yaml has this key, however deep."""
    return section(home, names, _ABSENT) is not _ABSENT


def section(home: Path, names: tuple[str, ...], default: Any = None) -> Any:
    """What config.yaml holds under this key, however deep; the default when it is not there or cannot be read."""
    seen = files.look(home / "config.yaml")
    try:
        node: Any = parse_yaml(seen.data)
    except ConfigError:
        return default
    for name in names:
        if not isinstance(node, Mapping) or name not in node:
            return default
        node = node[name]
    return node


def current_provider(home: Path) -> str:
    """The host's memory provider according to config.yaml."""
    path = home / "config.yaml"
    seen = files.look(path)
    if seen.problem:
        raise ConfigError(f"{path} {seen.problem}")
    try:
        memory = parse_yaml(seen.data).get("memory")
    except ConfigError as error:
        raise ConfigError(f"{path} {error}") from None
    return str(memory.get("provider") or "") if isinstance(memory, Mapping) else ""


def update(home: Path, section: tuple[str, ...], changes: Mapping[str, Any], *, remove: Collection[str] = ()) -> None:
    """Change keys of one section of config.yaml, keeping comments, order and everything else; atomic.

    Another program may write the file at the same time: we then read it again and keep its change.
    """
    path = home / "config.yaml"
    _refuse_loss(home)
    with _writing:
        for _ in range(MOST_TRIES):
            seen = files.look(path)
            if seen.problem:
                raise ConfigError(f"{path} {seen.problem}; nothing was changed")
            if seen.is_steady:
                text = _changed(path, seen.data, section, changes, remove)
                if _replace(path, text, expected=seen.signature):
                    break
        else:
            raise ConfigError(f"{path} keeps being rewritten by another program; nothing was changed")
    configuration = _of(home)
    seen = files.look(path)
    if seen.data == text.encode():
        configuration.document.believe(configuration.interpret(seen.data), seen.signature)
        keep(home)


def _refuse_loss(home: Path) -> None:
    """Writing to a file that has lost its settings would make the loss look intended."""
    for trouble in load(home).troubles:
        raise ConfigError(f"{trouble}; nothing was changed. Fix it, or accept it as it is: {ACCEPT_COMMAND}")


def _changed(
    path: Path, data: bytes, section: tuple[str, ...], changes: Mapping[str, Any], remove: Collection[str]
) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    round_trip = YAML()
    round_trip.preserve_quotes = True
    round_trip.width = 4096
    try:
        document = round_trip.load(data.decode("utf-8-sig"))
    except (YAMLError, ValueError) as error:
        raise ConfigError(f"{path} is not valid YAML; nothing was changed") from error
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} does not hold a mapping; nothing was changed")
    node: dict[str, Any] = document
    for name in section:
        if not isinstance(node.get(name), dict):
            if node.get(name) not in (None, ""):
                raise ConfigError(f"{'.'.join(section)} in {path} is not a mapping; nothing was changed")
            node[name] = {}
        node = node[name]
    node.update(changes)
    for name in remove:
        node.pop(name, None)
    buffer = io.StringIO()
    round_trip.dump(document, buffer)
    return buffer.getvalue()


def dotenv(home: Path) -> dict[str, str]:
    """The variables of the home's .env file; the host loads them for its own processes, but not for ours."""
    return _known(_of(home).read(None).variables)


def has_dsn_variable(home: Path) -> bool:
    """Whether the current connection string is the one that the host's form has put into .env."""
    name = f"{ENVIRONMENT_PREFIX}DSN"
    given = dotenv(home).get(name)
    return bool(given) and os.environ.get(name, given) == given


def _of(home: Path) -> Configuration:
    with _guard:
        found = _configurations.get(home)
        if found is None:
            found = _configurations[home] = Configuration(home, data_folder(home), SECTIONS, _used_variables)
        return found


def _used_variables(sections: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """The variables that settings use."""
    named = {ENVIRONMENT_PREFIX + name.upper() for name in DECLARATIONS}
    for section in sections.values():
        named.update(name for value in section.values() if isinstance(value, str) for name in REFERENCE.findall(value))
    return frozenset(named)


def _hold(home: Path, reading: Reading, layers: Mapping[str, Mapping[str, Any]]) -> str:
    """Why we do not know which database is meant; empty when we do."""
    if not reading.is_known:
        return f"{reading.troubles[0]}, and no earlier settings are known"
    deciding = [layer for layer in layers if "dsn" in layers[layer]]
    if not deciding:
        return ""
    layer = deciding[-1]
    value = layers[layer]["dsn"]
    trouble = f"; {reading.troubles[0]}" if reading.troubles else ""
    is_own = layer == ENVIRONMENT and bool(os.environ.get(f"{ENVIRONMENT_PREFIX}DSN"))
    if f"{layer}.dsn" in reading.withheld and not is_own:
        return f"the last good dsn is known only without its password{trouble}"
    if not accepts("dsn", value):
        return f"dsn ({layer}) is not text"
    dsn = str(value)
    unset = sorted(set(REFERENCE.findall(dsn)))
    if unset and layer != "program":
        return f"dsn refers to {', '.join(unset)}, which is neither in the environment nor in {home / '.env'}{trouble}"
    return ""


def _good(
    reading: Reading, document: Document, variables_digest: str, before: last_good.LastGood | None
) -> last_good.LastGood:
    """The part of a configuration that may be saved; a wrong value does not replace a good one."""
    withheld: set[str] = set()
    environment = {**_known(reading.variables), **os.environ}

    def harmless(layer: str, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        show = without_password if name == "dsn" else DECLARATIONS[name].show
        shown = value if show is None else show(value)
        if shown != value:
            withheld.add(f"{layer}.{name}")
        return shown

    def good(layer: str, name: str, value: Any) -> Any:
        known = {} if before is None else before.sections.get(layer, {})
        return value if name not in known or accepts(name, _resolve(value, environment)) else known[name]

    sections = {
        layer: {
            name: harmless(layer, name, good(layer, name, value))
            for name, value in section.items()
            if name in DECLARATIONS
        }
        for layer, section in reading.sections.items()
    }
    names = {ENVIRONMENT_PREFIX + name.upper(): name for name in DECLARATIONS}
    variables = {
        variable: harmless(ENVIRONMENT, names[variable], value) if variable in names else None
        for variable, value in reading.variables.items()
        if variable in _used_variables(reading.sections)
    }
    return last_good.LastGood(
        digest=document.digest,
        # As it will come back from the disk, so that both compare equal.
        sections=json.loads(json.dumps(sections, default=str)),
        names=document.names,
        ends=document.ends,
        variables=variables,
        variables_digest=variables_digest,
        withheld=frozenset(withheld),
    )


def _known(variables: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value is not None}


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: environment[ENVIRONMENT_PREFIX + name.upper()]
        for name in DECLARATIONS
        if environment.get(ENVIRONMENT_PREFIX + name.upper(), "") != ""
    }


def _resolve(value: Any, environment: Mapping[str, str]) -> Any:
    if not isinstance(value, str) or "${" not in value:
        return value
    return REFERENCE.sub(lambda match: environment.get(match.group(1), match.group(0)), value)


def _replace(path: Path, text: str, *, expected: files.Signature | None) -> bool:
    """Replace the text that was read; False when the file has changed since."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()
        mode = target.stat().st_mode & 0o777 if target.exists() else files.PRIVATE
        return files.replace(target, text.encode("utf-8"), mode=mode, only_if=lambda: files.signature(path) == expected)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(f"{path} cannot be written: {reason}; nothing was changed") from None
