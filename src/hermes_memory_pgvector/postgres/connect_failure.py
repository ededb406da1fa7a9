"""Why a connection could not be made, and what mends it. Pure.

A failed connect has no SQLSTATE: libpq hands over only its own words and the server's first message. They are matched
here and never passed on, because they hold names and addresses. Whatever the cause, it may pass by itself (a password
is corrected on the server, a database is created), so each is tried again like any outage.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CONFIGURE = "hermes-pgvector config set dsn DSN"


class Failure(NamedTuple):
    """One way in which connecting fails."""

    kind: str
    words: re.Pattern[str]
    """What libpq, psycopg or the server says."""
    sentence: str
    """The cause, and after a semicolon what mends it."""


def _failure(kind: str, words: str, sentence: str) -> Failure:
    return Failure(kind, re.compile(words), sentence)


NO_PASSWORD = "password missing"  # noqa: S105
WRONG_PASSWORD = "password refused"  # noqa: S105

# A name may lead to several addresses and each fails in its own way: what came furthest says most, so it stands first.
FAILURES = (
    _failure(
        WRONG_PASSWORD,
        "password authentication failed|SASL authentication failed|wrong password type",
        f"the server refuses the password of this role; to give another (it asks for it): {CONFIGURE}",
    ),
    _failure(
        NO_PASSWORD,
        "no password supplied",
        f"the server wants a password and none is given; put it into ~/.pgpass, or let it be asked for: {CONFIGURE}",
    ),
    _failure(
        "other account",
        "(?:Peer|Ident|GSSAPI|SSPI|LDAP|PAM|RADIUS|certificate) authentication failed",
        "the server does not identify this role by a password, and this system account is not the one it expects; "
        "use an account that its pg_hba.conf names, or connect over TCP with a password: "
        "postgresql://ROLE@localhost/DATABASE",
    ),
    _failure(
        "role missing",
        'role ".*" does not exist|no such user',
        "the server has no such role; correct the name before the @ of the connection string, or as a superuser: "
        "CREATE ROLE",
    ),
    _failure(
        "no login",
        "is not permitted to log in",
        "the role may not log in; as a superuser: ALTER ROLE … LOGIN",
    ),
    _failure(
        "database missing",
        'database ".*" does not exist|no such database',
        "the server has no such database; create it, then run this again: createdb NAME",
    ),
    _failure(
        "database closed",
        "not currently accepting connections",
        "the database accepts no connections; as a superuser: ALTER DATABASE … ALLOW_CONNECTIONS true",
    ),
    _failure(
        "no right to connect",
        "permission denied for database",
        "the role may not connect to this database; as its owner: GRANT CONNECT ON DATABASE … TO …",
    ),
    _failure(
        "too many connections",
        "too many clients already|too many connections|remaining connection slots|no more connections allowed",
        "the server has no connection left for this role; close some, raise max_connections, or use a pooler",
    ),
    _failure(
        "starting",
        "the database system is (?:starting up|shutting down|not yet accepting connections|in recovery mode)",
        "the server is starting or stopping; try again in a moment",
    ),
    _failure(
        "certificate",
        r"certificate verify failed|root certificate file|does not match host name|certificate has expired"
        r"|no certificate|private key file|certificate file",
        "the server's TLS certificate cannot be verified; name the right authority with sslrootcert=FILE, and the host "
        "as the certificate does",
    ),
    _failure(
        "no TLS",
        "server does not support SSL|sslmode value .* invalid when SSL|SSL was required",
        "the server does not speak TLS, and sslmode demands it; turn ssl on in postgresql.conf, or on a network you "
        "trust add to the connection string: sslmode=prefer",
    ),
    _failure(
        "TLS wanted",
        "no pg_hba.conf entry for .*, no encryption(?!.*SSL encryption)|SSL required|requires? SSL",
        "the server admits this login from here only with TLS, or not at all; add sslmode=require to the connection "
        "string, or a line for this role and address to the server's pg_hba.conf",
    ),
    _failure(
        "not admitted",
        "no pg_hba.conf entry|pg_hba.conf rejects connection",
        "the server does not admit this role to this database from here; add a line to its pg_hba.conf, then: "
        "SELECT pg_reload_conf()",
    ),
    _failure(
        "weak login",
        "authentication method requirement|channel binding",
        "the server offers another way to log in than require_auth or channel_binding allows; change that in the "
        "connection string",
    ),
    _failure(
        "not Postgres",
        "invalid response to SSL negotiation|expected authentication request",
        "something else than Postgres answers there; correct host and port of the connection string",
    ),
    _failure(
        "no socket",
        r'on socket ".*" failed: (?:No such file or directory|Connection refused)',
        "no Postgres runs here on that socket; start it, or name its host: postgresql://ROLE@HOST/DATABASE",
    ),
    _failure(
        "closed port",
        "Connection refused",
        "no server listens on that host and port; start Postgres there, or correct the port and listen_addresses",
    ),
    _failure(
        "unknown host",
        "failed to resolve host|could not translate host name|Name or service not known|nodename nor servname",
        "no machine of that name is known; correct the host of the connection string, or check DNS",
    ),
    _failure(
        "no route",
        "Network is unreachable|No route to host|Host is down|Invalid argument",
        "no network leads to that host; check its address, the VPN and the firewall",
    ),
    _failure(
        "no answer",
        "timeout expired|Connection timed out|Operation timed out",
        "the host does not answer in time; check its address, the firewall, and that Postgres runs there",
    ),
    _failure(
        "service missing",
        'definition of service ".*" not found|service file .* not found',
        "there is no such service; add it to ~/.pg_service.conf, or name host and database in the connection string",
    ),
    _failure(
        "option",
        "invalid .* value: |invalid integer value|invalid port number|invalid connection option",
        "an option of the connection string is not valid; correct it with: hermes-pgvector config set dsn DSN",
    ),
    _failure(
        "hung up",
        "server closed the connection unexpectedly|Connection reset by peer",
        "the server ended the connection before the login; see its log, and whether a proxy stands before it",
    ),
)


# How psycopg begins when it was connecting; later, the same words mean something else.
CONNECTING = re.compile(r"connection (?:failed|is bad|timeout)|failed to resolve|\[Errno|[Mm]ultiple connection")


def explain(words: str) -> Failure | None:
    """The failure to connect that libpq's words speak of; None when they speak of none that we know."""
    flat = " ".join(words.split())
    if CONNECTING.match(flat) is None:
        return None
    return next((failure for failure in FAILURES if failure.words.search(flat)), None)
