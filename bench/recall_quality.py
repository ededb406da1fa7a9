"""Recall quality on LongMemEval and LoCoMo: our search beside vectors alone, BM25, and the published peer's recipe.

    python -m bench recall --data FOLDER [--sets locomo,longmemeval] [--part all|held] [--recency] [--json F]

FOLDER holds `longmemeval_s*.json[.gz]` and `locomo*.json` as their authors publish them; neither is part of this
project. Every method sees the same turns and the same vectors of the local model; ours runs through real statements on
a real Postgres. Each user (LongMemEval) or dialogue (LoCoMo) is a theme of one shared store.

The training part: the weights that we ship were learned on LoCoMo's first four dialogues and on 100 questions of
LongMemEval-S. `--part held` measures LoCoMo's other dialogues only. `--recency` measures
nothing but `recency_half_life_days`: R@10 by kind of question, without it and with several half-lives, each question
asked at its own time.

`all@k`: whether the first k sessions found are or include all that LongMemEval lists as the answer's
(`answer_session_ids`); its questions without an answer are skipped, as its authors do. Prefetch is measured by what it
offers to the questions, and to small talk (bench/small_talk.py), which should get nothing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench import small_talk
from bench.run import commit
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.local import SCALE, LocalEmbedder
from hermes_memory_pgvector.postgres.statements import model_statement, statement
from hermes_memory_pgvector.postgres.vector_types import TSVECTOR_OID, Column, vector_array
from hermes_memory_pgvector.recall import prefetch
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import ModelSpec
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from hermes_memory_pgvector.store.current_model import current_model
from hermes_memory_pgvector.text.everyday import worth_asking
from hermes_memory_pgvector.text.lexemes import lexemes_of, question_terms
from hermes_memory_pgvector.text.stemmer import stem
from hermes_memory_pgvector.text.stopwords import ENGLISH
from hermes_memory_pgvector.values import EmbeddingModel, Kind, Question
from hermes_memory_pgvector.writer.chunks import document_pieces

DEPTH = 50
HALF_LIVES = (0.0, 7.0, 30.0, 90.0, 180.0, 365.0, 1000.0)
"""Days; the first stands for none."""
CHANGED = "knowledge-update"
"""LongMemEval's questions about something that was said in two ways, one after the other."""
TRAINED_DIALOGUES = 4
"""Of LoCoMo, the first: the weights were learned on them."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Turn:
    """Something said, by whom and when; `key` names it in the evidence."""

    key: str
    session: str
    role: str
    content: str
    ts: datetime
    before: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the turns that answer it."""

    key: str
    text: str
    category: str
    evidence: frozenset[str]
    sessions: frozenset[str]
    """Where the answer is, by the authors' own list."""
    now: datetime


@dataclass(frozen=True, slots=True)
class Theme:
    """One user's or dialogue's history."""

    name: str
    turns: list[Turn]
    asked: list[Asked]


@dataclass(slots=True)
class Scores:
    """Sums of figures, by figure."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, figures: dict[str, float]) -> None:
        """Take one question's figures."""
        for name, value in figures.items():
            self.values[name].append(value)

    def means(self) -> dict[str, float]:
        """The mean of each figure."""
        return {name: round(statistics.fmean(values), 4) for name, values in self.values.items()}


