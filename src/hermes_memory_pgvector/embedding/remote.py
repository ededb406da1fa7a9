"""An embedder behind an HTTP endpoint: batches, prefixes, and checks of everything that comes back."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.base import BATCH, ModelInfo, ProtocolName, Vector, embeddable, unit_vector
from hermes_memory_pgvector.embedding.http import HttpClient, Reply
from hermes_memory_pgvector.embedding.known_models import ModelSpec, spec_of
from hermes_memory_pgvector.embedding.protocols import OLLAMA, OPENAI, EmbeddingProtocol, InputRefused, NotSpoken
from hermes_memory_pgvector.embedding.url import Endpoint, parse_endpoint
from hermes_memory_pgvector.errors import ConfigError, EmbeddingRejected, EmbeddingUnavailable

logger = logging.getLogger(__name__)

_HARMLESS = "memory"
"""A text no endpoint can object to: it tells a bad text from a bad configuration, and the dimension."""

_BYTES_PER_NUMBER = 32
_LARGEST_LIKELY_DIM = 8_192
_TRANSIENT = frozenset({408, 425, 429})
_INPUT = frozenset({400, 413, 422})
_SHORTEST = 200
"""A text that is refused at this length is refused for another reason than its length."""
_UNKNOWN_PATH = frozenset({404, 405, 501})
_FAULT = 500


class AnsweredWithFault(EmbeddingUnavailable):
    """The endpoint answered 500: it is in trouble, or a text is too much for it, as with llama.cpp's servers."""


