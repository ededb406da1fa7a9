"""How `why --query` shows the way to its hits."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.care.ids import name_of
from hermes_memory_pgvector.cli import entries, times
from hermes_memory_pgvector.setup import terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.recall.explain import ExplainedHit, Explanation
    from hermes_memory_pgvector.text.lexemes import Term


def tell(found: Explanation, terms: tuple[Term, ...]) -> None:
    """Print the hits of one kind, each with its places, and how the search went."""
    for each in found.hits:
        entries.tell_hit(each.hit, terms)
        terminal.wrap([terminal.styled(_places(each), "faint")], entries.INDENT)
    what = "memories" if found.question.kind.value == "memory" else "turns"
    words = ", ".join(f"{term.word} {term.weight:.0%}{' (nowhere)' if term.is_absent else ''}" for term in found.terms)
    rows: list[tuple[str, Any]] = [
        ("searched", f"{what} of {'all themes' if found.question.scope.value == 'all' else found.question.theme}"),
        ("by meaning", f"{terminal.count(found.near, 'row')} near, by {found.model}" if found.model else "no"),
        ("by words", f"{terminal.count(found.by_words, 'row')}; {words}" if found.terms else "no words to look for"),
        ("a hit needs", _needs(found)),
    ]
    if found.period is not None:
        rows.append(("time named", f"{times.shown(found.period.start)} to {times.shown(found.period.end)} UTC"))
    if found.asks_when:
        rows.append(("asks when", "rows that speak of a time come first"))
    if found.speaker is not None:
        rows.append(("said by", found.speaker))
    if found.degraded:
        rows.append(("degraded", found.degraded))
    rows.append(("took", ", ".join(f"{name} {took:.0f} ms" for name, took in found.milliseconds.items())))
    terminal.pairs(rows)
    terminal.say()


def document(found: Explanation) -> dict[str, Any]:
    """The same for --json, without the hits themselves."""
    period = found.period
    return {
        "kind": found.question.kind.value,
        "model": found.model,
        "thresholds": {
            "min_similarity": found.min_similarity,
            "min_coverage": found.min_coverage,
            "needs_both": found.needs_both,
            "candidates": found.candidates,
        },
        "terms": [asdict(term) for term in found.terms],
        "near": found.near,
        "by_words": found.by_words,
        "asks_when": found.asks_when,
        "speaker": found.speaker,
        "period": None if period is None else {"start": period.start, "end": period.end},
        "degraded": found.degraded,
        "milliseconds": dict(found.milliseconds),
    }


def hit_document(each: ExplainedHit) -> dict[str, Any]:
    """One hit and its way, for --json."""
    return {
        "id": name_of(each.hit.kind, each.hit.id),
        "agent_identity": each.hit.theme,
        "content": each.hit.content,
        "explain": {
            "rank": round(each.hit.rank, 4),
            "meaning": {
                "place": each.meaning_place,
                "similarity": None if each.hit.score is None else round(each.hit.score, 4),
            },
            "words": {"place": each.words_place, "share": each.words_share, "matched": list(each.words)},
        },
    }


def _places(each: ExplainedHit) -> str:
    score = "no vector" if each.hit.score is None else f"similarity {each.hit.score:.2f}"
    meaning = f"place {each.meaning_place} by meaning" if each.meaning_place else "not by meaning"
    by_words = f"place {each.words_place} by words" if each.words_place else "not by words"
    none = "those of the turns before it" if each.words_place else "none of the question's"
    share = f"{each.words_share:.0%} of the question: {', '.join(each.words)}" if each.words else none
    return f"rank {each.hit.rank:.2f} · {meaning}, {score} · {by_words}, {share}"


def _needs(found: Explanation) -> str:
    both = "both" if found.needs_both else "one of these"
    return f"{both}: similarity {found.min_similarity:.2f}, {found.min_coverage:.0%} of the question's words"
