"""A real pgbouncer before a test server.

    with PgBouncer(folder, dsn, mode="transaction") as pooler:
        ... connect to pooler.dsn

It refuses to run as root and then runs as nobody, who may not see the server's socket: a proxy stands between them.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from testing.proxy import Proxy
from testing.waiting import wait_until

PROGRAM = Path("/usr/sbin/pgbouncer")

Mode = Literal["session", "transaction", "statement"]


class PgBouncer:
    """Runs while its block does; whoever connects becomes the role of the given connection string."""

    def __init__(
        self, folder: Path, dsn: str, password: str, *, mode: Mode = "transaction", pool_size: int = 10
    ) -> None:
        self._folder = folder
        self._info = conninfo_to_dict(dsn)
        self._password = password
        self._mode = mode
        self._pool_size = pool_size
        self._proxy = Proxy(Path(str(self._info["host"])) / f".s.PGSQL.{self._info['port']}")
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])

    @property
    def dsn(self) -> str:
        """How to connect through it."""
        return make_conninfo(host="127.0.0.1", port=self.port, dbname=self._info["dbname"], user=self._info["user"])

    def __enter__(self) -> Self:
        self._proxy.__enter__()
        self._folder.mkdir(parents=True, exist_ok=True)
        configuration = self._folder / "pgbouncer.ini"
        configuration.write_text(
            f"""
[databases]
* = host=127.0.0.1 port={self._proxy.port} user={self._info["user"]} password={self._password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = {self._mode}
default_pool_size = {self._pool_size}
max_client_conn = 1000
ignore_startup_parameters = extra_float_digits
{"user = nobody" if os.geteuid() == 0 else ""}
""",
            encoding="utf-8",
        )
        for path in (self._folder, configuration):
            path.chmod(0o755 if path.is_dir() else 0o644)
        if not PROGRAM.exists():
            raise RuntimeError(f"{PROGRAM} is missing; run tests/install.sh")
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen([str(PROGRAM), str(configuration)], stdout=log, stderr=log)
        wait_until(self._listens)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
        self._proxy.__exit__(kind, error, trace)

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text(encoding="utf-8")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
