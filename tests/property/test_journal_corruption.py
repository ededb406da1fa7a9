"""Whatever happens to the bytes: no record that was not appended, and none lost that lies in bytes left alone."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import FIRST_POSITION, Adoption, Journal, Record
from hermes_memory_pgvector.journal.frame import MAGIC, encode, seed_of
from hermes_memory_pgvector.journal.segment import OFFSET_BITS, segment_path
from testing.cases import examples

DEAD = "00000000001-00000000000000aa"
OTHER = "00000000001-00000000000000bb"


COPIED = (-1, 0)


def _foreign_frame(payload: bytes) -> bytes:
    return encode(seed_of(OTHER), 0, payload)


payloads = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(str.encode),
    st.binary(max_size=10).map(lambda rest: MAGIC + rest),
    st.builds(_foreign_frame, st.binary(max_size=20)),
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
                forged = _foreign_frame(damage.filling)
                self.cells[at:at] = [(byte, None) for byte in forged]
            case "copy":
                # Own bytes in a second place: intact frames among them are genuine.
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
    places: dict[tuple[int, int], tuple[int, bytes]] = {}
    for first in range(0, len(records), per_segment):
        data = b""
        for payload in records[first : first + per_segment]:
            frame = encode(seed_of(DEAD), 1_000_000, payload)
            places[len(segments), len(data)] = (len(data) + len(frame), payload)
            data += frame
        segments.append(Bytes(len(segments), data))
    for which, damage in harm:
        segments[which % len(segments)].apply(damage)
    intact = [run for segment in segments for run in segment.untouched()]
    certain = {
        (number, start)
        for (number, start), (end, _) in places.items()
        if any(run[0] == number and run[1] <= start and end <= run[2] for run in intact)
    }
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for number, segment in enumerate(segments, start=1):
            segment_path(directory, DEAD, number).write_bytes(segment.data())
        journal = Journal(directory, max_bytes=1 << 20, sync="process", keep_seconds=0.0)
        journal.open()
        found = _read_all(journal, batch)
        came_from: set[tuple[int, int]] = set()
        for record in found:
            number, offset = divmod(record.start - FIRST_POSITION, 1 << OFFSET_BITS)
            origin = segments[number].cells[offset][1]
            assert record.payload in records
            if origin in places:
                assert places[origin][1] == record.payload
                came_from.add(origin)
        assert certain <= came_from
        assert journal.depth(DEAD, 0).records == len(found)
        _everything_damaged_is_kept(journal, directory, segments, certain, found[-1].end if found else FIRST_POSITION)
        journal.close(Deadline.after(5))


def _read_all(journal: Journal, batch: int) -> list[Record]:
    found: list[Record] = []
    mark = 0
    with journal.adopt(DEAD) or _fail():
        while records := journal.read(DEAD, mark, max_records=batch, max_bytes=1 << 20):
            for record in records:
                assert mark <= record.start < record.end
                mark = record.end
            found += records
    return found


def _everything_damaged_is_kept(
    journal: Journal, directory: Path, segments: list[Bytes], starts: set[tuple[int, int]], mark: int
) -> None:
    """After draining, no file is where it was, and one with foreign bytes before an intact record is put aside."""
    with journal.adopt(DEAD) or _fail():
        journal.retire(DEAD, mark)
    kept = {path.name.split(".")[1] for path in directory.glob(f"{DEAD}.*.damaged")}
    for number, segment in enumerate(segments, start=1):
        origins = [origin for _, origin in segment.cells]
        assert not segment_path(directory, DEAD, number).exists()
        if None in origins and any(origin in starts for origin in origins[origins.index(None) :]):
            assert f"{number:08d}" in kept
    assert journal.stats().damaged_segments == len(kept)


def _fail() -> Adoption:
    raise AssertionError("the dead writer was not adopted")
