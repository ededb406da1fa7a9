"""What a Citus cluster says of itself: its nodes, whether all have our functions, and where a theme's statements go."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from hermes_memory_pgvector.store.pool import Connection
from hermes_memory_pgvector.store.statements import cluster_statement

ROUTED = (
    "conversations",
    "memory_entries",
    "memory_operations",
    "memory_sources",
    "delegations",
    "recall_log",
    "theme_growth",
)
"""Tables whose statements about one theme must go to one shard."""
TASKS = re.compile(r"Task Count: (\d+)")


@dataclass(frozen=True, slots=True)
class Node:
    """One Postgres of the cluster."""

    name: str
    is_coordinator: bool
    is_active: bool
    answers: bool
    shards: int


def nodes(connection: Connection) -> list[Node]:
    """Every node and whether the coordinator reaches it."""
    rows: list[Any] = connection.execute(cluster_statement("nodes")).fetchall()
    return [
        Node(str(name), bool(first), bool(active), bool(answers), int(shards))
        for name, first, active, answers, shards in rows
    ]


def away(connection: Connection) -> frozenset[str]:
    """The names of the nodes that do not answer, or that were taken out of use."""
    return frozenset(node.name for node in nodes(connection) if not (node.answers and node.is_active))


def leave_out_absent(connection: Connection) -> None:
    """Let this transaction's searches of all themes pass over the nodes that do not answer."""
    connection.execute(cluster_statement("leave_out"), {"nodes": sorted(away(connection))})


def themes_on(connection: Connection, names: Collection[str], themes: Sequence[str]) -> set[str]:
    """Those of these themes that lie on these nodes."""
    asked = {"nodes": sorted(names), "themes": list(themes)}
    rows: list[Any] = connection.execute(cluster_statement("away_themes"), asked).fetchall()
    return {str(row[0]) for row in rows}


def put_off_vectors(connection: Connection, seconds: float) -> int:
    """Put off the rows whose texts cannot be read now because their node is away; return how many."""
    names = away(connection)
    if not names:
        return 0
    return connection.execute(cluster_statement("put_off"), {"nodes": sorted(names), "seconds": seconds}).rowcount


def strangers(connection: Connection) -> list[str]:
    """The nodes whose functions are not those of the coordinator."""
    rows: list[Any] = connection.execute(cluster_statement("functions")).fetchall()
    own = rows[0][2] if rows else None
    return [str(name) for name, is_told, said in rows if not is_told or said != own]


def shards(connection: Connection) -> tuple[int, int]:
    """How many shards there are, and how many of them have functions."""
    row: Any = connection.execute(cluster_statement("shards")).fetchone()
    return int(row[0]), int(row[1])


def scattered(connection: Connection) -> list[str]:
    """The tables where a statement about one theme goes to more than one shard."""
    found = []
    for name in ROUTED:
        asked = sql.SQL("EXPLAIN (COSTS OFF) SELECT * FROM {} WHERE agent_identity = 'a theme'").format(
            sql.Identifier(name)
        )
        rows: list[Any] = connection.execute(asked).fetchall()
        tasks = TASKS.findall("\n".join(str(row[0]) for row in rows))
        if tasks != ["1"]:
            found.append(name)
    return found
