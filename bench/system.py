"""The systems that are measured: where each lives, and a process of it to talk to."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import hermes_memory_pgvector

Name = Literal["ours", "peer"]
PEER_VERSION = "1.0.0"
PEER_PACKAGES = (
    f"hermes-memory-pgvector=={PEER_VERSION}",
    "psycopg[binary]",
    "hermes-agent==0.19.0",
    "aiohttp>=3.11,<4",
)
ADAPTER = Path(__file__).with_name("adapter.py")
PACKAGES = ("hermes-memory-pgvector", "hermes-agent", "psycopg")


@dataclass(frozen=True, slots=True)
class System:
    """A memory provider and the interpreter it is installed under."""

    name: Name
    python: Path
    module: str
    """Whose `register` hands over the provider."""
    versions: dict[str, str]
    path: str = ""
    """What PYTHONPATH must be, for a package that is not installed."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables that belong to the system itself."""
        return {"PYTHONPATH": self.path} if self.path else {}


class ChildError(RuntimeError):
    """The measured process failed or fell silent."""


def our_system() -> System:
    """This checkout, under the interpreter that runs the bench."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    # The same files as in this process, also where it runs from a copy of the repository.
    path = str(Path(hermes_memory_pgvector.__file__).parents[1])
    return System("ours", Path(sys.executable), "hermes_memory_pgvector.hermes_plugin", versions, path)


def peer_system(cache: Path) -> System:
    """The published package in an environment of its own: both distributions have the same name."""
    tag = f"peer-{PEER_VERSION}-host-py{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache / tag
    python = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        print(f"installing the peer into {folder} (once)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=300)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", *PEER_PACKAGES], check=True, timeout=1800)
        done.touch()
    code = f"import importlib.metadata as m, json; print(json.dumps({{n: m.version(n) for n in {PACKAGES!r}}}))"
    shown = subprocess.run([str(python), "-c", code], check=True, timeout=60, capture_output=True, text=True).stdout
    return System("peer", python, "hermes_pgvector", json.loads(shown))


def migrate_peer(peer: System, owner_dsn: str, role: str) -> None:
    """The peer's own migrations, by its own command."""
    command = [str(peer.python.with_name("hermes-pgvector")), "migrate"]
    subprocess.run(
        [*command, "--admin-dsn", owner_dsn, "--runtime-role", role], check=True, timeout=120, capture_output=True
    )


class Child:
    """One process of a system; every answer is waited for within a bound."""

    def __init__(self, system: System, home: Path, log: Path) -> None:
        self.system = system
        self._log: IO[bytes] = log.open("ab")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_PGVECTOR_")}
        environment.pop("PYTHONPATH", None)
        environment |= {"HERMES_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", **system.environment}
        self._process = subprocess.Popen(
            [str(system.python), str(ADAPTER), system.module, str(home)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment, text=True, bufsize=1,
        )  # fmt: skip
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.returned = 0
        """How many streamed calls have returned so far."""

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "returned" in message:
                self.returned = int(message["returned"])
            else:
                self._answers.put(message)
        self._answers.put(None)

    def tell(self, do: str, **arguments: Any) -> None:
        """Ask for something without waiting for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self, seconds: float = 120.0) -> dict[str, Any]:
        """The answer to the oldest request."""
        try:
            message = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise ChildError(f"{self.system.name} did not answer within {seconds:.0f} s") from None
        if message is None:
            raise ChildError(f"{self.system.name}: the process has ended")
        if not message["ok"]:
            raise ChildError(f"{self.system.name}: {message['error']}")
        return message

    def ask(self, do: str, seconds: float = 120.0, **arguments: Any) -> dict[str, Any]:
        """Ask and wait."""
        self.tell(do, **arguments)
        return self.answer(seconds)

    def wait_returned(self, count: int, seconds: float) -> None:
        """Wait until so many streamed calls have returned."""
        end = time.monotonic() + seconds
        while self.returned < count and time.monotonic() < end:
            time.sleep(0.001)

    def send(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        self._process.send_signal(number)
        self._process.wait(30)

    def leave(self, seconds: float = 60.0) -> None:
        """Let the interpreter end in its usual way, without a shutdown hook."""
        self.tell("exit")
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise ChildError(f"{self.system.name} did not leave within {seconds:.0f} s") from None

    def close(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(30)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._log.close()


@contextlib.contextmanager
def child(system: System, home: Path, name: str) -> Iterator[Child]:
    """A process of a system, ended at the end of the block."""
    made = Child(system, home, home / f"{name}.log")
    try:
        yield made
    finally:
        made.close()
