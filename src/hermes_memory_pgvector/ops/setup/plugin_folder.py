"""The plugin folder of a hermes home: two folders through which hermes finds this package.

They are `plugins/pgvector`, which holds the package itself in `lib`, and `hooks/pgvector`. A folder of that name that
is not ours is never touched.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
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

Change = Literal["installed", "updated", "unchanged"]
State = Literal["absent", "foreign", "outdated", "current"]


def places(home: Path) -> tuple[Path, Path]:
    """Where the two folders are, or would be."""
    return home / "plugins" / PROVIDER_NAME, home / "hooks" / PROVIDER_NAME


def ours(home: Path) -> list[Path]:
    """Our folders in the home."""
    return [place for place in places(home) if _is_ours(place)]


def state_of(home: Path) -> State:
    """Whether the home has a plugin folder, whether it is ours, and whether it is up to date."""
    if any(_exists(place) and not _is_ours(place) for place in places(home)):
        return "foreign"
    if not _exists(places(home)[0]):
        return "absent"
    return "current" if all(_is_current(place, content) for place, content in _contents(home).items()) else "outdated"


def install(home: Path) -> Change:
    """Bring the home's plugin folder up to date with this package; doing it again changes nothing."""
    foreign = [place for place in places(home) if _exists(place) and not _is_ours(place)]
    if foreign:
        raise ConfigError(f"{foreign[0]} is not ours; look at it, move it away, and run: hermes-pgvector up")
    existed, is_new = any(map(_exists, places(home))), False
    for place, content in _contents(home).items():
        if _is_current(place, content):
            continue
        is_new = True
        try:
            _put(content, place)
        except OSError as error:
            raise ConfigError(f"cannot write {place}: {error.strerror or type(error).__name__}") from error
    return "unchanged" if not is_new else "updated" if existed else "installed"


def remove(place: Path) -> None:
    """Remove a folder of ours in one step, so that hermes never sees half of it; a link is unlinked, not followed."""
    _swap(place, None)


def _contents(home: Path) -> dict[Path, dict[Path, bytes]]:
    """The files of each folder as they are in this package."""
    plugin, hook = places(home)
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


def _is_current(place: Path, content: dict[Path, bytes]) -> bool:
    """Whether the folder has these files, and nobody else could change what hermes executes."""
    return (
        place.is_dir()
        and dict(_read(place)) == content
        and not any(path.stat().st_mode & 0o022 for path in (place, *place.rglob("*")) if path.exists())
    )


def _exists(place: Path) -> bool:
    return place.is_symlink() or place.exists()


def _is_ours(place: Path) -> bool:
    manifests = [place / name for name in _MANIFESTS if (place / name).is_file()]
    return any(_MARK.search(each.read_text(encoding="utf-8", errors="replace")) for each in manifests)


def _put(content: dict[Path, bytes], place: Path) -> None:
    """Write the folder beside its place and swap it in."""
    missing = [folder for folder in place.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        folder.chmod(FOLDER_MODE)
    fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        for path, data in content.items():
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
            (fresh / path).write_bytes(data)
        # Code that hermes executes is nobody else's to write, whatever the umask; what Python compiles goes in here.
        (fresh / "__pycache__").mkdir(exist_ok=True)
        for path in (fresh, *fresh.rglob("*")):
            path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)
        _swap(place, fresh)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _swap(place: Path, replacement: Path | None) -> None:
    """Take away what is there, and put another folder in its place; what was there comes back if that fails."""
    old = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    had = _exists(place)
    try:
        if had:
            place.rename(old / place.name)
        if replacement is not None:
            try:
                replacement.rename(place)
            except OSError:
                if had:
                    (old / place.name).rename(place)
                raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
