"""The file a backup is: a tar with a manifest, a dump per database, and the files of each home.

manifest.json                 what there is, with sizes, checksums, and the rows of each theme
servers/0.dump                one database, as pg_dump writes it
homes/profiles/coder/…        home-id, identity.key, journal/, refused/
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from hermes_memory_pgvector.errors import ConfigError

MANIFEST = "manifest.json"
CHUNK = 1024 * 1024
LONGEST_MANIFEST = 256 * CHUNK


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the archive."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ServerCopy:
    """One database."""

    home: str
    """A home that uses it, from the root home: "." or "profiles/coder"."""
    dump: Member
    sums: Mapping[str, Mapping[str, list[Any]]]
    """See `schema.moving`."""


@dataclass(frozen=True, slots=True)
class HomeCopy:
    """One home."""

    home: str
    server: str
    """The home by which its database is named."""
    files: tuple[Member, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the operator has set in config.yaml; no secrets."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive holds."""

    made_at: str
    version: str
    servers: tuple[ServerCopy, ...]
    homes: tuple[HomeCopy, ...]

    @property
    def members(self) -> list[Member]:
        """Every file but the manifest."""
        return [each.dump for each in self.servers] + [each for home in self.homes for each in home.files]

    @property
    def themes(self) -> dict[str, tuple[int, int]]:
        """How many memories and turns each theme has, over all servers."""
        found: dict[str, tuple[int, int]] = {}
        for server in self.servers:
            for table, place in (("memory_entries", 0), ("conversations", 1)):
                for theme, (count, _) in server.sums.get(table, {}).items():
                    known = list(found.get(theme, (0, 0)))
                    known[place] += int(count)
                    found[theme] = (known[0], known[1])
        return found


def member_of(path: Path, name: str) -> Member:
    """A file as a member of the archive."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while part := stream.read(CHUNK):
            digest.update(part)
            size += len(part)
    return Member(name, size, digest.hexdigest())


def write(target: Path, staged: Path, manifest: Manifest) -> None:
    """Write an archive of staged files under its name, whole or not at all, and readable by nobody else."""
    if target.exists() and not target.is_file():
        raise ConfigError(f"{target} cannot be written (it is not a file)")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    text = json.dumps(asdict(manifest), ensure_ascii=False, indent=1)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
                (staged / MANIFEST).write_text(text, encoding="utf-8")
                for name in (MANIFEST, *(each.name for each in manifest.members)):
                    tar.add(staged / name, arcname=name, recursive=False, filter=_anonymous)
            raw.flush()
            os.fsync(raw.fileno())
        unfinished.replace(target)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written ({error.strerror or type(error).__name__})") from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def check(path: Path) -> Manifest:
    """What an archive holds, after every byte of it was compared with its checksum; ConfigError if one differs."""
    return _read(path, None)


def extract(path: Path, folder: Path) -> Manifest:
    """Unpack an archive into an empty folder, comparing every byte with its checksum."""
    return _read(path, folder)


def _read(path: Path, folder: Path | None) -> Manifest:
    try:
        with tarfile.open(path, mode="r:") as tar:
            head = tar.next()
            stream = None if head is None or head.name != MANIFEST or head.size > LONGEST_MANIFEST else _open(tar, head)
            if stream is None:
                raise ConfigError(f"{path} is not a backup of ours")
            manifest = _parsed(json.loads(stream.read()))
            wanted = {each.name: each for each in manifest.members}
            for info in iter(tar.next, None):
                member = wanted.pop(info.name, None)
                if member is None or not info.isreg():
                    raise ConfigError(f"{path} is damaged: it holds {info.name[:80]!r}, which it does not name")
                _take(tar, info, member, path, folder)
            if wanted:
                raise ConfigError(f"{path} is damaged: {min(wanted)} is missing")
            return manifest
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror or type(error).__name__})") from None
    except (tarfile.TarError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not a backup of ours, or is damaged ({type(error).__name__})") from None


def _take(tar: tarfile.TarFile, info: tarfile.TarInfo, member: Member, path: Path, folder: Path | None) -> None:
    digest = hashlib.sha256()
    stream = _open(tar, info)
    out: IO[bytes] | None = None
    target = None if folder is None else folder / _safe(member.name)
    try:
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            out = target.open("xb")
        while part := stream.read(CHUNK):
            digest.update(part)
            if out is not None:
                out.write(part)
    finally:
        if out is not None:
            out.close()
    if digest.hexdigest() != member.sha256 or info.size != member.size:
        raise ConfigError(f"{path} is damaged: {member.name} is not what was written")
    if target is not None:
        # A journal's file that was drained is read-only, and its time says since when.
        os.utime(target, (info.mtime, info.mtime))
        target.chmod(info.mode & 0o600 or 0o400)


def _safe(name: str) -> PurePosixPath:
    """A name that stays within the folder it is unpacked to."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.parts[0] not in ("servers", "homes"):
        raise ConfigError(f"the archive holds {name[:80]!r}, which would be written elsewhere")
    return path


def _open(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    stream = tar.extractfile(info)
    if stream is None:
        raise tarfile.ReadError("not a file")
    return stream


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _parsed(raw: Mapping[str, Any]) -> Manifest:
    return Manifest(
        str(raw["made_at"]),
        str(raw["version"]),
        tuple(ServerCopy(str(each["home"]), Member(**each["dump"]), each["sums"]) for each in raw["servers"]),
        tuple(
            HomeCopy(
                str(each["home"]),
                str(each["server"]),
                tuple(Member(**one) for one in each["files"]),
                dict(each["settings"]),
            )
            for each in raw["homes"]
        ),
    )
