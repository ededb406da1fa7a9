"""MCP over standard input and output, for a client that starts this process itself.

Standard output belongs to the protocol: whatever else prints goes to standard error. Input is read by a thread that may
be left waiting, so that the process can end while its client stays silent.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO, Self, cast

import anyio
from anyio.from_thread import BlockingPortal
from mcp.server.stdio import stdio_server

from hermes_memory_pgvector.mcp.memory import SharedMemory
from hermes_memory_pgvector.mcp.server import server_of
from hermes_memory_pgvector.service import start_thread

MOST_LINE = 4 * 1024 * 1024
"""Bytes of one message; a longer one is not a message."""
PIECE = 64 * 1024
TOO_LONG = "{"
WAITING_LINES = 16
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, BrokenPipeError)


def serve(memory: SharedMemory) -> None:
    """Answer until the client closes our input, or somebody ends the process."""
    given, told = _own_streams()
    memory.start()
    anyio.run(_serve, memory, given, told)


async def _serve(memory: SharedMemory, given: int, told: BinaryIO) -> None:
    server = server_of(memory)
    out = anyio.wrap_file(io.TextIOWrapper(told, encoding="utf-8"))
    async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
        tasks.start_soon(_end_by_signal, tasks.cancel_scope)
        with _Lines(given, portal) as lines:
            try:
                # The SDK only iterates over its input.
                async with stdio_server(cast("anyio.AsyncFile[str]", lines), out) as (incoming, outgoing):
                    await server.run(incoming, outgoing, server.create_initialization_options())
            except* _GONE:
                # The client has gone without waiting for its answers.
                pass
        tasks.cancel_scope.cancel()


async def _end_by_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return


class _Lines:
    """The lines of a file, read by a thread that ends with the process.

    By its number: a file object that a thread is still reading from keeps the interpreter from ending.
    """

    def __init__(self, number: int, portal: BlockingPortal) -> None:
        self._number = number
        self._portal = portal
        self._send, self._receive = anyio.create_memory_object_stream[str](WAITING_LINES)

    def __enter__(self) -> Self:
        start_thread(self._read, "hermes-pgvector-mcp-input")
        return self

    def __exit__(self, *_: object) -> None:
        self._send.close()
        self._receive.close()

    async def __aiter__(self) -> AsyncIterator[str]:
        async with self._receive:
            async for line in self._receive:
                yield line

    def _read(self) -> None:
        begun, is_too_long = b"", False
        try:
            while piece := os.read(self._number, PIECE):
                *lines, rest = piece.split(b"\n")
                for line in lines:
                    if not is_too_long:
                        self._portal.call(self._send.send, (begun + line).decode("utf-8", "replace"))
                    begun, is_too_long = b"", False
                begun += rest
                if len(begun) > MOST_LINE:
                    if not is_too_long:
                        # It is answered like any other line that is no message.
                        self._portal.call(self._send.send, TOO_LONG)
                    begun, is_too_long = b"", True
            self._portal.call(self._send.aclose)
        except (RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            # The server has ended first.
            return


def _own_streams() -> tuple[int, BinaryIO]:
    """Standard input and output for the protocol alone: under their numbers stand nothing and standard error."""
    sys.stdout.flush()
    given, told = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return given, os.fdopen(told, "wb", closefd=False)
