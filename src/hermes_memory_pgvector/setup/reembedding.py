"""A change of the embedding model without an outage: the vectors are made beside those in use, then everybody switches.

The homes of this installation that use the database learn the new embedder before it is needed (`embed_next`), and keep
it as theirs afterwards. Homes elsewhere are the operator's; until they know the new embedder, they go on with the
former model's vectors as long as those are there.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.home import homes_of, root_of
from hermes_memory_pgvector.config.settings import DECLARATIONS, DEFAULTS, EMBEDDER_PARTS, Settings
from hermes_memory_pgvector.config.settings_file import PROVIDER_NAME, SECTIONS, load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import CareError, ConfigError, SchemaError
from hermes_memory_pgvector.ops import new_settings, parts

if TYPE_CHECKING:
    from hermes_memory_pgvector.embedding import ModelInfo
    from hermes_memory_pgvector.store.reembedding import Change, StoredModel
    from hermes_memory_pgvector.values import EmbeddingModel
    from hermes_memory_pgvector.writer.reembed import Progress

READ_SECONDS = 60.0
MEASURE_SECONDS = 60.0
EMBEDDER_SECONDS = 30.0
MOST_ATTEMPTS = 50
PAUSE_SECONDS = 10.0
TOO_MUCH_LEFT = (
    "rows are left that get no vector here: either the embedder is too slow for the last of them, or this home's login"
    " does not see all themes; run it where the fleet's role is used, or at a quieter time: hermes-pgvector reembed"
)


@dataclass(frozen=True, slots=True)
class Aim:
    """The model to change to."""

    described: Settings
    """The home's settings with the new embedder in them."""
    info: ModelInfo
    is_configured: bool
    """Whether the home's own settings name it already."""


@dataclass(frozen=True, slots=True)
class State:
    """What the database says about its models."""

    current: EmbeddingModel | None
    change: Change | None
    others: tuple[StoredModel, ...]
    """Models that are neither in use nor under way."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done."""

    former: EmbeddingModel
    model: EmbeddingModel
    embedded: int
    without_vector: int
    """Rows that the new model has no vector for."""
    switched: bool
    seconds: float


def read(home: Path, settings: Settings) -> State:
    """The models of the database, and the change that is under way."""
    from hermes_memory_pgvector.store import reembedding, schema
    from hermes_memory_pgvector.store.current_model import current_model

    with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(READ_SECONDS)) as connection:
        schema.verify(connection)
        change = reembedding.under_way(connection)
        busy = None if change is None else change.model.id
        others = [each for each in reembedding.models(connection) if not each.is_current and each.id != busy]
        return State(current_model(connection), change, tuple(others))


def aim(home: Path, settings: Settings, given: Mapping[str, str]) -> Aim:
    """The embedder that options describe, else the one that waits in `embed_next`, else the configured one."""
    described = describe(settings, given) if given else settings.next_embedder or settings
    with parts.open_embedder(home, described) as embedder:
        info = embedder.info(Deadline.after(EMBEDDER_SECONDS))
    return Aim(described, info, is_configured=_same_embedder(described, settings))


def describe(settings: Settings, given: Mapping[str, str]) -> Settings:
    """The settings with the embedder these values describe; ConfigError for values that cannot work."""
    try:
        told = DECLARATIONS["embed_next"].parse(dict(given))
    except (ValueError, TypeError):
        wrong = [name for name, value in given.items() if not _is_accepted(name, value)]
        expects = "; ".join(f"{name} expects {DECLARATIONS[f'embed_{name}'].expects}" for name in wrong)
        raise ConfigError(f"{expects}; nothing was changed") from None
    if "url" in given:
        new_settings.check_endpoint(given["url"])
    described = dataclasses.replace(settings, embed_next=told).next_embedder
    assert described is not None
    return described


def _is_accepted(name: str, value: str) -> bool:
    try:
        DECLARATIONS[f"embed_{name}"].parse(value)
    except (ValueError, TypeError):
        return False
    return True


def run(
    home: Path,
    settings: Settings,
    admin: str,
    aimed: Aim,
    *,
    rate: float,
    switches: bool,
    watch: Callable[[str, Progress | None], None],
) -> Outcome:
    """Make the vectors and switch; may be ended at any moment and said again.

    `watch` is told what is being done, and how far it is.
    """
    from hermes_memory_pgvector.care.actor import operator
    from hermes_memory_pgvector.embedding.probe import measure
    from hermes_memory_pgvector.schema import reembedding
    from hermes_memory_pgvector.schema.model_tables import ModelSpec
    from hermes_memory_pgvector.store.current_model import current_model
    from hermes_memory_pgvector.writer.reembed import Reembed, Throttle

    started = time.monotonic()
    info, who = aimed.info, operator(home)
    doing = f"embedding with {info.name}"
    with (
        parts.open_pool(home, settings) as pool,
        parts.open_embedder(home, aimed.described) as embedder,
        reembedding.alone(admin),
    ):
        with pool.connection(Deadline.after(READ_SECONDS)) as connection:
            former = current_model(connection)
        if former is None:
            raise SchemaError("the database has no vectors yet; run: hermes-pgvector migrate")
        scale = info.scale or measure(embedder, Deadline.after(MEASURE_SECONDS))
        model = reembedding.begin(admin, ModelSpec(info.name, info.dim, scale.mean, scale.sd))
        work = Reembed(
            pool,
            embedder,
            former,
            model,
            embed_seconds=settings.batch_embed_seconds,
            throttle=Throttle(rate),
            watch=lambda progress: watch(f"waiting: {progress.problem}" if progress.problem else doing, progress),
        )
        work.run()
        if switches:
            watch("preparing the switch", None)
            reembedding.settle(admin, model)
            for attempt in itertools.count():
                work.run()
                watch("switching", None)
                if reembedding.switch(admin, model, work.finish, actor=who.name, home_id=who.home_id):
                    break
                if attempt == MOST_ATTEMPTS:
                    raise CareError(TOO_MUCH_LEFT)
                time.sleep(min(PAUSE_SECONDS, 0.1 * 2**attempt))
    return Outcome(former, model, work.embedded, work.without_vector, switches, time.monotonic() - started)


