"""Checks of a Citus cluster: every node answers, has every function, and what is about one theme goes to one shard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_memory_pgvector.setup import terminal
from hermes_memory_pgvector.setup.checks.finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from hermes_memory_pgvector.store.pool import Connection


def check(connection: Connection) -> Iterator[Finding]:
    """Nothing where the tables are all in one place."""
    from hermes_memory_pgvector.store import cluster, dead_letters, distributed

    if not distributed.is_adapted(connection):
        return
    nodes = cluster.nodes(connection)
    away = [node.name for node in nodes if not node.answers]
    workers = [node for node in nodes if node.shards]
    waiting = terminal.count(found := dead_letters.count_waiting(connection), "record")
    if away:
        yield problem(
            "cluster",
            f"{', '.join(away)} cannot be reached from the coordinator: what is said in its themes waits in the "
            f"database ({waiting} now), and what they know is not recalled, until it is back",
            "start that node, or promote its standby",
            unreachable=True,
        )
        return
    if found:
        yield warning(
            "cluster",
            f"every node answers, but {waiting} that came while one was away are not stored yet",
            "start hermes, or run: hermes-pgvector up; any process stores them within seconds",
        )
    yield ok("cluster", f"{terminal.count(len(nodes), 'node')}, themes on {len(workers)} of them, all reachable")
    there, known = cluster.shards(connection)
    strangers = cluster.strangers(connection)
    if there != known:
        yield problem("shards", f"{there - known} of {there} shards have no functions yet", "hermes-pgvector migrate")
    elif strangers:
        yield problem(
            "shards", f"{', '.join(strangers)} has not every function of this version", "hermes-pgvector migrate"
        )
    else:
        yield ok("shards", f"{terminal.count(there, 'shard')}; every node has every function")
    scattered = cluster.scattered(connection)
    if scattered:
        yield problem(
            "routing",
            f"statements about one theme go to several shards: {', '.join(scattered)}",
            "hermes-pgvector migrate --citus",
        )
    else:
        yield ok("routing", "a statement about one theme goes to one shard")
