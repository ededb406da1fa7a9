"""`install`: put the plugin folder into a hermes home, or remove it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.home import homes_of
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, current_provider
from hermes_memory_pgvector.ops.setup import host_python, host_site, plugin_folder
from hermes_memory_pgvector.ops.setup.host_python import HostPython
from hermes_memory_pgvector.ops.setup.plugin_folder import InstallResult
from hermes_memory_pgvector.terminal import lines as terminal

NAME = "install"
HELP = "install the plugin folder into a hermes home (or remove it)"
GROUP = "set up"
EXAMPLES = (
    ("install", "install the plugin folder into ~/.hermes"),
    ("install --all-profiles", "also into every profile"),
    ("install --remove", "remove it; memories stay"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--all-profiles", action="store_true", help="also every profile below the home's profiles/")
    parser.add_argument("--remove", action="store_true", help="remove the plugin folder; memories stay")
    parser.add_argument("--force", action="store_true", help="move a folder that is not ours aside and install")


def run(args: argparse.Namespace) -> int:
    """Install or remove, home by home; 3 when hermes itself cannot import the package yet."""
    home = options.home_of(args)
    homes = homes_of(home) if args.all_profiles else [home]
    results = [
        plugin_folder.remove(each) if args.remove else plugin_folder.install(each, force=args.force) for each in homes
    ]
    python = None if args.remove else host_python.find(home)
    if python is not None:
        host_site.carry(home, python, quiet=args.json)
        python = host_python.examine(home, python)
    if args.json:
        terminal.as_json(_as_json(results, python))
    else:
        for result in results:
            for line in _sentences(result):
                terminal.say(line)
        if python is not None and not python.sees_package:
            terminal.say(f"hermes cannot use it yet: {host_site.shortcoming(python)}")
    return 3 if python is not None and not python.sees_package else 0


def _sentences(result: InstallResult) -> Iterator[str]:
    for place in result.moved_aside:
        yield f"Moved aside: {place}"
    match result.change:
        case "installed" | "updated":
            yield f"Plugin folder {result.change}: {result.folders[0]}"
        case "unchanged":
            yield f"Plugin folder is up to date: {result.folders[0]}"
        case "removed":
            yield f"Removed: {', '.join(map(str, result.folders))}; the memories in Postgres stay"
        case "absent":
            yield f"Nothing to remove in {result.home}"
    active = current_provider(result.home) == PROVIDER_NAME
    if result.change == "removed" and active:
        yield f"hermes is still set to use it; turn it off with: {_hermes(result)} memory off"
    elif result.change in {"installed", "updated", "unchanged"} and not active:
        yield f"Turn it on with: {_hermes(result)} config set memory.provider {PROVIDER_NAME}"


def _hermes(result: InstallResult) -> str:
    """The command that speaks to this home's profile."""
    profile = result.home.name if result.home.parent.name == "profiles" else ""
    return f"hermes -p {profile}" if profile else "hermes"


def _as_json(results: list[InstallResult], python: HostPython | None) -> dict[str, object]:
    return {
        "homes": [
            {
                "home": str(result.home),
                "change": result.change,
                "folders": [str(folder) for folder in result.folders],
                "moved_aside": [str(place) for place in result.moved_aside],
            }
            for result in results
        ],
        "hermes_python": None if python is None else str(python.path),
        "hermes_sees_package": None if python is None else python.sees_package,
    }
