"""What the operating system refuses, as sentences: another user's home, a read-only folder, a full disk."""

from __future__ import annotations

import errno
import os
import pwd
from pathlib import Path

from hermes_memory_pgvector.config.settings_file import data_folder, default_home, start_for
from hermes_memory_pgvector.errors import ConfigError

_DENIED = (errno.EACCES, errno.EPERM)
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Anything else is a mistake of ours rather than the state of the machine.
_OF_THE_MACHINE = (*_DENIED, *_FULL, errno.EROFS, errno.EIO, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ESTALE)


def sentence(error: OSError) -> str | None:
    """What is wrong and with which file; None when it does not come from the state of the machine."""
    if error.errno not in _OF_THE_MACHINE:
        return None
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if error.errno in _FULL:
        return f"the disk is full{f' ({path})' if path else ''}; free some space and run it again"
    if path is None:
        return f"the system refuses: {error.strerror}"
    if error.errno in _DENIED:
        return f"{path}: permission denied{_advice(path)}"
    return f"{path}: {(error.strerror or '').lower()}"


def chosen_home(given: Path | None, *, is_needed: bool = True) -> Path:
    """The home that a command works on, given or usual; ConfigError for one that is not there, or not open to us."""
    home = (given or default_home()).expanduser().absolute()
    check_access(home)
    if given and is_needed and not home.is_dir():
        raise ConfigError(f"there is no folder {home}; give the hermes home that `hermes config path` names")
    start_for(home if given or not is_needed else None)
    return home


def check_access(home: Path) -> None:
    """Raise ConfigError when this user may not read the home or our folder in it."""
    for folder in (home, data_folder(home)):
        if folder.is_symlink() and not os.path.lexists(os.path.realpath(folder)):
            raise ConfigError(f"{folder} is a link to {os.path.realpath(folder)}, which does not exist")
        if os.path.exists(folder) and not os.path.isdir(folder):  # noqa: PTH110, PTH112 - false where nobody may look
            raise ConfigError(f"{folder} is not a folder; give the hermes home with --hermes-home")
        if os.path.lexists(folder) and not os.access(folder, os.R_OK | os.X_OK):
            raise ConfigError(f"{folder} cannot be read: permission denied{_advice(folder)}")


def check_makeable(home: Path) -> None:
    """Raise ConfigError when a home that does not exist yet cannot be made, or one that exists cannot be written."""
    place = next(path for path in (home, *home.parents) if os.path.lexists(path))
    if not place.is_dir():
        raise ConfigError(f"{place} is not a folder; give the hermes home with --hermes-home")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigError(f"{home} cannot be {'written' if place == home else 'made'}{_advice(place)}")


def _advice(path: Path) -> str:
    """Whose it is, when that is somebody else."""
    place = next((each for each in (path, *path.parents) if os.path.lexists(each)), None)
    if place is None:
        return ""
    try:
        uid = place.lstat().st_uid
        owner = pwd.getpwuid(uid).pw_name
    except OSError:
        return ""
    except KeyError:
        owner = f"uid {uid}"
    if uid == os.geteuid():
        return f"; {place} is yours, but closed or on a read-only disk"
    return f"; {place} belongs to {owner}: run this as {owner}, or name another home with --hermes-home"
