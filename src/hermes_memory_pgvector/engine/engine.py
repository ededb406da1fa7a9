"""Everything a process needs once: journal, writer, pool, embedder, recall. Opened lazily, shared by all providers.

The host builds a provider per request and never shuts it down, so nothing here belongs to a provider.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_memory_pgvector.breaker import Breaker, BreakerStatus
from hermes_memory_pgvector.capture.refused_writes import Refusals
from hermes_memory_pgvector.capture.session_ledger import SessionLedger
from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.config import home as home_identity
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import local as _local  # noqa: F401 - loaded here, not while an agent waits
from hermes_memory_pgvector.embedding import remote as _remote  # noqa: F401
from hermes_memory_pgvector.embedding.configured import ConfiguredEmbedder
from hermes_memory_pgvector.embedding.guard import GuardedEmbedder
from hermes_memory_pgvector.engine import status_file
from hermes_memory_pgvector.engine.chores import Chores
from hermes_memory_pgvector.engine.self_migration import SelfMigration
from hermes_memory_pgvector.engine.upkeep import Upkeep
from hermes_memory_pgvector.errors import (
    JournalError,
    ThreadUnavailable,
)
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.journal import Journal, Urgency, codec
from hermes_memory_pgvector.mirror.mirror import Mirror
from hermes_memory_pgvector.recall.recall import GuardedRecall, Recall
from hermes_memory_pgvector.recall.shown import ShownHits
from hermes_memory_pgvector.server.logins import logins_of
from hermes_memory_pgvector.service import start_thread
from hermes_memory_pgvector.store.batch import Batch
from hermes_memory_pgvector.store.current_model import CurrentModel
from hermes_memory_pgvector.store.installation import Doorkeeper
from hermes_memory_pgvector.store.pool import Connection, Pool
from hermes_memory_pgvector.values import AddTurn, EmbeddingModel, WriteItem
from hermes_memory_pgvector.writer.chunks import document_pieces
from hermes_memory_pgvector.writer.embed_pending import Backlog
from hermes_memory_pgvector.writer.writer import Writer

logger = logging.getLogger(__name__)

CACHE_ENTRIES = 4096
SUBSTANTIVE_CHARS = 200
MODEL_SECONDS = 60.0
RECOVER_SECONDS = 5.0
LOOK_SECONDS = 2.0
STEP_SECONDS = 5.0


class Engine:
    """The parts, in the right order.

    An engine whose settings have changed has a successor, which takes over the journal and the books as they are: what
    hooks still write through the old one is in the same place, and is stored by the new one.
    """

    def __init__(
        self,
        home: Path,
        settings: Settings,
        *,
        predecessor: Engine | None = None,
        check_configuration: Callable[[], object] = lambda: None,
    ) -> None:
        self.home = home
        self.settings = settings
        self.folder = settings_file.data_folder(home)
        identity = home_identity.identity(home)
        self.home_id = identity.id
        self._predecessor = predecessor
        self._successor: Engine | None = None
        self._check_configuration = check_configuration
        """Replaces this engine if the configuration has changed."""
        if predecessor is None:
            self.clock = Clock.of_home(self.folder)
            self.ledger = SessionLedger()
            self.shown = ShownHits()
            self.journal = Journal(
                self.folder / "journal", sync=settings.journal_sync, max_bytes=settings.journal_max_bytes
            )
            self.refusals = Refusals(home, self.folder, max_chars=settings.turn_max_chars)
        else:
            self.clock, self.ledger, self.shown = predecessor.clock, predecessor.ledger, predecessor.shown
            self.journal, self.refusals = predecessor.journal, predecessor.refusals
            self.journal.adjust(sync=settings.journal_sync, max_bytes=settings.journal_max_bytes)
        self.doorkeeper = Doorkeeper(
            self.folder,
            self.home_id,
            settings.dsn,
            is_named=settings.set_by.get("dsn") == "environment" and settings_file.has_dsn_variable(home),
        )
        self.pool = Pool(
            self.conninfo,
            maximum=settings.pool_max,
            connect_seconds=settings.connect_timeout,
            admit=self.doorkeeper.admit,
        )
        configured = ConfiguredEmbedder(home, settings, cache_entries=CACHE_ENTRIES)
        self.embedder = GuardedEmbedder(configured, _breaker("embedding of questions"))
        self.read_breaker = _breaker("database reads")
        self.current_model = CurrentModel()
        self.recall = Recall(self.pool.reading, self.embedder, settings, self.current_model)
        self.search = GuardedRecall(self.recall, self.read_breaker, hold=settings.hold).search
        self.backlog = Backlog(
            self.pool,
            self.embedder,
            self.current_model,
            pieces=document_pieces,
            embed_seconds=settings.embed_write_timeout,
            # The writer's migration leaves the vector tables out when there is no embedder yet to describe them.
            make_tables=SelfMigration(home, is_ours=not settings.dsn).run,
        )
        self.mirror = Mirror(
            home,
            self.home_id,
            self.pool,
            self.clock,
            max_chars=settings.memory_max_chars,
            wants_vectors=settings.embed_on_write,
            # A copied embedded database is this home's alone, and so is what it says of the home it was copied from.
            inherits=() if settings.dsn else identity.predecessors,
        )
        self.writer = Writer(
            self.journal,
            self.pool,
            home_id=self.home_id,
            batch_records=settings.write_queue_maxsize,
            new_batch=self._new_batch,
            on_stored=self._stored,
            heal_schema=SelfMigration(home, is_ours=not settings.dsn and not settings.hold).run,
            on_adopted=self.mirror.look_again,
        )
        self.chores = Chores(
            self.folder,
            self.journal,
            self.pool,
            self.embedder,
            self.writer,
            self.backlog,
            self.recall,
            self.refusals,
            self.breakers,
            is_local=settings.uses_local_model,
        )
        self.upkeep = Upkeep(self._tasks())
        self.profile_theme: str | None = None if predecessor is None else predecessor.profile_theme
        self.is_retired = False
        """Whether another engine takes this one's place: the configuration changed, or this is a forked child."""
        self._start_lock = threading.Lock()
        self._started = False
        self._is_closed = False
        self._take_over_thread: threading.Thread | None = None
        self._has_complained = False
        self._lacks_threads = False
        self._tell: Callable[[str], None] | None = None if predecessor is None else predecessor._tell
        renew_after_fork(self)

    def after_fork_in_child(self) -> None:
        """Leave everything to an engine of the child's own."""
        self.is_retired = True

    def start(self) -> None:
        """Open the journal and start the threads, once; what cannot be had now is tried again by `record`."""
        if self._successor is not None:
            self._successor.start()
            return
        if self._started:
            return
        with self._start_lock:
            if self._started:
                return
            self._open_journal()
            self.journal.tend()
            if self._predecessor is None:
                self.writer.start()
                self.upkeep.start()
            else:
                take_over = functools.partial(self._take_over, self._predecessor)
                self._take_over_thread = start_thread(take_over, "hermes-pgvector-take-over")
            self._started = True

    def _open_journal(self) -> None:
        """What a hook needs to be kept; no thread."""
        # What a process that is gone was refused comes before what this one is told.
        self.refusals.tend()
        self.journal.on_append = self._appended
        self.journal.open()

    def _take_over(self, predecessor: Engine) -> None:
        """Go on where the other stops: two writers on one journal could store a record in two databases."""
        predecessor.leave()
        with self._start_lock:
            self._predecessor = None
            if self._is_closed:
                return
            try:
                self.writer.start()
                self.upkeep.start()
            except ThreadUnavailable:
                # The next hook tries again.
                self._started = False

    def _appended(self) -> None:
        """The journal's helper has seen new records."""
        self.writer.nudge()

    def begin(self) -> None:
        """Start as `start` does; a failure is told once and counted when a write meets it."""
        try:
            self.start()
        except ThreadUnavailable as error:
            if not self._lacks_threads:
                self._lacks_threads = True
                logger.error("%s; memories wait in the journal", error)
        except (JournalError, OSError) as error:
            if not self._has_complained:
                self._has_complained = True
                logger.error("the journal cannot be opened (%s); writes are refused until it can", _reason(error))
        else:
            if self._lacks_threads:
                self._lacks_threads = False
                logger.warning("threads can be started again; what waits in the journal is stored now")

    def retire(self, successor: Engine) -> None:
        """Make room for an engine with other settings; it goes on with the journal at once."""
        self._successor, self.is_retired = successor, True
        if self._started:
            successor.begin()

    def leave(self) -> None:
        """Stop everything but what the successor has taken over; returns when the writer has let go of the journal."""
        if self._take_over_thread is not None:
            self._take_over_thread.join()
        # At most the deadline of one batch.
        while not self.writer.stop(Deadline.after(STEP_SECONDS)):
            pass
        self.upkeep.stop(Deadline.after(STEP_SECONDS))
        self.pool.close()
        self.embedder.close()

    def record(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        """Write items to the journal; returns when they are there. Never raises: a refusal is counted and told."""
        if not items:
            return
        try:
            if not self._started:
                # The file first: that needs no thread, and is what survives.
                self._open_journal()
            if self.refusals.waits and self.refusals.holds_back(items):
                self._queue(items, urgency)
            else:
                self._append_portions(items, urgency)
        except (JournalError, OSError) as error:
            self._refused(items, urgency, error)
        if not self._started:
            self.begin()

    def _append_portions(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        """Append many items; from the first portion that is refused on, they wait together."""
        portions = codec.portions(items)
        for place, part in enumerate(portions):
            try:
                self._append(part, urgency)
            except (JournalError, OSError) as error:
                self._refused([item for later in portions[place:] for item in later], urgency, error)
                return

    def _append(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        self.journal.append(codec.encode(items), urgency)

    def _queue(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        """Append items behind what was refused of their session before, now if the journal takes it."""
        self.refusals.note(items, urgency, is_refusal=False)
        self.refusals.recover_session(items, self._append)
        self.upkeep.wake()

    def conninfo(self, deadline: Deadline) -> str:
        """The connection string in force; starts the embedded server when that is what is meant."""
        return logins_of(self.folder, self.settings, self.doorkeeper, deadline, may_create=True).runtime

    def settle(self, deadline: Deadline) -> bool:
        """Give what was recorded a chance to arrive and to get its vectors; False when the deadline came first."""
        if not self._started and self.journal.last_seq:
            self.begin()
        if not self._started or self.writer.breaker.is_open:
            return False
        if not self.writer.flush(deadline):
            return False
        self.backlog.ask()
        self.upkeep.wake()
        # A task that the database put off will not be done before the deadline either.
        while self.backlog.is_due() and not self.backlog.breaker.is_open and not self.upkeep.problems.get("vectors"):
            if deadline.is_over:
                break
            time.sleep(0.01)
        return not self.backlog.is_due()

    def rest(self, deadline: Deadline) -> None:
        """The process is about to end: deliver and sync what there is, but stay ready for hooks that come after this.

        A host may have registered its own farewell, which tells us the last transcript, before this package was
        imported; then it runs after ours.
        """
        if self._take_over_thread is not None:
            self._take_over_thread.join(deadline.remaining())
        if self._started:
            self.refusals.recover(self._append, may_read=False)
            self.settle(deadline)
            self.upkeep.stop(deadline)
            status_file.withdraw(self.folder)
        self.journal.rest(deadline)
        self.refusals.close()

    def close(self, deadline: Deadline) -> None:
        """Stop the parts; what has not arrived stays in the journal for whoever comes next."""
        with self._start_lock:
            self._is_closed = True
        if self._take_over_thread is not None:
            self._take_over_thread.join(deadline.remaining())
        if self._started:
            self.refusals.recover(self._append, may_read=False)
            self.settle(deadline)
            status_file.withdraw(self.folder)
        self.writer.stop(deadline)
        self.upkeep.stop(deadline)
        self.journal.close(deadline)
        # Recall opens connections also where the journal could not be opened.
        self.pool.close()
        self.embedder.close()
        if not self.is_retired:
            self.refusals.close()

    def degradation(self) -> str:
        """One sentence while something is out of order, else nothing."""
        if self.settings.hold:
            return "The memory's settings cannot be read: what you save is kept and arrives later, recall is empty."
        if self.writer.breaker.is_open or self.read_breaker.is_open:
            return "The memory database is out of reach: what you save is kept and arrives later, recall may be empty."
        if self.embedder.fault:
            return "A setting of the embedder is wrong: recall works by words only until it is corrected."
        if self.embedder.breaker.is_open or self.backlog.breaker.is_open:
            return "The embedding service is out of reach: recall works by words only for now."
        return ""

    def breakers(self) -> list[BreakerStatus]:
        """All breakers, for status and doctor."""
        parts = (self.writer.breaker, self.read_breaker, self.backlog.breaker, self.embedder.breaker)
        return [breaker.status() for breaker in parts]

    def on_warning(self, tell: Callable[[str], None] | None) -> None:
        """How to reach the user when writes are refused."""
        if tell is not None:
            self._tell = tell

    def similarity_floor(self) -> float:
        """How near a memory must be to be offered unasked; 0 leaves it to the model's calibration."""
        return self.settings.min_similarity if self.settings.is_set("min_similarity") else 0.0

    def host_entries(self) -> frozenset[str]:
        """What the host's own memory block shows to every session of this home."""
        return self.mirror.file_entries()

    def _new_batch(self, connection: Connection) -> Batch:
        return Batch(
            connection,
            model_id=_id(self.current_model.get(connection)),
            retry_window=self.settings.turn_retry_window,
            wants_vector=self._wants_vector,
            memories_want_vectors=self.settings.embed_on_write,
        )

    def _wants_vector(self, turn: AddTurn) -> bool:
        if not self.settings.embed_on_write or self.settings.conversation_embed_policy == "none":
            return False
        return self.settings.conversation_embed_policy == "all" or len(turn.content) >= SUBSTANTIVE_CHARS

    def _stored(self) -> None:
        self.backlog.ask()
        self.upkeep.wake()

    def _tasks(self) -> dict[str, Callable[[], float]]:
        return {
            "configuration": self._look_at_configuration,
            "warm-up": self.chores.warm_up,
            "vectors": self.backlog.run,
            "mirror": self._mirror,
            "refused turns": self._recover,
            "word statistics": self.chores.refresh_statistics,
            "self-check": self.chores.check_search,
            "connections": self.chores.reap,
            "process file": self.chores.publish,
        }

    def _look_at_configuration(self) -> float:
        settings_file.keep(self.home)
        self._check_configuration()
        return LOOK_SECONDS

    def _mirror(self) -> float:
        if not self.settings.bulk_sync_on_init or self.profile_theme is None or not self.mirror.is_due():
            return LOOK_SECONDS
        if self.writer.breaker.is_open:
            return 5.0
        with self.pool.connection(Deadline.after(MODEL_SECONDS)) as connection:
            model_id = _id(self.current_model.get(connection))
        made = self.mirror.changes_made
        pause = self.mirror.run(self.profile_theme, lambda: self.writer.status().waiting == 0, model_id)
        if self.mirror.changes_made != made:
            self._stored()
        return pause or LOOK_SECONDS

    def _recover(self) -> float:
        self.refusals.tend()
        if self.refusals.waits and self.journal.stats().waiting_bytes < self.settings.journal_max_bytes // 2:
            self._recover_now()
        return RECOVER_SECONDS

    def _recover_now(self) -> None:
        if self.refusals.recover(self._append):
            # Meanwhile the files may have changed again.
            self.mirror.look_again()

    def _refused(self, items: Sequence[WriteItem], urgency: Urgency, error: Exception) -> None:
        if not self.refusals.note(items, urgency):
            return
        text = f"memory writes are being refused ({_reason(error)}); they wait and are recovered when there is room"
        logger.error("%s", text)
        if self._tell is not None:
            self._tell(text)


def _id(model: EmbeddingModel | None) -> int | None:
    return None if model is None else model.id


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, JournalError) else type(error).__name__


def _breaker(name: str) -> Breaker:
    return Breaker(name, threshold=1, on_open=_told_open, on_close=_told_closed)


def _told_open(status: BreakerStatus) -> None:
    logger.warning("%s: %s; recall goes on with what it has", status.name, status.reason)


def _told_closed(status: BreakerStatus) -> None:
    logger.warning("%s: works again after %.0f s", status.name, time.time() - (status.since or time.time()))
