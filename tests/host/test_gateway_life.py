"""A gateway from its first request to its last signal: nobody goes without memory, nothing piles up or gets lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
import yaml

from hermes_memory_pgvector.config.home import homes_of
from hermes_memory_pgvector.ops.setup import plugin_folder
from testing.embed_server import EmbedServer
from testing.hermes import MakeHome, install_probe
from testing.hermes_home import NO_LISTENER, PROFILE_KEY, HermesHome, write_variables
from testing.hermes_servers import Gateway, free_port, threads_of_ours
from testing.waiting import wait_until

AT_ONCE = 8
THREADS_OF_OURS = 6
"""Beside those that ask the embedding endpoint: one for each question, as long as that takes."""
CONNECTIONS_OF_OURS = 4


REQUESTS, PORTION = 1000, 100
GROWTH_KB = 24 * 1024


def lasting(threads: list[str]) -> list[str]:
    return [name for name in threads if name != "hermes-pgvector-embed"]


def chats(count: int, themes: int = 5) -> list[tuple[str, str]]:
    return [
        (
            f"team-{number % themes}",
            f"Of {count}: request {number} asks about the stock of shelf {number}, hall {number * 7}.",
        )
        for number in range(count)
    ]


def test_eight_cold_requests_at_once_all_have_memory_and_the_command_line_shares_it(make_home: MakeHome) -> None:
    home = make_home()
    with home.gateway() as gateway:
        gateway.chat_all(chats(AT_ONCE), at_once=AT_ONCE)
        wait_until(lambda: home.stored.count("conversations") == 2 * AT_ONCE)
        home.ask("The command line speaks at the same time as the gateway is running.")
        wait_until(lambda: home.stored.count("conversations") == 2 * AT_ONCE + 2)
        assert "hermes" in home.stored.themes()
    assert "no provider instance found" not in home.logs()


@pytest.fixture(scope="module")
def probed(make_home: MakeHome) -> Iterator[tuple[HermesHome, Gateway, int]]:
    port = free_port()
    home = make_home(environment={"PROBE_PORT": str(port)})
    install_probe(home)
    with home.gateway() as gateway:
        yield home, gateway, port


@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.large)])
def test_many_requests_stay_within_the_budget_of_threads_and_connections(
    probed: tuple[HermesHome, Gateway, int], count: int
) -> None:
    home, gateway, port = probed
    before = home.stored.count("conversations")
    most_threads: list[str] = []
    most_connections = 0
    with ThreadPoolExecutor(1) as background:
        load = background.submit(gateway.chat_all, chats(count), at_once=AT_ONCE)
        while not load.done():
            most_threads = max(most_threads, lasting(threads_of_ours(port)), key=len)
            most_connections = max(most_connections, home.stored.connections())
            wait([load], timeout=0.2)
        load.result()
    wait_until(lambda: home.stored.count("conversations") >= before + 2 * count)
    assert home.stored.count("conversations") == before + 2 * count
    assert 0 < len(most_threads) <= THREADS_OF_OURS, most_threads
    assert 0 < most_connections <= CONNECTIONS_OF_OURS
    everything = len(list(Path(f"/proc/{gateway.process.pid}/task").iterdir()))
    assert everything < 60, "the gateway's threads grow with the requests"


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_a_thousand_requests_of_fifty_themes_leave_the_process_as_it_was(
    make_home: MakeHome, record_property: Callable[[str, object], None]
) -> None:
    """Sixteen at a time: every row is stored, and threads, connections and memory do not grow with the requests."""
    port = free_port()
    # The host refuses more than ten at once unless told otherwise.
    sections = {"gateway": {"api_server": {"max_concurrent_runs": 0}}}
    home = make_home(sections=sections, environment={"PROBE_PORT": str(port)})
    install_probe(home)
    sizes: list[int] = []
    most_threads: list[str] = []
    most_connections = 0
    with home.gateway() as gateway, ThreadPoolExecutor(1) as background:
        for start in range(0, REQUESTS, PORTION):
            portion = chats(REQUESTS, themes=50)[start : start + PORTION]
            load = background.submit(gateway.chat_all, portion, at_once=16)
            while not load.done():
                most_threads = max(most_threads, lasting(threads_of_ours(port)), key=len)
                most_connections = max(most_connections, home.stored.connections())
                wait([load], timeout=0.2)
            load.result()
            sizes.append(resident(gateway.process.pid))
        wait_until(lambda: home.stored.count("conversations") >= 2 * REQUESTS, seconds=60)
        assert home.stored.count("conversations") == 2 * REQUESTS
    assert 0 < len(most_threads) <= THREADS_OF_OURS, most_threads
    assert 0 < most_connections <= CONNECTIONS_OF_OURS
    settled = sizes[200 // PORTION - 1]
    # The host itself keeps a little of every request; ours would show as megabytes for each hundred.
    assert sizes[-1] - settled < GROWTH_KB, sizes
    record_property("threads of ours, most", len(most_threads))
    record_property("connections, most", most_connections)
    record_property("resident kB after each hundred", sizes)


def resident(pid: int) -> int:
    """The memory of a process, in kB."""
    (line,) = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1])


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
    wait_until(lambda: home.stored.themes_of(message) == {"hermes"})
    assert home.stored.count("conversations") == 4


def test_turns_of_a_killed_gateway_arrive_with_the_next_process(make_home: MakeHome) -> None:
    home = make_home()
    dsn = home.dsn
    home.change_setting("dsn", f"postgresql://hermes:{home.password}@127.0.0.1:{free_port()}/nowhere")
    message = "Before the power fails I want to say that the spare fuses are in the shed."
    with home.gateway() as gateway:
        gateway.chat(message, theme="attic")
        wait_until(lambda: is_on_disk(message, home.path / "pgvector"))
        gateway.process.kill()
        gateway.process.wait(10)
    home.change_setting("dsn", dsn)
    home.ask("This process finds what the other one could not deliver any more.")
    wait_until(lambda: [role for role, _, _ in home.stored.turns("attic")] == ["user", "assistant"])


def is_on_disk(text: str, folder: Path) -> bool:
    return any(text.encode() in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_profiles_behind_one_gateway_keep_their_own_files(make_home: MakeHome) -> None:
    home = make_home(sections={"gateway": {"multiplex_profiles": True}})
    coder = home.path / "profiles" / "coder"
    (coder / "memories").mkdir(parents=True)
    entry = "The coder profile formats with a line length of one hundred"
    (coder / "memories" / "MEMORY.md").write_text(entry, encoding="utf-8")
    (coder / "config.yaml").write_text(yaml.safe_dump(home.config | NO_LISTENER), encoding="utf-8")
    write_variables(coder, PROFILE_KEY)
    for each in homes_of(home.path):
        plugin_folder.install(each)
    with home.gateway() as gateway:
        gateway.chat("The default profile asks about the release calendar of the team.")
        gateway.chat("The coder profile asks about the release calendar of the team.", profile="coder")
        wait_until(lambda: home.stored.themes() == {"hermes", "coder"})
        wait_until(lambda: home.stored.themes_of(entry) == {"coder"})
    assert [content for role, _, content in home.stored.turns("coder") if role == "user"] == [
        "The coder profile asks about the release calendar of the team."
    ]
