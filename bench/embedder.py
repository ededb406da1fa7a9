"""The embed server of the benches: the tests' own endpoint in a process of its own, quick enough to measure others by.

Controlled by JSON lines on stdin: `{"latency": 0.02}`, `{"mode": "hang"}`, `{"vectors": "queries.npy"}`. A text that
contains `zq<n>` gets vector n of the loaded file, every other text one of a few thousand fixed vectors.
"""

from __future__ import annotations

import json
import re
import sys
import zlib

import numpy as np

from testing.embed_server import EmbedServer, Mode

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


class BenchServer(EmbedServer):
    """The tests' endpoint with vectors that are ready before they are asked for."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.vectors = Vectors(dim)

    def content(self, mode: Mode, protocol: str, texts: tuple[str, ...]) -> bytes:
        """The body of an answer."""
        found = (self.vectors.of(text) for text in texts)
        if protocol == "ollama":
            return ('{"model":"bench","embeddings":[' + ",".join(found) + "]}").encode()
        rows = (f'{{"object":"embedding","index":{index},"embedding":{vector}}}' for index, vector in enumerate(found))
        return ('{"object":"list","model":"bench","data":[' + ",".join(rows) + "]}").encode()


def main() -> None:
    """Serve until stdin ends; the first line printed is the address."""
    with BenchServer(int(sys.argv[1])) as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            server.latency = order.get("latency", server.latency)
            server.mode = order.get("mode", server.mode)
            if "vectors" in order:
                server.vectors.load(order["vectors"])
            print("done", flush=True)


if __name__ == "__main__":
    main()