def load_longmemeval(path: Path) -> Iterator[Theme]:
    """LongMemEval: one theme per question, evidence where a turn is marked `has_answer`; none without an answer."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        items = json.load(file)
    for item in items:
        turns: list[Turn] = []
        evidence = set()
        for session, date, said in zip(
            item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True
        ):
            before = ""
            for number, turn in enumerate(said):
                key = f"{session}#{number}"
                if turn.get("has_answer"):
                    evidence.add(key)
                turns.append(Turn(key, session, turn["role"], turn["content"], _lme_date(date), before))
                before = turn["content"]
        asked = Asked(
            item["question_id"],
            item["question"],
            item["question_type"],
            frozenset(evidence),
            frozenset(item["answer_session_ids"]),
            _lme_date(item["question_date"]),
        )
        has_answer = bool(evidence) and not item["question_id"].endswith("_abs")
        yield Theme(f"lme-{item['question_id']}", turns, [asked] if has_answer else [])


def load_locomo(path: Path) -> Iterator[Theme]:
    """LoCoMo: one theme per dialogue, the speaker before the words, image captions in brackets."""
    names = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
    for number, item in enumerate(json.loads(path.read_text())):
        talk = item["conversation"]
        turns: list[Turn] = []
        session = 1
        while f"session_{session}" in talk:
            ts = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            before = ""
            for turn in talk[f"session_{session}"]:
                caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
                content = f"{turn['speaker']}: {turn['text']}{caption}"
                role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
                turns.append(Turn(turn["dia_id"], str(session), role, content, ts, before))
                before = content
            session += 1
        session_of = {turn.key: turn.session for turn in turns}
        asked = []
        for place, question in enumerate(item["qa"]):
            evidence = frozenset(re.findall(r"D\d+:\d+", " ".join(question["evidence"]))) & session_of.keys()
            if evidence:
                asked.append(
                    Asked(
                        f"l{number}-{place}",
                        question["question"],
                        names[question["category"]],
                        evidence,
                        frozenset(session_of[key] for key in evidence),
                        turns[-1].ts,
                    )
                )
        yield Theme(f"locomo-{number}", turns, asked)


def _lme_date(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


class Vectors:
    """Vectors of the local model, each text embedded once."""

    def __init__(self) -> None:
        self._embedder = LocalEmbedder()
        self._known: dict[str, Floats | None] = {}

    def of(self, texts: Sequence[str]) -> list[Floats | None]:
        """One vector or None per text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), 256):
            part = new[start : start + 256]
            for text, vector in zip(part, self._embedder.embed_documents(part, Deadline.after(600)), strict=True):
                self._known[text] = None if vector is None else np.array(vector, dtype=np.float32)
        return [self._known[text] for text in texts]


