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
from hermes_memory_pgvector.capture.rewinds import Rewinds
from hermes_memory_pgvector.capture.said import Said
from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.config import home as home_identity
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.configured import ConfiguredEmbedder
from hermes_memory_pgvector.errors import JournalError, ThreadUnavailable
from hermes_memory_pgvector.fork import renew_after_fork
from hermes_memory_pgvector.journal import Journal, Urgency
from hermes_memory_pgvector.meters import BREAKS
from hermes_memory_pgvector.mirror.mirror import Mirror
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.recall.log import RecallLog
from hermes_memory_pgvector.recall.recall import GuardedRecall, Recall
from hermes_memory_pgvector.recall.shown import ShownHits
from hermes_memory_pgvector.runtime import tasks
from hermes_memory_pgvector.runtime.flush import EmptyJournal
from hermes_memory_pgvector.runtime.heartbeat import Heartbeat, Life
from hermes_memory_pgvector.runtime.recorder import Recorder, reason_of
from hermes_memory_pgvector.runtime.self_migration import SelfMigration
from hermes_memory_pgvector.runtime.status import Status
from hermes_memory_pgvector.runtime.sweep import Sweep
from hermes_memory_pgvector.server.folder import server_folder
from hermes_memory_pgvector.server.logins import logins_of
from hermes_memory_pgvector.store.installation import DatabaseGuard
from hermes_memory_pgvector.store.models import CurrentModel
from hermes_memory_pgvector.store.undone import UndoneTurns
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import Session, WriteItem
from hermes_memory_pgvector.writer.embed_pending import Backlog
from hermes_memory_pgvector.writer.writer import Writer

logger = logging.getLogger(__name__)

CACHE_ENTRIES = 4096
CHECKPOINT_SECONDS = 30.0
RETRY_SECONDS = 3.0
"""The longest pause before a question tries again what was out of reach: an agent waits for its memory meanwhile."""


