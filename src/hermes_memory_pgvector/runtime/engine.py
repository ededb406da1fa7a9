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
from typing import NamedTuple

from hermes_memory_pgvector.breaker import Breaker, BreakerStatus
from hermes_memory_pgvector.capture.rewinds import Rewinds
from hermes_memory_pgvector.capture.said import Said
from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.config import home as home_identity
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import local as _local  # noqa: F401 - loaded here, not while an agent waits
from hermes_memory_pgvector.embedding import remote as _remote  # noqa: F401
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
from hermes_memory_pgvector.runtime.forgotten import CleanFiles
from hermes_memory_pgvector.runtime.heartbeat import Heartbeat, Life
from hermes_memory_pgvector.runtime.recorder import Recorder, reason_of
from hermes_memory_pgvector.runtime.refusals import Refusals
from hermes_memory_pgvector.runtime.self_migration import SelfMigration
from hermes_memory_pgvector.runtime.status import Status
from hermes_memory_pgvector.runtime.sweep import Sweep
from hermes_memory_pgvector.server.folder import server_folder
from hermes_memory_pgvector.server.logins import logins_of
from hermes_memory_pgvector.service import start_thread
from hermes_memory_pgvector.store.current_model import CurrentModel
from hermes_memory_pgvector.store.installation import DatabaseGuard
from hermes_memory_pgvector.store.undone import UndoneTurns
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import Session, WriteItem
from hermes_memory_pgvector.writer.embed_pending import Backlog
from hermes_memory_pgvector.writer.writer import Writer

logger = logging.getLogger(__name__)

CACHE_ENTRIES = 4096
STEP_SECONDS = 5.0
RETRY_SECONDS = 3.0
"""The longest pause before a question tries again what was out of reach: an agent waits for its memory meanwhile."""


class CarriedOver(NamedTuple):
    """What an engine hands to its successor when the settings change."""

    clock: Clock
    said: Said
    shown: ShownHits
    journal: Journal
    refusals: Refusals
    recorder: Recorder
    life: Life


