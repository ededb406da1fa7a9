"""`reembed`: give every row its vector; with another embedder, make its vectors beside those in use, and switch.

The model in use stays so until every row has a vector of the new one; then one transaction switches everybody. The
homes of this installation that use the database embed with the new model from then on. Homes elsewhere are the
operator's: until their settings name it, they recall by words and say so.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import DECLARATIONS, DEFAULTS
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import CareError, ConfigError, SchemaError, UsageError
from hermes_memory_pgvector.ops import belonging, migration, parts, profiles
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import amounts, progress
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, command
from hermes_memory_pgvector.values import EmbeddingModel

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.embedding import Embedder
    from hermes_memory_pgvector.store.models import StoredModel
    from hermes_memory_pgvector.terminal.progress import Bar

MEASURE_SECONDS = 60.0
EMBEDDER_SECONDS = 30.0
MOST_ATTEMPTS = 50
PAUSE_SECONDS = 10.0
TOO_MUCH_LEFT = (
    "rows are left that get no vector here: the embedder is too slow for the last of them; run it at a quieter time"
)


@dataclass(frozen=True, slots=True)
class Reembedded(Facts):
    """What was done."""

    model: str = column("model")
    embedded: int = column("rows embedded", default=0)
    seconds: str = column("in", default="")
    switched: bool = False
    without_vector: int = 0
    homes: tuple[str, ...] = ()
    """The homes that embed with it from now on."""
    notes: tuple[Note, ...] = aside(())


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model whose vectors the database holds."""

    id: int = column("number", right=True)
    name: str = column("model")
    dim: int = column("dimensions", right=True, default=0)
    state: str = column("state")
    missing: int = column("rows without", right=True, default=0)
    bytes: int = column("size", right=True, default=0, show=amounts.size)


@dataclass(frozen=True, slots=True)
class VectorModels(Facts):
    """The models of a database, the one in use first."""

    models: tuple[ModelLine, ...] = ()
    is_at_work: bool = False
    dropped: tuple[str, ...] = ()
    notes: tuple[Note, ...] = aside(())


def reembed(
    memory: Memory, *, status: bool, cancel: bool, drop_old: bool, admin_dsn: str | None, **given: str | None
) -> Facts:
    """Embed what has no vector, change the model, or say how far that is."""
    told = {name: value for name, value in given.items() if value is not None}
    if status + cancel + drop_old > 1 or (told and (status or cancel or drop_old)):
        raise UsageError("--status, --cancel and --drop-old stand alone, without a model")
    if status:
        return _models(memory)
    if cancel or drop_old:
        return _drop(memory, admin_dsn, is_cancelling=cancel)
    home, settings = memory.home, memory.parsed.settings
    described = _described(settings, told)
    with memory.pool() as pool, parts.open_embedder(home, described) as embedder:
        info = embedder.info(Deadline.after(EMBEDDER_SECONDS))
        current = _current(memory)
        if (current.name, current.dim) != (info.name, info.dim):
            if not told:
                new = "--protocol local" if described.uses_local_model else f"--model {info.name}"
                raise CareError(
                    f"the database's vectors are of {_named(current)}, this home embeds with {info.name} ({info.dim}); "
                    "set embed_model to the database's model, or change that for everybody with: "
                    f"hermes-pgvector reembed {new}"
                )
            return _change(memory, described, embedder, current, admin_dsn)
        homes, problems = _adopt(home, described) if told else ([], [])
        done = _fill(pool, embedder, current, described)
    notes = [Note("ok", f"every row that should have a vector of {info.name} has one"), *problems]
    return dataclasses.replace(done, homes=tuple(map(str, homes)), notes=(*notes, *_told(homes)))


REEMBED: Final = Operation(
    "reembed",
    "embed the rows that have no vector; or change the embedding model while agents go on",
    (
        Option("--url", "endpoint of the new model (default: embed_url)", metavar="URL"),
        Option("--model", "the new model (default: embed_model)", metavar="MODEL"),
        Option("--dim", "dimension of its vectors, where the endpoint cannot be asked", metavar="N"),
        Option("--protocol", "auto, openai, ollama, or local for the local model", metavar="NAME"),
        Option("--prefixes", "what stands before questions and texts, as in embed_prefixes", metavar="TEXT"),
        Option("--api-key-env", "environment variable that holds the endpoint's key", metavar="VAR"),
        Option("--status", "show which models have vectors, and how many rows have none", is_flag=True),
        Option("--cancel", "stop a change that is under way, and drop its vectors", is_flag=True),
        Option("--drop-old", "drop the vectors of models that are not in use", is_flag=True),
        Option("--admin-dsn", "login that owns the tables, to change the model", metavar="DSN"),
    ),
    reembed,
    (
        ("reembed", "embed the rows that have no vector yet"),
        ("reembed --url http://127.0.0.1:11434 --model bge-m3", "make new vectors, then switch everybody"),
        ("reembed --status", "how far it has got"),
        ("reembed --drop-old", "drop the vectors of models that are no longer used"),
    ),
    group="run",
    on_page=False,
    aliases={"backfill": {}},
)  # fmt: skip


