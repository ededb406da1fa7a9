"""Recall quality on LongMemEval and LoCoMo: our search beside BM25 and the published peer's recipe.

    python -m bench recall --data FOLDER [--sets locomo,longmemeval] [--embed-url URL --embed-model NAME] [--json F]
                           [--turn-rule each|pair]

FOLDER holds `longmemeval_s*.json[.gz]` and `locomo*.json` as their authors publish them; neither is part of this
project. Every method sees the same turns and the same vectors, of the local model or of an endpoint's (`--embed-url`);
ours runs through real statements on a real Postgres. Each user (LongMemEval) or dialogue (LoCoMo) is a theme of one
shared store.

`any@k`, `all@k`: whether the first k sessions found include one, or all, of the answer's (`answer_session_ids`), which
is the rule of LongMemEval's authors; questions without an answer are skipped, as they do. Prefetch is measured by what
it offers to the questions, and to small talk and gibberish (testing/small_talk.py), which should get nothing.

All turns are stored, unless `--turn-rule` leaves out those that an agent would not keep by that rule. Then only ours is
measured, and an answer that was not stored counts as not found.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import re
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench.run import commit
from hermes_memory_pgvector.capture import transcript
from hermes_memory_pgvector.capture.turns import worth_keeping
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.base import Embedder, create_embedder
from hermes_memory_pgvector.embedding.probe import measure as measure_scale
from hermes_memory_pgvector.recall import prefetch
from hermes_memory_pgvector.recall.recall import Recall
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from hermes_memory_pgvector.store import turns, vectors
from hermes_memory_pgvector.store.models import current_model
from hermes_memory_pgvector.store.vectors import Made
from hermes_memory_pgvector.text.everyday import worth_asking
from hermes_memory_pgvector.values import AddTurn, Kind, Moment, Question, Role
from hermes_memory_pgvector.writer.chunks import document_pieces, piece_chars
from testing.small_talk import GIBBERISH, SMALL_TALK

DEPTH = 50
TALK_THEMES = 30
"""Small talk is tried in so many themes, at most."""
Floats = NDArray[np.float32]
NO_VECTOR: Floats = np.zeros(0, np.float32)
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Turn:
    """Something said, by whom and when; `key` names it in the evidence."""

    key: str
    session: str
    role: Role
    content: str
    ts: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the turns that answer it."""

    text: str
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
            for number, turn in enumerate(said):
                key = f"{session}#{number}"
                if turn.get("has_answer"):
                    evidence.add(key)
                turns.append(Turn(key, session, turn["role"], turn["content"], _lme_date(date)))
        asked = Asked(
            item["question"],
            frozenset(evidence),
            frozenset(item["answer_session_ids"]),
            _lme_date(item["question_date"]),
        )
        has_answer = bool(evidence) and not item["question_id"].endswith("_abs")
        yield Theme(f"lme-{item['question_id']}", turns, [asked] if has_answer else [])


def load_locomo(path: Path) -> Iterator[Theme]:
    """LoCoMo: one theme per dialogue, the speaker before the words, image captions in brackets."""
    for number, item in enumerate(json.loads(path.read_text())):
        talk = item["conversation"]
        turns: list[Turn] = []
        session = 1
        while f"session_{session}" in talk:
            ts = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for turn in talk[f"session_{session}"]:
                caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
                content = f"{turn['speaker']}: {turn['text']}{caption}"
                role: Role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
                turns.append(Turn(turn["dia_id"], str(session), role, content, ts))
            session += 1
        session_of = {turn.key: turn.session for turn in turns}
        asked = []
        for question in item["qa"]:
            evidence = frozenset(re.findall(r"D\d+:\d+", " ".join(question["evidence"]))) & session_of.keys()
            if evidence:
                asked.append(
                    Asked(
                        question["question"],
                        evidence,
                        frozenset(session_of[key] for key in evidence),
                        turns[-1].ts,
                    )
                )
        yield Theme(f"locomo-{number}", turns, asked)


