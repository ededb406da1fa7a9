"""Where an embedding endpoint is: the parsed, checked form of `embed_url`."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from hermes_memory_pgvector.errors import ConfigError


class Endpoint(NamedTuple):
    """An http or https address without credentials."""

    scheme: str
    host: str
    port: int
    path: str
    """Without a trailing slash; empty for the root."""
    query: str

    @property
    def origin(self) -> str:
        """Scheme, host and port: all of the address that may appear in a message."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """Host and port as a Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether nothing sent there leaves this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")


_DEFAULT_PORTS = {"http": 80, "https": 443}
_REFERENCE = re.compile(r"\$\{\w*\}")
_CREDENTIAL_NAME = re.compile(r"key|token|secret|passw|pwd|credential|signature|^(?:auth|sig|code)", re.IGNORECASE)
_USE_THE_VARIABLE = "name a variable in embed_api_key_env instead"


def parse_endpoint(url: str) -> Endpoint:
    """The endpoint a setting describes; ConfigError when it is no http(s) address. Messages never repeat the value."""
    url = url.strip()
    if not url:
        raise ConfigError("embed_url is empty; set it, or use embed_protocol local")
    if reference := _REFERENCE.search(url):
        raise ConfigError(f"embed_url refers to {reference.group()}, which is not set")
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url):
        raise ConfigError("embed_url contains a space or a control character")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ConfigError("embed_url is not a valid address; look at its host") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise ConfigError("embed_url must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"embed_url must not carry a user or a password; {_USE_THE_VARIABLE}")
    if any(_CREDENTIAL_NAME.search(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise ConfigError(f"embed_url must not carry a key in its query; {_USE_THE_VARIABLE}")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ConfigError("embed_url has a port that is not a number from 1 to 65535")
    if not parts.hostname:
        raise ConfigError("embed_url names no host")
    if not (parts.path + parts.query).isascii():
        raise ConfigError("embed_url has a path with characters that need percent-encoding")
    return Endpoint(
        scheme=parts.scheme,
        host=_ascii_host(parts.hostname),
        port=port or _DEFAULT_PORTS[parts.scheme],
        path=parts.path.rstrip("/"),
        query=parts.query,
    )


def _ascii_host(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ConfigError("embed_url has a host name that cannot be looked up") from None
