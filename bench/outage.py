"""How fast the journal is emptied after an outage of ten minutes at fifty writes a second.

    python -m bench.outage [--records 30000] [--settings '{"write_queue_maxsize": 512}']

The real provider writes turns of 1 kB while nobody answers where Postgres should be; then Postgres is there. A record
is what one hook has written: one row when only one side of a turn is worth keeping, two when both are.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine.registry import close_all, engine_for
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import ModelSpec
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres

TARGET = 5000.0
TURNS_PER_SESSION = 20
# Enough different words that the index has something to do, few enough that they repeat as speech does.
STEMS = [
    f"{first}{second}{third}" for first in "bdgklmnprst" for second in "aeiou" for third in ("nd", "st", "rk", "l")
]


def words(seed: int, size: int) -> str:
    parts: list[str] = [str(seed)]
    length = len(parts[0])
    value = seed * 2654435761 % 2**32
    while length < size:
        value = (value * 1103515245 + 12345) % 2**31
        parts.append(STEMS[(value >> 8) % len(STEMS)] if value % 3 else "the")
        length += len(parts[-1]) + 1
    return " ".join(parts)[:size]


@dataclass(frozen=True, slots=True)
class Drain:
    """How fast a backlog went."""

    rows_per_record: int
    records: int
    appended_per_second: float
    records_per_second: float

    @property
    def rows_per_second(self) -> float:
        """The same in rows."""
        return self.records_per_second * self.rows_per_record


def drain(home: Path, records: int, rows_per_record: int, settings: dict[str, object]) -> Drain:
    """Write turns while the server is down, start it, and wait until they have arrived."""
    server = EmbeddedPostgres(home / "server" / "pgvector")
    try:
        info = server.ensure_running(Deadline.after(120))
        name = f"outage_{rows_per_record}"
        with psycopg.connect(info.owner_dsn, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        owner, runtime = (make_conninfo(dsn, dbname=name) for dsn in (info.owner_dsn, info.runtime_dsn))
        migrate.apply(owner, runtime_role=RUNTIME_ROLE, model=ModelSpec("bench", 256))
        server.stop(Deadline.after(60))
        given = {"dsn": runtime, "embed_url": "http://127.0.0.1:9/", **settings}
        agent = PgvectorMemoryProvider(given)
        agent.initialize("s", hermes_home=str(home), gateway_session_key="outage", agent_context="primary")
        said = [_exchange(number, rows_per_record) for number in range(records)]
        begun = time.perf_counter()
        for number, (user, answer) in enumerate(said):
            agent.sync_turn(user, answer, session_id=f"s{number // TURNS_PER_SESSION}")
        appended = time.perf_counter() - begun
        writer = engine_for(home, given)[0].writer
        while not writer.breaker.is_open:
            time.sleep(0.01)
        server.ensure_running(Deadline.after(60))
        first = writer.status().waiting
        while writer.status().waiting == first:
            time.sleep(0.001)
        # From the first batch on: how long the writer waited before it tried again is not its speed.
        left, begun = writer.status().waiting, time.perf_counter()
        if not writer.flush(Deadline.after(600)):
            sys.exit("the journal was not emptied")
        seconds = time.perf_counter() - begun
        with psycopg.connect(owner) as connection:
            row = connection.execute("SELECT count(*) FROM conversations").fetchone()
        if row != (rows_per_record * records,):
            sys.exit(f"{row} rows instead of {rows_per_record * records}")
        return Drain(rows_per_record, records, records / appended, left / seconds)
    finally:
        close_all(Deadline.after(5))
        server.stop(Deadline.after(60), mode="immediate")


def _exchange(number: int, rows: int) -> tuple[str, str]:
    # Thanks are not worth a row.
    return words(2 * number, 200) if rows == 2 else "thanks", words(2 * number + 1, 824 if rows == 2 else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--settings", default="{}")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    logging.getLogger("hermes_memory_pgvector").setLevel(logging.ERROR)
    found: list[Drain] = []
    for rows in (1, 2):
        home = Path(tempfile.mkdtemp(prefix="bench-outage-"))
        try:
            found.append(drain(home, arguments.records, rows, json.loads(arguments.settings)))
        finally:
            shutil.rmtree(home, ignore_errors=True)
    if arguments.json:
        print(json.dumps([asdict(each) | {"rows_per_second": each.rows_per_second} for each in found]))
        return
    for each in found:
        print(
            f"{each.records} records of 1 kB in {each.rows_per_record} row(s), appended at"
            f" {each.appended_per_second:,.0f}/s with the server down, drained at {each.records_per_second:,.0f}"
            f" records/s, {each.rows_per_second:,.0f} rows/s"
        )
    verdict = "kept" if found[0].records_per_second >= TARGET else "MISSED"
    print(f"target: at least {TARGET:,.0f} records/s of one row: {verdict}")


if __name__ == "__main__":
    main()