class Ours:
    """Our search, through Recall, on a store that holds every theme."""

    name = "ours"

    def __init__(self, dsn: str, themes: Sequence[Theme], vectors: Vectors, *, by_words_only: bool = False) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
        self._keys: dict[int, str] = {}
        self._recall = Recall(self._reading, None if by_words_only else LocalEmbedder(), _Settings())
        self.name = "ours, words only" if by_words_only else "ours"
        model = current_model(self._connection)
        assert model is not None
        self._model = model
        for theme in themes:
            self._store(theme, model, vectors)
        self._connection.execute("VACUUM ANALYZE")

    def words_only(self) -> Ours:
        """The same store, searched without vectors."""
        other = object.__new__(Ours)
        other._connection, other._keys = self._connection, self._keys
        other._recall = Recall(self._reading, None, _Settings())
        other.name = "ours, words only"
        return other

    def with_half_life(self, days: float) -> Ours:
        """The same store, in which age counts."""
        other = object.__new__(Ours)
        other._connection, other._keys = self._connection, self._keys
        other._recall = Recall(self._reading, LocalEmbedder(), _Settings(recency_half_life_days=days))
        other.name = f"half-life {days:g} d" if days else "no half-life"
        return other

    def rank(self, theme: Theme, asked: Asked, _: Floats) -> list[str]:
        """Keys of the turns found, best first."""
        question = Question(asked.text, Kind.TURN, theme.name, limit=DEPTH, now=asked.now)
        return [self._keys[hit.id] for hit in self._recall.search(question, Deadline.after(60)).hits]

    def prefetch(self, theme: Theme, prompt: str, now: datetime) -> list[tuple[str, str]]:
        """What a prompt gets unasked, as prefetch puts it together: keys of the turns, and their lines."""
        if not worth_asking(prompt):
            return []
        question = Question(prompt, Kind.TURN, theme.name, limit=prefetch.MAX_TURNS, now=now, is_ambient=True)
        hits = self._recall.search(question, Deadline.after(60)).hits
        terms = question_terms(prompt)
        return [(self._keys[hit.id], prefetch.rendered([hit], terms, 2000)[0].partition("\n")[2]) for hit in hits]

    def close(self) -> None:
        """Give up the connection."""
        self._connection.close()

    @contextmanager
    def _reading(self, _: Deadline) -> Iterator[Any]:
        with self._connection.transaction():
            yield self._connection

    def _store(self, theme: Theme, model: EmbeddingModel, vectors: Vectors) -> None:
        before: dict[str, list[str]] = defaultdict(list)
        ordinals: Counter[tuple[str, str, str]] = Counter()
        for start in range(0, len(theme.turns), 64):
            batch = theme.turns[start : start + 64]
            lexemes, numbers = [], []
            for turn in batch:
                lexemes.append(lexemes_of(theme.name, turn.content, before[turn.session]).binary)
                before[turn.session] = [*before[turn.session][-1:], turn.content]
                numbers.append(ordinals[turn.session, turn.role, turn.content])
                ordinals[turn.session, turn.role, turn.content] += 1
            contents = [turn.content.replace("\x00", " ") for turn in batch]
            stored: list[Any] = self._connection.execute(
                statement("turns/insert"),
                {
                    "themes": [theme.name] * len(batch),
                    "session_ids": [turn.session for turn in batch],
                    "roles": [turn.role for turn in batch],
                    "contents": contents,
                    "ts": [turn.ts for turn in batch],
                    "metadata": ["{}"] * len(batch),
                    "parent_session_ids": [None] * len(batch),
                    "digests": [""] * len(batch),
                    "ordinals": numbers,
                    "lexemes": Column(TSVECTOR_OID, lexemes),
                    "wishes": [False] * len(batch),
                    "home_ids": [""] * len(batch),
                    "origins": [""] * len(batch),
                    "trusts": [""] * len(batch),
                },
            ).fetchall()
            pieces = [
                (row[1], chunk, text) for row in stored for chunk, text in enumerate(document_pieces(batch[row[0] - 1]))
            ]
            self._keys.update({row[1]: batch[row[0] - 1].key for row in stored})
            digests = {row[1]: sha256(contents[row[0] - 1].encode()).digest() for row in stored}
            made = [
                (*piece[:2], vector)
                for piece, vector in zip(pieces, vectors.of([piece[2] for piece in pieces]), strict=True)
                if vector is not None
            ]
            self._connection.execute(
                model_statement("vectors/insert_of_turns", model.id),
                {
                    "themes": [theme.name] * len(made),
                    "ids": [row_id for row_id, _, _ in made],
                    "chunks": [chunk for _, chunk, _ in made],
                    "digests": [digests[row_id] for row_id, _, _ in made],
                    "vectors": vector_array(model, [vector.tolist() for _, _, vector in made]),
                },
            )


@dataclass(frozen=True, slots=True)
class _Settings:
    embed_timeout: float = 5.0
    hybrid_search: bool = True
    recency_half_life_days: float = 0.0


class VectorOnly:
    """The nearest vectors of plain turns, compared exactly."""

    name = "vectors only"

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._of: dict[str, Floats] = {}

    def rank(self, theme: Theme, _: Asked, vector: Floats) -> list[str]:
        """Keys of the nearest turns."""
        if theme.name not in self._of:
            rows = self._vectors.of([turn.content[:4000] for turn in theme.turns])
            self._of = {theme.name: np.stack([np.zeros(256, np.float32) if row is None else row for row in rows])}
        order = np.argsort(-(self._of[theme.name] @ vector), kind="stable")[:DEPTH]
        return [theme.turns[place].key for place in order]


