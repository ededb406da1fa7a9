"""One memory provider in a process of its own, driven by JSON lines on stdin.

Runs under the interpreter of the system it measures, so it imports nothing but the standard library and that system.
Every provider is made as the host makes it: the plugin's `register(ctx)` hands it over.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

TEXT = (
    "deploy window moved because staging database needed another migration before customers could see invoices "
    "again so support asked whether billing exports should wait until friday afternoon or run tonight without them"
)
WORDS = TEXT.split()
ROW = re.compile(r"\brow(\d+)\b")


class Registry:
    """The host's side of `register`: keeps the provider it is given."""

    def register_memory_provider(self, provider: Any) -> None:
        self.provider = provider


def fresh(module: str) -> Any:
    registry = Registry()
    importlib.import_module(module).register(registry)
    return registry.provider


def saying(tag: str, number: int, role: str) -> str:
    """The words of one side of a turn: about 400 characters, different for every number."""
    turned = [WORDS[(number * 7 + place * (3 if role == "user" else 5)) % len(WORDS)] for place in range(56)]
    return f"{tag}-{role}-{number:06d} " + " ".join(turned)


def micros(action: Callable[[], object]) -> float:
    begin = time.perf_counter_ns()
    action()
    return (time.perf_counter_ns() - begin) / 1000


class Busy:
    """Threads that only compute, as an agent's own work does, while something is measured."""

    def __init__(self, count: int) -> None:
        self._stop = False
        self._threads = [threading.Thread(target=self._spin, daemon=True) for _ in range(count)]

    def _spin(self) -> None:
        total = 0
        while not self._stop:
            for number in range(1000):
                total += number * number

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop = True
        for thread in self._threads:
            thread.join()


class Adapter:
    """Answers one request after the other."""

    def __init__(self, module: str, home: str, out: Any) -> None:
        self._module = module
        self._home = home
        self._out = out
        self._provider: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        kind = request.pop("do")
        result: dict[str, Any] = getattr(self, "do_" + kind)(**request)
        return result

    def do_load(self) -> dict[str, Any]:
        return {"micros": micros(lambda: fresh(self._module))}

    def do_start(self, theme: str, session: str = "s-1") -> dict[str, Any]:
        """A provider that later requests use."""
        self._provider = fresh(self._module)
        return {"micros": micros(lambda: self._initialize(self._provider, theme, session))}

    def do_starts(self, count: int, theme: str, pause: float = 0.0) -> dict[str, Any]:
        """New providers one after the other, each shut down outside the measured time."""
        times = []
        for number in range(count):
            provider = fresh(self._module)
            times.append(micros(lambda p=provider, n=number: self._initialize(p, theme, f"s-{n}")))  # type: ignore[misc]
            provider.shutdown()
            time.sleep(pause)
        return {"micros": times}

    def do_turns(
        self, tag: str, count: int, first: int = 0, pace: float = 0.0, busy: int = 0, stream: bool = False
    ) -> dict[str, Any]:
        """sync_turn, `count` times; with `stream` every return is told at once."""
        times = []
        with Busy(busy):
            for number in range(first, first + count):
                said, reply = saying(tag, number, "user"), saying(tag, number, "assistant")
                times.append(micros(lambda s=said, r=reply: self._provider.sync_turn(s, r, session_id="s-1")))  # type: ignore[misc]
                if stream:
                    self.tell({"returned": number + 1})
                if pace:
                    time.sleep(pace)
        return {"micros": times}

    def do_memories(self, tag: str, count: int, pace: float = 0.0, busy: int = 0) -> dict[str, Any]:
        """on_memory_write, `count` times."""
        times = []
        with Busy(busy):
            for number in range(count):
                text = saying(tag, number, "memory")
                times.append(micros(lambda t=text: self._provider.on_memory_write("add", "memory", t)))  # type: ignore[misc]
                if pace:
                    time.sleep(pace)
        return {"micros": times}

    def do_ask(self, tool: str, queries: list[str], scope: str = "current", limit: int = 10) -> dict[str, Any]:
        """A recall tool, or prefetch, for each query; with the numbers of the rows found."""
        times, found, errors = [], [], 0
        for number, query in enumerate(queries):
            begin = time.perf_counter_ns()
            if tool == "prefetch":
                text = self._provider.prefetch(query, session_id=f"ask-{tool}-{scope}-{number}")
            else:
                text = self._provider.handle_tool_call(tool, {"query": query, "scope": scope, "limit": limit})
            times.append((time.perf_counter_ns() - begin) / 1000)
            found.append([int(row) for row in ROW.findall(text)])
            errors += tool != "prefetch" and "error" in json.loads(text)
        return {"micros": times, "rows": found, "errors": errors}

    def do_requests(self, count: int, first: int, themes: int, queries: list[str]) -> dict[str, Any]:
        """What one API request does to a provider: made, used, and forgotten without a shutdown."""
        times = []
        for number in range(first, first + count):
            begin = time.perf_counter_ns()
            provider = fresh(self._module)
            provider.is_available()
            provider.get_tool_schemas()
            self._initialize(provider, f"team-{number % themes}", f"api-{number}")
            provider.system_prompt_block()
            provider.prefetch(queries[number % len(queries)], session_id="")
            provider.sync_turn(
                saying("fleet", number, "user"), saying("fleet", number, "assistant"), session_id=f"api-{number}"
            )
            del provider
            times.append((time.perf_counter_ns() - begin) / 1000)
        return {"micros": times, **self.do_stats()}

    def do_stats(self) -> dict[str, Any]:
        with open("/proc/self/status", encoding="utf-8") as status:
            fields = dict(line.split(":", 1) for line in status if ":" in line)
        return {
            "threads": int(fields["Threads"]),
            "rss_mb": int(fields["VmRSS"].split()[0]) / 1024,
        }

    def do_shutdown(self) -> dict[str, Any]:
        return {"micros": micros(self._provider.shutdown)}

    def tell(self, message: dict[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def _initialize(self, provider: Any, theme: str, session: str) -> None:
        provider.initialize(
            session,
            platform="api_server",
            hermes_home=self._home,
            agent_context="primary",
            gateway_session_key=theme,
            agent_identity="default",
            agent_workspace="hermes",
        )


def main() -> None:
    """Serve requests until stdin ends or `exit` is asked for; the interpreter then ends in its usual way."""
    # Whatever the measured system prints must not get between the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    adapter = Adapter(sys.argv[1], sys.argv[2], out)
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "exit":
            return
        try:
            adapter.tell({"ok": True, **adapter.answer(request)})
        except Exception as error:
            adapter.tell({"ok": False, "error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
