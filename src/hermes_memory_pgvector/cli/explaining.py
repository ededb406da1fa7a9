"""How `why --query` shows the way to its hits."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.care.ids import name_of
from hermes_memory_pgvector.cli import entries, times
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.recall.explain import Explanation
    from hermes_memory_pgvector.text.lexemes import Term
    from hermes_memory_pgvector.values import Hit


def tell(found: Explanation, terms: tuple[Term, ...]) -> None:
    """Print the hits of one kind, each with its reasons, and how the search went."""
    for hit in found.hits:
        entries.tell_hit(hit, terms)
        terminal.wrap([terminal.styled(_reasons(hit), "faint")], entries.INDENT)
    what = "memories" if found.question.kind.value == "memory" else "turns"
    words = ", ".join(f"{term.word} {term.weight:.0%}{' (nowhere)' if term.is_absent else ''}" for term in found.terms)
    rows: list[tuple[str, Any]] = [
        ("searched", f"{what} of {'all themes' if found.question.scope.value == 'all' else found.question.theme}"),
        ("by meaning", _scale(found)),
        ("by words", words or "no words to look for"),
        ("a hit needs", _needs(found)),
    ]
    wording = found.wording
    if wording.period is not None:
        rows.append(("time named", f"{times.shown(wording.period.start)} to {times.shown(wording.period.end)} UTC"))
    if wording.asks_when:
        rows.append(("asks when", "rows that speak of a time come first"))
    if wording.speaker is not None:
        rows.append(("said by", wording.speaker))
    if found.degraded:
        rows.append(("degraded", found.degraded))
    rows.append(("took", ", ".join(f"{name} {took:.0f} ms" for name, took in found.milliseconds.items())))
    terminal.pairs(rows)
    terminal.say()


def document(found: Explanation) -> dict[str, Any]:
    """The same for --json, without the hits themselves."""
    period, model = found.wording.period, found.model
    return {
        "kind": found.question.kind.value,
        "model": None
        if model is None
        else {"name": model.name, "unrelated_mean": model.unrelated_mean, "unrelated_sd": model.unrelated_sd},
        "bar": found.bar,
        "terms": [asdict(term) for term in found.terms],
        "asks_when": found.wording.asks_when,
        "speaker": found.wording.speaker,
        "period": None if period is None else {"start": period.start, "end": period.end},
        "degraded": found.degraded,
        "milliseconds": dict(found.milliseconds),
    }


def hit_document(hit: Hit) -> dict[str, Any]:
    """One hit and its reasons, for --json."""
    return {
        "id": name_of(hit.kind, hit.id),
        "agent_identity": hit.theme,
        "content": hit.content,
        "explain": {
            "rank": round(hit.rank, 4),
            "similarity": None if hit.score is None else round(hit.score, 4),
            "meaning": None if hit.meaning is None else round(hit.meaning, 2),
            "words": list(hit.words),
            "words_share": hit.words_share,
        },
    }


def _reasons(hit: Hit) -> str:
    near = "no vector" if hit.meaning is None else f"{hit.meaning:.1f} sd nearer than unrelated texts"
    words = f"{hit.words_share:.0%} of the question: {', '.join(hit.words)}" if hit.words else "none of its own words"
    return f"rank {hit.rank:.2f} · {near} · {words}"


def _scale(found: Explanation) -> str:
    model = found.model
    if model is None:
        return "no"
    return f"{model.name}: unrelated texts {model.unrelated_mean:.2f} ± {model.unrelated_sd:.2f}"


def _needs(found: Explanation) -> str:
    either = f"{found.bar:.0%} of the question's words, or {found.bar_by_meaning:.1f} sd"
    return f"{either}, or both together; further hits half of that"
