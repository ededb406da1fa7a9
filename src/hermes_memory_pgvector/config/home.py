"""What identifies a home: its id, the place it belongs to, and the key for pseudonyms.

Homes get copied in many ways: `cp -r`, a cloned profile, a container image started many times, a restored backup. Two
homes with the same id would take each other's entries for their own and delete what is not in their own files. So the
file that holds the id also says where it was written: machine, host, device and inode of that very file. A file found
elsewhere is a copy and gets an id of its own, derived from the old id, the new place and the time of the copy, so that
all processes of the copy arrive at the same one, and two copies never do. A home that was only moved keeps its id.
Copies share the key for pseudonyms, so the same person keeps the same theme.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import secrets
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import files, machine
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, data_folder
from hermes_memory_pgvector.errors import ConfigError

logger = logging.getLogger(__name__)

KEY_BYTES = 32
KEY_NAME = "identity.key"
CHECK_NAME = "identity.check"
"""By what a home knows its key: a key that is missing or another one is not made anew by itself."""
ID_NAME = "home-id"
USUAL_NAME = ".hermes"
# Names that other folders have, too, are no signs: `.env`, or a clone called `pgvector`.
SIGNS_OF_A_HOME = (
    "config.yaml",
    "state.db",
    "SOUL.md",
    f"{PROVIDER_NAME}/{ID_NAME}",
    f"{PROVIDER_NAME}/checkpoints/postgres.sock",
)
LONGEST_LINEAGE = 32


@dataclass(frozen=True, slots=True)
class HomePlace:
    """Where a file is. Unknown parts are empty."""

    machine: str
    host: str
    boot: str
    device: int
    inode: int
    path: str


@dataclass(frozen=True, slots=True)
class HomeIdentity:
    """What the id file of a home says."""

    id: str
    place: HomePlace | None = None
    """Where the file was written; None where that cannot be read."""
    machines: tuple[str, ...] = ()
    """Machines that use this home; each container that shares the folder counts as one."""
    predecessors: tuple[str, ...] = ()
    """The ids of the homes this one is a copy of, the nearest first."""
    original: str = ""
    """The home this one was copied from, if it still existed then."""


def home_id(home: Path) -> str:
    """A random id that stays with this home; it names the rows that came from its files."""
    return identity(home).id


def identity(home: Path) -> HomeIdentity:
    """The identity of this home; a copy gets a new one the first time it is read."""
    path = private_folder(home) / ID_NAME
    try:
        if not _read(path):
            new = HomeIdentity(secrets.token_hex(8), machines=(machine.machine_id(),))
            _keep(path, functools.partial(_content, path, new))
        # Read text and place from the same file, even while another process replaces it.
        with path.open("rb") as file:
            known = _parse(file.read().decode("utf-8", "surrogateescape"))
            status = os.fstat(file.fileno())
        if not status.st_nlink:
            # Replaced meanwhile, which changed its times: the new one says who this home is.
            return identity(home)
    except OSError:
        # A home that cannot be written to still needs an identity that does not change between processes.
        return HomeIdentity(_digest(machine.host_name(), str(home)))
    return _resolve(path, known, status)


def root_of(home: Path) -> Path:
    """The root home of the installation a home belongs to; a home below any other folder is a root home itself."""
    above = home.parent.parent
    return above if home.parent.name == "profiles" and _is_root_of(above, home) else home


def _is_root_of(above: Path, home: Path) -> bool:
    """Whether the folder above a profile is a hermes home of the same user."""
    try:
        owner = home.stat().st_uid if home.exists() else os.geteuid()
        is_same_user = above.stat().st_uid == owner
        return is_same_user and (above.name == USUAL_NAME or any((above / name).exists() for name in SIGNS_OF_A_HOME))
    except OSError:
        return False


def homes_of(home: Path) -> list[Path]:
    """The root home and every profile's home below it."""
    root = root_of(home)
    profiles = root / "profiles"
    below = sorted(profiles.iterdir()) if profiles.is_dir() else []
    return [root, *(path for path in below if path.is_dir() and not path.name.startswith("."))]


def pseudonym_key(home: Path, *, may_begin: bool = True) -> bytes:
    """The key that turns phone numbers and user ids into pseudonyms; it never leaves this folder.

    `may_begin`: whether a home that has never had one gets one. Raises OSError or ConfigError rather than inventing one
    otherwise: a key that changes would give the same person a new theme each time.
    """
    folder = private_folder(home)
    path, check = folder / KEY_NAME, folder / CHECK_NAME
    if not path.exists() and not check.exists():
        if not may_begin:
            raise ConfigError(f"{folder} has no {path.name}, so nobody was given a pseudonym here")
        # Whoever comes first decides for all.
        files.create(path, secrets.token_hex(KEY_BYTES).encode())
    known, told = _read(path), _read(check)
    if len(known) != 2 * KEY_BYTES or not set(known) <= set("0123456789abcdef") or told not in ("", _digest(known)):
        raise ConfigError(
            f"{path.name} in {folder} is missing, damaged or another home's: put it back from a backup of this home "
            f"(to go on with everybody under new names: delete {check.name}, and this file if it is damaged)"
        )
    if not told:
        # A home that cannot be written to keeps its key as it is.
        with contextlib.suppress(OSError):
            files.create(check, _digest(known).encode())
    return bytes.fromhex(known)


