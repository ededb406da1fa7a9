"""What `doctor` and `up` check: each check finds something, and says what mends it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes_memory_pgvector.config.home import CHECK_NAME, KEY_NAME, home_id, private_folder, pseudonym_key, root_of
from hermes_memory_pgvector.config.kinds import TRUE_WORDS
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, current_provider, data_folder, load, section
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import (
    ConfigError,
    EmbeddingError,
    EmbeddingMisconfigured,
    Held,
    JournalError,
    MemoryPluginError,
    SchemaError,
)
from hermes_memory_pgvector.ops import belonging, journals, parts, profiles
from hermes_memory_pgvector.ops.setup import host_python, kept_out, plugin_folder
from hermes_memory_pgvector.terminal import amounts
from hermes_memory_pgvector.text.secrets import masker_for

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Parsed, Settings
    from hermes_memory_pgvector.embedding import ModelInfo
    from hermes_memory_pgvector.postgres.pool import Connection

DATABASE_SECONDS = 60.0
EMBED_SECONDS = 15.0
LAG_SECONDS = 2.0
OLD_SECONDS = 300.0
MOST_COUNTED = 100_001
MOST_REJECTED = 10_000


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    name: str
    level: Literal["ok", "warning", "problem"]
    text: str
    hint: str = ""
    """The command or setting that fixes it."""
    is_unreachable: bool = False
    """The database or the embedding endpoint does not answer."""


def examine(home: Path) -> Iterator[Finding]:
    """All checks; an earlier one may explain what a later one finds."""
    parsed = load(home)
    settings = parsed.settings
    yield from _settings(home, parsed)
    yield from _host(home)
    info = yield from _embedder(home, settings)
    marks = yield from _database(home, settings, info)
    yield from _journal(home, settings, marks)


# This machine and this home.


def _settings(home: Path, parsed: Parsed) -> Iterator[Finding]:
    meanwhile = "nothing is stored" if parsed.settings.hold else "the last good settings are used"
    for each in parsed.troubles:
        yield Finding("settings", "problem", f"{each}; {meanwhile}", "fix it")
    for each in parsed.problems:
        yield Finding("settings", "problem", each, "hermes-pgvector config show")
    if not parsed.problems and not parsed.troubles:
        chosen = len(parsed.settings.set_by)
        yield Finding("settings", "ok", f"{amounts.count(chosen, 'setting')} set, the rest have their defaults")
    if str(section(home, ("compression", "checkpoint_required"))).strip().lower() in TRUE_WORDS:
        yield from _checkpoints(parsed.settings)
    if any((private_folder(home) / name).exists() for name in (KEY_NAME, CHECK_NAME)):
        try:
            pseudonym_key(home)
        except (OSError, ConfigError) as error:
            reason = str(error) if isinstance(error, ConfigError) else f"{KEY_NAME} cannot be read"
            text = f"{reason}; until then chats of messaging platforms store nothing"
            yield Finding("identity key", "problem", text)


def _checkpoints(settings: Settings) -> Iterator[Finding]:
    """Whether this memory gives what hermes requires before it compresses a chat."""
    missing = ["sync_turns is off"] if not settings.sync_turns else []
    missing += ["write_contexts leaves out primary"] if "primary" not in settings.write_contexts else []
    if missing:
        text = f"{' and '.join(missing)}, so hermes, which requires a checkpoint, compresses no chat any more"
        hint = "change that, or: hermes config set compression.checkpoint_required false"
        yield Finding("compression", "warning", text, hint)


def _host(home: Path) -> Iterator[Finding]:
    """Whether hermes finds this package, and is told to use it."""
    host = host_python.find(home)
    state = plugin_folder.state_of(home)
    is_seen = host is not None and host.sees_package
    if is_seen or state != "absent":
        # `up` puts hermes in touch with the package once it can import it, and not before.
        yield _plugin_folder(home, state)
        yield from _provider(home)
    lacking = [each.name for each in profiles.below(home) if is_seen and root_of(home) == home and _lacks_folder(each)]
    if lacking:
        text = f"set to use this memory, but without its plugin folder, so they have none: {', '.join(lacking)}"
        yield Finding("profiles", "warning", text, "hermes-pgvector up --all-profiles")
    if host is None:
        text = "hermes-agent is not installed; recall works from the command line"
        yield Finding("host", "warning", text, "when you have installed it: hermes-pgvector up")
    elif host.named is not None and host.named != host.path:
        text = f"checked {host.path}, but hermes says that it runs on {host.named}"
        yield Finding("host", "problem", text, f"hermes-pgvector up --hermes-python {host.named}")
    elif not host.sees_package:
        yield Finding("host", "problem", host_python.shortcoming(host), "hermes-pgvector up")
    else:
        yield Finding("host", "ok", f"hermes runs on {host.path} and finds this package")


def _plugin_folder(home: Path, state: plugin_folder.State) -> Finding:
    place = home / "plugins" / PROVIDER_NAME
    match state:
        case "current":
            return Finding("plugin folder", "ok", f"installed in {place}")
        case "outdated":
            return Finding("plugin folder", "warning", "it is of another version of this package", "hermes-pgvector up")
        case "foreign":
            hint = "look at it, move it away, and run: hermes-pgvector up"
            return Finding("plugin folder", "problem", f"{place} is not ours", hint)
        case _:
            return Finding("plugin folder", "problem", f"missing in {home}", "hermes-pgvector up")


def _provider(home: Path) -> Iterator[Finding]:
    found = list(kept_out.reasons(home))
    for each in found:
        yield Finding("provider", "problem" if each.is_off else "warning", each.reason, each.remedy)
    if not found:
        yield Finding("provider", "ok", f"memory.provider is {PROVIDER_NAME}")


def _lacks_folder(home: Path) -> bool:
    """Whether hermes gives a profile no memory, without a word."""
    try:
        return current_provider(home) == PROVIDER_NAME and plugin_folder.state_of(home) == "absent"
    except (ConfigError, OSError):
        # Its own doctor says what is wrong there.
        return False


# The embedder.


def difference(home: Path, settings: Settings, model: str | None) -> str:
    """How the model of this home differs from the database's, as far as names tell; contacts nobody."""
    with parts.open_embedder(home, settings) as embedder:
        name = embedder.model
    return "" if model in (None, name) else f"the database's vectors are of {model}, this home embeds with {name}"


