"""The Model Context Protocol on standard input and output: one JSON object a line, for the client that started us.

Standard output belongs to the protocol: whatever else prints goes to standard error. Calls are answered one after the
other.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from hermes_memory_pgvector import __version__
from hermes_memory_pgvector.mcp.memory import REMEMBER, SharedMemory
from hermes_memory_pgvector.recall.tools import TOOL_NAMES

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""What we speak; the newest first."""
MOST_LINE: Final = 4 * 1024 * 1024
"""Bytes of one message; a longer one is answered as no message, piece by piece."""
NOT_JSON, NOT_A_REQUEST, NO_METHOD, BAD_PARAMETERS = -32700, -32600, -32601, -32602


def serve(memory: SharedMemory) -> None:
    """Answer until the client closes our input, or somebody ends the process."""
    given, told = _own_streams()

    def end(*_: object) -> None:
        # The call at work is finished; whoever reads next finds the end.
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), given.fileno())

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        while line := given.readline(MOST_LINE):
            reply = _answer(memory, line)
            if reply is not None:
                told.write(json.dumps(reply).encode() + b"\n")
                told.flush()
    except BrokenPipeError:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        given.close()


def _answer(memory: SharedMemory, line: bytes) -> dict[str, Any] | None:
    """The reply to a line; None for what wants none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _failure(None, NOT_JSON, "That is no JSON")
    number = message.get("id") if isinstance(message, dict) else None
    method = message.get("method") if isinstance(message, dict) else None
    if not isinstance(method, str) or isinstance(number, bool) or not isinstance(number, str | int | None):
        return _failure(None, NOT_A_REQUEST, "That is no request")
    if number is None:
        return None
    given = message.get("params") or {}
    if not isinstance(given, dict):
        return _failure(number, BAD_PARAMETERS, "Params is an object")
    if method == "initialize":
        return _result(number, _begin(memory, given))
    if method == "ping":
        return _result(number, {})
    if method == "tools/list":
        return _result(number, {"tools": [_offered(each) for each in memory.tools.values()]})
    if method == "tools/call":
        if not isinstance(given.get("name"), str):
            return _failure(number, BAD_PARAMETERS, "Give the name of a tool")
        text = memory.call(given["name"], given.get("arguments"))
        content = [{"type": "text", "text": text}]
        return _result(number, {"content": content, "isError": text.startswith('{"error": ')})
    return _failure(number, NO_METHOD, "Method not found")


def _begin(memory: SharedMemory, given: Mapping[str, Any]) -> dict[str, Any]:
    client = given.get("clientInfo")
    if isinstance(client, dict):
        memory.client = f"{client.get('name', '')} {client.get('version', '')}".strip()
    wanted = given.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hermes-pgvector", "version": __version__},
        "instructions": memory.introduction,
    }


def _offered(tool: Mapping[str, Any]) -> dict[str, Any]:
    name = tool["name"]
    hints = {
        "readOnlyHint": name in TOOL_NAMES,
        "destructiveHint": name not in (*TOOL_NAMES, REMEMBER),
        "idempotentHint": True,
        "openWorldHint": False,
    }
    schema = {**tool["parameters"], "additionalProperties": False}
    return {"name": name, "description": tool["description"], "inputSchema": schema, "annotations": hints}


def _result(number: str | int, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _failure(number: str | int | None, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the protocol alone: under their numbers stand nothing and standard error."""
    sys.stdout.flush()
    given, told = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return given, os.fdopen(told, "wb", closefd=False)
