"""The memory's tools as an MCP server, whatever carries its messages."""

from __future__ import annotations

import logging
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from anyio.to_thread import run_sync
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession

from hermes_memory_pgvector import __version__
from hermes_memory_pgvector.mcp.memory import Assistant, Reply, SharedMemory, Tool

NAME = "hermes-pgvector"
AT_ONCE = 4
"""Calls that are answered side by side; more wait."""


def server_of(memory: SharedMemory) -> Server[Any, Any]:
    """A server with the memory's tools; each connection is an assistant of its own."""
    _silence_sdk()
    server: Server[Any, Any] = Server(NAME, version=__version__, instructions=memory.introduction)
    assistants: WeakKeyDictionary[ServerSession, Assistant] = WeakKeyDictionary()
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def list_tools(_: types.ListToolsRequest | None) -> types.ServerResult:
        return types.ServerResult(types.ListToolsResult(tools=[_offered(tool) for tool in memory.tools]))

    async def call_tool(request: types.CallToolRequest) -> types.ServerResult:
        session = server.request_context.session
        assistant = assistants.setdefault(session, Assistant(_name_of(session)))
        arguments = request.params.arguments or {}
        reply: Reply = await run_sync(memory.call, request.params.name, arguments, assistant, limiter=limiter)
        content = types.TextContent(type="text", text=reply.text)
        return types.ServerResult(types.CallToolResult(content=[content], isError=reply.is_error))

    # Not by the SDK's decorators: those would check arguments in other words than the memory itself does.
    server.request_handlers[types.ListToolsRequest] = list_tools
    server.request_handlers[types.CallToolRequest] = call_tool
    return server


def _silence_sdk() -> None:
    """Keep a caller's words, which the SDK quotes, out of every log; it logs under its own name and under no name."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    root = logging.getLogger()
    root.addFilter(lambda _: False)
    # Without any handler, logging under no name would add one that prints what we log ourselves a second time.
    root.addHandler(logging.NullHandler())


def _offered(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        readOnlyHint=tool.reads_only, destructiveHint=tool.destroys, idempotentHint=True, openWorldHint=False
    )
    return types.Tool(
        name=tool.name, description=tool.description, inputSchema=dict(tool.parameters), annotations=hints
    )


def _name_of(session: ServerSession) -> str:
    told = session.client_params
    return "" if told is None else f"{told.clientInfo.name} {told.clientInfo.version}".strip()
