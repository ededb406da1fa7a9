"""A gateway from its first request to its last signal: nobody goes without memory, nothing piles up or gets lost."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.embed_server import EmbedServer
from fixtures.hermes import Gateway, HermesHome, MakeHome, eventually, free_port, install_probe

AT_ONCE = 8
THREADS_OF_OURS = 6
CONNECTIONS_OF_OURS = 4


def chats(count: int) -> list[tuple[str, str]]:
    return [
        (f"team-{number % 5}", f"Request number {number} asks about the stock of shelf {number} in hall {number * 7}.")
        for number in range(count)
    ]


def thread_names(port: int) -> list[str]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link, link.makefile("rb") as stream:
        return [str(name) for name in json.loads(stream.read())]


def ours(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(("pgvector", "pool-"))]


def test_eight_cold_requests_at_once_all_have_memory(make_home: MakeHome) -> None:
    home = make_home()
    with home.gateway() as gateway:
        gateway.chat_all(chats(AT_ONCE), at_once=AT_ONCE)
        assert eventually(lambda: home.stored.count("conversations") == 2 * AT_ONCE)
    assert "no provider instance found" not in home.logs()


@pytest.fixture(scope="module")
def probed(make_home: MakeHome) -> Iterator[tuple[HermesHome, Gateway, int]]:
    port = free_port()
    home = make_home(environment={"PROBE_PORT": str(port)})
    install_probe(home)
    with home.gateway() as gateway:
        yield home, gateway, port


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.large)])
def test_many_requests_stay_within_the_budget_of_threads_and_connections(
    probed: tuple[HermesHome, Gateway, int], count: int
) -> None:
    home, gateway, port = probed
    before = home.stored.count("conversations")
    most_threads: list[str] = []
    most_connections = 0
    pending = chats(count)
    while pending:
        batch, pending = pending[:20], pending[20:]
        gateway.chat_all([(theme, f"Of {count}: {text}") for theme, text in batch], at_once=AT_ONCE)
        most_threads = max(most_threads, ours(thread_names(port)), key=len)
        most_connections = max(most_connections, home.stored.connections())
    assert eventually(lambda: home.stored.count("conversations") == before + 2 * count), "turns were lost"
    assert most_threads, "the threads of the plugin have another name"
    assert len(most_threads) <= THREADS_OF_OURS, most_threads
    assert 0 < most_connections <= CONNECTIONS_OF_OURS
    everything = len(list(Path(f"/proc/{gateway.process.pid}/task").iterdir()))
    assert everything < 60, "the gateway's threads grow with the requests"


def test_the_last_turn_before_sigterm_is_stored(make_home: MakeHome, host_embedder: EmbedServer) -> None:
    message = "The last words before the lights go out: water the ferns on Sunday."
    with EmbedServer(dim=host_embedder.dim, latency=1.5) as slow:
        home = make_home(embed_url=slow.url)
        with home.gateway() as gateway:
            gateway.chat(message, theme="evening")
            gateway.stop()
        assert [role for role, _, _ in home.stored.turns("evening")] == ["user", "assistant"]


def test_turns_said_while_the_database_is_away_arrive_with_the_next_process(make_home: MakeHome) -> None:
    home = make_home()
    dsn = home.dsn
    home.change_setting("dsn", f"postgresql://hermes:{home.password}@127.0.0.1:{free_port()}/nowhere")
    message = "Nobody is listening, but the lamp oil has to be ordered before Friday."
    home.ask(message)
    home.change_setting("dsn", dsn)
    home.ask("And here is another question about the lamps, asked on a better day.")
    assert eventually(lambda: home.stored.themes_of(message) == {"hermes"})
    assert home.stored.count("conversations") == 4


def test_gateway_and_command_line_share_a_home(make_home: MakeHome) -> None:
    home = make_home()
    with home.gateway() as gateway:
        gateway.chat("The gateway and the command line share this home and its journal.", theme="shared")
        home.ask("The command line speaks at the same time as the gateway is running.")
        assert eventually(lambda: home.stored.themes() == {"shared", "hermes"})
        assert eventually(lambda: home.stored.count("conversations") == 4)