def remedy(settings: Settings) -> tuple[str, ...]:
    """The command that gives the database the model of this home."""
    return ("reembed", *(("--protocol", "local") if settings.uses_local_model else ("--model", settings.embed_model)))


def _embedder(home: Path, settings: Settings) -> Generator[Finding, None, ModelInfo | None]:
    """Whether the embedder works; returns what it says of itself."""
    try:
        with parts.open_embedder(home, settings) as embedder:
            deadline = Deadline.after(EMBED_SECONDS)
            info = embedder.info(deadline)
            embedder.embed_query("is anybody there", deadline)
    except EmbeddingMisconfigured as error:
        hint = "fix it with: hermes-pgvector config set; until then recall falls back to keyword search"
        yield Finding("embedder", "problem", str(error), hint)
    except EmbeddingError as error:
        hint = "check embed_url, embed_model and embed_api_key_env: hermes-pgvector config show"
        if settings.uses_local_model:
            hint = "hermes-pgvector up fetches it; or set embed_url to an endpoint"
        text = f"{parts.describe_embedder(home, settings)}: {error}"
        yield Finding("embedder", "problem", text, hint, is_unreachable=True)
    else:
        yield Finding("embedder", "ok", f"{info.name} ({info.protocol}), {info.dim} dimensions")
        return info
    return None


def of_embedder(home: Path, settings: Settings) -> Iterator[Finding]:
    """Whether the embedder works, and makes the vectors that the database has, if that can be asked."""
    info = yield from _embedder(home, settings)
    with (
        contextlib.suppress(MemoryPluginError),
        parts.open_pool(home, settings) as pool,
        pool.connection(Deadline.after(EMBED_SECONDS)) as connection,
    ):
        yield from (each for each in _vectors(connection, settings, info) if each.level != "ok")


# The database.


