"""The local model, end to end: the real weights, no network, no imported wordllama."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import Vector, local
from hermes_memory_pgvector.embedding.known_models import LOCAL_MODEL, spec_of
from hermes_memory_pgvector.embedding.local import LocalEmbedder
from hermes_memory_pgvector.errors import ConfigError, EmbeddingUnavailable


def soon(seconds: float = 30.0) -> Deadline:
    return Deadline.after(seconds)


def cosine(one: Vector | None, other: Vector | None) -> float:
    assert one is not None
    assert other is not None
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not used the model yet."""
    monkeypatch.setattr(local, "_load", functools.cache(local._load.__wrapped__))


def test_a_related_sentence_is_many_deviations_nearer_than_an_unrelated_one() -> None:
    embedder = LocalEmbedder()
    query = embedder.embed_query("Which database does the team run in production?", soon())
    related, unrelated = embedder.embed_documents(
        ["Production runs on PostgreSQL, the staging database is SQLite.", "Grandmother's soup needs more salt."],
        soon(),
    )
    scale = embedder.info(soon()).scale
    assert scale is not None
    assert cosine(query, related) > scale.mean + 4 * scale.sd
    assert cosine(query, unrelated) < scale.mean + 3 * scale.sd


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\x00", "🦄", "😀 😀\n🦄", "አማርኛ", "\ud83d"])
def test_a_text_without_a_known_word_has_no_vector(text: str) -> None:
    assert LocalEmbedder().embed_query(text, soon()) is None


def test_documents_keep_order_and_length_around_texts_without_a_vector() -> None:
    embedder = LocalEmbedder()
    texts = ["first words", "", "🦄", "last words"]
    vectors = embedder.embed_documents(texts, soon())
    assert [vector is None for vector in vectors] == [False, True, True, False]
    assert vectors[3] == embedder.embed_query("last words", soon())


def test_a_text_of_megabytes_is_cut_for_embedding() -> None:
    embedder = LocalEmbedder()
    cap = spec_of(LOCAL_MODEL).max_chars
    text = "many words in a row " * 100_000
    assert embedder.embed_query(text, soon()) == embedder.embed_query(text[:cap], soon())


GROWTH = """
from pathlib import Path
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.local import LocalEmbedder

def own_kilobytes():
    (line,) = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("RssAnon")]
    return int(line.split()[1])

embedder, deadline = LocalEmbedder(), Deadline.after(120)
for number in range(4500):
    embedder.embed_query(f"Boat {number} is moored at the northern quay, beside the old crane, until Sunday.", deadline)
    if number == 500:
        before = own_kilobytes()
print(own_kilobytes() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's account of a process's memory")
def test_a_process_does_not_grow_with_the_texts_it_has_embedded() -> None:
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) < 2000


@pytest.mark.usefixtures("unloaded")
def test_many_threads_may_be_the_first() -> None:
    embedder = LocalEmbedder()
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(lambda _: embedder.embed_query("some words", soon()), range(8)))
    assert vectors[0] is not None
    assert all(vector == vectors[0] for vector in vectors)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("package", ["wordllama", "numpy", "tokenizers", "safetensors"])
def test_a_missing_package_is_unavailable_and_names_the_command(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EmbeddingUnavailable, match="hermes-pgvector up fetches it"):
        LocalEmbedder().embed_query("some words", soon())


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("damage", ["missing", "empty", "torn weights", "torn tokenizer"])
def test_damaged_files_are_unavailable_and_a_repair_heals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: str
) -> None:
    real = local._folder()
    for name in (local._WEIGHTS, local._TOKENIZER):
        copy = tmp_path / name
        copy.parent.mkdir()
        if damage == "missing":
            continue
        content = (real / name).read_bytes()
        is_torn = damage.removeprefix("torn ") in name
        copy.write_bytes(b"" if damage == "empty" else content[: len(content) // 2] if is_torn else content)
    with monkeypatch.context() as patch:
        patch.setattr(local, "_folder", lambda: tmp_path)
        with pytest.raises(EmbeddingUnavailable, match="reinstall wordllama"):
            LocalEmbedder().embed_query("some words", soon())
    assert LocalEmbedder().embed_query("some words", soon()) is not None


def test_another_dimension_is_a_config_error() -> None:
    LocalEmbedder(dim=256)
    with pytest.raises(ConfigError, match="256"):
        LocalEmbedder(dim=768)


ALONE = """
import logging, os, sys, threading
def audit(event, args):
    if event.startswith("socket."):
        print("NETWORK", event)
sys.addaudithook(audit)
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.embedding import create_embedder
embedder = create_embedder(Settings())
embedder.info(Deadline.after(10))
assert "numpy" not in sys.modules, "nothing is loaded before the first use"
assert embedder.embed_query("some words", Deadline.after(30)) is not None
embedder.embed_documents(["text %d" % n for n in range(500)], Deadline.after(30))
print([name for name in ("wordllama", "requests", "huggingface_hub", "torch") if name in sys.modules])
print(logging.getLogger().handlers, threading.active_count(), os.listdir(os.environ["HOME"]))
"""


def test_nothing_is_downloaded_written_logged_or_started(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", ALONE],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert run.stdout == "[]\n[] 1 []\n", run.stderr
