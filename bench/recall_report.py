"""Recall quality as two small tables on the page of benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.report import write_between

BEGIN = "<!-- recall quality: begin (written by python -m bench report) -->"
END = "<!-- recall quality: end -->"
SETS = {"locomo": "LoCoMo", "longmemeval": "LongMemEval-S"}
RANKING = {"locomo": ("R@5", "R@10"), "longmemeval": ("R@5", "R@10", "any@5", "all@5", "all@10")}
PREFETCH = (
    ("blocks", "questions that get a block"),
    ("with evidence", "of these, blocks with the answer"),
    ("precision", "lines with the answer"),
    ("chars", "characters per block"),
    ("small talk", "small talk that gets a block"),
    ("gibberish asked", "gibberish that finds anything"),
    ("gibberish", "gibberish that gets a block"),
)


def is_recall_quality(path: Path) -> bool:
    """Whether a result is one of `python -m bench recall`."""
    return "recall quality" in json.loads(path.read_text(encoding="utf-8"))


def page(document: dict[str, Any]) -> str:
    """The tables of a result."""
    found, about = document["recall quality"], document["about"]
    sets = [name for name in SETS if name in found]
    columns = [(name, figure) for name in sets for figure in RANKING[name]]
    sizes = ", ".join(f"{found[name]['ours']['all']['questions']:.0f} questions of {SETS[name]}" for name in sets)
    ranking = [
        [method, *(f"{found[name][method]['all'][figure]:.3f}" for name, figure in columns)]
        for method in found[sets[0]]
        if method != "prefetch"
    ]
    offered = [[label, *(_prefetch(figure, found[name]["prefetch"]) for name in sets)] for figure, label in PREFETCH]
    return "\n\n".join([
        f"Run of {about['started']}, commit `{about['commit']}`, {sizes}.",
        _table(["", *(f"{SETS[name]} {figure}" for name, figure in columns)], ranking),
        _table(["prefetch, past turns", *(SETS[name] for name in sets)], offered),
    ])  # fmt: skip


def publish(source: Path, path: Path) -> None:
    """Write a result to the page, and keep it beside all other figures."""
    text = source.read_text(encoding="utf-8")
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recall-quality.json").write_text(text, encoding="utf-8")
    write_between(path, BEGIN, END, page(json.loads(text)))


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _prefetch(figure: str, found: dict[str, float]) -> str:
    return f"{found[figure]:.0f}" if figure == "chars" else f"{found[figure]:.1%}"