class Engine:
    """The parts of a home, in the right order.

    Changed settings take effect in place: journal and sessions stay, and what depends on settings is made anew. Two
    writers on one journal could store a record in two databases, so the new one starts when the other has let go.
    """

    def __init__(
        self, home: Path, settings: Settings, *, check_configuration: Callable[[], object] = lambda: None
    ) -> None:
        """`check_configuration` calls `adopt` if the configuration has changed."""
        self.home = home
        self.folder = settings_file.data_folder(home)
        self._identity = home_identity.identity(home)
        self.home_id = self._identity.id
        self.clock = Clock()
        self.said = Said()
        self._rewinds = Rewinds(home, settings.turn_max_chars)
        self.shown = ShownHits()
        self.journal = Journal(
            self.folder / "journal", sync=settings.journal_sync, max_bytes=settings.journal_max_bytes
        )
        self.recorder = Recorder(self.journal, self.folder)
        self.life = Life()
        self.is_retired = False
        """Whether this is the engine of a forked child's parent."""
        self._theme: str | None = None
        self._check_configuration = check_configuration
        self._start_lock = threading.RLock()
        self._started = False
        self._lacks_journal = False
        self._lacks_threads = False
        self._attach(settings)
        renew_after_fork(self)

    def adopt(self, settings: Settings) -> None:
        """Go on under other settings."""
        with self._start_lock:
            if settings == self.settings:
                return
            pool, embedder, answers = self.pool, self.embedder, self.recall_log.take()
            self.writer.end()
            self.tasks.end()
            self.journal.adjust(sync=settings.journal_sync, max_bytes=settings.journal_max_bytes)
            self._attach(settings)
            self.recall_log.give_back(answers)
            if self._started:
                self._started = False
                self.try_start()
            # Whoever is in the middle of something finishes it.
            pool.close()
            embedder.close()

    def _attach(self, settings: Settings) -> None:
        """Make what depends on the settings."""
        self.settings = settings
        self._database = settings.dsn or str(server_folder(self.home, settings))
        meters = self.life.meters
        masker = masker_for(settings.mask_secrets)
        self._database_guard = DatabaseGuard(
            self.folder,
            self.home_id,
            settings.dsn,
            is_named=settings.set_by.get("dsn") == "environment" and settings_file.has_dsn_variable(self.home),
        )
        self.pool = Pool(
            functools.partial(self._conninfo, settings, self._database_guard),
            maximum=settings.pool_max,
            connect_seconds=settings.connect_timeout,
            admit=self._database_guard.admit,
        )
        self.current_model = CurrentModel()
        self.embedder = ConfiguredEmbedder(
            self.home, settings, _recall_breaker("embedding of questions"), cache_entries=CACHE_ENTRIES, meters=meters
        )
        self.read_breaker = _recall_breaker("database reads")
        self.recall = Recall(self.pool.reading, self.embedder, settings, self.current_model, masker, self.pool)
        self._guarded_recall = GuardedRecall(
            self.recall,
            self.read_breaker,
            hold=settings.hold,
            is_made=lambda: bool(settings.dsn) or self.writer.has_verified,
        )
        self.search = self._guarded_recall.search
        self.recall_log = RecallLog(
            is_wanted=settings.recall_log != "off",
            with_text=settings.recall_log == "text",
            masker=masker,
            meters=meters,
        )
        migration = SelfMigration(self.home, is_ours=not settings.dsn and not settings.hold)
        self.backlog = Backlog(
            self.pool,
            self.embedder,
            self.current_model,
            embed_seconds=settings.batch_embed_seconds,
            # The writer's migration leaves the vector tables out when there is no embedder yet to describe them.
            make_tables=SelfMigration(self.home, is_ours=not settings.dsn).run,
            meters=meters,
        )
        self.mirror = Mirror(
            self.home,
            self.home_id,
            self.pool,
            self.clock,
            max_chars=settings.memory_max_chars,
            masker=masker,
            wants_vectors=settings.embed_on_write,
            inherits=self._former_homes(settings),
        )
        wants_turn_vectors = settings.embed_on_write and settings.conversation_embed_policy != "none"
        self._undone = UndoneTurns(self._rewinds, self.home_id, wants_vectors=wants_turn_vectors)
        self.writer = Writer(
            self.journal,
            self.pool,
            settings,
            database=self._database,
            home=str(self.home),
            home_id=self.home_id,
            undone=self._undone,
            on_stored=self._rows_stored,
            on_adopted=self.mirror.look_again,
            heal_schema=migration.run,
            meters=meters,
        )
        self.status = Status(
            self.journal,
            self.recorder,
            self.writer,
            self.backlog,
            self.embedder,
            self.read_breaker,
            lambda: self.said.short,
        )
        self._heartbeat = self._make_heartbeat()
        self.tasks = self._make_tasks()

    def _make_heartbeat(self) -> Heartbeat:
        breakers = [self.writer.breaker, self.read_breaker, self.backlog.breaker, self.embedder.breaker]
        for breaker in breakers:
            breaker.on_opened = functools.partial(self.life.meters.count, BREAKS, 1, breaker.name)
        return Heartbeat(
            self.life,
            self.pool,
            self.home,
            self.home_id,
            self.status,
            lambda: not self.settings.hold and (self.writer.has_verified or self._guarded_recall.has_answered),
        )

    def _make_tasks(self) -> tasks.Tasks:
        settings = self.settings
        mirror = tasks.MirrorFiles(
            self.mirror,
            self.writer,
            on_changed=self._rows_stored,
            is_wanted=settings.bulk_sync_on_init,
            theme=lambda: self._theme,
        )
        self._keep_recall_log = tasks.KeepRecallLog(self.recall_log, self.pool, self.read_breaker)
        self.watch_undo = tasks.WatchUndo(self._undone, self.pool, self.writer)
        takes_typed = settings.embed_on_write and settings.conversation_embed_policy == "all"
        return tasks.Tasks(
            {
                "configuration": tasks.WatchConfiguration(self.home, self._check_configuration).run,
                "warm-up": tasks.WarmUp(self.embedder, is_local=settings.uses_local_model).run,
                "vectors": functools.partial(self.backlog.run, takes_typed=takes_typed),
                "mirror": mirror.run,
                "undone turns": self.watch_undo.run,
                "journal files": EmptyJournal(self.journal, self.writer).run,
                "refused writes": self._recover_refused,
                "history": tasks.ShortenHistory(self.pool, self.writer, self.home_id, settings.history_days).run,
                "recall log": self._keep_recall_log.run,
                "sweep": Sweep(self.pool, self.writer, settings, self.home_id, self._former_homes(settings)).run,
                "connections": functools.partial(tasks.reap, self.pool),
                "status": self.status.publish,
                "heartbeat": self._heartbeat.run,
            },
            database=self._database,
            home=str(self.home),
        )

    # What providers do with it.

    def begin_session(self, session: Session, warn_user: Callable[[str], None] | None = None) -> None:
        """A provider begins a session: learn what the tasks need of it, and how to reach the user."""
        if warn_user is not None:
            self.recorder.warn_user = warn_user
        self._theme = session.profile_theme
        self.mirror.news.begin()

    def record(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        """Write items to the journal; returns when they are there. Never raises: a refusal is counted and reported."""
        if not items:
            return
        try:
            if not self._started:
                # The file first: that needs no thread, and is what survives.
                self._open_journal()
            if self.recorder.record(items, urgency):
                self.tasks.wake()
        except (JournalError, OSError) as error:
            self.recorder.refuse(items, urgency, error)
        if not self._started:
            self.try_start()

    def open_journal(self) -> None:
        """Make sure that the journal takes records; JournalError when it cannot be opened."""
        if not self._started:
            try:
                self._open_journal()
            except OSError as error:
                raise JournalError(f"the journal cannot be opened ({reason_of(error)})") from None

    def append(self, items: Sequence[WriteItem], urgency: Urgency, synced_by: Deadline) -> None:
        """Write items to the journal for a caller that can wait and be told; JournalError when it does not take them.

        Where the journal is synced in the background, this waits for it, as far as the deadline allows.
        """
        self.open_journal()
        self.recorder.append(items, urgency)
        if not self._started:
            self.try_start()
        while self.journal.sync_lag_seconds and not synced_by.is_over:
            time.sleep(0.005)

    def checkpoint(self, items: Sequence[WriteItem]) -> None:
        """Write items; JournalError unless the disk then has them and all that was recorded before them."""
        self.record(items, Urgency.TURN)
        if self.recorder.waiting:
            self.recorder.recover()
        if self.recorder.waiting:
            raise JournalError("the journal refuses writes")
        self.journal.make_durable(Deadline.after(CHECKPOINT_SECONDS))

    def degradation(self) -> str:
        """One sentence while something is not working, otherwise empty."""
        if self.settings.hold:
            return "The memory's settings cannot be read: what you save is kept and arrives later, recall is empty."
        return self.status.degradation()

    # Its life.

    def start(self) -> None:
        """Open the journal and start the threads, once; what cannot be had now is tried again by `record`."""
        if self._started:
            return
        with self._start_lock:
            if self._started:
                return
            self._open_journal()
            self.journal.start_helper()
            self.writer.start()
            self.tasks.start()
            self._started = True

    def try_start(self) -> None:
        """Start; a failure is logged once, and writes are refused or wait until a later call succeeds."""
        try:
            self.start()
        except ThreadUnavailable as error:
            if not self._lacks_threads:
                self._lacks_threads = True
                logger.error("%s; memories wait in the journal", error)
        except (JournalError, OSError) as error:
            if not self._lacks_journal:
                self._lacks_journal = True
                logger.error("the journal cannot be opened (%s); writes are refused until it can", reason_of(error))
        else:
            if self._lacks_threads:
                self._lacks_threads = False
                logger.warning("threads can be started again; what waits in the journal is stored now")

    def after_fork_in_child(self) -> None:
        """Leave everything to an engine of the child's own."""
        self.is_retired = True

    def flush(self, deadline: Deadline) -> bool:
        """Give what was recorded a chance to arrive and to get its vectors; False when some of it has not."""
        if not self._started and self.journal.end:
            self.try_start()
        has_arrived = self._started and not self.writer.breaker.is_open and self.writer.flush(deadline)
        # Some hosts end a process without a further word once they have shut down its agents.
        self._keep_recall_log.flush(deadline)
        if not has_arrived:
            return False
        self._rows_stored()
        while self.backlog.is_due() and self._vectors_are_coming() and not deadline.is_over:
            time.sleep(0.01)
        return not self.backlog.is_due()

    def _vectors_are_coming(self) -> bool:
        """Whether waiting for vectors makes sense: not once the tasks have ended, or while they have put it off."""
        return (
            self.tasks.is_running
            and not self.tasks.is_stopping
            and not self.backlog.breaker.is_open
            and not self.tasks.problems.get("vectors")
        )

    def rest(self, deadline: Deadline) -> None:
        """The process is about to end: flush and sync what there is, but stay ready for hooks that come after this.

        A host may have registered its own exit handler, which gives us the last transcript, before this package was
        imported; then it runs after ours.
        """
        self._finish(deadline)
        if self._started:
            self.tasks.stop(deadline)
        self._keep_recall_log.flush(deadline)
        self.journal.rest(deadline)
        self.recorder.leave()

    def close(self, deadline: Deadline) -> None:
        """Stop the parts; what has not arrived stays in the journal for whoever comes next."""
        self._finish(deadline)
        self.writer.stop(deadline)
        self.tasks.stop(deadline)
        self._keep_recall_log.flush(deadline)
        self.journal.close(deadline)
        # Recall opens connections also where the journal could not be opened.
        self.pool.close()
        self.embedder.close()
        self.recorder.leave()

    def _finish(self, deadline: Deadline) -> None:
        """Do what else there is to do, while the threads run."""
        if self._started:
            self.recorder.recover()
            self.flush(deadline)
            self.watch_undo.finish(deadline)
            self._heartbeat.end(deadline)

    def _conninfo(self, settings: Settings, guard: DatabaseGuard, deadline: Deadline) -> str:
        """The connection string in force; starts the embedded server when that is the database meant."""
        return logins_of(server_folder(self.home, settings), settings, guard, deadline, may_create=True).runtime

    def _former_homes(self, settings: Settings) -> tuple[str, ...]:
        """The homes whose rows are this one's now."""
        if settings.dsn:
            return ()
        is_profile = home_identity.root_of(self.home) != self.home
        shares = not is_profile or server_folder(self.home, settings) != self.folder
        return home_identity.inherited(self.home, self._identity, shares_database=shares)

    def _recover_refused(self) -> float:
        """Give refused writes to the journal once it has room."""
        if self.recorder.waiting and not self.journal.is_crowded and self.recorder.recover():
            # Meanwhile the files may have changed again.
            self.mirror.look_again()
        return tasks.RECOVER_SECONDS

    def _open_journal(self) -> None:
        """Make ready to record; needs no thread."""
        self.journal.on_append = self.writer.nudge
        self.journal.open()

    def _rows_stored(self) -> None:
        """Rows have been stored that may want a vector."""
        self.backlog.request()
        self.tasks.wake()


def _recall_breaker(name: str) -> Breaker:
    """A breaker for something that recall can do without for a while."""
    return Breaker(name, threshold=1, max_seconds=RETRY_SECONDS, on_open=_outage_begins, on_close=_outage_ends)


def _outage_begins(status: BreakerStatus) -> None:
    logger.warning("%s: %s; recall goes on without", status.name, status.reason)


def _outage_ends(status: BreakerStatus) -> None:
    logger.warning("%s: works again after %.0f s", status.name, time.time() - (status.since or time.time()))
