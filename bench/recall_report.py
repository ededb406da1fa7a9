"""Recall quality as two small tables on the page of benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.report import RECALL_QUALITY, write_between

BEGIN = "<!-- recall quality: begin (written by python -m bench report) -->"
END = "<!-- recall quality: end -->"
SETS = {"locomo": "LoCoMo", "longmemeval": "LongMemEval-S"}
COLUMNS = (
    *(("locomo", figure) for figure in ("R@5", "R@10")),
    *(("longmemeval", figure) for figure in ("R@5", "R@10", "all@5", "all@10")),
)
PREFETCH = (
    ("blocks", "questions that get a block"),
    ("with evidence", "of these, blocks with the answer"),
    ("precision", "lines with the answer"),
    ("chars", "characters per block"),
    ("talk, tuned", "small talk that gets a block, prompts the gate was made with"),
    ("talk, held", "small talk that gets a block, other prompts"),
)
NAMES = {"ours": "ours, as shipped"}


def is_recall_quality(path: Path) -> bool:
    """Whether a result is one of `python -m bench recall`."""
    return "recall quality" in json.loads(path.read_text(encoding="utf-8"))


def page(document: dict[str, Any]) -> str:
    """The tables of a result."""
    found, about = document["recall quality"], document["about"]
    sets = [name for name in SETS if name in found]
    columns = [(name, figure) for name, figure in COLUMNS if name in found]
    rows = {
        method: {name: found[name][method]["all"] for name in sets} for method in found[sets[0]] if method != "prefetch"
    }
    sizes = ", ".join(f"{found[name]['ours']['all']['questions']:.0f} questions of {SETS[name]}" for name in sets)
    parts = [
        f"Run of {about['started']}, commit `{about['commit']}`, {sizes}"
        + ("; only dialogues no weight was learned on." if about["part"] == "held" else "."),
        _table(
            ["", *(f"{SETS[name]} {figure}" for name, figure in columns)],
            [
                [NAMES.get(method, method), *(f"{values[name][figure]:.3f}" for name, figure in columns)]
                for method, values in rows.items()
            ],
        ),
        _table(
            ["prefetch, past turns", *(SETS[name] for name in sets)],
            [
                [label, *(_prefetch(figure, found[name]["prefetch"][figure]) for name in sets)]
                for figure, label in PREFETCH
            ],
        ),
    ]
    return "\n\n".join(parts)


def publish(source: Path, path: Path) -> None:
    """Write a result to the page, and keep it beside all other figures."""
    text = source.read_text(encoding="utf-8")
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECALL_QUALITY).write_text(text, encoding="utf-8")
    write_between(path, BEGIN, END, page(json.loads(text)))


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _prefetch(figure: str, value: float) -> str:
    return f"{value:.0f}" if figure == "chars" else f"{value:.1%}"