class Bm25:
    """Okapi BM25 over stems without stop words, k1 = 1.2, b = 0.75."""

    name = "BM25"

    def __init__(self) -> None:
        self._theme = ""

    def rank(self, theme: Theme, asked: Asked, _: Floats) -> list[str]:
        """Keys of the best turns."""
        if self._theme != theme.name:
            self._learn(theme)
        scores: dict[int, float] = defaultdict(float)
        for word in set(self._words(asked.text)):
            postings = self._postings.get(word, [])
            idf = math.log(1 + (len(theme.turns) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, count in postings:
                norm = 1.2 * (0.25 + 0.75 * self._lengths[place] / self._mean)
                scores[place] += idf * count * 2.2 / (count + norm)
        best = sorted(scores, key=lambda place: (-scores[place], place))[:DEPTH]
        return [theme.turns[place].key for place in best]

    def _learn(self, theme: Theme) -> None:
        self._theme = theme.name
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths = []
        for place, turn in enumerate(theme.turns):
            counts = Counter(self._words(turn.content))
            self._lengths.append(sum(counts.values()))
            for word, count in counts.items():
                self._postings[word].append((place, count))
        self._mean = max(1.0, statistics.fmean(self._lengths))

    @staticmethod
    def _words(text: str) -> list[str]:
        return [stem(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in ENGLISH]


class PeerRecipe:
    """The published recipe: one HNSW index with a theme filter, AND full text in English, reciprocal rank fusion."""

    name = "peer's recipe"

    def __init__(self, dsn: str, themes: Sequence[Theme], vectors: Vectors) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
        self._connection.execute(
            "CREATE TABLE peer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, theme text, key text, content text,"
            " embedding vector(256), words tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED)"
        )
        for theme in themes:
            rows = vectors.of([turn.content[:4000] for turn in theme.turns])
            with (
                self._connection.cursor() as cursor,
                cursor.copy("COPY peer (theme, key, content, embedding) FROM STDIN") as copy,
            ):
                for turn, vector in zip(theme.turns, rows, strict=True):
                    text = None if vector is None else "[" + ",".join(f"{value:.5g}" for value in vector) + "]"
                    copy.write_row((theme.name, turn.key, turn.content.replace("\x00", " ")[:100_000], text))
        self._connection.execute("SET maintenance_work_mem = '512MB'")
        self._connection.execute("CREATE INDEX ON peer USING hnsw (embedding vector_cosine_ops)")
        self._connection.execute("CREATE INDEX ON peer USING gin (words)")
        self._connection.execute("CREATE INDEX ON peer (theme)")
        self._connection.execute("VACUUM ANALYZE peer")

    def rank(self, theme: Theme, asked: Asked, vector: Floats) -> list[str]:
        """Keys of the fused results."""
        rows: list[Any] = self._connection.execute(
            "WITH near AS (SELECT id, key, row_number() OVER (ORDER BY distance) AS place FROM ("
            "  SELECT id, key, embedding <=> %(vector)s::vector AS distance FROM peer WHERE theme = %(theme)s"
            "  ORDER BY embedding <=> %(vector)s::vector LIMIT %(depth)s) AS n),"
            " worded AS (SELECT id, key, row_number() OVER (ORDER BY rank DESC) AS place FROM ("
            "  SELECT id, key, ts_rank(words, query) AS rank"
            "  FROM peer, websearch_to_tsquery('english', %(text)s) AS query"
            "  WHERE theme = %(theme)s AND words @@ query ORDER BY rank DESC LIMIT %(depth)s) AS w)"
            " SELECT coalesce(n.key, w.key) FROM near AS n FULL JOIN worded AS w USING (id)"
            " ORDER BY coalesce(1.0 / (60 + n.place), 0) + coalesce(1.0 / (60 + w.place), 0) DESC LIMIT %(depth)s",
            {"vector": str(vector.tolist()), "theme": theme.name, "text": asked.text, "depth": DEPTH},
        ).fetchall()
        return [row[0] for row in rows]

    def close(self) -> None:
        """Give up the connection."""
        self._connection.close()


def figures(theme: Theme, asked: Asked, ranked: Sequence[str]) -> dict[str, float]:
    """What one ranking is worth."""
    found: dict[str, float] = {}
    for depth in (5, 10, 20):
        found[f"R@{depth}"] = len(asked.evidence & set(ranked[:depth])) / len(asked.evidence)
    gain = sum(1 / math.log2(place + 2) for place, key in enumerate(ranked[:10]) if key in asked.evidence)
    found["nDCG@10"] = gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(asked.evidence))))
    session_of = {turn.key: turn.session for turn in theme.turns}
    sessions = list(dict.fromkeys(session_of[key] for key in ranked))
    for depth in (5, 10):
        found[f"any@{depth}"] = float(bool(asked.sessions & set(sessions[:depth])))
        found[f"all@{depth}"] = float(asked.sessions <= set(sessions[:depth]))
    return found


