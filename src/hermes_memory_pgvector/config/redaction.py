"""What may be shown of a value that may hold a password or a key."""

from __future__ import annotations

import re

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""How a value in a file names a variable."""
_HIDDEN = "***"
_NAMED = r"(?P<head>\b(?:password|sslpassword|passfile)\s*=\s*)"
_NAMED_IN_QUERY = re.compile(_NAMED + r"[^&]+", re.IGNORECASE)
_KEYWORD = (
    r"(?:host|port|user|dbname|service|options|replication|client_|application_|fallback_|connect_|tcp_|target_|require"
    r"|channel_|load_|keepalives|ssl|gss|krb|pass)\w*"
)
# Up to the next keyword: a password that should have been quoted may have spaces.
_NAMED_IN_WORDS = re.compile(_NAMED + rf"(?:'(?:[^'\\]|\\.)*')?.*?(?=\s+{_KEYWORD}\s*=|$)", re.IGNORECASE | re.DOTALL)
# Up to the last @: a password that should have been percent-encoded may hold anything.
_LOGIN_PASSWORD = re.compile(r"(?P<head>^[^:]*://[^:/@?]*:).*(?=@)", re.DOTALL)
_LOGIN = re.compile(r"(?P<head>^[^:/@]*://)?.*(?=@)", re.DOTALL)
_HARMLESS_QUERY = frozenset({"api-version", "version", "v"})
_CONVENTIONAL_NAME = re.compile(r"[A-Z_][A-Z0-9_]*|[a-z_]+")


def redact_dsn(dsn: str) -> str:
    """The connection string without its password."""
    if "://" in dsn:
        return _NAMED_IN_QUERY.sub(rf"\g<head>{_HIDDEN}", _LOGIN_PASSWORD.sub(rf"\g<head>{_HIDDEN}", dsn))
    return _NAMED_IN_WORDS.sub(rf"\g<head>{_HIDDEN}", dsn)


def redact_url(url: str) -> str:
    """The address of an endpoint without a login and without the values of its query, which may be keys."""
    address, mark, query = url.partition("#")[0].partition("?")
    # An @ may begin a part of a path; anywhere else something before it may be a password.
    if re.search(r"(?<!/)@|//@|[?#].*@", url):
        bare = _LOGIN.sub(lambda match: f"{match['head'] or ''}{_HIDDEN}", url, count=1)
        return re.split(r"[?#]", bare, maxsplit=1)[0]
    pairs = (part.partition("=") for part in query.split("&"))
    harmless = (
        f"{name}={value if name in _HARMLESS_QUERY else _HIDDEN}" if has else _HIDDEN for name, has, value in pairs
    )
    return f"{address}{mark}{'&'.join(harmless) if mark else ''}"


def redact_variable(name: str) -> str:
    """The name of a variable; hides what does not look like one, since it may be the key itself."""
    return name if not name or _CONVENTIONAL_NAME.fullmatch(name) else _HIDDEN
