"""Agents that talk and ask at a steady pace in this process, and note what was acknowledged and when a question failed.

with SteadyLoad(home, writes=200, questions=20) as load:
    ...
load.said         what was acknowledged, by theme
load.failures     when a question got no answer
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from testing.agent import AgentHome

THEMES = ("sales", "support", "trading", "workshop")


@dataclass
class SteadyLoad:
    """Two threads: one talks, one asks."""

    home: AgentHome
    writes: float
    questions: float
    said: dict[str, list[str]] = field(default_factory=lambda: {theme: [] for theme in THEMES})
    answers: list[float] = field(default_factory=list)
    """When each question that was answered had its answer."""
    failures: list[tuple[float, str]] = field(default_factory=list)
    slowest: float = 0.0
    slowest_hook: float = 0.0

    def __enter__(self) -> Self:
        self._ends = threading.Event()
        self._agents = {theme: self.home.provider(theme) for theme in THEMES}
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._talk, self._ask)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(60)

    @property
    def count(self) -> int:
        """How many turns were acknowledged."""
        return sum(map(len, self.said.values()))

    def first_answer_after(self, moment: float) -> float | None:
        """When the first question asked in vain before it, or later, was answered again."""
        return next((each for each in self.answers if each > moment), None)

    def lost(self) -> list[str]:
        """What was acknowledged and is not stored."""
        return [text for theme in THEMES for text in sorted({*self.said[theme]} - {*self._stored(theme)})]

    def doubled(self) -> list[str]:
        """What is stored more often than it was said."""
        return [text for theme in THEMES for text, times in Counter(self._stored(theme)).items() if times > 1]

    def _stored(self, theme: str) -> list[str]:
        return [content for role, _, content in self.home.stored.turns(theme) if role == "user"]

    def _talk(self) -> None:
        begun, number = time.monotonic(), 0
        while not self._ends.wait(max(0.0, begun + number / self.writes - time.monotonic())):
            theme = THEMES[number % len(THEMES)]
            text = f"{theme} notes as number {number} that box {number * 7 % 1009} stands on shelf {number}."
            called = time.monotonic()
            self._agents[theme].sync_turn(text, "")
            self.slowest_hook = max(self.slowest_hook, time.monotonic() - called)
            self.said[theme].append(text)
            number += 1

    def _ask(self) -> None:
        begun, number = time.monotonic(), 0
        while not self._ends.wait(max(0.0, begun + number / self.questions - time.monotonic())):
            agent = self._agents[THEMES[number % len(THEMES)]]
            called = time.monotonic()
            answer = json.loads(agent.handle_tool_call("recall_conversation", {"query": f"box {number % 1009}"}))
            now = time.monotonic()
            self.slowest = max(self.slowest, now - called)
            if "error" in answer:
                self.failures.append((now, str(answer["error"])))
            else:
                self.answers.append(now)
            number += 1
