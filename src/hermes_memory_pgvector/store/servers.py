"""The servers that a connection string names: a replica beside the primary, and a list without one of them."""

from __future__ import annotations

from psycopg.conninfo import conninfo_to_dict, make_conninfo

DEFAULT_PORT = 5432
# What belongs to a server and not to the database on it.
_SERVER_PARTS = frozenset({"host", "hostaddr", "port", "service", "target_session_attrs", "load_balance_hosts"})


def replica_of(conninfo: str, read_conninfo: str) -> str:
    """The connection string of a replica: what it leaves out is as for the primary, but for where that is."""
    primary, replica = conninfo_to_dict(conninfo), conninfo_to_dict(read_conninfo)
    shared = {name: value for name, value in primary.items() if name not in _SERVER_PARTS}
    return make_conninfo("", **{**shared, **replica})


def without_server(conninfo: str, host: str, port: int) -> str:
    """The connection string without one of the servers it names; empty when there is no other."""
    parts = conninfo_to_dict(conninfo)
    columns = {name: str(parts[name]).split(",") for name in ("host", "hostaddr", "port") if parts.get(name)}
    count = max((len(each) for name, each in columns.items() if name != "port"), default=1)
    if len(columns.get("port", [])) == 1:
        columns["port"] *= count
    names = columns.get("host") or columns.get("hostaddr") or []
    ports = columns.get("port") or [""] * count
    kept = [
        place
        for place, (name, number) in enumerate(zip(names, ports, strict=False))
        if (name, int(number or DEFAULT_PORT)) != (host, port)
    ]
    if not kept or len(kept) == count:
        return ""
    left = {name: ",".join(each[place] for place in kept) for name, each in columns.items()}
    return make_conninfo("", **{**parts, **left})
