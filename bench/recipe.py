"""The nearest rows of a theme by themselves, beside the plain recipe that the package's own search grew from.

The recipe compares the 400 rows nearest by one bit per number. Both are one prepared statement on one connection, asked
in turns: what is compared is the work of the server, without embedder, words and tool.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, LiteralString

import numpy as np
import psycopg

from bench.corpus import MIXTURE, Floats, Questions, Truth, recall_at_ten
from bench.load import theme_name
from bench.measure import percentile
from bench.stage import Seat
from hermes_memory_pgvector.postgres.vector_types import HalfVector

TABLE: tuple[LiteralString, ...] = (
    "CREATE TABLE recipe (agent_identity text NOT NULL, id bigint, embedding halfvec NOT NULL, code bit varying)",
    "ALTER TABLE recipe ALTER COLUMN embedding SET STORAGE PLAIN",
    "INSERT INTO recipe SELECT agent_identity, id, embedding, binary_quantize(embedding) FROM turn_vectors_1",
    "ALTER TABLE recipe ADD PRIMARY KEY (agent_identity, id) INCLUDE (code)",
    "VACUUM ANALYZE recipe",
)
RECIPE: LiteralString = """
SELECT id FROM recipe
WHERE agent_identity = %(theme)s AND id = ANY (ARRAY(
    SELECT id FROM recipe WHERE agent_identity = %(theme)s
    ORDER BY hamming_distance(code, %(code)s::bit varying) LIMIT 400))
ORDER BY cosine_distance(embedding, %(vector)s::halfvec) LIMIT 10"""
NEAREST: LiteralString = """
SELECT unnest(ids[1:10]) FROM hermes_nearest_in_theme(
    NULL::turn_vectors_1, %(theme)s::text, NULL, NULL, NULL, %(vector)s::halfvec,
    (SELECT candidates FROM embedding_models WHERE is_current), -1::real, 10)"""
STATEMENTS = {"nearest rows": NEAREST, "the plain recipe": RECIPE}


def beside_recipe(seat: Seat, mixture: Sequence[tuple[int, Questions]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds and recall of both over the questions of a fleet, and how many times the recipe's ours are."""
    figures: dict[str, list[float]] = {}
    with seat.connect() as connection:
        for command in TABLE:
            connection.execute(command)
        for number in range(rounds + 1):
            figure_of = {name: _round(connection, text, mixture) for name, text in STATEMENTS.items()}
            if number == 0:
                # The first plans its statements and reads what the others then find in memory.
                continue
            for name, (half, most, found) in figure_of.items():
                for end, value in (("p50", half), ("p95", most), ("recall@10", found)):
                    figures.setdefault(f"{name}, {MIXTURE}, {end}", []).append(value)
            ours, recipe = figure_of.values()
            for end, place in (("p50", 0), ("p95", 1)):
                figures.setdefault(f"nearest rows, {end} in times of the recipe", []).append(
                    ours[place] / recipe[place]
                )
        connection.execute("DROP TABLE recipe")
    return figures


def _round(
    connection: psycopg.Connection[Any], text: LiteralString, mixture: Sequence[tuple[int, Questions]]
) -> tuple[float, float, float]:
    micros: list[float] = []
    found: list[list[int]] = []
    truth: list[Truth] = []
    for theme, questions in mixture:
        for vector in questions.vectors:
            asked = {"theme": theme_name(theme), "code": _code(vector), "vector": HalfVector(vector.tolist())}
            begin = time.perf_counter()
            rows = connection.execute(text, asked, prepare=True).fetchall()
            micros.append((time.perf_counter() - begin) * 1e6)
            found.append([row[0] - 1 for row in rows])
        truth += questions.truth
    return percentile(micros, 0.5) / 1000, percentile(micros, 0.95) / 1000, recall_at_ten(found, truth)


def _code(vector: Floats) -> str:
    return "".join(np.where(vector > 0, "1", "0"))
