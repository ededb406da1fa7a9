"""Forgetting: what somebody names goes from every place that can be reached, leaves tombstones, and a receipt.

The order matters. The receipt and the tombstones of whole themes, sessions and texts come first, while the gate is
closed, so that from then on nothing of it is stored. What is there is looked for with the gate open; rows go in small
transactions, each with the tombstones of its words, so that no writer waits long. Whatever was stored since the receipt
was begun, and is meant, is looked for once more with the gate closed. The files of this machine's homes come next, and
last what the planner remembers. Whoever is killed in between runs the same command again: it goes on with the same
receipt.
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
from typing import TypeVar

from hermes_memory_pgvector.care import audit, leftovers
from hermes_memory_pgvector.care.actor import Actor
from hermes_memory_pgvector.config.home import homes_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.journal import codec
from hermes_memory_pgvector.journal.redaction import items_of_folder, redact_folder, unreadable_of_folder
from hermes_memory_pgvector.postgres.pool import Connection, Pool
from hermes_memory_pgvector.runtime import forgotten, status_file
from hermes_memory_pgvector.runtime.forgotten import Judge
from hermes_memory_pgvector.store import erasure, gate, installation, named_rows, receipts, tombstones
from hermes_memory_pgvector.store.erasure import Erased
from hermes_memory_pgvector.store.named_rows import Counted, FoundMemory, FoundTurn, SessionTurn, Until
from hermes_memory_pgvector.store.receipts import Begun, Receipt
from hermes_memory_pgvector.store.selection import Selection
from hermes_memory_pgvector.store.turn_context import mend
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import WriteItem

JOURNAL_NAME = "journal"
STEP_SECONDS = 120.0
GATE_SECONDS = 70.0
"""A little longer than a writer's batch may take."""
ANSWER_SECONDS = 15.0
"""How long running processes have to go on in new files."""
SAMPLES = 5
SCAN_SECONDS = 3600.0
"""For a look at everything there is, with the gate open."""
PAGE = 500
MANY = 1_000_000
SESSIONS_TOGETHER = 50
ERASED_TOGETHER = 200
"""So many rows go while every writer waits; a small part of a second."""
_Row = TypeVar("_Row")


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
    begun: Begun | None = None
    """The receipt of the same request that was interrupted."""
    older: tuple[str, ...] = ()
    """Processes of versions that do not ask whether something was forgotten."""

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
    is_resumed: bool
    """Whether an earlier request was interrupted, and went on."""


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
        now = datetime.now(UTC)
        until = Until.now(now)
        counts = dict.fromkeys(("turns", "memories", "history", "delegations", "recall_log", "stamps"), 0)
        themes: list[Counted] = []
        memories: list[FoundMemory] = []
        sample: list[FoundTurn] = []
        with self.pool.transaction(Deadline.after(STEP_SECONDS)) as connection:
            begun = receipts.unfinished(connection, self._request(connection))
            for selection in self.selections:
                themes += named_rows.count_turns(connection, selection, until)
                memories += named_rows.find_memories(connection, selection, until)
                sample += named_rows.find_turns(connection, selection, until, SAMPLES)
                counts["history"] += named_rows.count_operations(connection, selection, until)
                counts["delegations"] += len(named_rows.find_delegations(connection, selection, until, MANY))
                counts["recall_log"] += len(named_rows.find_recalls(connection, selection, until, MANY))
                counts["stamps"] += len(named_rows.find_stamped(connection, selection, until, MANY))
            letters = list(erasure.dead_letters(connection))
        counts["turns"] = sum(each.turns for each in themes)
        counts["memories"] = len(memories)
        judge = self._judge(tombstones.micros(now), Erased())
        counts["dead_letters"] = sum(_without(payload, judge) != payload for _, payload in letters)
        counts["journal_items"] = 0
        for folder in self._folders():
            found = redact_folder(folder / JOURNAL_NAME, judge, judge.blank, sealed_below={}, execute=False)
            counts["journal_items"] += found.items + sum(found.left.values())
        texts = {each.content for each in memories} | {each.content for each in sample}
        return Plan(
            tuple(themes),
            tuple(memories),
            tuple(sample[:SAMPLES]),
            counts,
            tuple(leftovers.standing(self._homes(), self.settings, self.selections, texts)),
            leftovers.host_messages(self._homes(), self.selections),
            begun,
            tuple(leftovers.older((), self._folders())),
        )

    def carry_out(self, actor: Actor) -> Forgotten:
        """Forget; returns the receipt."""
        with self._closed() as connection:
            request = self._request(connection)
            begun = receipts.unfinished(connection, request)
            if begun is None:
                begun = receipts.begin(connection, actor.name, actor.home_id, self.named, request)
                # Files have the time of this machine, whatever the server's is.
                said_us = int(time.time() * 1e6)
            else:
                said_us = tombstones.micros(begun.until.at)
            for selection in self.selections:
                erasure.set_scopes(connection, selection, begun.id, begun.until.at)
        erased = Erased(counts=dict(begun.counts))
        self._erase_rows(begun, erased)
        self._erase_items(begun, said_us, erased)
        unreached = self._clean_files(begun, said_us, erased)
        with self.pool.transaction(Deadline.after(STEP_SECONDS)) as connection:
            unreached += leftovers.unreached(connection, self._folders())
            for selection in self.selections:
                erasure.drop_names_of_rules(connection, selection)
            themes = {selection.theme for selection in self.selections}
            receipt = receipts.finish(connection, begun.id, erased.counts, unreached)
            audit.record(
                connection,
                actor,
                "forget",
                theme=themes.pop() or "" if len(themes) == 1 else "",
                subject=f"receipt {begun.id}",
                counts=erased.counts,
            )
        return Forgotten(
            receipt,
            tuple(leftovers.standing(self._homes(), self.settings, self.selections, erased.texts)),
            leftovers.host_messages(self._homes(), self.selections),
            begun.is_resumed,
        )

    def unfinished(self) -> Begun | None:
        """The receipt of the same request that was interrupted."""
        with self.pool.transaction(Deadline.after(STEP_SECONDS)) as connection:
            return receipts.unfinished(connection, self._request(connection))

    def _request(self, connection: Connection) -> bytes:
        return receipts.request_hash(erasure.key(connection), self.selections)

    def _erase_rows(self, begun: Begun, erased: Erased) -> None:
        for selection in self.selections:
            self.progress("turns")
            self._erase_turns(selection, begun, erased)
            self._drop_pages(
                named_rows.find_delegations, erasure.drop_delegations, "delegations", selection, begun, erased
            )
            self._drop_pages(named_rows.find_recalls, erasure.drop_recalls, "recall_log", selection, begun, erased)
            self.progress("memories")
            self._erase_histories(selection, begun, erased)
            self._erase_stamps(selection, begun, erased)

    def _erase_turns(self, selection: Selection, begun: Begun, erased: Erased) -> None:
        with self.pool.transaction(Deadline.after(SCAN_SECONDS)) as connection:
            sessions = named_rows.named_sessions(connection, selection, begun.until)
        self._erase_sessions(selection, begun, erased, sessions)
        # What was stored while we looked: few rows, and none after this look.
        with self._closed() as connection:
            late = named_rows.named_sessions(connection, selection, begun.until, above=begun.until.turns)
            for session in late:
                self._erase_session(connection, selection, begun, erased, [session])

    def _erase_sessions(
        self, selection: Selection, begun: Begun, erased: Erased, sessions: Sequence[tuple[str, str]]
    ) -> None:
        for start in range(0, len(sessions), SESSIONS_TOGETHER):
            part = sessions[start : start + SESSIONS_TOGETHER]
            with self.pool.transaction(Deadline.after(SCAN_SECONDS)) as connection:
                turns = named_rows.session_turns(connection, selection, begun.until, part)
            work = _Turns.of(turns)
            for keys in _portions(work.late, ERASED_TOGETHER):
                with self.pool.transaction(Deadline.after(STEP_SECONDS)) as connection:
                    erased.add("mended", mend(connection, keys, work.meant_ids))
            for keys in _portions(work.meant, ERASED_TOGETHER):
                with self._closed(begun, erased) as connection:
                    erasure.erase_turns(connection, selection, begun.id, begun.until, keys, erased)

    def _erase_session(
        self,
        connection: Connection,
        selection: Selection,
        begun: Begun,
        erased: Erased,
        sessions: list[tuple[str, str]],
    ) -> None:
        work = _Turns.of(named_rows.session_turns(connection, selection, begun.until, sessions))
        erased.add("mended", mend(connection, work.late, work.meant_ids))
        erasure.erase_turns(connection, selection, begun.id, begun.until, list(work.meant), erased)

    def _drop_pages(
        self,
        find: Callable[[Connection, Selection, Until, int], list[tuple[str, int]]],
        drop: Callable[[Connection, Sequence[tuple[str, int]]], int],
        name: str,
        selection: Selection,
        begun: Begun,
        erased: Erased,
    ) -> None:
        """Delete rows that nothing brings back by itself, and that no writer waits for."""
        with self.pool.transaction(Deadline.after(SCAN_SECONDS)) as connection:
            found = find(connection, selection, begun.until, MANY)
        for keys in _portions(found, PAGE):
            with self.pool.transaction(Deadline.after(STEP_SECONDS)) as connection:
                erased.add(name, drop(connection, keys))
                receipts.note_counts(connection, begun.id, erased.counts)

    def _erase_histories(self, selection: Selection, begun: Begun, erased: Erased) -> None:
        with self.pool.transaction(Deadline.after(SCAN_SECONDS)) as connection:
            histories = named_rows.find_histories(connection, selection, begun.until)
        for theme, target in histories:
            with self.pool.transaction(Deadline.after(SCAN_SECONDS)) as connection:
                planned = named_rows.plan_history(connection, selection, begun.until, theme, target)
            with self._closed(begun, erased) as connection:
                erasure.erase_history(connection, selection, planned, begun.id, begun.until, erased)
        with self._closed(begun, erased) as connection:
            late = named_rows.find_histories(connection, selection, begun.until, above=begun.until.operations)
            for theme, target in late:
                planned = named_rows.plan_history(connection, selection, begun.until, theme, target)
                erasure.erase_history(connection, selection, planned, begun.id, begun.until, erased)

    def _erase_stamps(self, selection: Selection, begun: Begun, erased: Erased) -> None:
        if selection.match is None:
            return
        with self.pool.transaction(Deadline.after(SCAN_SECONDS)) as connection:
            found = named_rows.find_stamped(connection, selection, begun.until, MANY)
        by_table: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for table, theme, row_id in found:
            by_table[table].append((theme, row_id))
        for table, rows in by_table.items():
            for keys in _portions(rows, ERASED_TOGETHER):
                with self._closed(begun, erased) as connection:
                    erased.add("stamps", erasure.erase_stamps(connection, table, keys, selection.match))

    def _erase_items(self, begun: Begun, said_us: int, erased: Erased) -> None:
        """Whatever waits in a file or was rejected, and is meant, has not been a row: it gets its tombstone, too."""
        judge = self._judge(said_us, erased)
        with self.pool.transaction(Deadline.after(SCAN_SECONDS)) as connection:
            own, opened = erasure.key(connection), gate.look(connection)
            letters = list(erasure.dead_letters(connection))
        rejected = (item for _, payload in letters for item in items_of_payload(payload))
        named = [(item, selection) for item in (*self._items(), *rejected) for selection in judge.naming(item, opened)]
        hashes = erasure.hashes_of_items(own, begun.until.at, named)
        with self._closed() as connection:
            erasure.set_tombstones(connection, begun.id, hashes)
        self._change_letters(letters, judge, begun, erased)
        # What was rejected meanwhile is little.
        with self._closed() as connection:
            late = list(erasure.dead_letters(connection, after=letters[-1][0] if letters else 0))
        self._change_letters(late, judge, begun, erased)

    def _change_letters(self, letters: Sequence[tuple[int, bytes]], judge: Judge, begun: Begun, erased: Erased) -> None:
        changes = [(number, was, now) for number, was in letters if (now := _without(was, judge)) != was]
        for part in _portions(changes, PAGE):
            with self.pool.transaction(Deadline.after(STEP_SECONDS)) as connection:
                for number, was, now in part:
                    erased.add("dead_letters", erasure.change_dead_letter(connection, number, was, now))
                receipts.note_counts(connection, begun.id, erased.counts)

    def _judge(self, said_us: int, erased: Erased) -> Judge:
        return Judge(self.pool, self.selections, said_us, erased, self._items(), masker_for(self.settings))

    def _clean_files(self, begun: Begun, said_us: int, erased: Erased) -> list[str]:
        """Take what is forgotten out of the files of every home here that uses this database."""
        self.progress("files")
        judge = self._judge(said_us, erased)
        unreached: list[str] = []
        for home in self._homes():
            folder = data_folder(home)
            if not folder.is_dir():
                continue
            running = _ask_processes(folder, begun.id)
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
            if begun.is_resumed and any(selection.match is None for selection in self.selections):
                torn = sum(1 for _ in unreadable_of_folder(folder / JOURNAL_NAME))
                if torn:
                    unreached.append(
                        f"{torn} unreadable parts of journal files of {home}: what was erased before the interruption "
                        "is no longer known, so its words were not looked for there"
                    )
        return unreached

    def _items(self) -> Iterator[WriteItem]:
        """Everything in the files of the homes here."""
        for home in self._homes():
            yield from items_of_folder(data_folder(home) / JOURNAL_NAME)

    def _homes(self) -> list[Path]:
        return database_homes(self.home)

    def _folders(self) -> list[Path]:
        return [data_folder(home) for home in self._homes()]

    @contextmanager
    def _closed(self, begun: Begun | None = None, erased: Erased | None = None) -> Iterator[Connection]:
        """A transaction beside which nothing is stored; it notes what was erased so far."""
        with self.pool.transaction(Deadline.after(STEP_SECONDS), lock_seconds=GATE_SECONDS) as connection:
            gate.close(connection)
            yield connection
            if begun is not None and erased is not None:
                receipts.note_counts(connection, begun.id, erased.counts)


