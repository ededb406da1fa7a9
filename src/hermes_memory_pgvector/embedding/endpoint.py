"""Where an embedding endpoint is: the parsed, checked form of `embed_url`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from hermes_memory_pgvector.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Endpoint:
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
            return is_localhost(self.host)


_DEFAULT_PORTS = {"http": 80, "https": 443}


def is_localhost(host: str) -> bool:
    """Whether the name means this machine without asking anyone."""
    return host == "localhost" or host.endswith(".localhost")


def parse_endpoint(url: str) -> Endpoint:
    """The endpoint a setting describes; ConfigError when it is no http(s) address. Messages never repeat the value."""
    url = url.strip()
    if not url:
        raise ConfigError("embed_url is empty; set it, or use embed_protocol local")
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url):
        raise ConfigError("embed_url contains a space or a control character")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("embed_url is not a valid address") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise ConfigError("embed_url must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("embed_url must not carry credentials; name a variable in embed_api_key_env instead")
    if not parts.hostname or port == 0:
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
