"""The project's pages as its readers see them: links, blocks of code, words in backticks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = tuple(DOCS / "reference" / f"{name}.md" for name in ("settings", "commands", "json"))

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """One page."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Its path in the repository."""
        return str(self.path.relative_to(ROOT))

    @property
    def prose(self) -> str:
        """The page without its blocks of code."""
        return _BLOCK.sub("", self.text)

    def blocks(self, language: str) -> Iterator[str]:
        """The blocks of code in a language."""
        for found in _BLOCK.finditer(self.text):
            if found["language"] == language:
                yield found["text"]

    def links(self) -> list[str]:
        """What it links to."""
        return [found["target"] for found in _LINK.finditer(self.prose)]

    def codes(self) -> list[str]:
        """What stands in backticks."""
        return _CODE.findall(self.prose)

    def anchors(self) -> set[str]:
        """What a link into the page may name, as GitHub makes it of headings."""
        titles = (found["title"].replace("`", "").lower() for found in _HEADING.finditer(self.prose))
        return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in titles}

    def commands(self, *programs: str) -> Iterator[list[str]]:
        """The command lines of its shell blocks that start with one of the programs, without comments, as words."""
        for block in self.blocks("sh"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words and words[0] in programs:
                    yield words


@cache
def page(name: str) -> Page:
    """One page by its path in the repository."""
    path = ROOT / name
    return Page(path, path.read_text(encoding="utf-8"))


def pages(*, generated: bool = True) -> list[Page]:
    """Every page for readers."""
    paths = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")] + sorted(DOCS.rglob("*.md"))
    return [page(str(path.relative_to(ROOT))) for path in paths if generated or path not in GENERATED]


def written() -> list[Page]:
    """The pages that people write."""
    return pages(generated=False)
