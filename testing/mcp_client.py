"""Other agents, as they connect to `hermes-pgvector mcp`: the SDK's own client.

async with desk(commands, "--theme", "market") as client:
    found = await client.call("recall_memory", query="zebras")
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Self

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from pydantic import BaseModel

from testing.command import PROGRAM, Commands

DESK = types.Implementation(name="desk", version="1.2")


def as_sent(message: BaseModel) -> dict[str, Any]:
    """A message as the protocol writes it: the SDK's releases differ in the names of its attributes."""
    return message.model_dump(by_alias=True, exclude_none=True)


@dataclass(frozen=True, slots=True)
class Client:
    """A connected assistant."""

    session: ClientSession
    server: types.InitializeResult

    async def answer(self, name: str, arguments: dict[str, Any] | None = None) -> tuple[str, bool]:
        """The text a tool answers with, and whether it is an error."""
        result = await self.session.call_tool(name, arguments)
        (block,) = result.content
        assert isinstance(block, types.TextContent)
        return block.text, bool(as_sent(result)["isError"])

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers."""
        text, is_error = await self.answer(name, arguments)
        document: dict[str, Any] = json.loads(text)
        assert is_error == ("error" in document), document
        return document

    async def tools(self) -> dict[str, types.Tool]:
        """The tools on offer."""
        return {tool.name: tool for tool in (await self.session.list_tools()).tools}


class Wire:
    """A server and its messages, one line each, for what the SDK's client would not do."""

    def __init__(self, commands: Commands, *arguments: str) -> None:
        self.process = commands.start("mcp", *arguments)
        self._number = 0

    def __enter__(self) -> Self:
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
        self.ask("initialize", begin)
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=30)

    def send(self, line: bytes) -> None:
        """Send bytes as they are."""
        assert isinstance(self.process.stdin, TextIOWrapper)
        self.process.stdin.buffer.write(line)
        self.process.stdin.flush()

    def ask(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and wait for the answer to it."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters or {}}
        self.send(json.dumps(request).encode() + b"\n")
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, ""):
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._number:
                return message
        raise AssertionError("the server has ended")

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        document: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
        return document


@asynccontextmanager
async def desk(commands: Commands, *arguments: str, stderr: Path | None = None) -> AsyncIterator[Client]:
    """An assistant that starts the server itself."""
    how = StdioServerParameters(
        command=str(PROGRAM), args=["mcp", *arguments], env=commands.environment, cwd=commands.folder
    )
    with (stderr or commands.folder / "mcp.log").open("a", encoding="utf-8") as log:
        async with (
            stdio_client(how, log) as (incoming, outgoing),
            ClientSession(incoming, outgoing, client_info=DESK) as session,
        ):
            yield Client(session, await session.initialize())
