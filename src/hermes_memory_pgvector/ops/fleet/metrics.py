"""`metrics`: the numbers of the view `hermes_metrics` in Prometheus' text format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from hermes_memory_pgvector import __version__
from hermes_memory_pgvector.errors import MemoryPluginError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Operation, Option, Raw, Stream

SCRAPE_SECONDS: Final = 8.0
PREFIX: Final = "hermes_pgvector_"


@dataclass(frozen=True, slots=True)
class Number:
    """One number."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Numbers(Raw):
    """All of them."""

    metrics: tuple[Number, ...] = ()

    def as_text(self) -> str:
        """As Prometheus reads them; the escapes of a label's value are those of JSON, as far as either has any."""
        lines, named = [], ""
        for each in self.metrics:
            if each.name != named:
                lines.append(f"# TYPE {each.name} {'counter' if each.name.endswith('_total') else 'gauge'}")
                named = each.name
            labels = ",".join(f"{key}={json.dumps(told, ensure_ascii=False)}" for key, told in each.labels.items())
            lines.append(f"{each.name}{'{' + labels + '}' if labels else ''} {each.value!r}")
        return "".join(line + "\n" for line in lines)


def numbers(memory: Memory) -> Numbers:
    """Everything that is known now; while the database is away, that it is, and what waits in this home."""
    from hermes_memory_pgvector.ops import journals as journal_report
    from hermes_memory_pgvector.store import processes

    own = [Number(f"{PREFIX}build_info", {"version": __version__}, 1.0)]
    try:
        with memory.reading(seconds=SCRAPE_SECONDS) as connection:
            found = [Number(*each) for each in processes.metrics(connection)]
    except MemoryPluginError:
        waiting = sum(each.writer_waiting for each in journal_report.report(memory.home, None).processes)
        return Numbers((*own, Number(f"{PREFIX}database_up", {}, 0.0), Number(f"{PREFIX}waiting", {}, float(waiting))))
    return Numbers((*own, Number(f"{PREFIX}database_up", {}, 1.0), *found))


def metrics(memory: Memory, *, listen: tuple[str, int] | None) -> Numbers | Stream:
    """Print them, or serve them."""
    if listen is None:
        return numbers(memory)
    from hermes_memory_pgvector.ops.fleet.collected import serve

    return Stream(serve(lambda: numbers(memory).as_text(), *listen), is_endless=True)


METRICS = Operation(
    "metrics",
    "print the fleet's numbers for Prometheus, or serve them",
    (
        Option("--listen", "serve under /metrics until Ctrl-C; port 0: any free one", parse.address,
               metavar="HOST:PORT", on_page=False),
    ),
    metrics,
    (
        ("metrics", "all numbers, as Prometheus reads them"),
        ("metrics --listen 127.0.0.1:9187", "serve them on this machine"),
    ),
    group="run",
)  # fmt: skip
