"""Names, TLS and forks: the parts of a connection that lie below HTTP."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import testing
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding.remote import RemoteEmbedder
from hermes_memory_pgvector.errors import EmbeddingRejected, EmbeddingUnavailable
from testing.embed_server import EmbedServer
from testing.waiting import promptly


def embedder_at(url: str) -> RemoteEmbedder:
    return RemoteEmbedder(url=url, model="test-model", protocol="openai", dim=32, api_key="sk-secret")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a self-signed certificate for 127.0.0.1, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "embed server of a test")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def tls_server(certificate: Path) -> Iterator[EmbedServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with EmbedServer(dim=32, tls=context) as running:
        yield running


def test_https_works_with_a_trusted_certificate_and_keeps_the_connection(
    tls_server: EmbedServer, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    embedder = embedder_at(tls_server.url)
    assert embedder.embed_query("one", Deadline.after(10)) is not None
    assert embedder.embed_documents([f"text {index}" for index in range(200)], Deadline.after(10))
    assert tls_server.connections == 1
    embedder.close()


def test_https_with_an_unknown_certificate_sends_nothing(
    tls_server: EmbedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(EmbeddingUnavailable, match="SSLCertVerificationError"):
        embedder_at(tls_server.url).embed_query("anything", Deadline.after(10))
    assert tls_server.requests == []


@pytest.mark.parametrize("mode", ["drip", "hang"])
def test_the_deadline_holds_inside_tls(
    tls_server: EmbedServer, certificate: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls_server.mode = "drip" if mode == "drip" else "hang"
    with promptly(), pytest.raises(EmbeddingUnavailable, match="in time"):
        embedder_at(tls_server.url).embed_query("anything", Deadline.after(0.5))


def test_a_server_silent_in_the_handshake_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, promptly(), pytest.raises(EmbeddingUnavailable):
        embedder_at(f"https://127.0.0.1:{listener.getsockname()[1]}").embed_query("anything", Deadline.after(0.5))


@pytest.mark.parametrize("told", [b"HTTP/1.1 200 OK\r\n\r\n{}", b"HTTP/1.1 500 Oh\r\nX-Slow: "])
def test_an_answer_that_is_cut_at_the_deadline_is_no_answer(told: bytes) -> None:
    """Where no length is announced, the cut looks like the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        embedder = embedder_at(f"http://127.0.0.1:{listener.getsockname()[1]}")
        failures: list[BaseException] = []

        def ask() -> None:
            with pytest.raises(EmbeddingUnavailable, match="in time") as caught:
                embedder.embed_query("anything", Deadline.after(0.5))
            failures.append(caught.value)

        asking = threading.Thread(target=ask)
        asking.start()
        connection, _ = listener.accept()
        with connection, promptly():
            connection.sendall(told)
            asking.join(10)
        assert len(failures) == 1


def test_a_hanging_resolver_costs_nobody_more_than_their_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    real = socket.getaddrinfo

    def hanging(host: str, port: int, *more: int) -> object:
        release.wait(30)
        return real("127.0.0.1", port, *more)

    with EmbedServer(dim=32) as server:
        embedder = embedder_at(server.url.replace("127.0.0.1", "one.example"))
        with monkeypatch.context() as patched:
            patched.setattr(socket, "getaddrinfo", hanging)
            for _ in range(2):
                with promptly(), pytest.raises(EmbeddingUnavailable, match="in time"):
                    embedder.embed_query("anything", Deadline.after(0.2))
            release.set()
            assert embedder.embed_query("anything", Deadline.after(10)) is not None
        embedder.close()


def test_an_unreachable_first_address_leaves_time_for_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbedServer(dim=32) as server, socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        clients = [socket.socket() for _ in range(8)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        port = int(server.url.rsplit(":", 1)[1])
        addresses = [full.getsockname(), ("127.0.0.1", port)]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", each) for each in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        embedder = embedder_at("http://two-addresses.example/")
        assert embedder.embed_query("anything", Deadline.after(2.0)) is not None
        embedder.close()
        for client in clients:
            client.close()


ROOT = Path(testing.__file__).parents[1]
FORKING = """
import os, sys, threading, time
from pathlib import Path
from testing.embed_server import EmbedServer
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.embedding.configured import ConfiguredEmbedder

server = EmbedServer(dim=32).start()
home = Path("/nowhere")
embedder = ConfiguredEmbedder(home, Settings(embed_url=server.url, embed_model="m", embed_dim=32), cache_entries=100)
local = ConfiguredEmbedder(home, Settings(embed_protocol="local"), cache_entries=100)
embedder.embed_query("warm", Deadline.after(10))
# The fork happens while other threads hold every lock there is and one text is in flight.
held = threading.Event()
def hold():
    with embedder._lock, embedder._cache._lock, local._lock, local._cache._lock:
        held.set()
        time.sleep(2)
server.latency = 2
flying = threading.Thread(target=embedder.embed_query, args=("in flight", Deadline.after(10)))
flying.start()
while len(server.requests) < 2:
    time.sleep(0.005)
server.latency = 0
threading.Thread(target=hold, daemon=True).start()
held.wait(10)
child = os.fork()
if child == 0:
    found = [embedder.embed_query(text, Deadline.after(8)) for text in ("in flight", "warm", "new")]
    found.append(local.embed_query("some words", Deadline.after(8)))
    os._exit(0 if all(vector is not None for vector in found) else 1)
_, status = os.waitpid(child, 0)
flying.join(10)
assert embedder.embed_query("parent goes on", Deadline.after(10)) is not None
print("child", os.waitstatus_to_exitcode(status))
os._exit(0)
"""


@pytest.mark.slow
def test_a_forked_child_inherits_no_lock_no_wait_and_no_connection() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout == "child 0\n", run.stderr


def test_a_model_that_the_endpoint_has_to_pull_first_is_told_so() -> None:
    body = b'{"error": "model \\"nomic\\" not found, try pulling it first"}'

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        with pytest.raises(EmbeddingRejected, match=r"answered 404 .* it has no such model, try pulling it first"):
            embedder_at(f"http://127.0.0.1:{listener.getsockname()[1]}").embed_query("anything", Deadline.after(10))
        thread.join(10)