class RemoteEmbedder:
    """Embeds through one endpoint; thread-safe, nothing is contacted before the first call."""

    def __init__(
        self, *, url: str, model: str, protocol: ProtocolName, dim: int | None, api_key: str | None,
        spec: ModelSpec | None = None,
    ) -> None:  # fmt: skip
        """Without `spec`, the facts are those that the model's name tells."""
        if not model.strip():
            raise ConfigError("embed_model is empty; name the model the endpoint serves")
        self._endpoint = parse_endpoint(url)
        self._model = model.strip()
        self._spec = spec or spec_of(self._model)
        self._fixed = _fixed_protocol(protocol, self._endpoint)
        self._spoken = self._fixed
        """What an open protocol turned out to be. Only an answer decides, not an outage or a refused key."""
        self._dim = dim if dim is not None else self._spec.dim
        self._shorten_to = dim if self._spec.can_shorten and dim != self._spec.dim else None
        self._client = HttpClient(self._endpoint, _headers(self._endpoint, api_key))

    @property
    def model(self) -> str:
        """The model's name as the endpoint knows it."""
        return self._model

    def info(self, deadline: Deadline) -> ModelInfo:
        """The model's facts; embeds one word when neither a setting nor the model's name tells the dimension."""
        if self._dim is None:
            self._request([self._spec.document_prefix + _HARMLESS], deadline)
        assert self._dim is not None
        spoken = self._spoken
        return ModelInfo(
            name=self._model,
            dim=self._dim,
            protocol=spoken.name if spoken is not None else "auto",
            query_prefix=self._spec.query_prefix,
            document_prefix=self._spec.document_prefix,
        )

    def embed_query(self, text: str, deadline: Deadline) -> Vector | None:
        """The vector of a question."""
        return self.embed_queries([text], deadline)[0]

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of several questions."""
        return self._embed(texts, self._spec.query_prefix, deadline)

    def embed_documents(self, texts: Sequence[str], deadline: Deadline) -> list[Vector | None]:
        """The vectors of texts to be found, in as few requests as the batch size allows."""
        return self._embed(texts, self._spec.document_prefix, deadline)

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()

    def _embed(self, texts: Sequence[str], prefix: str, deadline: Deadline) -> list[Vector | None]:
        vectors: list[Vector | None] = [None] * len(texts)
        present = [
            (position, prefix + clean)
            for position, text in enumerate(texts)
            if (clean := embeddable(text, self._spec.max_chars)) is not None
        ]
        for start in range(0, len(present), BATCH):
            part = present[start : start + BATCH]
            embedded = self._embed_batch([text for _, text in part], deadline)
            for (position, _), vector in zip(part, embedded, strict=True):
                vectors[position] = vector
        return vectors

    def _embed_batch(self, texts: list[str], deadline: Deadline) -> list[Vector | None]:
        """One batch; when it is refused, halving finds the texts at fault, which are shortened until they are taken."""
        try:
            return list(self._request(texts, deadline))
        except (InputRefused, AnsweredWithFault) as refusal:
            self._check_harmless_text_is_taken(refusal, deadline)
            return self._in_parts(texts, deadline)

    def _check_harmless_text_is_taken(self, refusal: InputRefused | AnsweredWithFault, deadline: Deadline) -> None:
        # Without this a wrong model name would look like bad texts: one request for each, and no error.
        try:
            self._request([_HARMLESS], deadline)
        except InputRefused:
            raise EmbeddingRejected(f"{refusal}, even for one harmless word; check embed_model") from None

    def _in_parts(self, texts: list[str], deadline: Deadline) -> list[Vector | None]:
        """Each half by itself; a single text is tried once more, because what failed may have passed."""
        middle = (len(texts) + 1) // 2
        vectors: list[Vector | None] = []
        for part in filter(None, (texts[:middle], texts[middle:])):
            try:
                vectors += self._request(part, deadline)
            except (InputRefused, AnsweredWithFault) as refusal:
                if len(part) > 1:
                    vectors += self._in_parts(part, deadline)
                elif len(part[0]) > _SHORTEST:
                    # Servers have limits that no name of a model tells.
                    vectors += self._in_parts([part[0][: max(_SHORTEST, len(part[0]) // 2)]], deadline)
                else:
                    # The endpoint may have gone meanwhile: then it is no fault of this text.
                    self._check_harmless_text_is_taken(refusal, deadline)
                    vectors.append(None)
        return vectors

    def _request(self, texts: list[str], deadline: Deadline) -> list[Vector]:
        """The answer in the protocol the endpoint speaks; one deadline covers the attempts in both."""
        refusals = []
        for protocol in (OPENAI, OLLAMA) if self._spoken is None else (self._spoken,):
            try:
                vectors = self._attempt(protocol, texts, deadline)
            except NotSpoken as refusal:
                refusals.append(str(refusal))
            else:
                self._spoken = protocol
                return vectors
        # Another server may have taken the address.
        self._spoken = self._fixed
        raise NotSpoken("; ".join(refusals))

    def _attempt(self, protocol: EmbeddingProtocol, texts: list[str], deadline: Deadline) -> list[Vector]:
        source = f"the embedding endpoint {self._endpoint.origin}"
        if deadline.is_over:
            raise EmbeddingUnavailable(f"no time was left for {source}")
        request = {"model": self._model, "input": texts, **protocol.options}
        if self._shorten_to is not None:
            request["dimensions"] = self._shorten_to
        target = protocol.path(self._endpoint.path) + (f"?{self._endpoint.query}" if self._endpoint.query else "")
        cap = 65_536 + len(texts) * (self._dim or _LARGEST_LIKELY_DIM) * _BYTES_PER_NUMBER
        reply = self._client.post(target, json.dumps(request, ensure_ascii=False).encode(), deadline, cap)
        _check_status(reply, source, protocol)
        rows = protocol.rows(_parsed(reply.body, source), len(texts), source)
        return self._checked(rows, source)

    def _checked(self, rows: list[object], source: str) -> list[Vector]:
        dim = self._dim
        vectors: list[Vector] = []
        for row in rows:
            vectors.append(unit_vector(row, dim, source))
            dim = len(vectors[0])
        self._dim = dim
        return vectors


def _fixed_protocol(name: ProtocolName, endpoint: Endpoint) -> EmbeddingProtocol | None:
    if name == "auto":
        return OLLAMA if endpoint.path.endswith("/api/embed") else None
    for protocol in (OPENAI, OLLAMA):
        if protocol.name == name:
            return protocol
    raise ConfigError("embed_protocol must be auto, openai, ollama or local")


def _headers(endpoint: Endpoint, api_key: str | None) -> dict[str, str]:
    key = (api_key or "").strip()
    if not key:
        return {}
    if not key.isascii() or not key.isprintable():
        raise ConfigError(
            "the key in the variable that embed_api_key_env names has a line break or another character that no HTTP "
            "header can carry"
        )
    if endpoint.scheme == "http" and not endpoint.is_loopback:
        logger.warning("the embedding key travels unencrypted to %s; https would protect it", endpoint.origin)
    return {"Authorization": f"Bearer {key}"}


def _check_status(reply: Reply, source: str, protocol: EmbeddingProtocol) -> None:
    status = reply.status
    if 200 <= status < 300:
        return
    if status in _UNKNOWN_PATH:
        # In our words: what an endpoint says itself may repeat a key or a text.
        reason = "it has no such model, try pulling it first" if b"pull" in reply.body else "unknown path or model"
        raise NotSpoken(f"{source} answered {status} to the {protocol.name} protocol: {reason}")
    if status == _FAULT:
        raise AnsweredWithFault(f"{source} answered {status}")
    if status in _TRANSIENT or status > _FAULT:
        raise EmbeddingUnavailable(f"{source} answered {status}")
    if status in _INPUT:
        raise InputRefused(f"{source} answered {status}")
    if 300 <= status < 400:
        raise EmbeddingRejected(
            f"{source} redirects ({status}), which is not followed; set embed_url to the final address"
        )
    if status in (401, 403):
        raise EmbeddingRejected(f"{source} answered {status}; check the variable that embed_api_key_env names")
    raise EmbeddingRejected(f"{source} answered {status}")


def _parsed(body: bytes, source: str) -> object:
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        raise NotSpoken(f"{source} returned {len(body)} bytes that are not JSON") from None
    return answer