Ranker = Callable[[Theme, Asked, Floats], list[str]]


def measure(
    name: str, rank: Ranker, themes: Sequence[Theme], vectors: Vectors
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Run a method over the questions; its figures in all and by category."""
    total, times = Scores(), []
    categories: dict[str, Scores] = defaultdict(Scores)
    for theme in themes:
        for asked in theme.asked:
            vector = vectors.of([asked.text])[0]
            vector = np.zeros(256, np.float32) if vector is None else vector
            started = time.perf_counter()
            ranked = rank(theme, asked, vector)
            times.append((time.perf_counter() - started) * 1000)
            one = figures(theme, asked, ranked)
            total.add(one)
            categories[asked.category].add(one)
    result = {"questions": float(len(times)), **total.means()}
    result["ms p50"] = round(statistics.median(times), 2)
    result["ms p95"] = round(sorted(times)[int(len(times) * 0.95)], 2)
    print(f"{name:18}" + "".join(f"{value:>10.3f}" for value in result.values()), flush=True)
    return result, {category: scores.means() for category, scores in sorted(categories.items())}


TALK_THEMES = 30
"""Small talk is tried in so many themes, at most."""


def measure_prefetch(ours: Ours, themes: Sequence[Theme]) -> dict[str, float]:
    """What is offered unasked: to questions, and to prompts that ask nothing."""
    scores = Scores()
    for theme in themes:
        for asked in theme.asked:
            offered = ours.prefetch(theme, asked.text, asked.now)
            right = [key in asked.evidence for key, _ in offered]
            scores.add({"hits@3": float(any(right)), "blocks": float(bool(offered))})
            if offered:
                chars = sum(len(line) + 1 for _, line in offered)
                scores.add({"with evidence": float(any(right)), "precision": statistics.fmean(right)})
                scores.add({"chars": float(chars)})
    for theme in themes[:TALK_THEMES]:
        for name, prompts in (("talk, tuned", small_talk.TUNED), ("talk, held", small_talk.HELD)):
            for prompt in prompts:
                scores.add({name: float(bool(ours.prefetch(theme, prompt, theme.turns[-1].ts)))})
    means = scores.means()
    print("prefetch: " + ", ".join(f"{figure} {value:.3f}" for figure, value in means.items()), flush=True)
    return means


def run_recency(name: str, themes: list[Theme], dsn: str) -> dict[str, Any]:
    """Our search on one set with several half-lives, and what questions and answers are like in time."""
    vectors = Vectors()
    ours = Ours(dsn, themes, vectors)
    print(f"\n{name}: R@10 by kind of question")
    result: dict[str, Any] = {"ages": ages(themes)}
    for days in HALF_LIVES:
        one = ours.with_half_life(days)
        total, categories = measure(one.name, one.rank, themes, vectors)
        newest = newest_first(one, themes)
        result[f"{days:g}"] = {"all": total, "by category": categories, "newest first": newest}
        print("  " + "  ".join(f"{category} {means['R@10']:.3f}" for category, means in categories.items()), flush=True)
        if newest is not None:
            print(f"  of what has changed since, the newest comes first: {newest:.3f}", flush=True)
    ours.close()
    return result


def newest_first(ours: Ours, themes: Sequence[Theme]) -> float | None:
    """For how many questions about what has changed the newest word on it comes before the older ones; None if none."""
    found = []
    for theme in themes:
        said = {turn.key: turn.ts for turn in theme.turns}
        for asked in theme.asked:
            times = {said[key] for key in asked.evidence}
            if asked.category == CHANGED and len(times) > 1:
                ranked = [key for key in ours.rank(theme, asked, np.zeros(0, np.float32)) if key in asked.evidence]
                found.append(float(bool(ranked) and said[ranked[0]] == max(times)))
    return round(statistics.fmean(found), 4) if found else None


def ages(themes: Sequence[Theme]) -> dict[str, dict[str, float]]:
    """By kind of question: how many there are, the median age of the answer, and that of everything said, in days."""
    answers: dict[str, list[float]] = defaultdict(list)
    others: dict[str, list[float]] = defaultdict(list)
    count: Counter[str] = Counter()
    for theme in themes:
        for asked in theme.asked:
            count[asked.category] += 1
            for turn in theme.turns:
                age = (asked.now - turn.ts).total_seconds() / 86400
                (answers if turn.key in asked.evidence else others)[asked.category].append(age)
    return {
        category: {
            "questions": float(number),
            "answer's age": round(statistics.median(answers[category]), 1),
            "everything's age": round(statistics.median(others[category]), 1),
        }
        for category, number in sorted(count.items())
    }


def run(name: str, themes: list[Theme], dsn: str) -> dict[str, Any]:
    """All methods on one set."""
    vectors = Vectors()
    headers = ["questions", "R@5", "R@10", "R@20", "nDCG@10", "any@5", "all@5", "any@10", "all@10", "ms p50", "ms p95"]
    print(f"\n{name}: {sum(len(theme.turns) for theme in themes)} turns in {len(themes)} themes")
    print(" " * 18 + "".join(f"{header:>10}" for header in headers))
    result: dict[str, Any] = {}
    ours, peer = Ours(dsn, themes, vectors), PeerRecipe(dsn, themes, vectors)
    methods: list[tuple[str, Ranker]] = [
        (ours.name, ours.rank),
        ("ours, words only", ours.words_only().rank),
        (VectorOnly.name, VectorOnly(vectors).rank),
        (Bm25.name, Bm25().rank),
        (PeerRecipe.name, peer.rank),
    ]
    for method, rank in methods:
        total, categories = measure(method, rank, themes, vectors)
        result[method] = {"all": total, "by category": categories}
    result["prefetch"] = measure_prefetch(ours, themes)
    for category, means in result["ours"]["by category"].items():
        print(f"  ours, {category:28} R@5 {means['R@5']:.3f}  R@10 {means['R@10']:.3f}  R@20 {means['R@20']:.3f}")
    ours.close()
    peer.close()
    return result


def main() -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="locomo,longmemeval")
    parser.add_argument("--part", choices=("all", "held"), default="all")
    parser.add_argument("--recency", action="store_true", help="measure recency_half_life_days, and nothing else")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    started = datetime.now(UTC)
    loaders = {"locomo": ("locomo*.json", load_locomo), "longmemeval": ("longmemeval*.json*", load_longmemeval)}
    results: dict[str, Any] = {}
    for name in options.sets.split(","):
        pattern, load = loaders[name]
        path = next(iter(sorted(options.data.glob(pattern))), None)
        if path is None:
            parser.error(f"there is no {pattern} in {options.data}")
        with tempfile.TemporaryDirectory(prefix="recall-quality-") as folder:
            server = EmbeddedPostgres(Path(folder) / "postgres", extra_settings={"fsync": "off"})
            try:
                info = server.ensure_running(Deadline.after(120))
                spec = ModelSpec(LocalEmbedder().model, 256, SCALE.mean, SCALE.sd)
                migrate.apply(info.owner_dsn, runtime_role="hermes", model=spec)
                themes = list(load(path))
                if options.part == "held" and name == "locomo":
                    themes = themes[TRAINED_DIALOGUES:]
                if options.recency:
                    results[name] = run_recency(name, themes, info.owner_dsn)
                else:
                    results[name] = run(name, themes, info.owner_dsn)
            finally:
                server.stop(Deadline.after(60), mode="immediate")
    if options.json:
        about = {"part": options.part, "commit": commit(), "started": started.isoformat(timespec="seconds")}
        document = {"about": about, "recency" if options.recency else "recall quality": results}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
