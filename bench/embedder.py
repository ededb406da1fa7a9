"""The embed server of the benches: the tests' own endpoint in a process of its own, quick enough to measure others by.

Controlled by JSON lines on stdin: `{"latency": 0.02}`, `{"mode": "hang"}`, `{"vectors": "queries.npy"}`. A text that
contains `zq<n>` gets vector n of the loaded file, every other text one of a few thousand fixed vectors.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fixtures import embed_server
from fixtures.embed_server import EmbedServer, Mode

POOL = 2048
ASKED = re.compile(r"\bzq(\d+)\b")


class Vectors:
    """Vectors as ready-made JSON: formatting them for each request would make the endpoint the slowest part."""

    def __init__(self, dim: int) -> None:
        rows = np.random.default_rng(7).standard_normal((POOL, dim)).astype(np.float32)
        self._pool = [_json(row) for row in rows / np.linalg.norm(rows, axis=1, keepdims=True)]
        self._stored: list[str] = []

    def load(self, path: str) -> None:
        """Vectors for the texts that name one."""
        self._stored = [_json(row) for row in np.load(path)]

    def of(self, text: str) -> str:
        """The vector of a text."""
        asked = ASKED.search(text)
        if asked is not None:
            return self._stored[int(asked[1])]
        return self._pool[zlib.crc32(text.encode("utf-8", "replace")) % POOL]


def _json(row: np.ndarray) -> str:
    return "[" + ",".join(f"{value:.7g}" for value in row.tolist()) + "]"


def main() -> None:
    """Serve until stdin ends; the first line printed is the address."""
    vectors = Vectors(int(sys.argv[1]))

    def content(mode: Mode, protocol: str, texts: tuple[str, ...], dim: int) -> bytes:
        if protocol == "ollama":
            return ('{"model":"bench","embeddings":[' + ",".join(vectors.of(text) for text in texts) + "]}").encode()
        rows = (
            f'{{"object":"embedding","index":{index},"embedding":{vectors.of(text)}}}'
            for index, text in enumerate(texts)
        )
        return ('{"object":"list","model":"bench","data":[' + ",".join(rows) + "]}").encode()

    embed_server._content = content
    with EmbedServer(int(sys.argv[1])) as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            server.latency = order.get("latency", server.latency)
            server.mode = order.get("mode", server.mode)
            if "vectors" in order:
                vectors.load(order["vectors"])
            texts = sum(request.inputs for request in server.requests)
            print(json.dumps({"requests": len(server.requests), "texts": texts}), flush=True)


if __name__ == "__main__":
    main()
