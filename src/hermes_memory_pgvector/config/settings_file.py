"""The settings of a home: read from its config.yaml and .env, and written back.

Layers, the later winning: `plugins.pgvector` (read for compatibility) < `memory.pgvector` (where the host's wizard and
dashboard look) < variables `HERMES_PGVECTOR_<NAME>` < values given by an embedding program.

Variables come from the home's own .env, from what the host's secret scope holds for this home, and from the environment
of the process. That belongs to the home that the process was started for, and to nobody where the host keeps the
variables of several homes apart.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config.redaction import REFERENCE
from hermes_memory_pgvector.config.settings import (
    DECLARATIONS,
    DEFAULTS,
    Parsed,
    Settings,
    accepts,
    is_shown,
    parse,
    plain,
    unknown_names,
)
from hermes_memory_pgvector.config.watched import WatchedFile, decoded_variables, parse_variables, parse_yaml
from hermes_memory_pgvector.errors import ConfigError

logger = logging.getLogger(__name__)

ENVIRONMENT_PREFIX = "HERMES_PGVECTOR_"
ENVIRONMENT = "environment"
"""The layer of settings that come from variables."""
PROVIDER_NAME = "pgvector"
PASSWORD_VARIABLE = "HERMES_PGVECTOR_PASSWORD"  # noqa: S105 - the name of one
SECTIONS = (f"plugins.{PROVIDER_NAME}", f"memory.{PROVIDER_NAME}")
PATIENCE_SECONDS = 0.4
"""How long whoever knows nothing yet, or is a command, waits for a file that is being rewritten."""


_ABSENT = object()


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - as a string
    except OSError:
        return os.sep  # the folder was deleted


class _HomeFiles:
    """The two files of one home, and what this process makes of them."""

    def __init__(self, home: Path) -> None:
        self.document = WatchedFile(home / "config.yaml", parse_yaml)
        self.variables = WatchedFile(home / ".env", parse_variables)
        self.scope: Mapping[str, str] = {}
        """What the host's secret scope has held for this home beyond its .env."""
        self.is_one_of_several = False
        """Whether the host keeps the variables of several homes apart, so that the environment is nobody's."""
        self.in_force: Settings | None = None
        self._told: tuple[str, str] = ("", "")

    def read(self, *, is_hasty: bool) -> tuple[dict[str, Any] | None, dict[str, str] | None, tuple[str, ...]]:
        """Both files, None for one that nobody has ever read, and what is wrong with them."""
        patience = 0.0 if is_hasty and self.in_force is not None else PATIENCE_SECONDS
        document, first = self.document.read(patience)
        variables, second = self.variables.read(patience)
        before, self._told = self._told, (first, second)
        meanwhile = "the settings in force stay" if document is not None else "nothing is stored in any database"
        for was, trouble in zip(before, self._told, strict=True):
            if trouble and not was:
                logger.warning("%s; %s until it is fixed", trouble, meanwhile)
        if any(before) and not any(self._told):
            logger.warning("the configuration can be read again")
        return document, variables, tuple(each for each in self._told if each)


_FIRST_FOLDER = _working_folder()
_homes: dict[Path, _HomeFiles] = {}
_own_home: Path | None = None
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


def start_for(home: Path | None) -> None:
    """Say which home this process was started for, if that is not $HERMES_HOME: the environment is that home's."""
    global _own_home
    _own_home = home


def take_scope(home: Path, scope: Mapping[str, str] | None, *, is_one_of_several: bool) -> None:
    """Keep in memory what the host's secret scope holds for a home beside its .env, for threads without a scope."""
    known = _of(home)
    known.is_one_of_several = is_one_of_several
    if scope is not None:
        known.scope = dict(scope)


def load(home: Path, overrides: Mapping[str, Any] | None = None, *, is_hasty: bool = False) -> Parsed:
    """The current settings of a home, and a list of what is wrong with them; never raises.

    Waits for a file that is just being rewritten, unless the caller is hasty and earlier settings are known.
    """
    known = _of(home)
    document, variables, troubles = known.read(is_hasty=is_hasty)
    environment = _environment(home, variables or {})
    layers: dict[str, Mapping[str, Any]] = {
        name: {key: _resolve(value, environment) for key, value in _section(document or {}, name).items()}
        for name in SECTIONS
    }
    layers[ENVIRONMENT] = {
        name: environment[ENVIRONMENT_PREFIX + name.upper()]
        for name in DECLARATIONS
        if environment.get(ENVIRONMENT_PREFIX + name.upper(), "") != ""
    }
    layers["program"] = dict(overrides or {})
    parsed = parse(layers, known.in_force)
    unknown = [
        f"{name} ({layer}): there is no such setting"
        for layer in ("memory.pgvector", "program")
        for name in unknown_names(layers[layer])
    ]
    if document is None or variables is None:
        hold = f"{troubles[0]}, and no earlier settings are known"
    else:
        hold = _hold(home, layers)
    settings = dataclasses.replace(parsed.settings, hold=hold)
    if not hold:
        known.in_force = settings
    return Parsed(settings, (*parsed.problems, *unknown), troubles)


