"""Running the programs of Postgres: as whom, in which environment, and for how long."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hermes_memory_pgvector import files, machine
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DeadlineExceeded, ServerError

UNKNOWN = "unknown reason"
LONGEST_REFUSAL = 200
# What Postgres prints, and what it means in our own words.
REASONS = (
    ("No space left on device", "the disk is full"),
    ("Disk quota exceeded", "the disk quota is used up"),
    ("could not look up effective user ID", "the user has no entry in the system's user database; add one"),
    ("Cannot allocate memory", "there is not enough memory"),
    ("could not map anonymous shared memory", "there is not enough memory"),
    ("wrong ownership", "the data belongs to another user"),
    ("Permission denied", "permission denied"),
    ("Address already in use", "its address is in use"),
    ("parameter", "a setting is not valid"),
)


class Account(NamedTuple):
    """The user the server runs as."""

    uid: int
    gid: int
    switches: bool
    """Whether this process is root and has to become that user."""

    @property
    def owner(self) -> files.Owner:
        """As the owner of files."""
        return self.uid, self.gid


class ProgramOutcome(NamedTuple):
    """The result of a program; its output is for decisions, never for messages."""

    returncode: int
    output: str


@contextlib.contextmanager
def reachable(directory: Path, account: Account) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A path through which the account's processes reach the directory, and the descriptors they must inherit for it.

    An open descriptor leads to the directory whatever the permissions of its parents: a home below /root can hold its
    own data and still stay closed to everybody.
    """
    if not account.switches:
        yield str(directory), ()
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        path = machine.path_of_descriptor(descriptor)
        yield path or str(directory), (descriptor,) if path else ()
    finally:
        os.close(descriptor)


def run_program(
    command: Sequence[str], account: Account, deadline: Deadline, *, stdin: str = "", inherit: Sequence[int] = ()
) -> ProgramOutcome:
    """Run a program to its end; at the deadline, kill it and everything it started."""
    with _popen(command, account, stdin=subprocess.PIPE, stdout=subprocess.PIPE, inherit=inherit) as process:
        try:
            output, _ = process.communicate(stdin.encode(), deadline.remaining())
        except subprocess.TimeoutExpired:
            raise DeadlineExceeded(f"{Path(command[0]).name} did not finish in time") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    return ProgramOutcome(process.returncode, output.decode(errors="replace"))


def launch_detached(
    command: Sequence[str], account: Account, deadline: Deadline, log: int, inherit: Sequence[int]
) -> None:
    """Start a program that outlives us: own session, own log, none of our descriptors but those to inherit.

    The shell in between ends at once, so the program is not our child and leaves us no zombie.
    """
    detached = ["/bin/sh", "-c", '"$@" &', "sh", *command]
    with _popen(detached, account, stdin=subprocess.DEVNULL, stdout=log, inherit=inherit) as shell:
        try:
            shell.wait(deadline.remaining())
        except subprocess.TimeoutExpired:
            shell.kill()
            raise DeadlineExceeded("The embedded Postgres could not be launched in time") from None


def reason_in(output: str) -> str:
    """The known cause, in our own words; the output itself may contain what we must not show."""
    return next((meaning for sign, meaning in REASONS if sign in output), UNKNOWN)


def refusal_in(output: str) -> str:
    """The cause, or what Postgres refused, without the values that its sentence may quote."""
    known = reason_in(output)
    said = re.search(r"(?:ERROR|FATAL): +([^\n]*)", output) or re.search(r"(?m)^pg_\w+: (?:error: )?([^\n]*)", output)
    if known != UNKNOWN or said is None:
        return known
    return said.group(1).partition(': "')[0].strip()[:LONGEST_REFUSAL]


def processes_named(name: str, *, only: int | None = None) -> list[int]:
    """The live Postgres processes with a cluster name in their command line or title; zombies have none."""
    return [pid for pid, command in machine.command_lines(only).items() if name in command and "postgres" in command]


def _popen(
    command: Sequence[str], account: Account, *, stdin: int, stdout: int, inherit: Sequence[int]
) -> subprocess.Popen[bytes]:
    # A clean environment: the caller's PGDATA, PGOPTIONS or locale must not reach the server.
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        return subprocess.Popen(  # noqa: S603 - absolute paths of our own choice, no shell text from outside
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(inherit),
            start_new_session=True,
            cwd="/",
            umask=0o077,
            env={**kept, "LC_ALL": "C", "TZ": "UTC"},
            user=account.uid if account.switches else None,
            group=account.gid if account.switches else None,
            extra_groups=[] if account.switches else None,
        )
    except OSError as error:
        raise ServerError(f"{Path(command[0]).name} cannot be run: {error.strerror}") from error
