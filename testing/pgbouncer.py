"""A real pgbouncer before a test server.

    with PgBouncer(folder, dsn, mode="transaction") as pooler:
        ... connect to pooler.dsn

It refuses to run as root and then runs as nobody, who may not see the server's socket: a proxy stands between them. A
server on a loopback port needs none.
"""

from __future__ import annotations

import configparser
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
EXAMPLE = Path(__file__).parents[1] / "docs" / "deploy" / "pgbouncer.ini"
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
        host, port = str(self._info["host"]), int(self._info["port"] or 5432)
        self._proxy = None if host == "127.0.0.1" else Proxy(Path(host) / f".s.PGSQL.{port}")
        self._server_port = port
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])

    @property
    def dsn(self) -> str:
        """How to connect through it."""
        return make_conninfo(host="127.0.0.1", port=self.port, dbname=self._info["dbname"], user=self._info["user"])

    def __enter__(self) -> Self:
        if self._proxy is not None:
            self._server_port = self._proxy.__enter__().port
        self._folder.mkdir(parents=True, exist_ok=True)
        password = f" password={self._password}" if self._password else ""
        configuration = self._folder / "pgbouncer.ini"
        # As the guide has it, but for where everything is, and who may connect.
        settings = configparser.ConfigParser(comment_prefixes=(";",), interpolation=None)
        settings.read(EXAMPLE, encoding="utf-8")
        assert settings["pgbouncer"]["pool_mode"] == "transaction"
        settings["databases"] = {"*": f"host=127.0.0.1 port={self._server_port} user={self._info['user']}{password}"}
        settings["pgbouncer"].update(
            {
                "listen_port": str(self.port),
                "unix_socket_dir": "",
                "auth_type": "any",
                "pool_mode": self._mode,
                "default_pool_size": str(self._pool_size),
                **({"user": "nobody"} if os.geteuid() == 0 else {}),
            }
        )
        del settings["pgbouncer"]["auth_file"]
        with configuration.open("w", encoding="utf-8") as file:
            settings.write(file)
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
        if self._proxy is not None:
            self._proxy.__exit__(kind, error, trace)

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text(encoding="utf-8")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