def secret(home: Path, name: str) -> str | None:
    """The value of a variable of this home."""
    return _environment(home, dotenv(home)).get(name) or None if name else None


def sources(home: Path) -> tuple[Path, ...]:
    """The files that the settings of a home come from."""
    return home / "config.yaml", home / ".env"


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
    node: Any = _of(home).document.read(PATIENCE_SECONDS)[0]
    for name in names:
        if not isinstance(node, Mapping) or name not in node:
            return default
        node = node[name]
    return node


def current_provider(home: Path) -> str:
    """The host's memory provider according to config.yaml."""
    _, trouble = _of(home).document.read(PATIENCE_SECONDS)
    if trouble:
        raise ConfigError(trouble)
    return str(section(home, ("memory", "provider"), "") or "")


def update(home: Path, section: tuple[str, ...], changes: Mapping[str, Any], *, remove: Collection[str] = ()) -> None:
    """Change keys of one section of config.yaml, keeping comments, order and everything else."""
    file = _of(home).document
    # Writing to a file that has lost its settings would make the loss look intended.
    for trouble in load(home).troubles:
        raise ConfigError(f"{trouble}; nothing was changed, fix it first")
    with _writing:
        file.edit(lambda data: _changed(file.path, data, section, changes, remove))


def _changed(
    path: Path, data: bytes, section: tuple[str, ...], changes: Mapping[str, Any], remove: Collection[str]
) -> bytes:
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
    return buffer.getvalue().encode()


def dotenv(home: Path) -> dict[str, str]:
    """The variables of the home's .env file; the host loads them for its own processes, but not for ours."""
    return _of(home).variables.read(PATIENCE_SECONDS)[0] or {}


def set_variable(home: Path, name: str, value: str) -> bool:
    """Set one variable in .env and leave every other line as it is; False when it already had that value."""
    line = f"{name}={value}\n"

    def changed(text: str) -> str:
        if _lines_of(name).search(text):
            return _lines_of(name).sub(lambda _: line, text, count=1)
        return text + ("" if not text or text.endswith("\n") else "\n") + line

    return _change_variables(home, changed)


def remove_variable(home: Path, name: str) -> bool:
    """Take one variable out of .env and leave every other line as it is; False when it was not there."""
    return _change_variables(home, lambda text: _lines_of(name).sub("", text))


def _lines_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*(?:export[ \t]+)?{re.escape(name)}[ \t]*=.*(?:\n|$)", re.MULTILINE)


def _change_variables(home: Path, change: Callable[[str], str]) -> bool:
    def rewritten(data: bytes) -> bytes:
        text, encoding = decoded_variables(data)
        # In its own encoding, so that the other lines stay the same, byte for byte.
        return change(text).encode(encoding)

    with _writing:
        return _of(home).variables.edit(rewritten, files.PRIVATE)


def has_dsn_variable(home: Path) -> bool:
    """Whether the current connection string is the one that the host's form has put into .env."""
    name = f"{ENVIRONMENT_PREFIX}DSN"
    own = dotenv(home)
    return bool(own.get(name)) and _environment(home, own)[name] == own[name]


def _of(home: Path) -> _HomeFiles:
    with _guard:
        found = _homes.get(home)
        if found is None:
            found = _homes[home] = _HomeFiles(home)
        return found


def _environment(home: Path, own: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of a home; never those of another one that the same process serves."""
    known = _of(home)
    if known.is_one_of_several or home != (_own_home or default_home()):
        return {**own, **known.scope}
    # Of a home that is alone, a scope tells what is nowhere else: it is there in scheduled jobs only.
    return {**known.scope, **own, **os.environ}


def _section(document: Mapping[str, Any], dotted: str) -> dict[str, Any]:
    node: Any = document
    for part in dotted.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    return {str(key): value for key, value in node.items()} if isinstance(node, Mapping) else {}


def _hold(home: Path, layers: Mapping[str, Mapping[str, Any]]) -> str:
    """Why we do not know which database is meant; empty when we do."""
    deciding = [layer for layer in layers if "dsn" in layers[layer]]
    if not deciding:
        return ""
    layer = deciding[-1]
    value = layers[layer]["dsn"]
    if not accepts("dsn", value):
        return f"dsn ({layer}) is not text"
    unset = sorted(set(REFERENCE.findall(str(value))))
    if unset and layer != "program":
        return f"dsn refers to {', '.join(unset)}, which is neither in the environment nor in {home / '.env'}"
    return ""


def _resolve(value: Any, environment: Mapping[str, str]) -> Any:
    if not isinstance(value, str) or "${" not in value:
        return value
    return REFERENCE.sub(lambda match: environment.get(match.group(1), match.group(0)), value)
