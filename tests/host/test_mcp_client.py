"""hermes-agent's own MCP client on `hermes-pgvector mcp`, configured as its users do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testing.command import PROGRAM
from testing.hermes import MakeHome
from testing.waiting import wait_until

SCRIPT = """
import json, sys
from tools.mcp_tool import discover_mcp_tools, shutdown_mcp_servers
from tools.registry import registry
names = sorted(discover_mcp_tools())
answers = [registry.dispatch(name, arguments) for name, arguments in json.loads(sys.argv[1])]
shutdown_mcp_servers()
print(json.dumps([names, answers]))
"""
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("mcp__fleet__remember", {"content": "The zebra office opens at nine."}),
    ("mcp__reader__recall_memory", {"query": "zebra office"}),
    ("mcp__fleet__remember", {"content": "x", "theme": "garden"}),
]


@pytest.mark.large
def test_the_hosts_own_client_recalls_and_remembers(make_home: MakeHome) -> None:
    home = make_home()
    common = ["mcp", "--theme", "market", "--hermes-home", str(home.path)]
    servers = {
        "fleet": {"command": str(PROGRAM), "args": common},
        "reader": {"command": str(PROGRAM), "args": [*common, "--read-only"]},
    }
    home.configure(**home.config, mcp_servers=servers)
    first, _ = home.python(SCRIPT, json.dumps(CALLS[:1]))
    wait_until(lambda: home.stored.memories("market"))
    _, answers = home.python(SCRIPT, json.dumps(CALLS[1:]))
    tools = ["recall_conversation", "recall_memory", "remember"]
    assert {name for name in first if "__fleet__" in name} == {f"mcp__fleet__{tool}" for tool in tools}
    assert {name for name in first if "__reader__" in name} == {f"mcp__reader__{tool}" for tool in tools[:2]}
    assert "The zebra office opens at nine." in answers[0]
    assert "does not take" in answers[1]
    assert home.stored.memories("market") == [("memory", "The zebra office opens at nine.")]
