"""The journal against a plain list: append, read, forget, rotate, die, reopen, adopt, in any order."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Adoption, Journal
from hermes_memory_pgvector.journal.frame import HEADER_BYTES
from hermes_memory_pgvector.journal.segment import list_directory
from testing.cases import examples


class JournalMachine(RuleBasedStateMachine):
    """One living journal, any number of dead ones, and the list of what each was given."""

    dead = Bundle("dead")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.model: dict[str, list[bytes]] = {}
        self.ends: dict[str, list[int]] = {}
        """The positions behind a writer's records, after that of its beginning."""
        self.watermark: dict[str, int] = {}
        self.gone: dict[str, int] = {}
        """How far a writer's segments may have been removed."""
        self.held: dict[str, Adoption] = {}
        self.journal = self.fresh()

    def fresh(self) -> Journal:
        journal = Journal(
            self.directory, max_bytes=1 << 24, segment_bytes=300, sync="process", keep_seconds=0.0, sync_interval=0.001
        )
        journal.open()
        self.model[journal.writer], self.ends[journal.writer] = [], [0]
        self.watermark[journal.writer] = self.gone[journal.writer] = 0
        return journal

    @initialize()
    def begin(self) -> None:
        assert self.journal.end == 0

    @rule(payloads=st.lists(st.binary(max_size=120), min_size=1, max_size=6))
    def append(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            self.model[self.journal.writer].append(payload)
            self.journal.append(payload)
            self.ends[self.journal.writer].append(self.journal.end)
            self.settle()

    @rule()
    def rotate(self) -> None:
        self.journal._appender.request_rotation()
        self.settle()

    def settle(self) -> None:
        """Wait for the helper, so that a failing run fails again in the same way."""
        patience = Deadline.after(5)
        while self.journal._appender.wants_rotation:
            patience.check()
            self.journal._helper.wake()

    @rule(count=st.integers(1, 9), size=st.integers(1, 200), back=st.integers(0, 4))
    def read_own(self, count: int, size: int, back: int) -> None:
        self.read(self.journal.writer, count, size, back)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), count=st.integers(1, 9), size=st.integers(1, 200), back=st.integers(0, 4))
    def read_adopted(self, data: st.DataObject, count: int, size: int, back: int) -> None:
        self.read(data.draw(st.sampled_from(list(self.held))), count, size, back)

    def read(self, writer: str, count: int, size: int, back: int) -> None:
        after = max(self.gone[writer], self.watermark[writer] - back)
        ends = self.ends[writer]
        records = self.journal.read(writer, ends[after], max_records=count, max_bytes=size)
        expected = self.model[writer][after : after + len(records)]
        assert [record.end for record in records] == ends[after + 1 : after + 1 + len(records)]
        assert [record.payload for record in records] == expected
        assert bool(records) == (after < len(self.model[writer]))
        assert len(records) <= count
        assert len(records) <= 1 or sum(map(len, expected)) <= size
        if records:
            self.watermark[writer] = max(self.watermark[writer], after + len(records))

    @rule()
    def forget_own(self) -> None:
        self.forget(self.journal.writer)
        waiting = self.model[self.journal.writer][self.watermark[self.journal.writer] :]
        own = self.journal._appender.own_waiting
        assert own == sum(len(payload) + HEADER_BYTES for payload in waiting)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def forget_adopted(self, data: st.DataObject) -> None:
        self.forget(data.draw(st.sampled_from(list(self.held))))

    def forget(self, writer: str) -> None:
        self.journal.retire(writer, self.ends[writer][self.watermark[writer]])
        self.settle()
        self.gone[writer] = self.watermark[writer]

    @rule(target=dead)
    def die(self) -> str:
        """Leave as a killed process does: nothing is finished, the kernel drops the locks."""
        journal = self.journal
        for adoption in self.held.values():
            adoption.release()
        self.held.clear()
        assert journal._lock is not None
        journal._lock.release()
        journal._lock = None
        journal._helper.stop(Deadline.after(5))
        journal._appender.finish()
        self.journal = self.fresh()
        return journal.writer

    @rule(target=dead)
    def close_and_reopen(self) -> str:
        writer = self.journal.writer
        self.journal.close(Deadline.after(5))
        self.held.clear()
        self.journal.open()
        assert self.journal.writer != writer
        self.model[self.journal.writer], self.ends[self.journal.writer] = [], [0]
        self.watermark[self.journal.writer] = self.gone[self.journal.writer] = 0
        return writer

    @rule(writer=dead)
    def adopt(self, writer: str) -> None:
        adoption = self.journal.adopt(writer)
        has_segments = bool(list_directory(self.directory).of(writer))
        has_lock = (self.directory / f"{writer}.lock").exists()
        assert (adoption is not None) == (has_segments or has_lock or writer in self.held)
        if adoption is not None:
            self.held[writer] = adoption

    @rule(writer=consumes(dead))
    def drain_to_the_end(self, writer: str) -> None:
        self.adopt(writer)
        if writer in self.held:
            while self.watermark[writer] < len(self.model[writer]):
                self.read(writer, 50, 1 << 20, 0)
            self.forget(writer)
            self.held.pop(writer).release()
        assert list_directory(self.directory).of(writer) == []
        assert not (self.directory / f"{writer}.lock").exists()

    @invariant()
    def depth_is_what_the_model_says(self) -> None:
        for writer in {self.journal.writer, *self.held}:
            mark = self.watermark[writer]
            waiting = self.model[writer][mark:]
            depth = self.journal.depth(writer, self.ends[writer][mark])
            size = sum(len(payload) + HEADER_BYTES for payload in waiting)
            assert (depth.records, depth.bytes) == (len(waiting), size)

    @invariant()
    def nothing_is_damaged(self) -> None:
        stats = self.journal.stats()
        assert (stats.damaged_segments, stats.last_error) == (0, "")

    def teardown(self) -> None:
        self.journal.close(Deadline.after(5))
        shutil.rmtree(self.directory)


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(max_examples=examples(30), stateful_step_count=30)
