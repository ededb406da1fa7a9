"""Small files, read and written whole or not at all.

Reading: a program that rewrites a file in place empties it first, so whoever reads at that moment finds nothing, or
half of it. `look` says whether the file changed while it was read, and whether it is a plain file at all.

Writing: a private temporary file in the same folder is filled, synced and moved into place, so readers see the old
content or the new one. As root, the new file belongs to the owner of the folder, who could not read it otherwise.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024
PRIVATE = 0o600

Owner = tuple[int, int]
"""A user's id and a group's id."""

Content = bytes | Callable[[os.stat_result], bytes]
"""What a file will hold; a function gets the status of the new file itself."""

Signature = tuple[int, int, int, int, int]
"""What changes whenever the file does: device, inode, size, and the times of its content and status."""

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Look:
    """A file at one moment."""

    signature: Signature | None
    """None when there is no such file."""
    data: bytes
    problem: str
    """Why it cannot be read; empty when it can."""
    is_steady: bool
    """Whether it stayed the same while we read it."""
    age: float
    """Seconds since the last change; negative when the clock was set back since."""


def signature(path: Path) -> Signature | None:
    """The signature of a file as it is now."""
    try:
        return _signature(path.stat())
    except OSError:
        return None


def look(path: Path) -> Look:
    """Read a file; never raises and never waits for a pipe."""
    try:
        handle = os.open(path, _FLAGS)
    except FileNotFoundError:
        return Look(None, b"", "", True, 0.0)
    except OSError as error:
        return Look(signature(path), b"", f"cannot be read ({type(error).__name__})", True, _age(path))
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return Look(_signature(before), b"", "is not a plain file", True, time.time() - before.st_ctime)
        data = _read(handle)
        after = os.fstat(handle)
    except OSError as error:
        return Look(signature(path), b"", f"cannot be read ({type(error).__name__})", True, _age(path))
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        return Look(_signature(after), b"", f"is larger than {MAX_BYTES >> 20} MB", True, time.time() - after.st_ctime)
    seen = _signature(after)
    is_steady = _signature(before) == seen == signature(path) and len(data) == after.st_size
    return Look(seen, data, "", is_steady, time.time() - after.st_ctime)


def replace(
    path: Path,
    content: Content,
    *,
    owner: Owner | None = None,
    mode: int = PRIVATE,
    is_durable: bool = True,
    only_if: Callable[[], bool] | None = None,
) -> bool:
    """Put a new file in the place of the old one; False when `only_if`, asked last of all, says no."""
    with _draft(path, content, owner=owner, mode=mode, is_durable=is_durable) as draft:
        if only_if is not None and not only_if():
            return False
        draft.replace(path)
    if is_durable:
        sync_folder(path.parent)
    return True


def create(path: Path, content: Content) -> bool:
    """Write a file that does not exist yet; False when it does, because another process was first."""
    with _draft(path, content, owner=None, mode=PRIVATE, is_durable=True) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    sync_folder(path.parent)
    return True


def owner_of(path: Path) -> Owner:
    """Whom a file or folder belongs to."""
    status = path.stat()
    return status.st_uid, status.st_gid


def give(file: Path | int, owner: Owner) -> None:
    """As root, hand a file or folder that we made to its user; for everybody else it is theirs already."""
    if os.geteuid() == 0:
        os.chown(file, *owner)


def sync_folder(folder: Path) -> None:
    """Make what was renamed or created in a folder durable, where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _draft(path: Path, content: Content, *, owner: Owner | None, mode: int, is_durable: bool) -> Iterator[Path]:
    """The new file beside the old one; removed at the end unless it was moved into place."""
    # Always under a name that did not exist: in a folder of another user an existing one could lead anywhere.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            if owner is not None:
                give(handle, owner)
            else:
                # An owner that this system does not know, as in some containers, cannot be given anything.
                with contextlib.suppress(OSError):
                    give(handle, owner_of(path.parent))
            file.write(content if isinstance(content, bytes) else content(os.fstat(handle)))
            file.flush()
            if mode != PRIVATE:
                os.fchmod(handle, mode)
            if is_durable:
                os.fsync(handle)
        yield draft
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _read(handle: int) -> bytes:
    parts, total = [], 0
    while total <= MAX_BYTES and (part := os.read(handle, 1 << 20)):
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def _signature(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_ctime
    except OSError:
        return 0.0