def _database(
    home: Path, settings: Settings, info: ModelInfo | None
) -> Generator[Finding, None, list[dict[str, int]] | None]:
    """Everything to be seen in the database; returns the journals' marks, where it could be read."""
    from hermes_memory_pgvector.postgres import buckets
    from hermes_memory_pgvector.store import overview, schema, watermarks

    hint = "check the server and dsn: hermes-pgvector config get dsn" if settings.dsn else "hermes-pgvector up"
    where = parts.describe_database(home, settings)
    try:
        with (
            parts.open_pool(home, settings) as pool,
            pool.transaction(Deadline.after(DATABASE_SECONDS), pause_seconds=DATABASE_SECONDS) as connection,
        ):
            overview.ping(connection)
            overview.check_transactions(connection)
            yield from _server(connection, where)
            try:
                state = schema.verify(connection)
            except SchemaError as error:
                yield Finding("schema", "problem", str(error), "hermes-pgvector migrate")
                return None
            if state.news:
                yield Finding("schema", "warning", state.news, "pip install -U hermes-memory-pgvector")
            else:
                yield Finding("schema", "ok", f"version {state.version}, up to date")
            yield from _cluster(connection)
            objection = belonging.objection(home, settings, connection)
            if objection:
                back = "or switch back to the other one: hermes-pgvector config set dsn DSN"
                yield Finding("journal", "problem", f"nothing is stored: {objection}", back)
            away = buckets.silent(connection)
            if away:
                yield Finding("buckets", "problem", away, "see that their servers run and the role may use the schemas")
            yield from _vectors(connection, settings, info)
            if settings.bulk_sync_on_init:
                yield from _files(connection, home, settings)
            yield from _rejected(connection)
            return watermarks.everywhere(connection, journals.writers(home))
    except Held as error:
        text = f"nothing is stored: {error}"
        yield Finding("database", "problem", text, "check config.yaml and .env: hermes-pgvector config show")
    except MemoryPluginError as error:
        yield Finding("database", "problem", f"{where}: {error}", hint, is_unreachable=True)
    return None


def _server(connection: Connection, where: str) -> Iterator[Finding]:
    from hermes_memory_pgvector.store import overview, schema

    facts = overview.server_facts(connection)
    owns = ", which owns the tables" if facts.owns_tables else ""
    told = f"Postgres {facts.version}, pgvector {facts.pgvector}, {amounts.size(facts.database_bytes)}"
    said, refusal = f"{where}; {told}; agents connect as {facts.role}{owns}", overview.read_only_reason(connection)
    if refusal:
        hint = "let dsn name the primary, or reset default_transaction_read_only of the role, database or server"
        text = f"nothing is stored, for the database takes no writes: {refusal}; {said}"
        yield Finding("database", "problem", text, hint)
    else:
        yield Finding("database", "ok", said)
    if facts.pgvector is None:
        text = "the extension is not installed in this database"
        yield Finding("pgvector", "problem", text, "hermes-pgvector migrate")
    elif not schema.is_recent(facts.pgvector):
        text = f"{facts.pgvector} is too old"
        yield Finding("pgvector", "problem", text, "upgrade it, then: ALTER EXTENSION vector UPDATE")


def _cluster(connection: Connection) -> Iterator[Finding]:
    """Whether each bucket lies with a worker, where there are both."""
    from hermes_memory_pgvector.postgres import buckets
    from hermes_memory_pgvector.store import overview

    schemas = buckets.layout(connection).schemas
    count = overview.workers(connection) if schemas else 0
    if count and (left := overview.not_handed_out(connection, schemas)):
        text = f"{left} of {len(schemas)} lie on the Citus coordinator and not on its {amounts.count(count, 'worker')}"
        yield Finding("buckets", "warning", text, "hermes-pgvector migrate")
    elif count:
        yield Finding("buckets", "ok", f"{len(schemas)}, on {amounts.count(count, 'worker')} of Citus")


def _vectors(connection: Connection, settings: Settings, info: ModelInfo | None) -> Iterator[Finding]:
    from hermes_memory_pgvector.store import models, vectors
    from hermes_memory_pgvector.store.models import current_model
    from hermes_memory_pgvector.writer.embed_pending import mismatch

    model = current_model(connection)
    wrong = "" if info is None else mismatch(model, info)
    if wrong:
        words = ("migrate",) if model is None else remedy(settings)
        yield Finding("model", "problem", wrong, " ".join(["hermes-pgvector", *words]))
    if model is None:
        return
    missing = models.count_missing(connection, model, MOST_COUNTED)
    if missing and settings.embed_on_write and settings.conversation_embed_policy == "all":
        count = "more than 100,000 rows" if missing == MOST_COUNTED else amounts.count(missing, "row")
        text = f"{count} without a vector of {model.name}; keyword search still finds them"
        yield Finding("vectors", "warning", text, "hermes-pgvector reembed")
    else:
        yield Finding("vectors", "ok", f"of {model.name}; every row that should have one has one")
    for reason, number in vectors.given_up(connection).items():
        text = f"{amounts.count(number, 'row')} get no vector: {reason}"
        yield Finding("vectors", "warning", text, "check embed_model")


