"""An agent that talks and asks at a steady pace until its input ends, and reports what it said and was told.

with LiveAgent.start(home, theme="sales", writes=50, recalls=5) as agent:
    …
report = agent.report                 what was acknowledged, and the questions that got no answer
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testing.waiting import PATIENCE_SECONDS, wait_until


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent has seen."""

    said: list[str]
    """What was acknowledged, each once."""
    asked: int
    failures: list[tuple[float, str]]
    """When a question got no answer, and what it was told."""
    slowest: float
    """The longest that a question took."""

    @property
    def is_well(self) -> bool:
        """Whether no question stayed unanswered for long; on a busy machine one may run out of time by itself."""
        return self.outage < PATIENCE_SECONDS and len(self.failures) < max(3, self.asked / 4)

    @property
    def outage(self) -> float:
        """The longest time in which every question failed: from the first failure of a row to the last."""
        return max((last - first for first, last in self._rows()), default=0.0)

    def _rows(self) -> Iterator[tuple[float, float]]:
        first = last = None
        for at, _ in self.failures:
            if first is None or last is None or at - last > 1.0:
                if first is not None and last is not None:
                    yield first, last
                first = at
            last = at
        if first is not None and last is not None:
            yield first, last


@dataclass
class LiveAgent:
    """A process of its own, on a home whose settings it reads like the host does."""

    process: subprocess.Popen[str]
    theme: str
    report: Report = field(init=False)

    @classmethod
    @contextlib.contextmanager
    def start(
        cls, home: Path, *, theme: str, writes: float, recalls: float, environment: Mapping[str, str]
    ) -> Iterator[LiveAgent]:
        """An agent that talks for as long as the block takes."""
        command = [sys.executable, "-m", "testing.live_agent", str(home), theme, str(writes), str(recalls)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(environment),
            cwd=Path(__file__).parent.parent,
        )  # fmt: skip
        agent = cls(process, theme)
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
            yield agent
            out, _ = process.communicate("", timeout=120)
            assert process.returncode == 0
            agent.report = Report(**json.loads(out.splitlines()[-1]))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(10)


def main(home: str, theme: str, writes: float, recalls: float) -> None:
    """Talk and ask until standard input ends; then wait until all of it is stored."""
    import select

    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.provider import PgvectorMemoryProvider
    from hermes_memory_pgvector.runtime.registry import close_all, engine_for

    provider = PgvectorMemoryProvider()
    provider.initialize(
        "live", hermes_home=home, platform="api_server", agent_context="primary", gateway_session_key=theme,
        agent_identity="default", agent_workspace="hermes",
    )  # fmt: skip
    question = {"query": "Where does the box stand?"}
    wait_until(lambda: "error" not in json.loads(provider.handle_tool_call("recall_conversation", question)))
    said: list[str] = []
    failures: list[tuple[float, str]] = []
    asked, slowest = 0, 0.0
    begun = time.monotonic()
    next_write = next_recall = begun
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], max(0.0, min(next_write, next_recall) - time.monotonic()))[0]:
        now = time.monotonic()
        if now >= next_write:
            next_write = max(next_write + 1 / writes, now - 1.0)
            text = f"{theme} notes as number {len(said)} that box {len(said) * 7 % 1009} stands on shelf {len(said)}."
            provider.sync_turn(text, "")
            said.append(text)
        if now >= next_recall:
            next_recall = max(next_recall + 1 / recalls, now - 1.0)
            asked += 1
            answer = json.loads(provider.handle_tool_call("recall_conversation", {"query": f"box {asked % 1009}"}))
            slowest = max(slowest, time.monotonic() - now)
            if "error" in answer:
                failures.append((round(now - begun, 3), str(answer["error"])))
    wait_until(lambda: engine_for(Path(home))[0].writer.flush(Deadline.after(1)), seconds=60)
    close_all(Deadline.after(10))
    sys.stdout.write(json.dumps({"said": said, "asked": asked, "failures": failures, "slowest": slowest}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
