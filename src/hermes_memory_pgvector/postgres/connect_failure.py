"""Why a connection could not be made, and what mends it. Pure.

A failed connect has no SQLSTATE: libpq hands over only its own words and the server's first message. They are matched
here and never passed on, because they hold names and addresses. Whatever the cause, it may pass by itself (a password
is corrected on the server, a database is created), so each is tried again like any outage.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CONFIGURE = "hermes-pgvector config set dsn DSN"
NO_PASSWORD = "password missing"  # noqa: S105
WRONG_PASSWORD = "password refused"  # noqa: S105


class Failure(NamedTuple):
    """One way in which connecting fails."""

    words: str
    """What libpq, psycopg or the server says: a pattern."""
    sentence: str
    """The cause, and after a semicolon what mends it."""
    kind: str = ""


# A name may lead to several addresses and each fails in its own way: what came furthest says most, so it stands first.
FAILURES = (
    Failure(
        "password authentication failed|SASL authentication failed|wrong password type",
        f"the server refuses the password of this role; to give another (it asks for it): {CONFIGURE}",
        WRONG_PASSWORD,
    ),
    Failure(
        "no password supplied",
        f"the server wants a password and none is given; put it into ~/.pgpass, or let it be asked for: {CONFIGURE}",
        NO_PASSWORD,
    ),
    Failure(
        "authentication failed",
        "the server does not identify this role by a password, and this system account is not the one it expects; "
        "use an account that its pg_hba.conf names, or connect over TCP with a password: "
        "postgresql://ROLE@localhost/DATABASE",
    ),
    Failure(
        'role ".*" does not exist|no such user|is not permitted to log in',
        "the server has no such role, or it may not log in; correct the name before the @ of the connection string, or "
        "as a superuser: CREATE ROLE … LOGIN",
    ),
    Failure(
        'database ".*" does not exist|no such database|not currently accepting connections'
        "|permission denied for database",
        "the server has no such database for this role; create it (CREATE DATABASE …), or as its owner: GRANT CONNECT "
        "ON DATABASE … TO …",
    ),
    Failure(
        "too many clients already|too many connections|remaining connection slots|no more connections allowed",
        "the server has no connection left for this role; close some, raise max_connections, or use a pooler",
    ),
    Failure(
        "the database system is (?:starting up|shutting down|not yet accepting connections|in recovery mode)",
        "the server is starting or stopping; try again in a moment",
    ),
    Failure(
        r"certificate verify failed|root certificate file|does not match host name|certificate has expired"
        r"|no certificate|private key file|certificate file",
        "the server's TLS certificate cannot be verified; name the right authority with sslrootcert=FILE, and the host "
        "as the certificate does",
    ),
    Failure(
        "server does not support SSL|sslmode value .* invalid when SSL|SSL was required",
        "the server does not speak TLS, and sslmode demands it; turn ssl on in postgresql.conf, or on a network you "
        "trust add to the connection string: sslmode=prefer",
    ),
    Failure(
        "no pg_hba.conf entry|pg_hba.conf rejects connection|SSL required|requires? SSL",
        "the server does not admit this role to this database from here, or only with TLS; add sslmode=require to the "
        "connection string, or a line to its pg_hba.conf, then: SELECT pg_reload_conf()",
    ),
    Failure(
        'definition of service ".*" not found|service file .* not found|invalid .* value: |invalid integer value'
        "|invalid port number|invalid connection option|authentication method requirement|channel binding",
        f"an option of the connection string is not valid here; correct it with: {CONFIGURE}",
    ),
    Failure(
        "Connection refused|on socket .* failed|invalid response to SSL negotiation|expected authentication request"
        "|server closed the connection unexpectedly|Connection reset by peer",
        "no server listens where the connection string leads, or it is no Postgres; start Postgres there, or correct "
        "host, port and listen_addresses",
    ),
    Failure(
        "failed to resolve host|could not translate host name|Name or service not known|nodename nor servname",
        "no machine of that name is known; correct the host of the connection string, or check DNS",
    ),
    Failure(
        "Network is unreachable|No route to host|Host is down|Invalid argument|timeout expired|Connection timed out"
        "|Operation timed out",
        "the host does not answer; check its address, the VPN, the firewall, and that Postgres runs there",
    ),
)


# How psycopg begins when it was connecting; later, the same words mean something else.
CONNECTING = re.compile(r"connection (?:failed|is bad|timeout)|failed to resolve|\[Errno|[Mm]ultiple connection")


def explain(words: str) -> Failure | None:
    """The failure to connect that libpq's words speak of; None when they speak of none that we know."""
    flat = " ".join(words.split())
    if CONNECTING.match(flat) is None:
        return None
    return next((failure for failure in FAILURES if re.search(failure.words, flat)), None)
