"""The file a backup is: a tar with a manifest, a dump per database, and the files of each home.

manifest.json       what there is, with checksums, and the rows of each theme
servers/0.dump      one database, as pg_dump writes it
homes/0/…           home-id, identity.key, journal/ of one home
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops.carry.file import replacing

MANIFEST = "manifest.json"
LONGEST_MANIFEST = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerCopy:
    """One database."""

    home: str
    """A home that uses it, from the root home: "." or "profiles/coder"."""
    dump: str
    sums: Mapping[str, Mapping[str, list[Any]]]
    """See `schema.moving`."""


@dataclass(frozen=True, slots=True)
class HomeCopy:
    """One home."""

    home: str
    server: str
    """The home by which its database is named."""
    folder: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive holds."""

    made_at: str
    version: str
    servers: tuple[ServerCopy, ...]
    homes: tuple[HomeCopy, ...]
    files: Mapping[str, str]
    """The checksum of every file but the manifest."""

    def counts(self) -> dict[str, int]:
        """How much it holds, over all servers."""
        tables = [[each.sums.get(name, {}) for each in self.servers] for name in ("memory_entries", "conversations")]
        memories, turns = (sum(int(rows) for sums in table for rows, _ in sums.values()) for table in tables)
        themes = {theme for table in tables for sums in table for theme in sums}
        return {"memories": memories, "turns": turns, "themes": len(themes), "homes": len(self.homes)}


def files_in(folder: Path) -> dict[str, str]:
    """The checksum of every file in a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as stream:
                found[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def write(target: Path, staged: Path, manifest: Manifest) -> None:
    """Write an archive of staged files under its name, whole or not at all, and readable by nobody else."""
    with replacing(target) as raw, tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        text = json.dumps(asdict(manifest), ensure_ascii=False, indent=1)
        (staged / MANIFEST).write_text(text, encoding="utf-8")
        for name in (MANIFEST, *manifest.files):
            tar.add(staged / name, arcname=name, recursive=False, filter=_anonymous)


def manifest_of(path: Path) -> Manifest:
    """What an archive says of itself."""
    with _opened(path) as (_, manifest):
        return manifest


def extract(path: Path, folder: Path) -> Manifest:
    """Unpack an archive into an empty folder; ConfigError unless it holds what was written, and nothing else."""
    with _opened(path) as (tar, manifest):
        wanted = dict(manifest.files)
        # Python before 3.11.4, as in Debian 12, has no filters for extractall.
        for info in iter(tar.next, None):
            checksum, stream = wanted.pop(info.name, None), tar.extractfile(info) if info.isreg() else None
            if checksum is None or stream is None or not _is_within(info.name):
                raise ConfigError(f"{path} is damaged: it holds {info.name[:80]!r}, which it does not name")
            target = folder / info.name
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with target.open("x+b") as out:
                shutil.copyfileobj(stream, out)
                out.seek(0)
                if hashlib.file_digest(out, "sha256").hexdigest() != checksum:
                    raise ConfigError(f"{path} is damaged: {info.name} is not what was written")
            # A journal's file that was drained is read-only, and its time says since when.
            os.utime(target, (info.mtime, info.mtime))
            target.chmod(info.mode & 0o600 or 0o400)
        if wanted:
            raise ConfigError(f"{path} is damaged: {min(wanted)} is missing")
        return manifest


@contextmanager
def _opened(path: Path) -> Iterator[tuple[tarfile.TarFile, Manifest]]:
    """An archive behind its manifest."""
    try:
        with tarfile.open(path, mode="r:") as tar:
            head = tar.next()
            stream = tar.extractfile(head) if head is not None and head.size <= LONGEST_MANIFEST else None
            if head is None or head.name != MANIFEST or stream is None:
                raise ConfigError(f"{path} is not a backup of ours")
            raw = json.loads(stream.read())
            servers = tuple(ServerCopy(**each) for each in raw.pop("servers"))
            homes = tuple(HomeCopy(**each) for each in raw.pop("homes"))
            yield tar, Manifest(**raw, servers=servers, homes=homes)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror or type(error).__name__})") from None
    except (tarfile.TarError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not a backup of ours, or is damaged ({type(error).__name__})") from None


def _is_within(name: str) -> bool:
    """Whether a name stays within the folder it is unpacked to."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info
