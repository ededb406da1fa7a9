"""The HTTP embedders against a real server that answers well, badly, late or never."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import Vector
from hermes_memory_pgvector.embedding.base import ProtocolName
from hermes_memory_pgvector.embedding.http import is_quiet
from hermes_memory_pgvector.embedding.known_models import spec_with
from hermes_memory_pgvector.embedding.remote import RemoteEmbedder
from hermes_memory_pgvector.errors import ConfigError, EmbeddingError, EmbeddingRejected, EmbeddingUnavailable
from testing.embed_server import EmbedServer, Mode, meaningful_vector
from testing.waiting import promptly

DIM = 64
KEY = "sk-KEY-that-must-stay-secret"
TEXT = "TEXT-that-must-stay-secret"

MakeEmbedder = Callable[..., RemoteEmbedder]


@pytest.fixture
def server() -> Iterator[EmbedServer]:
    with EmbedServer(dim=DIM) as running:
        yield running


@pytest.fixture
def make(server: EmbedServer) -> Iterator[MakeEmbedder]:
    made: list[RemoteEmbedder] = []

    def build(
        url: str | None = None,
        protocol: ProtocolName = "openai",
        model: str = "test-model",
        dim: int | None = DIM,
        api_key: str | None = None,
        prefixes: str = "",
    ) -> RemoteEmbedder:
        embedder = RemoteEmbedder(
            url=server.url if url is None else url,
            model=model,
            protocol=protocol,
            dim=dim,
            api_key=api_key,
            spec=spec_with(model, prefixes),
        )
        made.append(embedder)
        return embedder

    yield build
    for embedder in made:
        embedder.close()


def soon(seconds: float = 10.0) -> Deadline:
    return Deadline.after(seconds)


def same(vector: Vector | None, text: str) -> bool:
    expected = meaningful_vector(text, DIM)
    return vector is not None and all(abs(a - b) < 1e-6 for a, b in zip(vector, expected, strict=True))


PROTOCOLS = pytest.mark.parametrize("protocol", ["openai", "ollama", "auto"])


@PROTOCOLS
def test_documents_keep_their_order_across_batches(
    server: EmbedServer, make: MakeEmbedder, protocol: ProtocolName
) -> None:
    texts = [f"note number {index} about topic {index % 7}" for index in range(150)]
    vectors = make(protocol=protocol).embed_documents(texts, soon())
    assert [same(vector, text) for vector, text in zip(vectors, texts, strict=True)] == [True] * 150
    assert [request.inputs for request in server.requests] == [64, 64, 22]
    assert server.connections == 1


@PROTOCOLS
@pytest.mark.parametrize(
    ("mode", "error", "reason"),
    [
        ("500", EmbeddingUnavailable, "answered 500"),
        ("429", EmbeddingUnavailable, "answered 429"),
        ("cut", EmbeddingUnavailable, "broke"),
        ("401", EmbeddingRejected, "answered 401; check the variable that embed_api_key_env"),
        ("404", EmbeddingRejected, "answered 404"),
        ("400", EmbeddingRejected, "answered 400"),
        ("413", EmbeddingRejected, "answered 413"),
        ("redirect", EmbeddingRejected, "redirects (302)"),
        ("garbage", EmbeddingRejected, "does not answer in HTTP"),
        ("huge", EmbeddingRejected, "sent more than"),
        ("huge-announced", EmbeddingRejected, "announced a body of 209715200 bytes"),
        ("nan", EmbeddingRejected, "NaN or infinite"),
        ("infinity", EmbeddingRejected, "NaN or infinite"),
        ("wrongdim", EmbeddingRejected, "63 numbers where 64"),
        ("zero", EmbeddingRejected, "a zero vector"),
        ("strings", EmbeddingRejected, "not a number"),
        ("short", EmbeddingRejected, "1 vectors for 2 texts"),
        ("deep", EmbeddingRejected, "60000 bytes that are not JSON"),
        ("notjson", EmbeddingRejected, "bytes that are not JSON"),
    ],
)
def test_misbehaviour_is_named_and_says_nothing_secret(
    server: EmbedServer,
    make: MakeEmbedder,
    protocol: ProtocolName,
    mode: Mode,
    error: type[EmbeddingError],
    reason: str,
) -> None:
    server.redirect_to = server.url + "/elsewhere"
    embedder = make(protocol=protocol, api_key=KEY)
    server.mode = mode
    with pytest.raises(error) as caught:
        embedder.embed_documents([TEXT, TEXT + " again"], soon())
    message = str(caught.value)
    assert reason in message
    assert "127.0.0.1" in message
    assert "secret" not in message.lower()
    assert not caught.value.__cause__

    server.mode = "ok"
    assert same(embedder.embed_documents([TEXT], soon())[0], TEXT), "the endpoint is well again"


@PROTOCOLS
@pytest.mark.parametrize("mode", ["hang", "drip", "drip-head"])
def test_the_deadline_covers_the_whole_call(
    server: EmbedServer, make: MakeEmbedder, protocol: ProtocolName, mode: Mode
) -> None:
    server.mode = mode
    with promptly(), pytest.raises(EmbeddingUnavailable, match="in time"):
        make(protocol=protocol).embed_query("anything", soon(0.5))


def test_a_refused_connection_is_unavailable(server: EmbedServer, make: MakeEmbedder) -> None:
    url = server.url
    server.stop()
    with pytest.raises(EmbeddingUnavailable, match="ConnectionRefusedError"):
        make(url=url).embed_query("anything", soon())


def test_a_redirect_is_not_followed_and_the_key_stays(server: EmbedServer, make: MakeEmbedder) -> None:
    with EmbedServer(dim=DIM) as other:
        server.mode = "redirect"
        server.redirect_to = other.url
        with pytest.raises(EmbeddingRejected, match="redirect"):
            make(api_key=KEY).embed_query("anything", soon())
        assert other.connections == 0
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_request_asks_for_plain_floats_uncompressed(server: EmbedServer, make: MakeEmbedder) -> None:
    make().embed_query("anything", soon())
    request = server.requests[0]
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["content-type"] == "application/json"
    assert request.body["encoding_format"] == "float"
    assert "dimensions" not in request.body


def test_shuffled_answers_are_put_in_order_by_index(server: EmbedServer, make: MakeEmbedder) -> None:
    server.mode = "shuffle"
    texts = [f"text {index}" for index in range(9)]
    vectors = make().embed_documents(texts, soon())
    assert all(same(vector, text) for vector, text in zip(vectors, texts, strict=True))


def test_chunked_answers_are_read_and_the_connection_is_kept(server: EmbedServer, make: MakeEmbedder) -> None:
    server.mode = "chunked"
    embedder = make()
    assert same(embedder.embed_query("first", soon()), "first")
    assert same(embedder.embed_query("second", soon()), "second")
    assert server.connections == 1


def test_a_connection_closed_after_the_answer_costs_no_failure(server: EmbedServer, make: MakeEmbedder) -> None:
    server.mode = "close"
    embedder = make()
    for index in range(10):
        assert same(embedder.embed_query(f"text {index}", soon()), f"text {index}")
    assert len(server.requests) == 10


def test_a_connection_lost_while_the_request_leaves_is_tried_again_once(
    server: EmbedServer, make: MakeEmbedder
) -> None:
    embedder = make()
    embedder.embed_query("first", soon())
    server.request_arrived.clear()
    with server.held() as gate:
        found: list[Vector | None] = []
        asking = threading.Thread(target=lambda: found.append(embedder.embed_query("second", soon())))
        asking.start()
        assert server.request_arrived.wait(10)
        server.drop_connections()
        gate.set()
        asking.join(10)
    assert same(found[0], "second")
    assert server.connections == 2


def test_an_answer_nobody_asked_for_is_not_taken_for_the_next(server: EmbedServer, make: MakeEmbedder) -> None:
    embedder = make()
    server.mode = "twice"
    embedder.embed_query("first", soon())
    end = time.monotonic() + 10
    while is_quiet(embedder._client._idle[0]):
        assert time.monotonic() < end
        time.sleep(0.005)
    server.mode = "ok"
    assert same(embedder.embed_query("second", soon()), "second")


def test_an_endpoint_that_refuses_everything_is_asked_twice_not_once_per_text(
    server: EmbedServer, make: MakeEmbedder
) -> None:
    server.mode = "400"
    with pytest.raises(EmbeddingRejected, match="embed_model"):
        make().embed_documents([f"text {index}" for index in range(64)], soon())
    assert [request.inputs for request in server.requests] == [64, 1]


def test_texts_are_cut_to_what_the_model_takes(server: EmbedServer, make: MakeEmbedder) -> None:
    make().embed_documents(["x" * 20_000], soon())
    make(model="all-minilm").embed_documents(["x" * 20_000], soon())
    assert [len(text) for text in server.texts] == [8_000, 1_000]


def test_empty_texts_are_never_sent(server: EmbedServer, make: MakeEmbedder) -> None:
    embedder = make()
    assert embedder.embed_documents(["", "  \n", "\x00"], soon()) == [None, None, None]
    assert embedder.embed_query(" ", soon()) is None
    assert server.requests == []
    vectors = embedder.embed_documents(["", "a text", ""], soon())
    assert [vector is None for vector in vectors] == [True, False, True]
    assert server.texts == ["a text"]


def test_lone_surrogates_and_nul_are_sent_as_valid_text(server: EmbedServer, make: MakeEmbedder) -> None:
    assert make().embed_query("half \ud83d a\x00pair", soon()) is not None
    assert server.texts == ["half  apair"]


@pytest.mark.parametrize(
    ("prefixes", "query", "document"),
    [
        ("query=find: |document=kept = |", "find: a", "kept = b"),
        ("query=Q ", "Q a", "b"),
        ("none", "a", "b"),
        (" ", "search_query: a", "search_document: b"),
    ],
)
def test_prefixes_may_be_named(
    server: EmbedServer, make: MakeEmbedder, prefixes: str, query: str, document: str
) -> None:
    embedder = make(model="nomic-embed-text", prefixes=prefixes)
    embedder.embed_query("a", soon())
    embedder.embed_documents(["b"], soon())
    assert server.texts == [query, document]


@pytest.mark.parametrize("prefixes", ["search: ", "query: |document: ", "query=a|text=b"])
def test_prefixes_that_cannot_be_read_are_a_config_error(make: MakeEmbedder, prefixes: str) -> None:
    with pytest.raises(ConfigError, match="embed_prefixes must be"):
        make(prefixes=prefixes)


def test_the_dimension_is_learnt_from_the_first_answer_and_then_held(server: EmbedServer, make: MakeEmbedder) -> None:
    embedder = make(dim=None)
    assert embedder.info(soon()).dim == DIM
    assert [request.inputs for request in server.requests] == [1]
    server.dim = 32
    with pytest.raises(EmbeddingRejected, match="32 numbers where 64 are expected"):
        embedder.embed_query("anything", soon())


def test_a_known_model_tells_its_dimension_without_being_asked(server: EmbedServer, make: MakeEmbedder) -> None:
    info = make(model="nomic-embed-text", dim=None).info(soon())
    assert (info.dim, info.query_prefix, info.scale) == (768, "search_query: ", None)
    assert server.requests == []


def test_a_shortenable_model_is_asked_for_the_configured_dimension(server: EmbedServer, make: MakeEmbedder) -> None:
    make(model="text-embedding-3-small").embed_query("anything", soon())
    assert server.requests[0].body["dimensions"] == DIM


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_openai_is_found_from_any_form_of_the_url(server: EmbedServer, make: MakeEmbedder, suffix: str) -> None:
    assert make(url=server.url + suffix).embed_query("anything", soon()) is not None
    assert server.requests[0].path == "/v1/embeddings"


@pytest.mark.parametrize("suffix", ["", "/", "/api", "/api/embed", "/api/embeddings", "/v1", "/v1/embeddings"])
def test_ollama_is_found_from_any_form_of_the_url(server: EmbedServer, make: MakeEmbedder, suffix: str) -> None:
    assert make(url=server.url + suffix, protocol="ollama").embed_query("anything", soon()) is not None
    assert server.requests[0].path == "/api/embed"


def test_a_query_string_and_a_path_prefix_are_kept(server: EmbedServer, make: MakeEmbedder) -> None:
    make(url=server.url + "/team/v1?api-version=2").embed_query("anything", soon())
    assert server.requests[0].path == "/team/v1/embeddings?api-version=2"


def test_auto_asks_openai_first_and_remembers_ollama(server: EmbedServer, make: MakeEmbedder) -> None:
    server.protocols = ("ollama",)
    embedder = make(protocol="auto")
    embedder.embed_query("one", soon())
    embedder.embed_query("two", soon())
    assert [request.path for request in server.requests] == ["/v1/embeddings", "/api/embed", "/api/embed"]
    assert embedder.info(soon()).protocol == "ollama"


def test_auto_is_not_decided_by_a_passing_failure(server: EmbedServer, make: MakeEmbedder) -> None:
    embedder = make(protocol="auto")
    modes: tuple[Mode, ...] = ("500", "401", "hang")
    for mode in modes:
        server.mode = mode
        with pytest.raises(EmbeddingError):
            embedder.embed_query("anything", soon(0.3))
    assert {request.path for request in server.requests} == {"/v1/embeddings"}
    assert embedder.info(soon()).protocol == "auto"
    server.mode = "ok"
    server.protocols = ("ollama",)
    assert embedder.embed_query("anything", soon()) is not None


def test_auto_names_both_tries_when_neither_is_spoken(server: EmbedServer, make: MakeEmbedder) -> None:
    server.protocols = ()
    with pytest.raises(EmbeddingRejected, match=r"404 to the openai .* 404 to the ollama"):
        make(protocol="auto").embed_query("anything", soon())


def test_auto_decides_again_when_another_server_takes_the_address(server: EmbedServer, make: MakeEmbedder) -> None:
    embedder = make(protocol="auto")
    embedder.embed_query("one", soon())
    server.protocols = ("ollama",)
    with pytest.raises(EmbeddingRejected):
        embedder.embed_query("two", soon())
    assert same(embedder.embed_query("three", soon()), "three")


def test_a_key_sent_in_clear_over_a_network_is_warned_about(
    make: MakeEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        make(api_key=KEY)
        assert caplog.records == []
        make(url="http://embed.example/v1", api_key=KEY)
    assert "unencrypted" in caplog.text
    assert KEY not in caplog.text


def test_proxies_of_the_environment_are_ignored(
    server: EmbedServer, make: MakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert make().embed_query("anything", soon()) is not None
    assert make(url=server.url.replace("127.0.0.1", "localhost")).embed_query("anything", soon()) is not None
