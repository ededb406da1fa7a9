"""Whatever happens to the bytes: no record that was not appended, and none lost that lies in bytes left alone."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Adoption, Journal
from hermes_memory_pgvector.journal.frame import MAGIC, Frame, encode, seed_of
from hermes_memory_pgvector.journal.positions import PlacedRecord, PositionReader, position
from hermes_memory_pgvector.journal.segment import list_directory, segment_path, walk_file
from testing.cases import examples

DEAD = "00000000001-00000000000000aa"
OTHER = "00000000001-00000000000000bb"


COPIED = (-1, 0)


def _foreign_frame(seq: int, payload: bytes) -> bytes:
    return encode(seed_of(OTHER), seq, 0, payload)


payloads = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(str.encode),
    st.binary(max_size=10).map(lambda rest: MAGIC + rest),
    st.builds(_foreign_frame, st.integers(1, 40), st.binary(max_size=20)),
)


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing done to a file, at a share of its length."""

    kind: str
    at: float
    length: int
    filling: bytes


damages = st.builds(
    Damage,
    st.sampled_from(["truncate", "flip", "zero", "splice", "remove", "forge", "copy"]),
    st.floats(0, 1),
    st.integers(1, 80),
    st.binary(min_size=1, max_size=40),
)


class Bytes:
    """A file's bytes, each knowing where it came from: (segment, offset), or None when it was put there."""

    def __init__(self, number: int, data: bytes) -> None:
        self.cells: list[tuple[int, tuple[int, int] | None]] = [(byte, (number, at)) for at, byte in enumerate(data)]

    def apply(self, damage: Damage) -> None:
        at = int(damage.at * len(self.cells))
        end = min(len(self.cells), at + damage.length)
        match damage.kind:
            case "truncate":
                del self.cells[at:]
            case "flip" if at < len(self.cells):
                self.cells[at] = ((self.cells[at][0] + damage.length) % 256, None)
            case "zero":
                # A zero written over a zero changes nothing: such a byte is as good as before.
                self.cells[at:end] = [(0, origin if byte == 0 else None) for byte, origin in self.cells[at:end]]
            case "splice":
                self.cells[at:at] = [(byte, None) for byte in damage.filling]
            case "remove":
                del self.cells[at:end]
            case "forge":
                forged = _foreign_frame(1 + damage.length, damage.filling)
                self.cells[at:at] = [(byte, None) for byte in forged]
            case "copy":
                # Own bytes in a second place: intact frames among them are genuine, and must come only once.
                source = len(damage.filling) * len(self.cells) // 41
                self.cells[at:at] = [(byte, COPIED) for byte, _ in self.cells[source : source + 3 * damage.length]]
            case _:
                pass

    def data(self) -> bytes:
        return bytes(byte for byte, _ in self.cells)

    def untouched(self) -> set[tuple[int, int, int]]:
        """Every run of original bytes that still follow each other, as (segment, start, end)."""
        runs: set[tuple[int, int, int]] = set()
        start: tuple[int, int] | None = None
        last: tuple[int, int] | None = None
        for _, origin in [*self.cells, (0, None)]:
            if last is not None and start is not None and origin != (last[0], last[1] + 1):
                runs.add((start[0], start[1], last[1] + 1))
                start = None
            if origin is not None and start is None:
                start = origin
            last = origin
        return runs