def _lme_date(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


class Vectors:
    """Vectors of a model, each text embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Floats | None] = {}

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return self._embedder.info(Deadline.after(60)).dim

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

    def __init__(self, connection: Connection, keys: dict[int, str], embedder: Embedder | None) -> None:
        self._connection = connection
        self._keys = keys
        self._recall = Recall(self._reading, embedder, Settings(embed_timeout=5.0))

    def rank(self, theme: Theme, asked: Asked, _: Floats) -> list[str]:
        """Keys of the turns found, best first."""
        question = Question(asked.text, Kind.TURN, theme.name, limit=DEPTH, now=asked.now)
        return [self._keys[hit.id] for hit in self._recall.search(question, Deadline.after(60)).hits]

    def prefetch(self, theme: Theme, prompt: str, now: datetime) -> list[tuple[str, str]]:
        """What a prompt gets unasked, as prefetch puts it together: keys of the turns, and their lines."""
        if not worth_asking(prompt):
            return []
        limit = 3 * Settings().prefetch_turns
        question = Question(prompt, Kind.TURN, theme.name, limit=limit, now=now, is_ambient=True)
        hits = prefetch.worth_a_line(self._recall.search(question, Deadline.after(60)).hits, Settings().prefetch_turns)
        return [(self._keys[hit.id], prefetch.rendered([hit], 2000)[0].partition("\n")[2]) for hit in hits]

    @contextmanager
    def _reading(self, _: Deadline) -> Iterator[Any]:
        with self._connection.transaction():
            yield self._connection


def store(connection: Connection, themes: Sequence[Theme], embedded: Vectors) -> dict[int, str]:
    """Put every theme into our tables as the writer does; the key of each row."""
    model = current_model(connection)
    assert model is not None
    for theme in themes:
        ordinals: Counter[tuple[str, str, str]] = Counter()
        for start in range(0, len(theme.turns), 64):
            said = []
            for place, turn in enumerate(theme.turns[start : start + 64], start):
                ordinals[turn.session, turn.role, turn.content] += 1
                said.append(_said(theme.name, turn, ordinals[turn.session, turn.role, turn.content], place))
            keys = turns.insert(connection, said, retry_window=0, wants_vector=lambda _: False)
            rows = vectors.texts(connection, [(name, Kind.TURN.value, row_id) for name, row_id in keys])
            size = piece_chars(model.name)
            pieces = [
                (row, chunk, text)
                for row in rows
                for chunk, text in enumerate(document_pieces(row.content, row.before, size))
            ]
            made = zip(pieces, embedded.of([text for _, _, text in pieces]), strict=True)
            vectors.insert(
                connection,
                model,
                [Made(row, chunk, vector.tolist()) for (row, chunk, _), vector in made if vector is not None],
            )
    connection.execute("VACUUM ANALYZE")
    return dict(connection.execute("SELECT id, metadata->>'key' FROM conversations").fetchall())


def _said(theme: str, turn: Turn, ordinal: int, place: int) -> AddTurn:
    # The sets date sessions, not turns; the host gives no two turns the same time.
    when = Moment(*[round(turn.ts.timestamp() * 1_000_000) + place] * 2)
    content = turn.content.replace("\x00", " ")
    return AddTurn(theme, turn.session, turn.role, content, ordinal, when, is_live=False, metadata={"key": turn.key})


class Bm25:
    """Okapi BM25 over Postgres's English stems without stop words, k1 = 1.2, b = 0.75."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._theme = ""

    def rank(self, theme: Theme, asked: Asked, _: Floats) -> list[str]:
        """Keys of the best turns."""
        if self._theme != theme.name:
            self._learn(theme)
        scores: dict[int, float] = defaultdict(float)
        for word in self._words([asked.text])[0]:
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
        for place, counts in enumerate(self._words([turn.content for turn in theme.turns])):
            self._lengths.append(sum(counts.values()))
            for word, count in counts.items():
                self._postings[word].append((place, count))
        self._mean = max(1.0, statistics.fmean(self._lengths))

    def _words(self, texts: list[str]) -> list[dict[str, int]]:
        rows = self._connection.execute(
            "SELECT (SELECT coalesce(jsonb_object_agg(lexeme, cardinality(positions)), '{}')"
            " FROM unnest(to_tsvector('english', text)))"
            " FROM unnest(%s::text[]) WITH ORDINALITY AS given (text, place) ORDER BY place",
            [[text.replace("\x00", " ") for text in texts]],
        )
        return [row[0] for row in rows]


class PeerRecipe:
    """The published recipe: one HNSW index with a theme filter, AND full text in English, reciprocal rank fusion."""

    def __init__(self, connection: Connection, themes: Sequence[Theme], vectors: Vectors) -> None:
        self._connection = connection
        self._connection.execute(
            "CREATE TABLE peer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, theme text, key text, content text,"
            f" embedding vector({vectors.dim}),"
            " words tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED)"
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


def figures(theme: Theme, asked: Asked, ranked: Sequence[str]) -> dict[str, float]:
    """What one ranking is worth."""
    found: dict[str, float] = {}
    for depth in (5, 10):
        found[f"R@{depth}"] = len(asked.evidence & set(ranked[:depth])) / len(asked.evidence)
    session_of = {turn.key: turn.session for turn in theme.turns}
    sessions = list(dict.fromkeys(session_of[key] for key in ranked))
    found["any@5"] = float(not asked.sessions.isdisjoint(sessions[:5]))
    for depth in (5, 10):
        found[f"all@{depth}"] = float(asked.sessions <= set(sessions[:depth]))
    return found


def means(found: Iterable[dict[str, float]]) -> dict[str, float]:
    """The mean of each figure, over the questions that have it."""
    values: dict[str, list[float]] = defaultdict(list)
    for name, value in itertools.chain.from_iterable(each.items() for each in found):
        values[name].append(value)
    return {name: round(statistics.fmean(each), 4) for name, each in values.items()}


Ranker = Callable[[Theme, Asked, Floats], list[str]]


def measure(name: str, rank: Ranker, themes: Sequence[Theme], vectors: Vectors) -> dict[str, Any]:
    """Run a method over the questions."""
    times = []
    found: list[dict[str, float]] = []
    for theme in themes:
        for asked in theme.asked:
            vector = vectors.of([asked.text])[0]
            vector = np.zeros(vectors.dim, np.float32) if vector is None else vector
            started = time.perf_counter()
            ranked = rank(theme, asked, vector)
            times.append((time.perf_counter() - started) * 1000)
            found.append(figures(theme, asked, ranked))
    result = {"questions": float(len(times)), **means(found)}
    result["ms p50"] = round(statistics.median(times), 2)
    result["ms p95"] = round(sorted(times)[int(len(times) * 0.95)], 2)
    print(f"{name:18}" + "".join(f"{value:>10.3f}" for value in result.values()), flush=True)
    return {"all": result}


def measure_prefetch(ours: Ours, themes: Sequence[Theme]) -> dict[str, float]:
    """What is offered unasked: to questions, and to prompts that ask nothing."""
    found: list[dict[str, float]] = []
    for theme in themes:
        for asked in theme.asked:
            offered = ours.prefetch(theme, asked.text, asked.now)
            right = [key in asked.evidence for key, _ in offered]
            found.append({"blocks": float(bool(offered))})
            if offered:
                chars = float(sum(len(line) + 1 for _, line in offered))
                found.append({"with evidence": float(any(right)), "precision": statistics.fmean(right), "chars": chars})
    for theme in themes[:TALK_THEMES]:
        for prompt in SMALL_TALK:
            found.append({"small talk": float(bool(ours.prefetch(theme, prompt, theme.turns[-1].ts)))})
        for prompt in GIBBERISH:
            now = theme.turns[-1].ts
            asked = Asked(prompt, frozenset(), frozenset(), now)
            found.append({"gibberish asked": float(bool(ours.rank(theme, asked, NO_VECTOR)))})
            found.append({"gibberish": float(bool(ours.prefetch(theme, prompt, now)))})
    result = means(found)
    print("prefetch: " + ", ".join(f"{figure} {value:.3f}" for figure, value in result.items()), flush=True)
    return result


def run(
    name: str, themes: list[Theme], connection: Connection, embedder: Embedder, *, is_alone: bool = False
) -> dict[str, Any]:
    """All methods on one set, or ours alone."""
    embedded = Vectors(embedder)
    headers = ["questions", "R@5", "R@10", "any@5", "all@5", "all@10", "ms p50", "ms p95"]
    print(f"\n{name}: {sum(len(theme.turns) for theme in themes)} turns in {len(themes)} themes")
    print(" " * 18 + "".join(f"{header:>10}" for header in headers))
    keys = store(connection, themes, embedded)
    ours = Ours(connection, keys, embedder)
    methods: dict[str, Ranker] = {"ours": ours.rank}
    if not is_alone:
        methods |= {
            "ours, words only": Ours(connection, keys, None).rank,
            "BM25": Bm25(connection).rank,
            "peer's recipe": PeerRecipe(connection, themes, embedded).rank,
        }
    result: dict[str, Any] = {method: measure(method, rank, themes, embedded) for method, rank in methods.items()}
    return {**result, "prefetch": measure_prefetch(ours, themes)}


def kept(theme: Theme, settings: Settings) -> Theme:
    """What an agent stores of a history; LoCoMo's speakers before the words are not counted."""
    left: list[Turn] = []
    for _, said in itertools.groupby(theme.turns, lambda turn: turn.session):
        words = {}
        for turn in said:
            spoken = turn.content.partition(": ")[2] if theme.name.startswith("locomo") else turn.content
            words[turn.key] = transcript.Turn(turn.role, spoken), turn
        worth = {id(each) for each in worth_keeping([each for each, _ in words.values()], settings)}
        left += [turn for each, turn in words.values() if id(each) in worth]
    return replace(theme, turns=left)


LOADERS = {"locomo": ("locomo*.json", load_locomo), "longmemeval": ("longmemeval*.json*", load_longmemeval)}


def embedder_of(url: str, model: str) -> Embedder:
    """The endpoint's embedder, or the local one."""
    return create_embedder(Settings(embed_url=url, embed_model=model))


def measure_sets(
    data: Path, sets: Sequence[str], output: Path | None, embedder: Embedder, keeping: Settings | None = None
) -> None:
    """Measure, print, and write the figures; `keeping` says which turns are stored."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    results: dict[str, Any] = {}
    for name in sets:
        pattern, load = LOADERS[name]
        path = next(iter(sorted(data.glob(pattern))), None)
        if path is None:
            raise SystemExit(f"there is no {pattern} in {data}")
        with tempfile.TemporaryDirectory(prefix="recall-quality-") as folder:
            server = EmbeddedPostgres(Path(folder) / "postgres", extra_settings={"fsync": "off"})
            try:
                owner_dsn = server.ensure_running(Deadline.after(120)).owner_dsn
                info = embedder.info(Deadline.after(60))
                scale = info.scale or measure_scale(embedder, Deadline.after(60))
                spec = NewModel(info.name, info.dim, scale.mean, scale.sd)
                migrate.apply(owner_dsn, runtime_role="hermes", model=spec)
                with psycopg.connect(owner_dsn, autocommit=True, prepare_threshold=None) as connection:
                    themes = list(load(path))
                    if keeping is not None:
                        themes = [kept(theme, keeping) for theme in themes]
                    results[name] = run(name, themes, connection, embedder, is_alone=keeping is not None)
            finally:
                server.stop(Deadline.after(60), mode="immediate")
    if output is not None:
        about = {"commit": commit(), "started": started}
        output.write_text(json.dumps({"about": about, "recall quality": results}, indent=2) + "\n")
