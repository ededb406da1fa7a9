"""Checks of this machine and this home: versions, configuration, the plugin folder, the host."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from hermes_memory_pgvector.config.home import KEY_NAME, private_folder, pseudonym_key, root_of
from hermes_memory_pgvector.config.settings import Parsed
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, current_provider
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import profiles
from hermes_memory_pgvector.ops.setup import host_python, host_site, plugin_folder
from hermes_memory_pgvector.ops.setup.checks.finding import Finding, ok, problem, warning
from hermes_memory_pgvector.ops.setup.host_python import HostPython
from hermes_memory_pgvector.terminal.amounts import count


def check(home: Path, parsed: Parsed) -> Iterator[Finding]:
    """Everything we can check without a connection."""
    yield from _configuration(home, parsed)
    yield from _pseudonyms(home)
    host = host_python.find(home)
    is_waiting = host is None or not host.sees_package
    if not is_waiting or plugin_folder.state_of(home) != "absent":
        # `up` puts hermes in touch with the package once it can import it, and not before.
        yield _plugin_folder(home)
        yield _provider(home)
    if not is_waiting and root_of(home) == home:
        yield from _profiles(home)
    yield _host(host)


def _configuration(home: Path, parsed: Parsed) -> Iterator[Finding]:
    chosen = len(parsed.settings.set_by)
    meanwhile = "nothing is stored" if parsed.settings.hold else "the last good settings are used"
    for each in parsed.troubles:
        yield problem("settings", f"{each}; {meanwhile}", "fix it")
    if not parsed.problems and not parsed.troubles:
        path = home / "config.yaml"
        text = f"{count(chosen, 'setting')} set" if chosen else "all settings have their defaults"
        yield ok("settings", f"{text}{'' if path.exists() else f' (there is no {path} yet)'}")
    for each in parsed.problems:
        yield problem("settings", each, "hermes-pgvector config show")


def _pseudonyms(home: Path) -> Iterator[Finding]:
    """Whether people of messaging platforms keep their themes."""
    if not (private_folder(home) / KEY_NAME).exists():
        return
    try:
        pseudonym_key(home)
    except (OSError, ConfigError) as error:
        reason = str(error) if isinstance(error, ConfigError) else f"{KEY_NAME} cannot be read"
        yield problem("identity key", f"{reason}; until then chats of messaging platforms store nothing")


def _plugin_folder(home: Path) -> Finding:
    match plugin_folder.state_of(home):
        case "current":
            return ok("plugin folder", f"installed in {home / 'plugins' / PROVIDER_NAME}")
        case "outdated":
            return warning("plugin folder", "it is from another version of this package", "hermes-pgvector up")
        case "foreign":
            place = home / "plugins" / PROVIDER_NAME
            return problem(
                "plugin folder", f"{place} is not ours", "look at it, move it away, and run: hermes-pgvector up"
            )
        case _:
            return problem("plugin folder", f"missing in {home}", "hermes-pgvector up")


def _provider(home: Path) -> Finding:
    try:
        name = current_provider(home)
    except ConfigError as error:
        return problem("provider", str(error))
    if name == PROVIDER_NAME:
        return ok("provider", f"memory.provider is {PROVIDER_NAME}")
    said = f"memory.provider is {name!r}" if name else "memory.provider is not set"
    return problem("provider", said, f"hermes config set memory.provider {PROVIDER_NAME}")


def _profiles(home: Path) -> Iterator[Finding]:
    """Profiles that hermes gives no memory, without a word: they are set to have this one and lack its folder."""
    lacking = [each.name for each in profiles.below(home) if _lacks_folder(each)]
    if lacking:
        text = f"set to use this memory, but without its plugin folder, so they have none: {', '.join(lacking)}"
        yield warning("profiles", text, "hermes-pgvector up --all-profiles")


def _lacks_folder(home: Path) -> bool:
    try:
        return current_provider(home) == PROVIDER_NAME and plugin_folder.state_of(home) == "absent"
    except (ConfigError, OSError):
        # Its own doctor says what is wrong there.
        return False


def _host(host: HostPython | None) -> Finding:
    if host is None:
        text = "hermes-agent is not installed; recall works from the command line"
        return warning("host", text, "when you have installed it: hermes-pgvector up")
    if host.named is not None and host.named != host.path:
        text = f"checked {host.path}, but hermes says that it runs on {host.named}"
        return problem("host", text, f"hermes-pgvector up --hermes-python {host.named}")
    if not host.sees_package:
        return problem("host", host_site.shortcoming(host), "hermes-pgvector up")
    version = _version("hermes-agent")
    if version and host.path.parent == Path(sys.executable).parent:
        return ok("host", f"hermes-agent {version} in this environment")
    return ok("host", f"hermes runs on {host.path} and finds this package")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
