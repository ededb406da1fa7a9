"""The real gateway: API requests of many themes through hermes-agent, each building a provider of its own."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import yaml

from bench.measure import Metric, Result, Target, percentile
from bench.stage import Seat, Stage, wait_for
from bench.system import System
from testing.hermes_servers import GATEWAY_KEY, Gateway, free_port
from testing.llm_server import API_KEY, MODEL, ScriptedLLM

AT_ONCE = 8
THEMES = 10


def run(stage: Stage, result: Result, is_full: bool) -> None:
    """Threads and connections at their most, time per request, and rows that never arrived."""
    requests = 300 if is_full else 24
    figures: dict[str, dict[str, list[float]]] = {}
    with ScriptedLLM() as model:
        for system in stage.systems:
            for name, value in _run(stage, system, model, requests).items():
                figures.setdefault(name, {})[system.name] = [value]
    targets = {
        "Postgres connections, most": Target("at most", 4),
        "rows lost": Target("at most", 0),
    }
    for name, rounds in figures.items():
        unit = "ms" if name.startswith("one request") else "MB" if name.startswith("memory") else name.split(",")[0]
        result.metrics.append(
            Metric.of(
                f"gateway, {requests} requests, {AT_ONCE} at once",
                name,
                unit,
                "lower",
                rounds,
                target=targets.get(name),
                is_portable=name == "rows lost",
            )
        )


def _run(stage: Stage, system: System, model: ScriptedLLM, requests: int) -> dict[str, float]:
    with stage.seat(system) as seat, seat.connect() as connection:
        stage.embedder.set(latency=0.005)
        port = free_port()
        _prepare(seat, model, port)
        with (seat.home / "gateway.out").open("ab") as stream:
            process = subprocess.Popen(
                [str(system.python.with_name("hermes")), "gateway", "run"],
                env=_environment(seat), cwd=seat.home, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            )  # fmt: skip
        try:
            gateway = Gateway(process, port)
            gateway.wait_ready("/health")
            times: list[float] = []
            threads = connections = 0
            memory = 0.0
            with ThreadPoolExecutor(1) as background:
                load = background.submit(_chats, gateway, requests, times)
                while not load.done():
                    now = _process(process.pid)
                    threads, memory = max(threads, now[0]), max(memory, now[1])
                    connections = max(connections, seat.backends(connection))
                    wait([load], timeout=0.2)
                load.result()
            stored = wait_for(lambda: seat.stored(connection, ""), 2 * requests, seconds=60, idle_seconds=12, poll=0.1)
        finally:
            process.kill()
            process.wait(30)
    return {
        "threads, most": float(threads),
        "Postgres connections, most": float(connections),
        "memory, most": memory,
        "one request, p50": percentile(times, 0.50),
        "one request, p95": percentile(times, 0.95),
        "rows lost": float(max(0, 2 * requests - stored)),
    }


def _chats(gateway: Gateway, requests: int, times: list[float]) -> None:
    def one(number: int) -> None:
        begin = time.perf_counter()
        words = f"Request {number} asks about shelf {number} in hall {number * 7}, and for its next delivery."
        gateway.chat(words, theme=f"team-{number % THEMES}")
        times.append((time.perf_counter() - begin) * 1000)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, range(requests)))


def _prepare(seat: Seat, model: ScriptedLLM, port: int) -> None:
    """A home as its owner would make it: the model, the key of the API, and the plugin by its own installer."""
    path = seat.home / "config.yaml"
    config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["model"] = {"default": MODEL, "provider": "custom", "base_url": model.base_url, "api_key": API_KEY}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    variables = {"API_SERVER_KEY": GATEWAY_KEY, "API_SERVER_HOST": "127.0.0.1", "API_SERVER_PORT": str(port)}
    text = "".join(f"{name}={value}\n" for name, value in variables.items())
    (seat.home / ".env").write_text(text, encoding="utf-8")
    command = [str(seat.system.python.with_name("hermes-pgvector")), "install", "--hermes-home", str(seat.home)]
    subprocess.run(command, check=True, timeout=120, capture_output=True, env=_environment(seat))


def _environment(seat: Seat) -> dict[str, str]:
    return {
        "PATH": f"{seat.system.python.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "HOME": str(seat.home),
        "HERMES_HOME": str(seat.home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
        **seat.system.environment,
    }


def _process(pid: int) -> tuple[int, float]:
    """(threads, megabytes) of a process."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        fields = dict(line.split(":", 1) for line in status if ":" in line)
    return int(fields["Threads"]), int(fields["VmRSS"].split()[0]) / 1024
