"""Forgetting: what somebody names goes from every place that can be reached, leaves tombstones, and a receipt.

The order matters. The receipt and the tombstones of whole themes and sessions come first, while the gate is closed, so
that from then on nothing of it is stored. Rows go in small transactions, each with the tombstones of its words. The
files of this machine's homes come next, and last what the planner remembers. Whoever is killed in between runs the
same command again: what is gone stays gone.
"""

from __future__ import annotations

import difflib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_pgvector.capture.refused_writes import Refusals, noted_items
from hermes_memory_pgvector.care import audit, leftovers
from hermes_memory_pgvector.care.actor import Actor
from hermes_memory_pgvector.config.home import homes_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine import forgotten, status_file
from hermes_memory_pgvector.engine.forgotten import Judge
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.journal.redaction import items_in, redact_folder
from hermes_memory_pgvector.journal.segment import list_directory
from hermes_memory_pgvector.store import erasure, gate, installation, receipts, tombstones
from hermes_memory_pgvector.store.erasure import Counted, Erased, FoundMemory, FoundTurn, Selection
from hermes_memory_pgvector.store.pool import Connection, Pool
from hermes_memory_pgvector.store.reach import OPERATOR, OVERVIEW
from hermes_memory_pgvector.store.receipts import Receipt
from hermes_memory_pgvector.values import AddMemory, AddTurn, ReplaceMemory, WriteItem