def _current(memory: Memory) -> EmbeddingModel:
    from hermes_memory_pgvector.store.models import current_model

    with memory.reading() as connection:
        current = current_model(connection)
    if current is None:
        raise SchemaError("the database has no vectors yet; run: hermes-pgvector migrate")
    return current


def _fill(pool: Any, embedder: Embedder, model: EmbeddingModel, settings: Settings) -> Reembedded:
    """Give the rows that have no vector of the model in use one."""
    from hermes_memory_pgvector.ops.embed.fill import Fill

    started = time.monotonic()
    with progress.shown("embedding", unit="row") as bar:
        work = Fill(pool, embedder, model, settings, bar)
        work.run()
    took = amounts.seconds(time.monotonic() - started)
    return Reembedded(_named(model), work.embedded, took, without_vector=work.without_vector)


def _change(
    memory: Memory, described: Settings, embedder: Embedder, current: EmbeddingModel, admin_dsn: str | None
) -> Reembedded:
    """Make the vectors and switch; may be ended at any moment and said again."""
    home, settings = memory.home, memory.parsed.settings
    admin = migration.admin_dsn(home, settings, admin_dsn, may_create=False)
    started = time.monotonic()
    with (
        migration.explaining_denial(admin, "change the schema", "hermes-pgvector reembed … --admin-dsn OWNER_DSN"),
        progress.shown("reembed", unit="row") as bar,
    ):
        model, embedded, without = _switched(memory, described, embedder, admin, bar)
    homes, problems = _adopt(home, described)
    notes = [Note("ok", f"recall uses {_named(model)} everywhere from now on"), *problems, *_told(homes)]
    if without:
        notes.append(Note("warning", f"{amounts.count(without, 'row')} have no vector: the model gives none for them"))
    if settings.is_set("min_similarity"):
        text = f"min_similarity is set to {settings.min_similarity:g}, which was chosen for the former model"
        notes.append(Note("note", text, then=command("config", "unset", "min_similarity")))
    elsewhere = "homes on other machines recall by words until their settings name it"
    notes += [
        Note("note", elsewhere, "whether a home does", command("doctor")),
        Note("note", f"the vectors of {current.name} are kept; to drop them", then=command("reembed", "--drop-old")),
    ]
    took = amounts.seconds(time.monotonic() - started)
    return Reembedded(_named(model), embedded, took, True, without, tuple(map(str, homes)), tuple(notes))


def _switched(
    memory: Memory, described: Settings, embedder: Embedder, admin: str, bar: Bar
) -> tuple[EmbeddingModel, int, int]:
    from hermes_memory_pgvector.embedding.probe import measure
    from hermes_memory_pgvector.ops.embed.fill import Fill
    from hermes_memory_pgvector.postgres import buckets
    from hermes_memory_pgvector.schema import reembedding
    from hermes_memory_pgvector.schema.model_tables import NewModel
    from hermes_memory_pgvector.store import vectors

    info, who = embedder.info(Deadline.after(EMBEDDER_SECONDS)), memory.actor
    with memory.pool() as pool, reembedding.alone(admin):
        scale = info.scale or measure(embedder, Deadline.after(MEASURE_SECONDS))
        model = reembedding.begin(admin, NewModel(info.name, info.dim, scale.mean, scale.sd))
        with pool.transaction(Deadline.after(EMBEDDER_SECONDS)) as connection:
            for _ in buckets.within(connection):
                vectors.set_scale(connection, model, (scale.mean, scale.sd), (info.query_prefix, info.document_prefix))
        work = Fill(pool, embedder, model, described, bar)
        bar.phase(f"embedding with {info.name}")
        work.run()
        bar.phase("preparing the switch")
        reembedding.settle(admin)
        for attempt in itertools.count():
            work.run()
            bar.phase("switching")
            if reembedding.switch(admin, model, work.finish, actor=who.name, home_id=who.home_id):
                return model, work.embedded, work.without_vector
            if attempt == MOST_ATTEMPTS:
                raise CareError(TOO_MUCH_LEFT)
            time.sleep(min(PAUSE_SECONDS, 0.1 * 2**attempt))
    raise AssertionError