@settings(max_examples=examples(100))
@given(
    records=st.lists(payloads, min_size=1, max_size=24),
    per_segment=st.integers(1, 10),
    harm=st.lists(st.tuples(st.integers(0, 30), damages), max_size=6),
    batch=st.integers(1, 8),
)
def test_damage_never_forges_a_record_and_never_takes_an_untouched_one(
    records: list[bytes], per_segment: int, harm: list[tuple[int, Damage]], batch: int
) -> None:
    segments: list[Bytes] = []
    places: dict[int, tuple[int, int, int]] = {}
    for first in range(0, len(records), per_segment):
        data = b""
        for seq, payload in enumerate(records[first : first + per_segment], start=first + 1):
            frame = encode(seed_of(DEAD), seq, 1_000_000, payload)
            places[seq] = (len(segments), len(data), len(data) + len(frame))
            data += frame
        segments.append(Bytes(len(segments), data))
    for which, damage in harm:
        segments[which % len(segments)].apply(damage)
    intact = [run for segment in segments for run in segment.untouched()]
    certain = {
        seq
        for seq, (number, start, end) in places.items()
        if any(run[0] == number and run[1] <= start and end <= run[2] for run in intact)
    }
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for number, segment in enumerate(segments, start=1):
            segment_path(directory, DEAD, number).write_bytes(segment.data())
        journal = Journal(directory, max_bytes=1 << 20, sync="process", keep_seconds=0.0)
        journal.open()
        found = _read_all(journal, batch)
        stats = journal.stats()
        assert {seq: records[seq - 1] for seq in found} == found
        assert certain <= set(found)
        assert stats.skipped_records == max(found, default=0) - len(found)
        assert journal.depth(DEAD, 0).records == 0 or found
        starts = {places[seq][:2] for seq in certain}
        _everything_damaged_is_kept(journal, directory, segments, starts, max(found, default=0))
        journal.close(Deadline.after(5))


@settings(max_examples=examples(100))
@given(
    records=st.lists(payloads, min_size=1, max_size=24),
    per_segment=st.integers(1, 10),
    harm=st.lists(st.tuples(st.integers(0, 30), damages), max_size=6),
    batch=st.integers(1, 8),
)
def test_reading_by_position_finds_what_reading_by_number_finds(
    records: list[bytes], per_segment: int, harm: list[tuple[int, Damage]], batch: int
) -> None:
    """It may find more: a record that was copied to a second place has two positions, and only one number."""
    segments: list[Bytes] = []
    for first in range(0, len(records), per_segment):
        numbered = enumerate(records[first : first + per_segment], start=first + 1)
        data = b"".join(encode(seed_of(DEAD), seq, 1_000_000, payload) for seq, payload in numbered)
        segments.append(Bytes(len(segments), data))
    for which, damage in harm:
        segments[which % len(segments)].apply(damage)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for number, segment in enumerate(segments, start=1):
            segment_path(directory, DEAD, number).write_bytes(segment.data())
        journal = Journal(directory, max_bytes=1 << 20, sync="process")
        journal.open()
        by_number = _read_all(journal, batch)
        journal.close(Deadline.after(5))
        there = {
            position(segment.number, found.start): found
            for segment in list_directory(directory).of(DEAD)
            for found in walk_file(segment.path, DEAD)
            if isinstance(found, Frame)
        }
        reader = PositionReader(directory, lambda _: 1 << 62)
        mark = 0
        by_position: list[PlacedRecord] = []
        while part := reader.read(DEAD, mark, max_records=batch, max_bytes=1 << 20):
            assert [each.start for each in part] == sorted(each.start for each in part)
            assert part[0].start >= mark
            mark = part[-1].end
            by_position += part
    assert [each.start for each in by_position] == sorted(there)
    assert {each.start: each.payload for each in by_position} == {at: frame.payload for at, frame in there.items()}
    numbers = {there[each.start].seq: each.payload for each in by_position}
    assert numbers == by_number
    assert len(by_position) == len(numbers) or any(damage.kind == "copy" for _, damage in harm)


def _read_all(journal: Journal, batch: int) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    after = 0
    with journal.adopt(DEAD) or _fail():
        while records := journal.read(DEAD, after, max_records=batch, max_bytes=1 << 20):
            for record in records:
                assert record.seq > after
                after = record.seq
                found[record.seq] = record.payload
    return found


def _everything_damaged_is_kept(
    journal: Journal, directory: Path, segments: list[Bytes], starts: set[tuple[int, int]], last: int
) -> None:
    """After draining, no file is where it was, and one with foreign bytes before an intact record is put aside."""
    with journal.adopt(DEAD) or _fail():
        journal.retire(DEAD, last)
    kept = {path.name.split(".")[1] for path in directory.glob(f"{DEAD}.*.damaged")}
    for number, segment in enumerate(segments, start=1):
        origins = [origin for _, origin in segment.cells]
        assert not segment_path(directory, DEAD, number).exists()
        if None in origins and any(origin in starts for origin in origins[origins.index(None) :]):
            assert f"{number:08d}" in kept
    assert journal.stats().damaged_segments == len(kept)


def _fail() -> Adoption:
    raise AssertionError("the dead writer was not adopted")