JOURNAL_NAME = "journal"
STEP_SECONDS = 120.0
GATE_SECONDS = 70.0
"""A little longer than a writer's batch may take."""
ANSWER_SECONDS = 15.0
"""How long running processes have to go on in new files."""
SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be forgotten."""

    themes: tuple[Counted, ...]
    memories: tuple[FoundMemory, ...]
    sample: tuple[FoundTurn, ...]
    counts: dict[str, int]
    standing: tuple[leftovers.Line, ...]
    """Lines of MEMORY.md and USER.md that hold it: the files are the host's, and stay as they are."""
    host_messages: int
    """Messages in the host's own session store that hold it."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to forget."""
        return not any(self.counts.values())


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, and what is left where we may not or cannot erase."""

    receipt: Receipt
    standing: tuple[leftovers.Line, ...]
    host_messages: int


@dataclass(slots=True)
class Forgetting:
    """One request to forget."""

    pool: Pool
    home: Path
    settings: Settings
    selections: Sequence[Selection]
    named: Sequence[str]
    progress: Callable[[str], None] = field(default=lambda _: None)

    def plan(self) -> Plan:
        """Look, and change nothing."""
        cut = datetime.now(UTC)
        counts: dict[str, int] = {}
        themes: list[Counted] = []
        memories: list[FoundMemory] = []
        sample: list[FoundTurn] = []
        operations = delegations = recalls = 0
        with self.pool.transaction(Deadline.after(STEP_SECONDS), reach=OVERVIEW) as connection:
            for selection in self.selections:
                themes += erasure.count_turns(connection, selection, cut)
                memories += erasure.find_memories(connection, selection, cut)
                sample += erasure.find_turns(connection, selection, cut, SAMPLES)
                operations += erasure.count_operations(connection, selection, cut)
                delegations += erasure.count_delegations(connection, selection, cut)
                recalls += len(erasure.find_recalls(connection, selection, cut, limit=1_000_000))
        counts["turns"] = sum(each.turns for each in themes)
        counts["memories"] = len(memories)
        counts["history"] = operations
        counts["delegations"] = delegations
        counts["recall_log"] = recalls
        judge = Judge(self.pool, self.selections, tombstones.micros(cut))
        with self.pool.transaction(Deadline.after(STEP_SECONDS), reach=OVERVIEW) as connection:
            counts["dead_letters"] = _count_letters(connection, judge)
        counts["journal_items"] = 0
        for folder in self._folders():
            found = redact_folder(folder / JOURNAL_NAME, judge, judge.blank, sealed_below={}, execute=False)
            counts["journal_items"] += found.items + sum(found.left.values())
        noted = [item for home in self._homes() for item in self._noted(home)]
        counts["refused_writes"] = sum(now is not was for was, now in zip(noted, judge(noted), strict=True))
        texts = {each.content for each in memories} | {each.content for each in sample}
        return Plan(
            tuple(themes),
            tuple(memories),
            tuple(sample[:SAMPLES]),
            counts,
            tuple(leftovers.standing(self._homes(), self.settings, self.selections, texts)),
            leftovers.host_messages(self._homes(), self.selections),
        )

    def carry_out(self, actor: Actor) -> Forgotten:
        """Forget; returns the receipt."""
        erased = Erased()
        with self._closed() as connection:
            number, at = receipts.begin(connection, actor.name, actor.home_id, self.named)
            self._set_scopes(connection, number, at)
        self._erase_rows(number, at, erased)
        unreached = self._clean_files(number, at, erased)
        self.progress("statistics")
        with self.pool.connection(Deadline.after(STEP_SECONDS)) as connection:
            erasure.refresh_statistics(connection)
        with self.pool.transaction(Deadline.after(STEP_SECONDS), reach=OPERATOR) as connection:
            unreached += leftovers.unreached(connection, self._folders())
            themes = {selection.theme for selection in self.selections}
            receipt = receipts.finish(connection, number, erased.counts, unreached)
            audit.record(
                connection,
                actor,
                "forget",
                theme=themes.pop() or "" if len(themes) == 1 else "",
                subject=f"receipt {number}",
                counts=erased.counts,
            )
        return Forgotten(
            receipt,
            tuple(leftovers.standing(self._homes(), self.settings, self.selections, erased.texts)),
            leftovers.host_messages(self._homes(), self.selections),
        )

    def _set_scopes(self, connection: Connection, receipt: int, at: datetime) -> None:
        key = erasure.key(connection)
        for selection in self.selections:
            if selection.is_scope:
                scope = tombstones.of_scope(key, selection.theme or "", selection.session_id or "")
                erasure.set_tombstones(connection, receipt, selection.cut(at), {scope})

    def _erase_rows(self, receipt: int, at: datetime, erased: Erased) -> None:
        for selection in self.selections:
            self.progress("turns")
            more = True
            while more:
                with self._closed() as connection:
                    more = erasure.erase_turns(connection, selection, receipt, at, erased)
            for erase in (erasure.erase_delegations, erasure.erase_recalls):
                more = True
                while more:
                    with self._closed() as connection:
                        more = erase(connection, selection, at, erased)
            self.progress("memories")
            with self.pool.transaction(Deadline.after(STEP_SECONDS), reach=OVERVIEW) as connection:
                histories = erasure.find_histories(connection, selection, at)
            for theme, target in histories:
                with self._closed() as connection:
                    erasure.erase_history(connection, selection, theme, target, receipt, at, erased)
        judge = Judge(self.pool, self.selections, tombstones.micros(at), erased.texts)
        for selection in self.selections:
            with self._closed() as connection:
                erasure.erase_files(connection, selection, receipt, at, erased)
        with self._closed() as connection:
            self._set_item_tombstones(connection, receipt, at, judge)
        with self._closed() as connection:
            erasure.erase_dead_letters(connection, lambda payload: _without(payload, judge), erased)

    def _set_item_tombstones(self, connection: Connection, receipt: int, at: datetime, judge: Judge) -> None:
        """Whatever waits in a file and is meant has not been a row yet: it gets its tombstone, too."""
        key = erasure.key(connection)
        hashes: dict[datetime, set[bytes]] = defaultdict(set)
        rejected = [payload for _, payload in erasure.dead_letters(connection)]
        for item in (*self._items(), *(item for payload in rejected for item in items_of_payload(payload))):
            for selection in judge.naming(item):
                until = selection.cut(at) if isinstance(item, AddTurn) else at
                own = tombstones.own_hash(key, item, in_session=not selection.names_words)
                hashes[until] |= {own} if own is not None else set()
                if isinstance(item, AddMemory | ReplaceMemory):
                    hashes[until].add(tombstones.of_file_entry(key, item.content))
        for until, found in hashes.items():
            erasure.set_tombstones(connection, receipt, until, found)

    def _clean_files(self, receipt: int, at: datetime, erased: Erased) -> list[str]:
        """Take what is forgotten out of the files of every home here that uses this database."""
        self.progress("files")
        judge = Judge(self.pool, self.selections, tombstones.micros(at), erased.texts)
        unreached: list[str] = []
        for home in self._homes():
            folder = data_folder(home)
            if not folder.is_dir():
                continue
            running = _ask_processes(folder, receipt)
            refusals = Refusals(home, folder, max_chars=self.settings.turn_max_chars)
            taken, is_clean = refusals.redact(judge)
            refusals.close()
            erased.add("refused_writes", taken)
            done = redact_folder(
                folder / JOURNAL_NAME,
                judge,
                judge.blank,
                sealed_below={each.journal_writer: each.journal_sealed_below for each in running},
            )
            erased.add("journal_items", done.items)
            names = {each.journal_writer: f"{each.command} {each.pid}" for each in status_file.read_all(folder)}
            for writer, count in done.left.items():
                whose = names.get(writer, f"journal {writer}")
                unreached.append(
                    f"{count} items in the file that {whose} is writing to; it takes them out when it goes on or ends"
                )
            if done.untouched:
                unreached.append(f"{done.untouched} journal files that could not be rewritten")
            if not is_clean:
                unreached.append("notes of refused writes, because the disk has no room for new ones")
        return unreached

    def _items(self) -> Iterator[WriteItem]:
        """Everything in the files of the homes here."""
        for home in self._homes():
            yield from self._noted(home)
            place = data_folder(home) / JOURNAL_NAME
            if place.is_dir():
                for segment in list_directory(place).segments:
                    for items in items_in(segment.path, segment.writer):
                        yield from items

    def _noted(self, home: Path) -> Iterator[WriteItem]:
        return noted_items(home, data_folder(home), max_chars=self.settings.turn_max_chars)

    def _homes(self) -> list[Path]:
        return database_homes(self.home)

    def _folders(self) -> list[Path]:
        return [data_folder(home) for home in self._homes()]

    @contextmanager
    def _closed(self) -> Iterator[Connection]:
        """A transaction beside which nothing is stored."""
        with self.pool.transaction(
            Deadline.after(STEP_SECONDS), reach=OPERATOR, lock_seconds=GATE_SECONDS
        ) as connection:
            gate.close(connection)
            yield connection


def database_homes(home: Path) -> list[Path]:
    """This home, and those beside it whose journals go to the same database."""
    own = _installation(home)
    others = [each for each in homes_of(home) if each != home]
    return [home, *(each for each in others if own and _installation(each) == own)]


def check_theme(connection: Connection, theme: str, waiting: Sequence[str] = ()) -> None:
    """Raise a ConfigError, with names that are near, unless something of this theme is there or waits."""
    known = erasure.themes(connection)
    if theme in known or theme in waiting:
        return
    near = difflib.get_close_matches(theme, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; see: hermes-pgvector status"
    raise ConfigError(f"there is no theme {theme!r}{hint}")


def waiting_themes(home: Path) -> list[str]:
    """The themes of what is in the journal of a home."""
    place = data_folder(home) / JOURNAL_NAME
    if not place.is_dir():
        return []
    found = {item.theme for each in list_directory(place).segments for part in items_in(each.path, each.writer)
             for item in part}  # fmt: skip
    return sorted(found)


def _ask_processes(folder: Path, receipt: int) -> list[status_file.Snapshot]:
    """Ask the running processes of a home to go on in new files; those that have."""
    forgotten.ask(folder, receipt)
    deadline = Deadline.after(ANSWER_SECONDS)
    while True:
        running = [each for each in status_file.read_all(folder) if each.journal_writer]
        ready = [each for each in running if each.forgot_receipt >= receipt]
        if len(ready) == len(running) or deadline.is_over:
            return ready
        time.sleep(0.1)


def _installation(home: Path) -> str:
    from hermes_memory_pgvector.config.home import ID_NAME, home_id

    folder = data_folder(home)
    if not (folder / ID_NAME).is_file():
        return ""
    known = installation.read(folder, home_id(home))
    return "" if known is None or known.identity is None else known.identity.installation


def items_of_payload(payload: bytes) -> list[WriteItem]:
    """The items of a record; none when it cannot be read."""
    try:
        return codec.decode(payload)
    except ValueError:
        return []


def _without(payload: bytes, judge: Judge) -> bytes | None:
    """A rejected record without what is forgotten; None when nothing is left of it."""
    try:
        items = codec.decode(payload)
    except ValueError:
        return judge.blank(payload)
    new = judge(items)
    if all(now is was for was, now in zip(items, new, strict=True)):
        return payload
    kept = [item for item in new if item is not None]
    return codec.encode(kept) if kept else None


def _count_letters(connection: Connection, judge: Judge) -> int:
    return sum(_without(payload, judge) != payload for _, payload in erasure.dead_letters(connection))
