"""A history without what was forgotten makes the same entries, less those, and quotes none of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.store.memory_erasure import without
from hermes_memory_pgvector.store.memory_state import fold
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Moment, RemoveMemory, ReplaceMemory

TEXTS = ("tea", "green tea", "tea with milk", "quokka tea", "quokka", "milk", "a quokka drinks milk")
PARTS = (*TEXTS, "a", "qu", "with", "")
SECRET = "quokka"
HOMES = ("one", "two")


def operations() -> st.SearchStrategy[list[MemoryOperation]]:
    text, part, home = st.sampled_from(TEXTS), st.sampled_from(PARTS), st.sampled_from(HOMES)
    previous = st.none() | text
    when = st.just(Moment(1, 1))
    target = st.just("memory")
    theme = st.just("t")
    return st.lists(
        st.one_of(
            st.builds(AddMemory, theme, target, text, when, home),
            st.builds(ReplaceMemory, theme, target, text, part, when, home, previous),
            st.builds(RemoveMemory, theme, target, part, when, home, previous),
        ),
        max_size=14,
    )


def told(text: str | None) -> bool:
    return text is not None and SECRET in text


def quotes(text: str) -> bool:
    return bool(text) and (told(text) or any(text in each for each in TEXTS if told(each)))


@given(operations())
def test_the_other_entries_stay_as_they_are(history: list[MemoryOperation]) -> None:
    new = without(history, lambda text, _: told(text), quotes)
    kept = [each for each in new if each is not None]
    before, after = fold(history), fold(kept)
    assert {content: dict(entry.homes) for content, entry in after.items()} == {
        content: dict(entry.homes) for content, entry in before.items() if not told(content)
    }
    for operation in kept:
        assert not told(getattr(operation, "content", None))
        assert not told(getattr(operation, "old_text", None))
        assert not told(getattr(operation, "previous", None))


@given(operations())
def test_nothing_forgotten_changes_nothing(history: list[MemoryOperation]) -> None:
    assert without(history, lambda _, __: False, lambda _: False) == history
