"""Vectors and columns of values in the binary form Postgres takes.

Formatting and parsing 768 numbers as text costs more than storing them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psycopg
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

from hermes_memory_pgvector.values import EmbeddingModel

_HALF_MAX = 65_504.0
TEXT_OID = psycopg.adapters.types["text"].oid
TIMESTAMPTZ_OID = psycopg.adapters.types["timestamptz"].oid
INTEGER_OID = psycopg.adapters.types["int4"].oid
# Postgres counts from the year 2000.
_EPOCH_MICROS = 946_684_800_000_000


@dataclass(frozen=True, slots=True)
class HalfVector:
    """One vector, for a parameter cast to halfvec."""

    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Column:
    """One value per row, in binary, for a parameter cast to an array: far cheaper than a list of Python objects."""

    oid: int
    values: Sequence[bytes]


def text_column(values: Iterable[str]) -> Column:
    """Texts, for a parameter cast to text[]."""
    return Column(TEXT_OID, [value.encode() for value in values])


def time_column(micros: Iterable[int]) -> Column:
    """Times, in microseconds since 1970, for a parameter cast to timestamptz[]."""
    return Column(TIMESTAMPTZ_OID, [(each - _EPOCH_MICROS).to_bytes(8, "big", signed=True) for each in micros])


def vector_array(model: EmbeddingModel, vectors: Sequence[Sequence[float]]) -> Column:
    """Vectors of a model, for a parameter cast to halfvec[]."""
    for vector in vectors:
        if len(vector) != model.dim:
            raise ValueError(f"a vector has {len(vector)} numbers where {model.dim} are expected")
    return Column(model.vector_oid, [_binary(vector) for vector in vectors])


def _binary(values: Sequence[float]) -> bytes:
    dim = len(values)
    try:
        return struct.pack(f">HH{dim}e", dim, 0, *values)
    except OverflowError:
        return struct.pack(f">HH{dim}e", dim, 0, *[max(-_HALF_MAX, min(_HALF_MAX, value)) for value in values])


class _HalfVectorDumper(Dumper):
    format = Format.BINARY
    oid = 0  # the statement's cast says what it is

    def dump(self, obj: HalfVector) -> Buffer:
        return _binary(obj.values)


class _ColumnDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: Column) -> Buffer:
        if not obj.values:
            return struct.pack(">iiI", 0, 0, obj.oid)
        parts = [struct.pack(">iiIii", 1, 0, obj.oid, len(obj.values), 1)]
        for value in obj.values:
            parts += (len(value).to_bytes(4, "big"), value)
        return b"".join(parts)


psycopg.adapters.register_dumper(HalfVector, _HalfVectorDumper)
psycopg.adapters.register_dumper(Column, _ColumnDumper)