def _files(connection: Connection, home: Path, settings: Settings) -> Iterator[Finding]:
    """Whether MEMORY.md and USER.md say what is stored."""
    from hermes_memory_pgvector.mirror import memory_file
    from hermes_memory_pgvector.store import mirror_files

    for target, name in memory_file.FILE_NAMES.items():
        entries = memory_file.read(
            home / "memories" / name, settings.memory_max_chars, masker_for(settings.mask_secrets)
        )
        if entries is None:
            if (home / "memories").is_dir():
                yield Finding("mirror", "problem", f"{home / 'memories' / name} cannot be read")
            continue
        held = {each.content for each in mirror_files.held_entries(connection, home_id(home), target)}
        last = mirror_files.last_comparison(connection, home_id(home), target)
        compared = set(last.digests) if last is not None else set()
        # What was compared and is not stored was forgotten, or taken out by an agent: the mirror leaves it out.
        kept_out = sum(mirror_files.digest_of(each) in compared for each in set(entries) - held)
        unseen, stale = len(set(entries) - held) - kept_out, len(held - set(entries))
        said = [f"{amounts.count(unseen, 'entry', 'entries')} not stored yet"] if unseen else []
        said += [f"{amounts.count(stale, 'stored entry', 'stored entries')} no longer in the file"] if stale else []
        if said:
            text = f"{name}: {', '.join(said)}"
            yield Finding("mirror", "warning", text, "this is fixed the next time hermes runs")
        else:
            left = f"all stored but {kept_out:,}, forgotten or removed before" if kept_out else "all stored"
            text = f"{name}: {amounts.count(len(entries), 'entry', 'entries')}, {left}"
            yield Finding("mirror", "ok", text)


def _rejected(connection: Connection) -> Iterator[Finding]:
    from hermes_memory_pgvector.store import dead_letters

    rejected = len(dead_letters.newest(connection, MOST_REJECTED))
    if rejected:
        text = f"{amounts.count(rejected, 'record')} rejected by Postgres"
        yield Finding("dead letters", "warning", text, "hermes-pgvector list rejected")


# The journal, and the processes that use it.


def _journal(home: Path, settings: Settings, marks: list[dict[str, int]] | None) -> Iterator[Finding]:
    from hermes_memory_pgvector.journal import Journal

    folder = data_folder(home) / journals.FOLDER_NAME
    journal = Journal(folder, sync=settings.journal_sync, max_bytes=settings.journal_max_bytes)
    try:
        journal.open()
    except JournalError as error:
        hint = "nothing can be written: make the folder writable"
        yield Finding("journal", "problem", f"{folder}: {error}", hint)
        return
    locks_work = journal.stats().locks_work
    journal.close(Deadline.after(5))
    if not locks_work:
        text = "file locks do not work here, so what dead processes leave in the journal waits"
        yield Finding("journal", "warning", text, "move the hermes home to a local disk: what waits is delivered there")
    report = journals.report(home, marks)
    if marks is None:
        yield Finding("journal", "ok", f"{amounts.size(report.bytes_on_disk)} on disk, waiting for the database")
    else:
        age = f", the oldest for {amounts.seconds(report.oldest_age_seconds)}" if report.records else ""
        text = f"{amounts.count(report.records, 'record')} waiting{age}"
        is_old = report.records and report.oldest_age_seconds > OLD_SECONDS
        hint = "hermes stores them the next time it runs; to do it now: hermes-pgvector up"
        yield Finding("journal", "warning", text, hint) if is_old else Finding("journal", "ok", text)
    if report.sync_lag_seconds > LAG_SECONDS:
        yield Finding("journal", "warning", f"the disk is {amounts.seconds(report.sync_lag_seconds)} behind")
    for note in journals.oddities(report):
        yield Finding("journal", "ok" if note.mark == "note" else "warning", note.text, note.hint)
    troubled = [(each, trouble) for each in report.processes for trouble in journals.troubles(each)]
    for each, trouble in troubled:
        yield Finding("processes", "warning", f"{each.command} {each.pid}: {trouble}")
    if not troubled:
        running = f"{len(report.processes)} running, all well" if report.processes else "none running"
        yield Finding("processes", "ok", running)
