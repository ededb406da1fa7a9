"""Stored texts as people read them: a head line and the text below it, wrapped, with the words searched for marked.

tell(head, content, words=…)     one entry: on a terminal a head and wrapped text, in a pipe one line
tell_hit(hit)                    a hit of recall, with its neighbours if it has any
tell_text(content, indent=…)     a whole text with its own line breaks
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal import sink
from hermes_memory_pgvector.terminal.sink import Part, Styled

if TYPE_CHECKING:
    from hermes_memory_pgvector.values import Hit

LINE_CHARS = 300
"""How much of a long text is shown, around the words searched for."""
HEAD_WIDTH = 36
INDENT = 9


def tell(
    head: Sequence[Part], content: str, *, words: Sequence[str] = (), max_chars: int = LINE_CHARS, indent: int = INDENT
) -> None:
    """Print one entry: the head, and the part of the text that shows why it was found."""
    from hermes_memory_pgvector.text.excerpt import excerpt, one_line

    shown = terminal.one_line(excerpt(one_line(content), words, max_chars))
    parts = [part if isinstance(part, Styled) else terminal.one_line(part) for part in head]
    if sink.width() is None:
        padding = " " * max(0, HEAD_WIDTH - len(sink.plain(parts)))
        terminal.say("  ", *parts, padding, "  ", *_marked(shown, words))
        return
    terminal.say("  ", *parts)
    terminal.wrap(_marked(shown, words), indent)


def tell_hit(hit: Hit) -> None:
    """Print a hit with its score, date, theme and text."""
    score = "words" if hit.score is None else f"{hit.score:.2f}"
    whose = hit.target if hit.target else hit.role
    tell(
        [
            Styled(f"{score:>5}", "strong"),
            f"  {hit.ts:%Y-%m-%d}  ",
            terminal.styled(hit.theme, "name"),
            f"/{whose}{_odd_origin(hit)}",
        ],
        hit.content,
        words=hit.words,
    )
    for side, beside in (("before", hit.before), ("after", hit.after)):
        if beside is not None:
            head = [Styled(f"{side:>12}  {beside.ts:%Y-%m-%d}  {beside.role}", "faint")]
            tell(head, beside.content, words=hit.words, indent=16)


def _odd_origin(hit: Hit) -> str:
    if hit.trust == "untrusted":
        return f" (untrusted: {', '.join(hit.tools)})" if hit.tools else " (untrusted)"
    return f" ({hit.origin.replace('_', ' ')})" if hit.origin not in (hit.role, "unknown", "memory_tool", "") else ""


def tell_text(content: str, *, indent: int = INDENT, words: Sequence[str] = ()) -> None:
    """Print a whole text with its own line breaks, each line wrapped to the terminal."""
    for line in content.splitlines() or [""]:
        terminal.wrap(_marked(terminal.one_line(line.expandtabs(4)), words), indent)


def _marked(text: str, words: Sequence[str]) -> list[Part]:
    """The text with the words searched for as parts of their own."""
    from hermes_memory_pgvector.text.excerpt import matches

    if not words or not sink.has_colours():
        return [text]
    parts: list[Part] = []
    at = 0
    for match in matches(text, words):
        if match.start >= at:
            parts += [text[at : match.start], Styled(text[match.start : match.end], "match")]
            at = match.end
    return [*parts, text[at:]]