def inherited(home: Path, known: HomeIdentity, *, shares_database: bool) -> tuple[str, ...]:
    """The former homes whose entries in the embedded database are this home's now.

    A copied database is this home's alone, and so is what it says of the home it was copied from. Where several homes
    share it, a former home belongs to whoever is its nearest descendant. A profile that was cloned beside its original
    is a new workspace and inherits nothing.
    """
    if not known.predecessors or not shares_database:
        return known.predecessors
    root = root_of(home)
    if home != root and (not identity(root).predecessors or _is_below(known.original, root)):
        return ()
    others = [identity(each) for each in homes_of(home) if each != home and (data_folder(each) / ID_NAME).exists()]
    lineages = [(each.id, *each.predecessors) for each in others]

    def is_ours(former: str, distance: int) -> bool:
        return all(former not in lineage or lineage.index(former) > distance for lineage in lineages)

    return tuple(former for distance, former in enumerate(known.predecessors, 1) if is_ours(former, distance))


def _is_below(path: str, root: Path) -> bool:
    return bool(path) and (Path(path) == root or root in Path(path).parents)


def private_folder(home: Path) -> Path:
    """The plugin's folder in a home, created if necessary, closed to everybody else."""
    folder = data_folder(home)
    with contextlib.suppress(OSError):
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            files.give(folder, files.owner_of(home))
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    return folder


def is_copy(noted: HomePlace, found: HomePlace, machines: tuple[str, ...] = ()) -> bool:
    """Whether a file written at one place and found at another is a copy rather than the same file.

    If in doubt, it is: a home with a needless new id only keeps entries too long, while two homes with the same id
    delete each other's.
    """
    is_same_machine = found.machine == noted.machine or found.machine in machines
    is_same_host = is_same_machine and found.host == noted.host
    if found.inode == noted.inode:
        is_same_run = bool(found.boot) and found.boot == noted.boot
        # Device numbers change when a disk is remounted; containers that share a folder differ in everything else.
        is_same_file = found.device == noted.device and (is_same_run or is_same_machine)
        return not (is_same_file or is_same_host)
    # Another file at the same path: a restored one, since two files cannot be in one place.
    return not (is_same_host and found.path == noted.path)


def _resolve(path: Path, known: HomeIdentity, status: os.stat_result) -> HomeIdentity:
    """The identity at the place of a file with this status; writes it down when it is new."""
    noted, found = known.place, _place_of(path, status)
    if noted == found:
        return known
    machines = known.machines if found.machine in known.machines else (*known.machines, found.machine)
    if noted is None or not (is_copy(noted, found, known.machines) or _is_beside(path, noted, found, known.id)):
        new = replace(known, machines=machines)
    else:
        # The next copy may get the inode that this one leaves behind.
        made = map(str, (found.device, found.inode, status.st_ctime_ns))
        new = HomeIdentity(
            _digest(known.id, found.machine, found.host, found.boot, *made),
            machines=(found.machine,),
            predecessors=(known.id, *known.predecessors)[:LONGEST_LINEAGE],
            original=_original(noted, found, known.id),
        )
        logger.warning(
            "this home is a copy of home %s: it becomes home %s, and neither deletes the other's entries",
            known.id,
            new.id,
        )
    with contextlib.suppress(OSError):
        files.replace(path, functools.partial(_content, path, new))
    return new


def _is_beside(path: Path, noted: HomePlace, found: HomePlace, known_id: str) -> bool:
    """Whether the home that the file names is still there, in another folder.

    The snapshot of a file system has the inodes of its original: only the device differs, as it does after a remount.
    A folder that was moved and then copied back has the inode, and its copy the path; `cp -l` leaves one inode in both.
    One folder that is mounted twice shows the same new file at both places.
    """
    if not _original(noted, found, known_id):
        return False
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as probe:
            return not (Path(noted.path).parent / Path(probe.name).name).exists()
    except OSError:
        return False


def _original(noted: HomePlace, found: HomePlace, known_id: str) -> str:
    """The home this one was copied from, if it is still there on this machine."""
    if noted.path == found.path or noted.machine != found.machine:
        return ""
    try:
        other = _parse(_read(Path(noted.path)))
    except OSError:
        return ""
    return str(Path(noted.path).parent.parent) if other.id == known_id else ""


def _place_of(path: Path, status: os.stat_result) -> HomePlace:
    return HomePlace(
        machine.machine_id(), machine.host_name(), machine.boot_id(), status.st_dev, status.st_ino, _real(path)
    )


def _real(path: Path) -> str:
    return str(path.parent.resolve() / path.name)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _parse(text: str) -> HomeIdentity:
    """The first line is the id; the JSON below it may be missing or damaged."""
    name, _, rest = text.partition("\n")
    try:
        told: dict[str, Any] = json.loads(rest)
        return HomeIdentity(
            name.strip(),
            HomePlace(**told["place"]),
            tuple(map(str, told["machines"])),
            tuple(map(str, told["predecessors"])),
            str(told["original"]),
        )
    except (ValueError, KeyError, TypeError):
        return HomeIdentity(name.strip())


def _content(path: Path, known: HomeIdentity, status: os.stat_result) -> bytes:
    """The id file names its own inode, so that whichever of two writers is last, the file is whole."""
    told = asdict(replace(known, place=_place_of(path, status)))
    return f"{told.pop('id')}\n{json.dumps(told)}\n".encode("utf-8", "surrogateescape")


def _keep(path: Path, content: files.Content) -> None:
    """Write a small private file once; whoever comes first decides for all."""
    if not files.create(path, content) and not _read(path):
        # An empty or foreign file is no identity.
        files.replace(path, content)


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            # A restored backup may be readable by everybody.
            with contextlib.suppress(OSError):
                path.chmod(0o600)
        return path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def has_profile(home: Path, name: str) -> bool:
    """Whether a profile of that name lives beneath this home."""
    return os.path.isdir(home / "profiles" / name)  # noqa: PTH112 - a name too long for a folder is none


def usual_home() -> Path | None:
    """The home of a shell that sets no HERMES_HOME; None for a user without a home folder."""
    try:
        return Path.home() / USUAL_NAME
    except RuntimeError:
        return None
