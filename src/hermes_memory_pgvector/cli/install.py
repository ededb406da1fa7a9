"""`install`: put the door into a hermes home, or take it out again.

The door is two small folders, `plugins/pgvector` and `hooks/pgvector`. A folder of that name which is not ours is
never touched without `--force`, and then moved aside, not deleted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

from hermes_memory_pgvector.config.home import homes_of, private_folder
from hermes_memory_pgvector.config.settings_file import current_provider, default_home
from hermes_memory_pgvector.errors import ConfigError

NAME = "install"
HELP = "install the plugin folder into a hermes home (or remove it)"

PROVIDER = "pgvector"
DISTRIBUTION = "hermes-memory-pgvector"
_MARK = re.compile(rf"^distribution:\s*{DISTRIBUTION}\s*$", re.MULTILINE)
_MANIFESTS = ("plugin.yaml", "HOOK.yaml")
_HOOK_SOURCE = "gateway_hook"

FOLDER_MODE = 0o755
FILE_MODE = 0o644

Change = Literal["installed", "updated", "unchanged", "removed", "absent"]
DoorState = Literal["absent", "foreign", "outdated", "current"]


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What was done in one hermes home."""

    home: Path
    change: Change
    folders: tuple[Path, ...]
    moved_aside: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPython:
    """The interpreter that runs `hermes`, and whether it can import this package."""

    path: Path
    sees_package: bool


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--hermes-home", type=Path, metavar="DIR", help="hermes home (default: $HERMES_HOME, ~/.hermes)"
    )
    parser.add_argument("--all-profiles", action="store_true", help="also every profile below the home's profiles/")
    parser.add_argument("--remove", action="store_true", help="take the plugin folder out again; memories stay")
    parser.add_argument("--force", action="store_true", help="move a folder that is not ours aside and install")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Install or remove, home by home; 3 when hermes itself cannot import the package yet."""
    home = (args.hermes_home or default_home()).expanduser().absolute()
    if args.hermes_home and not home.is_dir():
        raise ConfigError(f"there is no folder {home}; give the hermes home that `hermes config path` names")
    homes = homes_of(home) if args.all_profiles else [home]
    results = [remove_door(one) if args.remove else install_door(one, force=args.force) for one in homes]
    python = None if args.remove else host_python()
    if args.json:
        print(json.dumps(_as_json(results, python)))
    else:
        for result in results:
            print("\n".join(_sentences(result)))
        if python is not None and not python.sees_package:
            print(f"hermes runs on {python.path}, which cannot import this package. Install it there:")
            print(f"  {python.path} -m pip install '{DISTRIBUTION}>=2'")
    return 3 if python is not None and not python.sees_package else 0


def install_door(home: Path, *, force: bool = False) -> InstallResult:
    """Make the home's door equal to the one in this package; doing it again changes nothing."""
    targets = _targets(home)
    foreign = [target for target in targets if _exists(target) and not _is_ours(target)]
    if foreign and not force:
        raise ConfigError(f"{foreign[0]} is not ours; look at it, then run with --force to move it aside")
    aside = tuple(_move_aside(target, home) for target in foreign)
    existed = any(_exists(target) for target in targets)
    replaced = [_put(content, target) for target, content in _contents(targets).items()]
    change: Change = "unchanged" if not any(replaced) else "updated" if existed else "installed"
    return InstallResult(home, change, targets, aside)


def remove_door(home: Path) -> InstallResult:
    """Take our folders out of the home; a folder that is not ours stays where it is."""
    targets = _targets(home)
    foreign = [target for target in targets if _exists(target) and not _is_ours(target)]
    if foreign:
        raise ConfigError(f"{foreign[0]} is not ours; it was left alone")
    present = tuple(target for target in targets if _exists(target))
    for target in present:
        _discard(target)
    return InstallResult(home, "removed" if present else "absent", present)


def door_state(home: Path) -> DoorState:
    """Whether the home has a door, whether it is ours, and whether it is the one in this package."""
    targets = _targets(home)
    if any(_exists(target) and not _is_ours(target) for target in targets):
        return "foreign"
    if not _exists(targets[0]):
        return "absent"
    contents = _contents(targets)
    is_current = all(
        target.is_dir() and dict(_read(target)) == content and not _is_open_to_others(target)
        for target, content in contents.items()
    )
    return "current" if is_current else "outdated"