# The homes that learn of it.


def sharing(home: Path, settings: Settings) -> list[Path]:
    """The homes of this installation that use the same database, this one first."""
    from hermes_memory_pgvector.store.installation import place

    found = [home]
    for each in homes_of(root_of(home)):
        if each == home:
            continue
        theirs = load(each).settings
        if theirs.hold or not _is_ours(each):
            continue
        if settings.dsn and theirs.dsn and place(settings.dsn) == place(theirs.dsn):
            found.append(each)
        is_embedded = not settings.dsn and not theirs.dsn
        if is_embedded and parts.server_folder(home, settings) == parts.server_folder(each, theirs):
            found.append(each)
    return found


def announce(home: Path, settings: Settings, aimed: Aim) -> tuple[list[Path], list[str]]:
    """Tell the homes that share the database which embedder comes next; which were told, and where that failed."""
    if aimed.is_configured:
        return [], []
    told, problems = [], []
    for each in sharing(home, settings):
        try:
            if load(each).settings.next_embedder is None or not _same_embedder(
                load(each).settings.next_embedder, aimed.described
            ):
                _bring_key(home, each, aimed.described)
                settings_file.update(each, _SECTION, {"embed_next": _plain(aimed.described)})
                told.append(each)
        except ConfigError as error:
            problems.append(str(error))
    return told, problems


def adopt(home: Path, settings: Settings, described: Settings) -> tuple[list[Path], list[str]]:
    """Make it the embedder in use in the homes that share the database; which changed, and where that failed."""
    changed, problems = [], []
    for each in sharing(home, settings):
        theirs = load(each).settings
        if _same_embedder(theirs, described) and not theirs.embed_next:
            continue
        try:
            _bring_key(home, each, described)
            _write(each, described)
        except ConfigError as error:
            problems.append(str(error))
            continue
        changed.append(each)
        now = load(each).settings
        pinned = [name for name in _NAMES if getattr(now, name) != getattr(described, name)]
        if pinned:
            where = ", ".join(f"{settings_file.ENVIRONMENT_PREFIX}{name.upper()}" for name in pinned)
            problems.append(f"the environment decides what {each} uses; change it there: {where}")
    return changed, problems


def withdraw(home: Path, settings: Settings) -> list[Path]:
    """Take the announcement back."""
    had = [each for each in sharing(home, settings) if load(each).settings.embed_next]
    for each in had:
        settings_file.update(each, _SECTION, {}, remove=("embed_next",))
    return had


_SECTION = ("memory", PROVIDER_NAME)
_NAMES = tuple(f"embed_{part}" for part in EMBEDDER_PARTS)


def _is_ours(home: Path) -> bool:
    try:
        return settings_file.current_provider(home) == PROVIDER_NAME
    except ConfigError:
        return False


def _same_embedder(one: Settings | None, other: Settings) -> bool:
    if one is None:
        return False
    if one.uses_local_model and other.uses_local_model:
        return one.embed_dim == other.embed_dim
    return all(getattr(one, name) == getattr(other, name) for name in _NAMES)


def _plain(described: Settings) -> dict[str, Any]:
    """An embedder as `embed_next` holds it."""
    if described.uses_local_model:
        return {"protocol": "local", **({"dim": described.embed_dim} if described.embed_dim else {})}
    values = {part: getattr(described, f"embed_{part}") for part in EMBEDDER_PARTS}
    return {part: value for part, value in values.items() if value not in (None, "", "auto")}


def _write(home: Path, described: Settings) -> None:
    """Write all that describes an embedder, and nothing that says what the default is anyway."""
    wanted = {name: getattr(described, name) for name in _NAMES}
    if described.uses_local_model:
        # As somebody would write it who never had an endpoint.
        wanted = {**{name: DEFAULTS[name] for name in _NAMES}, "embed_dim": described.embed_dim}
    below = SECTIONS[0].split(".")
    changes, removed = {}, ["embed_next"]
    for name, value in wanted.items():
        if value == DEFAULTS[name] and not settings_file.has_section(home, (*below, name)):
            removed.append(name)
        else:
            changes[name] = "" if value is None else value
    settings_file.update(home, _SECTION, changes, remove=removed)


def _bring_key(home: Path, other: Path, described: Settings) -> None:
    """Give another home of the installation the key that this one has in its .env."""
    name = described.embed_api_key_env
    if other == home or not name or settings_file.secret(other, name):
        return
    key = settings_file.dotenv(home).get(name)
    if key:
        settings_file.set_variable(other, name, key)
