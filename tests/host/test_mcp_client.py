"""hermes-agent's own MCP client on `hermes-pgvector mcp`, configured as its users do, by stdio and by HTTP."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from testing.command import PROGRAM
from testing.hermes import MakeHome
from testing.waiting import wait_until

TOKEN = "a-token-from-a-file-that-is-long-enough"
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
    ("mcp__remote__replace", {"old_text": "opens at nine", "content": "The zebra office opens at ten."}),
    ("mcp__fleet__recall_memory", {"query": "zebra office"}),
    ("mcp__remote__remember", {"content": "x", "theme": "garden"}),
]


@pytest.mark.large
def test_the_hosts_own_client_recalls_and_remembers(make_home: MakeHome) -> None:
    home = make_home()
    token = home.user / "mcp.token"
    token.write_text(TOKEN, encoding="utf-8")
    token.chmod(0o600)
    common = ["mcp", "--theme", "market", "--hermes-home", str(home.path)]
    listen = ["--listen", "127.0.0.1:0", "--token-file", str(token), "--json"]
    with subprocess.Popen(
        [PROGRAM, *common, *listen], env=home.environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["url"]
            servers = {
                "fleet": {"command": str(PROGRAM), "args": common},
                "remote": {"url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}},
                "reader": {"command": str(PROGRAM), "args": [*common, "--read-only"]},
                "stranger": {"url": url, "headers": {"Authorization": "Bearer wrong"}},
            }
            home.configure(**home.config, mcp_servers=servers)
            first, _ = home.python(SCRIPT, json.dumps(CALLS[:1]))
            wait_until(lambda: home.stored.memories("market"))
            _, answers = home.python(SCRIPT, json.dumps(CALLS[1:]))
        finally:
            server.terminate()
    tools = ["recall_conversation", "recall_memory", "remember", "remove", "replace"]
    assert {name for name in first if "__fleet__" in name} == {f"mcp__fleet__{tool}" for tool in tools}
    assert {name for name in first if "__reader__" in name} == {f"mcp__reader__{tool}" for tool in tools[:2]}
    assert not [name for name in first if "stranger" in name]
    assert "The zebra office opens at nine." in answers[0]
    assert "The zebra office opens at ten." in answers[1]
    assert "does not take" in answers[2]
    assert home.stored.memories("market") == [("memory", "The zebra office opens at ten.")]
    assert server.returncode == 0