@dataclass(frozen=True, slots=True)
class _Turns:
    """What is to be done to the turns of some sessions."""

    meant: tuple[tuple[str, int], ...]
    meant_ids: tuple[int, ...]
    late: tuple[tuple[str, int], ...]
    """Turns that stay and were stored out of order: any turn may have been taken for what was said before them."""

    @classmethod
    def of(cls, turns: Sequence[SessionTurn]) -> _Turns:
        """Work it out."""
        by_session: dict[tuple[str, str], list[SessionTurn]] = defaultdict(list)
        for turn in turns:
            by_session[turn.theme, turn.session_id].append(turn)
        meant = [turn for turn in turns if turn.is_meant]
        return cls(
            tuple((turn.theme, turn.id) for turn in meant),
            tuple(turn.id for turn in meant),
            tuple(key for each in by_session.values() for key in erasure.late_turns(each)),
        )


def _portions(rows: Sequence[_Row], size: int) -> Iterator[Sequence[_Row]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def database_homes(home: Path) -> list[Path]:
    """This home, and those beside it whose journals go to the same database."""
    own = _installation(home)
    others = [each for each in homes_of(home) if each != home]
    return [home, *(each for each in others if own and _installation(each) == own)]


def check_theme(connection: Connection, theme: str, waiting: Sequence[str] = ()) -> None:
    """Raise a ConfigError, with names that are near, unless something of this theme is there or waits."""
    known = named_rows.themes(connection)
    moved = None if theme in known else gate.look(connection).aliases.get(theme)
    if moved is not None:
        raise ConfigError(f"theme {theme!r} was merged into {moved!r}; name that one")
    if theme in known or theme in waiting:
        return
    if theme in {item.theme for _, payload in erasure.dead_letters(connection) for item in items_of_payload(payload)}:
        return
    near = difflib.get_close_matches(theme, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; see: hermes-pgvector status"
    raise ConfigError(f"there is no theme {theme!r}{hint}")


def waiting_themes(home: Path) -> list[str]:
    """The themes of what is in the files of the homes here."""
    found: set[str] = set()
    for each in database_homes(home):
        found |= {item.theme for item in items_of_folder(data_folder(each) / JOURNAL_NAME)}
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
