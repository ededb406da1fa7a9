"""The plugin folder of a hermes home: two folders through which hermes finds this package.

They are `plugins/pgvector`, which holds the package itself in `lib`, and `hooks/pgvector`. A folder of that name that
is not ours is never touched.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal

from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME
from hermes_memory_pgvector.errors import ConfigError

_MARK = re.compile(r"^distribution:\s*hermes-memory-pgvector\s*$", re.MULTILINE)
_MANIFESTS = ("plugin.yaml", "HOOK.yaml")
_HOOK_SOURCE = "gateway_hook"
_PACKAGE = "hermes_memory_pgvector"

FOLDER_MODE = 0o755
FILE_MODE = 0o644

Change = Literal["installed", "updated", "unchanged", "removed", "absent"]
State = Literal["absent", "foreign", "outdated", "current"]


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What was done in one hermes home."""

    home: Path
    change: Change
    folders: tuple[Path, ...]


def install(home: Path) -> InstallResult:
    """Bring the home's plugin folder up to date with this package; doing it again changes nothing."""
    targets = _targets(home)
    foreign = [target for target in targets if _exists(target) and not _is_ours(target)]
    if foreign:
        raise ConfigError(f"{foreign[0]} is not ours; look at it, move it away, and run: hermes-pgvector up")
    existed = any(_exists(target) for target in targets)
    replaced = [_put(content, target) for target, content in _contents(targets).items()]
    change: Change = "unchanged" if not any(replaced) else "updated" if existed else "installed"
    return InstallResult(home, change, targets)


def remove(home: Path) -> InstallResult:
    """Remove our folders from the home; a folder that is not ours stays where it is."""
    targets = _targets(home)
    foreign = [target for target in targets if _exists(target) and not _is_ours(target)]
    if foreign:
        raise ConfigError(f"{foreign[0]} is not ours; it was left alone")
    present = tuple(target for target in targets if _exists(target))
    for target in present:
        _discard(target)
    return InstallResult(home, "removed" if present else "absent", present)


def ours(home: Path) -> list[Path]:
    """Our folders in the home."""
    return [target for target in _targets(home) if _exists(target) and _is_ours(target)]


def state_of(home: Path) -> State:
    """Whether the home has a plugin folder, whether it is ours, and whether it is up to date."""
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


def _targets(home: Path) -> tuple[Path, Path]:
    return home / "plugins" / PROVIDER_NAME, home / "hooks" / PROVIDER_NAME


def _contents(targets: tuple[Path, Path]) -> dict[Path, dict[Path, bytes]]:
    """The files of each folder as they are in this package."""
    plugin, hook = targets
    with as_file(files(_PACKAGE)) as source:
        package = dict(_read(source))
        doors = dict(_read(source / "hermes_plugin"))
    hooks = {path.relative_to(_HOOK_SOURCE): data for path, data in doors.items() if path.parts[0] == _HOOK_SOURCE}
    folder = {path: data for path, data in doors.items() if path.parts[0] != _HOOK_SOURCE}
    return {plugin: folder | {Path("lib", _PACKAGE) / path: data for path, data in package.items()}, hook: hooks}


def _read(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder), path.read_bytes()


def _make_parents(target: Path) -> None:
    """Make the folders above the plugin folder; nobody else may write to the new ones."""
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
    try:
        _make_parents(target)
        fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror or type(error).__name__}") from error
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
