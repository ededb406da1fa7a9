"""A cluster with a node away: what is said in its themes waits in the database, and other themes go on.

The coordinator keeps such records in the transaction that moves the watermark, so none is lost and none is stored
twice. Once its node is back, the records of a theme are stored in the order in which they came; until then, later ones
of that theme come behind them, whoever writes them. On one server nothing of this is ever asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.journal import Record, codec
from hermes_memory_pgvector.store import cluster, dead_letters, distributed, gate, memories
from hermes_memory_pgvector.store.pool import Connection, Pool
from hermes_memory_pgvector.store.reach import WRITER
from hermes_memory_pgvector.values import MemoryOperation, WriteItem

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
LOOK_SHARE = 5.0
"""A node that is silent costs a long wait for every look: so many times as long nobody looks again."""
MOST_SECONDS = 60.0
REASON = "waits for a node of the cluster that is away"


class AbsentNodes:
    """Which nodes are away, and whether records wait for them. Used by the writer's thread; any thread may read."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.names: frozenset[str] = frozenset()
        self.waiting = 0
        """How many records wait in the database, as far as we know."""
        self._is_cluster = False
        self._must_look = False
        self._since = 0.0
        self._delivered = 0
        self._next_look_at = 0.0
        self._lies_away: dict[str, bool] = {}
        """Themes whose node is known; forgotten with every look, because shards move."""

    def met(self, connection: Connection) -> None:
        """This is the database. If it is a cluster, somebody may have left something that waits."""
        is_cluster = distributed.is_adapted(connection)
        self._must_look = self._must_look or (is_cluster and not self._is_cluster)
        self._is_cluster = is_cluster

    def is_due(self) -> bool:
        """Whether to look again, because a node is away or something waits."""
        return bool(self._must_look or self.names or self.waiting) and time.monotonic() >= self._next_look_at

    def has_news(self) -> bool:
        """After a failure: whether a node is away that was not before, so that it is worth trying again at once."""
        if not self._is_cluster:
            return False
        before = self.names
        try:
            self.look()
        except MemoryPluginError:
            return False
        return bool(self.names - before)

    def look(self) -> None:
        """Ask the coordinator which nodes answer, and what waits for them."""
        started = time.monotonic()
        with self._pool.transaction(Deadline.after(MOST_SECONDS), reach=WRITER) as connection:
            names = cluster.away(connection)
            self.waiting = dead_letters.count_waiting(connection)
        now = time.monotonic()
        self._next_look_at = now + min(MOST_SECONDS, max(LOOK_SECONDS, LOOK_SHARE * (now - started)))
        self._lies_away = {}
        self._must_look = False
        if names and not self._since:
            self._since, self._delivered = time.time(), 0
            logger.warning(
                "%s of the cluster cannot be reached; what is said in its themes waits in the database, "
                "other themes go on",
                ", ".join(sorted(names)),
            )
        self.names = names

    def delivered(self, count: int) -> None:
        """So many records that have waited are stored."""
        self.waiting = max(0, self.waiting - count)
        self._delivered += count

    def all_delivered(self) -> None:
        """Nothing waits any more."""
        self.waiting = 0
        if self._since or self._delivered:
            logger.warning(
                "all nodes of the cluster answer again%s; %d waiting records were stored",
                f" after {time.time() - self._since:.0f} s" if self._since else "",
                self._delivered,
            )
        self._since, self._delivered = 0.0, 0

    def divider(self, connection: Connection) -> Divider | None:
        """Tells what to set aside in this transaction; None where everything can be stored."""
        if not self._is_cluster:
            return None
        waiting = dead_letters.waiting_themes(connection)
        if waiting and not self.waiting:
            # Another process has set something aside: this one looks after it, too.
            self.waiting = len(waiting)
        return Divider(self, connection, waiting) if waiting or self.names else None

    def lie_away(self, connection: Connection, themes: Collection[str]) -> set[str]:
        """Those of these themes whose node is away."""
        if not self.names:
            return set()
        unknown = [theme for theme in themes if theme not in self._lies_away]
        if unknown:
            found = cluster.themes_on(connection, self.names, unknown)
            self._lies_away.update((theme, theme in found) for theme in unknown)
        return {theme for theme in themes if self._lies_away[theme]}


class Divider:
    """Divides the records of one transaction into those to store and those to set aside."""

    def __init__(self, absent: AbsentNodes, connection: Connection, behind: Collection[str]) -> None:
        """`behind` are themes with earlier records that wait."""
        self._absent = absent
        self._connection = connection
        self.behind = set(behind)
        self._gate = gate.look(connection)
        self._records: list[tuple[str, int, bytes]] = []
        self._themes: list[set[str]] = []

    def keeps_back(self, items: Sequence[WriteItem]) -> bool:
        """Whether these items have to wait; if so, what comes after them in their themes has to as well."""
        themes = {self._gate.renamed(item).theme for item in items}
        if not (themes & self.behind or self._absent.lie_away(self._connection, themes) or self._asks_absent(items)):
            return False
        self.behind |= themes
        return True

    def _asks_absent(self, items: Sequence[WriteItem]) -> bool:
        """Whether these can be stored only with a look at every node."""
        told = [item for item in items if isinstance(item, MemoryOperation)]
        return bool(self._absent.names) and memories.asks_everywhere(self._connection, told)

    def takes(self, record: Record, items: Sequence[WriteItem]) -> bool:
        """Whether a record waits, which is then set aside with `store`."""
        if not self.keeps_back(items):
            return False
        # As it would be stored: the journal's own bytes may hold secrets.
        self._records.append((record.writer, record.seq, codec.encode(items)))
        self._themes.append({self._gate.renamed(item).theme for item in items})
        return True

    def store(self) -> int:
        """Set aside what waits; how many records those are."""
        count = len(self._records)
        if count:
            dead_letters.set_aside(self._connection, self._records, self._themes, REASON)
            self._records, self._themes = [], []
        return count
