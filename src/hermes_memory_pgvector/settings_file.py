"""Where settings live: config.yaml of a home and the environment, read into layers and written back.

Layers, the later winning: `plugins.pgvector` (read for compatibility) < `memory.pgvector` (where the host's wizard and
dashboard look) < environment `HERMES_PGVECTOR_<NAME>` < values given by an embedding program.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.settings import DECLARATIONS, DEFAULTS, Parsed, is_shown, parse, plain, unknown_names

ENVIRONMENT_PREFIX = "HERMES_PGVECTOR_"
PROVIDER_NAME = "pgvector"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class _FileState:
    modified_ns: int
    size: int
    sections: Mapping[str, Mapping[str, Any]]
    problem: str | None


_cache: dict[Path, _FileState] = {}
_cache_lock = threading.Lock()


def default_home() -> Path:
    """The hermes home of this process: $HERMES_HOME, else ~/.hermes."""
    return Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes").expanduser()


def data_folder(home: Path) -> Path:
    """Where this plugin keeps what is its own: journal, embedded server, identity."""
    return home / PROVIDER_NAME


def load(home: Path, overrides: Mapping[str, Any] | None = None) -> Parsed:
    """The settings in force for a home; never raises: what is wrong is listed as problems."""
    state = _state(home / "config.yaml")
    environment = {**dotenv(home), **os.environ}
    layers: dict[str, Mapping[str, Any]] = {
        name: {key: _resolve(value, environment) for key, value in section.items()}
        for name, section in state.sections.items()
    }
    layers["environment"] = _from_environment(environment)
    layers["program"] = dict(overrides or {})
    parsed = parse(layers)
    unknown = [
        f"{name} ({layer}): there is no such setting"
        for layer in ("memory.pgvector", "program")
        for name in unknown_names(layers.get(layer, {}))
    ]
    first = [state.problem] if state.problem else []
    return Parsed(parsed.settings, (*first, *parsed.problems, *unknown))


def secret(home: Path, name: str) -> str | None:
    """The value of an environment variable, also when it is only in the home's .env file."""
    if not name:
        return None
    return os.environ.get(name) or dotenv(home).get(name)


def save(home: Path, values: Mapping[str, Any]) -> list[str]:
    """Write settings that differ from those in force to `memory.pgvector`; return the names that changed.

    A value that equals what is in force is not written, so saving one field never fixes another to its default.
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


def current_provider(home: Path) -> str:
    """The host's memory provider according to config.yaml."""
    memory = _parse_yaml(home / "config.yaml").get("memory")
    return str(memory.get("provider") or "") if isinstance(memory, Mapping) else ""


def update(home: Path, section: tuple[str, ...], changes: Mapping[str, Any], *, remove: Collection[str] = ()) -> None:
    """Change keys of one section of config.yaml, keeping comments, order and everything else; atomic."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    path = home / "config.yaml"
    round_trip = YAML()
    round_trip.preserve_quotes = True
    round_trip.width = 4096
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        text = ""
    try:
        document = round_trip.load(text)
    except YAMLError as error:
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
    _replace(path, buffer.getvalue())


def dotenv(home: Path) -> dict[str, str]:
    """Variables of the home's .env file, which the host loads for its own processes but not for ours."""
    try:
        text = (home / ".env").read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return {}
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            found[name.strip()] = value.strip().strip("'\"")
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: environment[ENVIRONMENT_PREFIX + name.upper()]
        for name in DECLARATIONS
        if environment.get(ENVIRONMENT_PREFIX + name.upper(), "") != ""
    }


def _resolve(value: Any, environment: Mapping[str, str]) -> Any:
    if not isinstance(value, str) or "${" not in value:
        return value
    return _REFERENCE.sub(lambda match: environment.get(match.group(1), match.group(0)), value)


def _state(path: Path) -> _FileState:
    try:
        stat = path.stat()
    except OSError:
        return _FileState(0, 0, {}, None)
    with _cache_lock:
        known = _cache.get(path)
    if known is not None and (known.modified_ns, known.size) == (stat.st_mtime_ns, stat.st_size):
        return known
    problem = None
    try:
        document = _parse_yaml(path)
    except ConfigError as error:
        document, problem = {}, str(error)
    state = _FileState(stat.st_mtime_ns, stat.st_size, _sections(document), problem)
    with _cache_lock:
        _cache[path] = state
    return state


def _sections(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for parent in ("plugins", "memory"):
        outer = document.get(parent)
        inner = outer.get(PROVIDER_NAME) if isinstance(outer, Mapping) else None
        if isinstance(inner, Mapping):
            found[f"{parent}.{PROVIDER_NAME}"] = {str(key): value for key, value in inner.items()}
    return found


def _parse_yaml(path: Path) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=loader)  # noqa: S506 - both are safe loaders
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({type(error).__name__})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} does not hold a mapping")
    return document


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".config-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)