def host_python() -> HostPython | None:
    """The interpreter behind `hermes` on the PATH; None when there is no such command or it cannot be told."""
    command = shutil.which("hermes")
    path = _interpreter(Path(command)) if command else None
    if path is None:
        return None
    if path.parent == Path(sys.executable).parent:
        return HostPython(path, sees_package=True)
    probe = [str(path), "-c", "import hermes_memory_pgvector, psycopg"]
    try:
        done = subprocess.run(probe, capture_output=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return HostPython(path, sees_package=False)
    return HostPython(path, sees_package=done.returncode == 0)


def _interpreter(script: Path, depth: int = 0) -> Path | None:
    """Follow the first line, or the `exec` line of a shell wrapper, to a Python."""
    try:
        with script.open("rb") as stream:
            head = stream.read(4096).decode("utf-8", "replace")
    except OSError:
        return None
    first = head.partition("\n")[0]
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words:
        return None
    if Path(words[0]).name == "env" and len(words) > 1 and words[-1].startswith("python"):
        found = shutil.which(words[-1])
        return Path(found) if found else None
    if "python" in Path(words[0]).name:
        return Path(words[0])
    wrapped = re.search(r"^\s*(?:'''exec'|exec)\s+[\"']?([^\"'\n]+?)[\"']?\s+\"?\$", head, re.MULTILINE)
    if wrapped is None or depth:
        return None
    target = Path(wrapped[1])
    return target if "python" in target.name else _interpreter(target, depth + 1)


def _targets(home: Path) -> tuple[Path, Path]:
    return home / "plugins" / PROVIDER, home / "hooks" / PROVIDER


def _contents(targets: tuple[Path, Path]) -> dict[Path, dict[Path, bytes]]:
    """The files of each folder as they are in this package."""
    plugin, hook = targets
    with as_file(files("hermes_memory_pgvector") / "hermes_plugin") as source:
        everything = dict(_read(source))
    hooks = {path.relative_to(_HOOK_SOURCE): data for path, data in everything.items() if path.parts[0] == _HOOK_SOURCE}
    return {plugin: {path: data for path, data in everything.items() if path.parts[0] != _HOOK_SOURCE}, hook: hooks}


def _read(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder), path.read_bytes()


def _make_parents(target: Path) -> None:
    """Make the folders above a door; those that are new can be written to by nobody else."""
    missing = [folder for folder in target.parents if not folder.exists()]
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(FOLDER_MODE)


def _is_open_to_others(target: Path) -> bool:
    """Whether somebody else could change what hermes executes."""
    return any(
        not path.is_symlink() and path.stat().st_mode & 0o022 for path in (target, *target.rglob("*")) if path.exists()
    )


def _exists(target: Path) -> bool:
    return target.is_symlink() or target.exists()


def _is_ours(target: Path) -> bool:
    for name in _MANIFESTS:
        try:
            if _MARK.search((target / name).read_text(encoding="utf-8", errors="replace")):
                return True
        except OSError:
            continue
    return False


def _put(content: dict[Path, bytes], target: Path) -> bool:
    """Write the folder beside its place and swap it in; False when it was already equal."""
    if target.is_dir() and dict(_read(target)) == content and not _is_open_to_others(target):
        return False
    _make_parents(target)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for path, data in content.items():
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
            (fresh / path).write_bytes(data)
        # Code that hermes executes is nobody else's to write, whatever the umask; what Python compiles goes in here.
        (fresh / "__pycache__").mkdir(exist_ok=True)
        for path in (fresh, *fresh.rglob("*")):
            path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)
        if _exists(target):
            _discard(target, replacement=fresh)
        else:
            fresh.rename(target)
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror or type(error).__name__}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return True


def _discard(target: Path, replacement: Path | None = None) -> None:
    """Remove the folder in one step, so that hermes never sees half of it; a link is unlinked, not followed."""
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        target.rename(old / target.name)
        if replacement is not None:
            try:
                replacement.rename(target)
            except OSError:
                (old / target.name).rename(target)
                raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _move_aside(target: Path, home: Path) -> Path:
    """Keep a folder that is not ours where hermes does not look for plugins."""
    shelf = private_folder(home) / "replaced"
    shelf.mkdir(mode=0o700, exist_ok=True)
    dated = Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%dT%H%M%S-"), dir=shelf))
    place = dated / f"{target.parent.name}-{target.name}"
    shutil.move(target, place)
    return place


def _sentences(result: InstallResult) -> Iterator[str]:
    for place in result.moved_aside:
        yield f"Moved aside: {place}"
    match result.change:
        case "installed" | "updated":
            yield f"The door is {result.change}: {result.folders[0]}"
        case "unchanged":
            yield f"The door is already there: {result.folders[0]}"
        case "removed":
            yield f"Removed: {', '.join(map(str, result.folders))}; the memories in Postgres stay"
        case "absent":
            yield f"Nothing to remove in {result.home}"
    active = current_provider(result.home) == PROVIDER
    if result.change == "removed" and active:
        yield "hermes is still set to use it; turn it off with: hermes memory off"
    elif result.change in {"installed", "updated", "unchanged"} and not active:
        yield f"Turn it on with: hermes config set memory.provider {PROVIDER}"


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