def _models(memory: Memory, dropped: tuple[str, ...] = ()) -> VectorModels:
    from hermes_memory_pgvector.ops.embed.fill import COUNT_SECONDS, EVERY_ROW
    from hermes_memory_pgvector.store import models

    with memory.reading(seconds=COUNT_SECONDS) as connection:
        is_at_work = models.is_changing(connection)
        lines = tuple(
            ModelLine(
                each.id, each.name, each.dim, "in use" if each.is_current else "not in use",
                models.count_missing(connection, EmbeddingModel(each.id, each.name, each.dim), EVERY_ROW), each.bytes,
            )
            for each in models.listed(connection)
        )  # fmt: skip
    notes = [Note("ok", "a change of the model is at work")] if is_at_work else []
    notes += [Note("ok", f"dropped: {each}") for each in dropped]
    return VectorModels(lines, is_at_work, dropped, tuple(notes))


def _drop(memory: Memory, admin_dsn: str | None, *, is_cancelling: bool) -> VectorModels:
    """Drop the vectors of a change that is not finished, which are newer than those in use; or of all other models."""
    from hermes_memory_pgvector.schema import reembedding as owner
    from hermes_memory_pgvector.store import models

    with memory.reading() as connection:
        found = models.listed(connection)
        is_at_work = models.is_changing(connection)
    newest = max((each.id for each in found if each.is_current), default=0)
    if is_at_work and not is_cancelling:
        raise CareError(
            "a change of the model is at work; wait for its end, or stop it: hermes-pgvector reembed --cancel"
        )
    doomed = [each for each in found if not each.is_current and (not is_cancelling or each.id > newest or is_at_work)]
    if doomed:
        admin = migration.admin_dsn(memory.home, memory.parsed.settings, admin_dsn, may_create=False)
        with migration.explaining_denial(admin, "drop tables", "hermes-pgvector reembed … --admin-dsn OWNER_DSN"):
            owner.drop(admin, [each.id for each in doomed], actor=memory.actor.name, home_id=memory.actor.home_id)
    return _models(memory, tuple(map(_named, doomed)))


def _named(model: EmbeddingModel | StoredModel) -> str:
    return f"{model.name}, {model.dim} dimensions"


# The homes that learn of it.


def _described(settings: Settings, given: Mapping[str, str]) -> Settings:
    """The settings with the embedder these values describe; ConfigError for values that cannot work.

    An address of its own brings its own protocol and key: a key goes nowhere it was not meant for.
    """
    if "url" in given:
        from hermes_memory_pgvector.embedding.url import parse_endpoint

        parse_endpoint(given["url"])
    has_place = "url" in given or given.get("protocol") == "local"
    base = (
        {name: DEFAULTS[name] for name in profiles.EMBEDDER}
        if has_place
        else {name: getattr(settings, name) for name in profiles.EMBEDDER}
    )
    base["embed_model"] = settings.embed_model
    base["embed_dim"] = None if given else settings.embed_dim
    for name, value in given.items():
        try:
            base[f"embed_{name}"] = DECLARATIONS[f"embed_{name}"].parse(value)
        except (ValueError, TypeError):
            expects = DECLARATIONS[f"embed_{name}"].expects
            raise ConfigError(f"{name} expects {expects}; nothing was changed") from None
    return dataclasses.replace(settings, **base)


def _adopt(home: Path, described: Settings) -> tuple[list[Path], list[Note]]:
    """Make it the embedder in use in the homes that share the database; which changed, and where that failed."""
    changed, problems = [], []
    for each in belonging.sharing(home, only_used=False):
        theirs = load(each).settings
        if each != home and (theirs.hold or settings_file.current_provider(each) != PROVIDER_NAME):
            continue
        if all(getattr(theirs, name) == getattr(described, name) for name in profiles.EMBEDDER):
            continue
        try:
            profiles.write_embedder(home, each, described)
        except ConfigError as error:
            problems.append(Note("warning", str(error)))
            continue
        changed.append(each)
        pinned = [name for name in profiles.EMBEDDER if getattr(load(each).settings, name) != getattr(described, name)]
        if pinned:
            where = ", ".join(f"{settings_file.ENVIRONMENT_PREFIX}{name.upper()}" for name in pinned)
            problems.append(Note("warning", f"the environment decides what {each} uses; change it there: {where}"))
    return changed, problems


def _told(homes: list[Path]) -> list[Note]:
    return [Note("ok", f"{each} embeds with it from now on") for each in homes]
