"""How fast the journal is emptied after an outage of ten minutes at fifty writes a second.

    python -m bench.outage [--records 30000] [--settings '{"write_queue_maxsize": 512}']

The real provider writes turns of 1 kB while nobody answers where Postgres should be; then Postgres is there.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector import migrate
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine import close_all, engine_for
from hermes_memory_pgvector.model_tables import ModelSpec
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.server import RUNTIME_ROLE, EmbeddedPostgres

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--settings", default="{}")
    arguments = parser.parse_args()
    logging.getLogger("hermes_memory_pgvector").setLevel(logging.ERROR)
    home = Path(tempfile.mkdtemp(prefix="bench-outage-"))
    server = EmbeddedPostgres(home / "server" / "pgvector")
    try:
        info = server.ensure_running(Deadline.after(120))
        with psycopg.connect(info.owner_dsn, autocommit=True) as admin:
            admin.execute("CREATE DATABASE outage")
        owner, runtime = (make_conninfo(dsn, dbname="outage") for dsn in (info.owner_dsn, info.runtime_dsn))
        migrate.apply(owner, runtime_role=RUNTIME_ROLE, model=ModelSpec("bench", 256))
        server.stop(Deadline.after(60))
        settings = {"dsn": runtime, "embed_url": "http://127.0.0.1:9/", **json.loads(arguments.settings)}
        agent = PgvectorMemoryProvider(settings)
        agent.initialize("s", hermes_home=str(home), gateway_session_key="outage", agent_context="primary")
        said = [(words(2 * n, 200), words(2 * n + 1, 824)) for n in range(arguments.records)]
        begun = time.perf_counter()
        for number, (user, answer) in enumerate(said):
            agent.sync_turn(user, answer, session_id=f"s{number // TURNS_PER_SESSION}")
        appended = time.perf_counter() - begun
        engine = engine_for(home, settings)[0]
        while not engine.writer.breaker.is_open:
            time.sleep(0.01)
        server.ensure_running(Deadline.after(60))
        first = engine.writer.status().waiting
        while engine.writer.status().waiting == first:
            time.sleep(0.001)
        # From the first batch on: how long the writer waited before it tried again is not its speed.
        left, begun = engine.writer.status().waiting, time.perf_counter()
        if not engine.writer.flush(Deadline.after(600)):
            sys.exit("the journal was not emptied")
        seconds = time.perf_counter() - begun
        with psycopg.connect(owner) as connection:
            row = connection.execute("SELECT count(*) FROM conversations").fetchone()
        stored = row[0] if row else 0
    finally:
        close_all(Deadline.after(5))
        server.stop(Deadline.after(60), mode="immediate")
        shutil.rmtree(home, ignore_errors=True)
    rate = left / seconds
    print(f"{arguments.records} records of 1 kB appended at {arguments.records / appended:,.0f}/s, the server down")
    print(f"{left} of them drained in {seconds:.2f} s: {rate:,.0f} records/s, {stored} rows stored")
    print(f"target: at least {TARGET:,.0f} records/s, two rows each: {'kept' if rate >= TARGET else 'MISSED'}")
    if stored != 2 * arguments.records:
        sys.exit(f"{stored} rows instead of {2 * arguments.records}")


if __name__ == "__main__":
    main()
