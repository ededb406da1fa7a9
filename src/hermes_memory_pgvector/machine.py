"""What the system says about this machine, this boot and its processes.

Linux says most of it in files under /proc. Elsewhere some of it is unknown, and an unknown part is empty: nothing may
depend on it, because whoever asks has to do without. HERMES_PGVECTOR_PORTABLE makes Linux as silent as the others, so
that tests can show it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

IS_LINUX = sys.platform == "linux" and not os.environ.get("HERMES_PGVECTOR_PORTABLE")
IS_MAC = sys.platform == "darwin"
MACHINE_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
PROC = Path("/proc")
BOOT_FILE = PROC / "sys" / "kernel" / "random" / "boot_id"


def machine_id() -> str:
    """A name of this installation of the system that no other machine has."""
    if IS_LINUX:
        return next(filter(None, map(_first_line, MACHINE_FILES)), "")
    return _mac_id() if IS_MAC else ""


def host_name() -> str:
    """What tells machines with the same id apart, such as clones of one image; a Mac's id says it all."""
    # The name of a Mac changes with the network it is in.
    return "" if IS_MAC and _mac_id() else socket.gethostname()


def boot_id() -> str:
    """A name of this boot, the same for all containers of a machine."""
    if IS_LINUX:
        return _first_line(BOOT_FILE)
    return _mac_boot() if IS_MAC else ""


def works_in(pid: int, folder: Path) -> bool | None:
    """Whether a folder is a process's working directory; None when the system does not say."""
    if not IS_LINUX:
        return None
    try:
        return os.path.samestat((PROC / str(pid) / "cwd").stat(), folder.stat())
    except OSError:
        return None


def command_lines(only: int | None = None) -> dict[int, str]:
    """The command lines of all live processes, or of one; zombies have none."""
    if not IS_LINUX:
        return _listed_by_ps(only)
    found: dict[int, str] = {}
    for process in [PROC / str(only)] if only else PROC.iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit():
                found[int(process.name)] = (process / "cmdline").read_bytes().decode(errors="replace")
    return found


def path_of_descriptor(descriptor: int) -> str | None:
    """A path that leads to an open folder whatever the permissions of its parents; None where there is none."""
    return str(PROC / "self" / "fd" / str(descriptor)) if IS_LINUX else None


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end of a socket; None where the system does not say."""
    if not IS_LINUX:
        return None
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)


def _listed_by_ps(only: int | None) -> dict[int, str]:
    which = ["-p", str(only)] if only else ["-ax"]
    ps = ["/bin/ps", *which, "-ww", "-o", "pid=,stat=,command="]
    listing = subprocess.run(ps, capture_output=True, timeout=10, check=False).stdout  # noqa: S603 - no outside text
    found: dict[int, str] = {}
    for line in listing.decode(errors="replace").splitlines():
        pid, state, command = [*line.split(None, 2), ""][:3]
        if not state.startswith("Z"):
            found[int(pid)] = command
    return found


def _mac_id() -> str:
    """The id of the hardware, from the C library."""
    with contextlib.suppress(AttributeError, OSError):
        made = ctypes.create_string_buffer(16)
        wait = (ctypes.c_long * 2)(1, 0)
        if ctypes.CDLL(None, use_errno=True).gethostuuid(made, ctypes.byref(wait)) == 0:
            return made.raw.hex()
    return ""


def _mac_boot() -> str:
    with contextlib.suppress(AttributeError, OSError):
        told, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        if ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", told, ctypes.byref(size), None, 0) == 0:
            return told.value.decode("ascii", "replace")
    return ""


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""