class Engine:
    """The parts, in the right order.

    An engine whose settings have changed has a successor, which takes over the journal and what is known of sessions:
    what hooks still write through the old engine is in the same journal, and the new one stores it.
    """

    def __init__(
        self,
        home: Path,
        settings: Settings,
        *,
        predecessor: Engine | None = None,
        check_configuration: Callable[[], object] = lambda: None,
    ) -> None:
        """`check_configuration` replaces this engine if the configuration has changed."""
        self.home = home
        self.settings = settings
        self.folder = settings_file.data_folder(home)
        self._identity = home_identity.identity(home)
        self.home_id = self._identity.id
        self._carried_over = self._what_outlives_settings(predecessor)
        self.clock, self.said, self.shown, self.journal, self.refusals, self._recorder, self.life = self._carried_over
        meters = self.life.meters

        self._database_guard = DatabaseGuard(
            self.folder,
            self.home_id,
            settings.dsn,
            is_named=settings.set_by.get("dsn") == "environment" and settings_file.has_dsn_variable(home),
        )
        self.pool = Pool(
            self._conninfo,
            maximum=settings.pool_max,
            connect_seconds=settings.connect_timeout,
            admit=self._database_guard.admit,
        )
        self.current_model = CurrentModel()
        self.embedder = ConfiguredEmbedder(
            home, settings, _recall_breaker("embedding of questions"), cache_entries=CACHE_ENTRIES, meters=meters
        )
        self.next_embedder = self._make_next_embedder()
        self.read_breaker = _recall_breaker("database reads")
        self.recall = Recall(
            self.pool.reading,
            self.embedder,
            settings,
            self.current_model,
            masker_for(settings),
            following=self.next_embedder,
        )
        self._guarded_recall = GuardedRecall(
            self.recall,
            self.read_breaker,
            hold=settings.hold,
            is_made=lambda: bool(settings.dsn) or self.writer.has_verified,
        )
        self.search = self._guarded_recall.search
        self.recall_log = self._make_recall_log()
        self.backlog = self._make_backlog()
        self.mirror = self._make_mirror()
        self._undone = self._make_undone()
        self.writer = self._make_writer()
        self.cleaning = CleanFiles(self.folder, self.pool, self.journal, masker_for(settings))
        self.status = self._make_status()
        self._mirror_files = self._make_mirror_files(predecessor)
        self._keep_recall_log = tasks.KeepRecallLog(self.recall_log, self.pool, self.read_breaker)
        self.watch_undo = tasks.WatchUndo(self._undone, self.pool, self.writer)
        self._heartbeat = self._make_heartbeat()
        self.tasks = self._make_tasks(check_configuration)

        self.is_retired = False
        """Whether another engine takes this one's place: the configuration changed, or this is a forked child."""
        self._predecessor = predecessor
        self._successor: Engine | None = None
        self._start_lock = threading.Lock()
        self._started = False
        self._is_closed = False
        self._take_over_thread: threading.Thread | None = None
        self._lacks_journal = False
        self._lacks_threads = False
        renew_after_fork(self)

    # Its parts.

    def _what_outlives_settings(self, predecessor: Engine | None) -> CarriedOver:
        """The predecessor's journal and what it knows of sessions, under the new settings; new ones without it."""
        settings = self.settings
        if predecessor is not None:
            carried_over = predecessor._carried_over
            carried_over.journal.adjust(sync=settings.journal_sync, max_bytes=settings.journal_max_bytes)
            return carried_over
        journal = Journal(self.folder / "journal", sync=settings.journal_sync, max_bytes=settings.journal_max_bytes)
        refusals = Refusals(self.folder)
        return CarriedOver(
            Clock.of_home(self.folder),
            Said(),
            ShownHits(),
            journal,
            refusals,
            Recorder(journal, refusals),
            Life(),
        )

    def _make_next_embedder(self) -> ConfiguredEmbedder | None:
        """The embedder for the model that the database is going to have, so that nothing stops when it changes."""
        described = self.settings.next_embedder
        if described is None:
            return None
        breaker = _recall_breaker("embedding of questions with embed_next")
        return ConfiguredEmbedder(self.home, described, breaker, cache_entries=CACHE_ENTRIES, is_in_use=False)

    def _make_backlog(self) -> Backlog:
        return Backlog(
            self.pool,
            self.embedder,
            self.current_model,
            embed_seconds=self.settings.batch_embed_seconds,
            # The writer's migration leaves the vector tables out when there is no embedder yet to describe them.
            make_tables=SelfMigration(self.home, is_ours=not self.settings.dsn).run,
            following=self.next_embedder,
            meters=self.life.meters,
        )

    def _make_mirror(self) -> Mirror:
        return Mirror(
            self.home,
            self.home_id,
            self.pool,
            self.clock,
            max_chars=self.settings.memory_max_chars,
            masker=masker_for(self.settings),
            wants_vectors=self.settings.embed_on_write,
            inherits=self._former_homes,
        )

    def _make_writer(self) -> Writer:
        return Writer(
            self.journal,
            self.pool,
            self.settings,
            home_id=self.home_id,
            undone=self._undone,
            on_stored=self._rows_stored,
            on_adopted=self.mirror.look_again,
            heal_schema=SelfMigration(self.home, is_ours=not self.settings.dsn and not self.settings.hold).run,
            meters=self.life.meters,
        )

    def _make_undone(self) -> UndoneTurns:
        wants_vectors = self.settings.embed_on_write and self.settings.conversation_embed_policy != "none"
        return UndoneTurns(Rewinds(self.home, self.settings.turn_max_chars), self.home_id, wants_vectors=wants_vectors)

    def _make_recall_log(self) -> RecallLog:
        return RecallLog(
            is_wanted=self.settings.recall_log != "off",
            with_text=self.settings.recall_log == "text",
            masker=masker_for(self.settings),
            meters=self.life.meters,
        )

    def _make_status(self) -> Status:
        return Status(
            self.folder,
            self.journal,
            self.refusals,
            self.writer,
            self.backlog,
            self.embedder,
            self.read_breaker,
            self.cleaning,
        )

    def _make_heartbeat(self) -> Heartbeat:
        breakers = [self.writer.breaker, self.read_breaker, self.backlog.breaker, self.embedder.breaker]
        for breaker in breakers:
            breaker.on_opened = functools.partial(self.life.meters.count, BREAKS, 1, breaker.name)
        return Heartbeat(
            self.life,
            self.pool,
            self.home,
            self.home_id,
            state=self.status.state,
            more_counters=self.status.counters,
            is_away=lambda: self.status.is_away or bool(self.settings.hold),
            has_written=lambda: self.writer.has_verified,
            has_read=lambda: self._guarded_recall.has_answered,
        )

    def _make_mirror_files(self, predecessor: Engine | None) -> tasks.MirrorFiles:
        made = tasks.MirrorFiles(
            self.mirror,
            self.writer,
            on_changed=self._rows_stored,
            is_wanted=self.settings.bulk_sync_on_init,
        )
        if predecessor is not None:
            made.theme = predecessor._mirror_files.theme
        return made

    def _make_tasks(self, check_configuration: Callable[[], object]) -> tasks.Tasks:
        takes_typed = self.settings.embed_on_write and self.settings.conversation_embed_policy == "all"
        return tasks.Tasks(
            {
                "configuration": tasks.WatchConfiguration(self.home, check_configuration).run,
                "warm-up": tasks.WarmUp(self.embedder, is_local=self.settings.uses_local_model).run,
                "vectors": functools.partial(self.backlog.run, takes_typed=takes_typed),
                "mirror": self._mirror_files.run,
                "undone turns": self.watch_undo.run,
                "forgotten files": self.cleaning.run,
                "refused writes": tasks.RecoverRefused(self._recorder, self.mirror).run,
                "history": tasks.ShortenHistory(self.pool, self.writer, self.home_id, self.settings.history_days).run,
                "recall log": self._keep_recall_log.run,
                "sweep": Sweep(self.pool, self.writer, self.settings, self.home_id, self._former_homes).run,
                "connections": tasks.ReapConnections(self.pool).run,
                "process file": self.status.publish,
                "heartbeat": self._heartbeat.run,
            },
            database=self.settings.dsn,
        )

    # What providers do with it.

    def begin_session(self, session: Session, warn_user: Callable[[str], None] | None = None) -> None:
        """A provider begins a session: learn what the tasks need of it, and how to reach the user."""
        if warn_user is not None:
            self._recorder.warn_user = warn_user
        self._mirror_files.theme = session.profile_theme

    def continue_session(self, session: Session) -> None:
        """A provider goes on with a session that it began with another engine."""
        self._mirror_files.theme = self._mirror_files.theme or session.profile_theme

    def record(self, items: Sequence[WriteItem], urgency: Urgency) -> None:
        """Write items to the journal; returns when they are there. Never raises: a refusal is counted and reported."""
        if not items:
            return
        try:
            if not self._started:
                # The file first: that needs no thread, and is what survives.
                self._open_journal()
            if self._recorder.record(items, urgency):
                self.tasks.wake()
        except (JournalError, OSError) as error:
            self._recorder.refuse(items, urgency, error)
        if not self._started:
            self.try_start()

    def append(self, items: Sequence[WriteItem], urgency: Urgency, synced_by: Deadline) -> None:
        """Write items to the journal for a caller that can wait and be told; JournalError when it does not take them.

        Where the journal is synced in the background, this waits for it, as far as the deadline allows.
        """
        if not self._started:
            try:
                self._open_journal()
            except OSError as error:
                raise JournalError(f"the journal cannot be opened ({reason_of(error)})") from None
        self._recorder.append(items, urgency)
        if not self._started:
            self.try_start()
        while self.journal.sync_lag_seconds and not synced_by.is_over:
            time.sleep(0.005)

    def similarity_floor(self) -> float | None:
        """A cosine that what is offered unasked must reach as well, if the operator wants one."""
        return self.settings.min_similarity or None

    def host_entries(self) -> frozenset[str]:
        """What the host's own memory block shows to every session of this home."""
        return self.mirror.file_entries()

    def degradation(self) -> str:
        """One sentence while something is not working, otherwise empty."""
        if self.settings.hold:
            return "The memory's settings cannot be read: what you save is kept and arrives later, recall is empty."
        return self.status.degradation()

    def breakers(self) -> list[BreakerStatus]:
        """All breakers, for status and doctor."""
        return self.status.breakers()

    # Its life.

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
            self.journal.start_helper()
            if self._predecessor is None:
                self.writer.start()
                self.tasks.start()
            else:
                take_over = functools.partial(self._take_over, self._predecessor)
                self._take_over_thread = start_thread(take_over, "hermes-pgvector-take-over")
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

    def retire(self, successor: Engine) -> None:
        """Make way for an engine with other settings; it goes on with the journal at once."""
        self._successor, self.is_retired = successor, True
        if self._started:
            successor.try_start()

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
        if self._take_over_thread is not None:
            self._take_over_thread.join(deadline.remaining())
        if self._started:
            self._recorder.recover()
            self.flush(deadline)
            self.watch_undo.finish(deadline)
            self._heartbeat.end(deadline)
            self.tasks.stop(deadline)
            self.status.withdraw()
        self._keep_recall_log.flush(deadline)
        self.journal.rest(deadline)
        self.refusals.leave()

    def close(self, deadline: Deadline) -> None:
        """Stop the parts; what has not arrived stays in the journal for whoever comes next."""
        with self._start_lock:
            self._is_closed = True
        if self._take_over_thread is not None:
            self._take_over_thread.join(deadline.remaining())
        if self._started:
            self._recorder.recover()
            self.flush(deadline)
            self.watch_undo.finish(deadline)
            self._heartbeat.end(deadline)
            self.status.withdraw()
        self.writer.stop(deadline)
        self.tasks.stop(deadline)
        self._keep_recall_log.flush(deadline)
        self.journal.close(deadline)
        # Recall opens connections also where the journal could not be opened.
        self.pool.close()
        self._close_embedders()
        if not self.is_retired:
            self.refusals.leave()

    def _conninfo(self, deadline: Deadline) -> str:
        """The connection string in force; starts the embedded server when that is the database meant."""
        folder = server_folder(self.home, self.settings)
        return logins_of(folder, self.settings, self._database_guard, deadline, may_create=True).runtime

    @functools.cached_property
    def _former_homes(self) -> tuple[str, ...]:
        """The homes whose rows are this one's now."""
        return () if self.settings.dsn else self._inherited()

    def _inherited(self) -> tuple[str, ...]:
        is_profile = home_identity.root_of(self.home) != self.home
        shares = not is_profile or server_folder(self.home, self.settings) != self.folder
        return home_identity.inherited(self.home, self._identity, shares_database=shares)

    def _open_journal(self) -> None:
        """Make ready to record; needs no thread."""
        self.journal.on_append = self.writer.nudge
        self._recorder.open()

    def _take_over(self, predecessor: Engine) -> None:
        """Go on where the other stops: two writers on one journal could store a record in two databases."""
        predecessor._leave()
        with self._start_lock:
            self._predecessor = None
            if self._is_closed:
                return
            try:
                self.writer.start()
                self.tasks.start()
            except ThreadUnavailable:
                # The next hook tries again.
                self._started = False

    def _leave(self) -> None:
        """Stop everything but what the successor has taken over; returns when the writer has let go of the journal."""
        if self._take_over_thread is not None:
            self._take_over_thread.join()
        # At most the deadline of one batch.
        while not self.writer.stop(Deadline.after(STEP_SECONDS)):
            pass
        self.tasks.stop(Deadline.after(STEP_SECONDS))
        self._keep_recall_log.flush(Deadline.after(STEP_SECONDS))
        self.pool.close()
        self._close_embedders()

    def _close_embedders(self) -> None:
        self.embedder.close()
        if self.next_embedder is not None:
            self.next_embedder.close()

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
