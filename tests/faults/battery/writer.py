"""One life of a writing process in the fault battery: writes through the real provider until it is killed."""

from __future__ import annotations

import json
import logging
import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.registry import engine_for

THEMES = ("marketing", "trading", "research", "support")
SLOT_BYTES = 8
PAUSE_SLOT = -1
MEMORY_LOG = "memory.log"
BURST = 200
MEMORY_EVERY = 100
"""One write in so many is an operation on memories."""
CYCLE = 6
"""So many operations on memories belong together, in one theme."""
SHARED_NAMES = 12
VERSIONS = 5
TURNS_PER_SESSION = 125


class Shared:
    """Counters in memory that outlive whoever writes them: one per life, and one that asks for a pause."""

    def __init__(self, path: Path, slots: int, *, create: bool = False) -> None:
        if create:
            path.write_bytes(bytes(slots * SLOT_BYTES))
        self.slots = slots
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), slots * SLOT_BYTES)

    def get(self, slot: int) -> int:
        return int(struct.unpack_from("=q", self._map, (slot % self.slots) * SLOT_BYTES)[0])

    def set(self, slot: int, value: int) -> None:
        struct.pack_into("=q", self._map, (slot % self.slots) * SLOT_BYTES, value)


@dataclass(frozen=True, slots=True)
class Life:
    """What a writing process is to do."""

    number: int
    home: str
    settings: str
    shared: str
    slots: int
    writes: int
    memory_log: str


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """One operation on memories, as the host announces it."""

    action: str
    theme: str
    content: str
    old_text: str


def is_memory(write: int) -> bool:
    return write % MEMORY_EVERY == 0


def theme_of(write: int) -> str:
    return THEMES[write // TURNS_PER_SESSION % len(THEMES)]


def turn_text(life: int, write: int) -> str:
    return f"life {life} write {write} says that the barrels of cellar {write % 97} are {write % 13} and full"


def memory_theme(write: int) -> str:
    return THEMES[write // MEMORY_EVERY // CYCLE % len(THEMES)]


def memory_write(life: int, write: int) -> MemoryWrite:
    """Own entries that come and go, and a few entries that all lives quarrel about."""
    number = write // MEMORY_EVERY
    theme = memory_theme(write)
    name = f"shared {(life + number) % SHARED_NAMES};"
    kinds = (
        MemoryWrite("add", theme, f"own {life}-{number};", ""),
        MemoryWrite("replace", theme, f"{name} version {number % VERSIONS}", name),
        MemoryWrite("replace", theme, f"own {life}-{number}; again", f"own {life}-{number - 2};"),
        MemoryWrite("remove", theme, "", name),
        MemoryWrite("add", theme, f"{name} version {life % VERSIONS}", ""),
        MemoryWrite("remove", theme, "", f"own {life}-{number - 3};"),
    )
    return kinds[number % CYCLE]


def live(life: Life) -> None:
    """Write, note each write whose hook has returned, and go on delivering until killed."""
    logging.getLogger("hermes_memory_pgvector").setLevel(logging.CRITICAL)
    shared = Shared(Path(life.shared), life.slots)
    settings = json.loads(life.settings)
    agents = {theme: _provider(life, theme, settings) for theme in THEMES}
    engine_for(Path(life.home), settings)
    log = os.open(life.memory_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for write in range(1, life.writes + 1):
        theme = theme_of(write)
        if is_memory(write):
            told = memory_write(life.number, write)
            metadata = {"old_text": told.old_text, "life": life.number, "write": write}
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            agents[told.theme].on_memory_write(told.action, "memory", told.content, metadata=metadata)
            after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            os.write(log, f"{life.number} {write} {before} {after}\n".encode())
        else:
            session = f"{life.number}-{write // TURNS_PER_SESSION}"
            agents[theme].sync_turn(turn_text(life.number, write), "", session_id=session)
        shared.set(life.number, write)
        if write % BURST == 0:
            time.sleep(0.02)
            while shared.get(PAUSE_SLOT):
                time.sleep(0.1)
    while True:
        time.sleep(1)


def _provider(life: Life, theme: str, settings: dict[str, object]) -> PgvectorMemoryProvider:
    made = PgvectorMemoryProvider(settings)
    made.initialize(f"s{life.number}", hermes_home=life.home, gateway_session_key=theme, agent_context="primary")
    return made
