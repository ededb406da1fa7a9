"""Frames: what is written comes back, and nothing else does."""

from __future__ import annotations

import pytest

from hermes_memory_pgvector.journal.frame import HEADER_BYTES, MAGIC, Frame, Junk, encode, seed_of, walk

SEED = seed_of("00000000001-0000000000000001")
OTHER = seed_of("00000000001-0000000000000002")


def scan(data: bytes, seed: int = SEED, offset: int = 0) -> list[Frame | Junk]:
    return list(walk(lambda at, count: data[at : at + count], len(data), seed, offset))


def frames(data: bytes, seed: int = SEED) -> list[tuple[int, bytes]]:
    return [(item.micros, item.payload) for item in scan(data, seed) if isinstance(item, Frame)]


def test_every_magic_byte_is_impossible_in_utf8() -> None:
    for byte in MAGIC:
        assert byte in {0xC0, 0xC1} or byte >= 0xF5


@pytest.mark.parametrize("payload", [b"", b"{}", b"\x00" * 5000, MAGIC * 40, b"y" * 700_000])
def test_a_frame_comes_back_as_it_was_written(payload: bytes) -> None:
    data = encode(SEED, -5, payload)
    assert scan(data) == [Frame(-5, payload, 0, len(data))]


def test_frames_are_found_across_the_borders_of_read_windows() -> None:
    data = b"".join(encode(SEED, seq, bytes([seq % 256]) * (seq % 977)) for seq in range(1, 2000))
    assert [seq for seq, _ in frames(data)] == list(range(1, 2000))


def test_a_magic_that_straddles_two_windows_is_found() -> None:
    for shift in range(8):
        data = b"\x00" * (256 * 1024 - 4 + shift) + encode(SEED, 1, b"after the border")
        assert frames(data) == [(1, b"after the border")]


def test_a_cut_frame_is_torn_and_not_damage() -> None:
    first, second = encode(SEED, 1, b"whole"), encode(SEED, 2, b"cut off")
    for cut in range(1, len(second)):
        *found, rest = scan(first + second[:cut])
        assert [item.micros for item in found if isinstance(item, Frame)] == [1]
        assert rest == Junk(len(first), len(first) + cut, is_torn=True)


@pytest.mark.parametrize("tail", [b"\x00" * 4096, b"hello", b"\xf5hello", MAGIC + b"\x00" * 60])
def test_a_tail_that_is_no_beginning_of_a_frame_is_damage(tail: bytes) -> None:
    first = encode(SEED, 1, b"whole")
    assert scan(first + tail)[-1] == Junk(len(first), len(first) + len(tail), is_torn=False)


def test_a_flipped_bit_costs_its_own_record_only() -> None:
    parts = [encode(SEED, seq, b"payload %d" % seq) for seq in (1, 2, 3)]
    for at in range(len(parts[1])):
        broken = bytearray(parts[1])
        broken[at] ^= 0x10
        data = parts[0] + bytes(broken) + parts[2]
        assert frames(data) == [(1, b"payload 1"), (3, b"payload 3")]


def test_bytes_taken_out_of_a_record_do_not_hide_the_next() -> None:
    parts = [encode(SEED, seq, b"p" * 300) for seq in (1, 2, 3)]
    data = parts[0] + parts[1][:-100] + parts[2]
    assert [seq for seq, _ in frames(data)] == [1, 3]


def test_a_frame_of_another_writer_is_junk_even_inside_a_broken_record() -> None:
    forged = encode(OTHER, 9, b"forged")
    carrier = bytearray(encode(SEED, 1, forged))
    assert frames(bytes(carrier)) == [(1, forged)]
    carrier[HEADER_BYTES - 1] ^= 1
    assert frames(bytes(carrier)) == []
    assert frames(forged) == []


def test_a_payload_full_of_magics_does_not_make_scanning_slow() -> None:
    broken = bytearray(encode(SEED, 1, (MAGIC + b"\xff\xff\x3f\x00") * 100_000))
    broken[5] ^= 1
    data = bytes(broken) + encode(SEED, 2, b"next")
    assert frames(data) == [(2, b"next")]
