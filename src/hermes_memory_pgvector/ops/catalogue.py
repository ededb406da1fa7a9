"""Every operation there is: the command line, JSON and the page offer what stands here."""

from __future__ import annotations

from hermes_memory_pgvector.ops.browse.activity import ACTIVITY
from hermes_memory_pgvector.ops.browse.rows import LIST
from hermes_memory_pgvector.ops.browse.show import SHOW
from hermes_memory_pgvector.ops.browse.status import STATUS
from hermes_memory_pgvector.ops.carry.backup import BACKUP
from hermes_memory_pgvector.ops.carry.export import EXPORT
from hermes_memory_pgvector.ops.carry.import_ import IMPORT
from hermes_memory_pgvector.ops.carry.promote import PROMOTE
from hermes_memory_pgvector.ops.correct.add import ADD
from hermes_memory_pgvector.ops.correct.edit import EDIT
from hermes_memory_pgvector.ops.correct.mute import MUTE
from hermes_memory_pgvector.ops.correct.undo import UNDO
from hermes_memory_pgvector.ops.embed.reembed import REEMBED
from hermes_memory_pgvector.ops.explain.recall import RECALL
from hermes_memory_pgvector.ops.explain.why import WHY
from hermes_memory_pgvector.ops.fleet.journal import JOURNAL
from hermes_memory_pgvector.ops.fleet.metrics import METRICS
from hermes_memory_pgvector.ops.forget.forget import FORGET
from hermes_memory_pgvector.ops.setup.config import CONFIG
from hermes_memory_pgvector.ops.setup.doctor import DOCTOR
from hermes_memory_pgvector.ops.setup.migrate import MIGRATE
from hermes_memory_pgvector.ops.setup.uninstall import UNINSTALL
from hermes_memory_pgvector.ops.themes.theme import THEME

OPERATIONS = (
    RECALL, LIST, SHOW, WHY, ADD, EDIT, UNDO, MUTE, FORGET, STATUS, METRICS, JOURNAL, DOCTOR, CONFIG, MIGRATE,
    UNINSTALL, THEME, IMPORT, EXPORT, PROMOTE, BACKUP, REEMBED, ACTIVITY,
)  # fmt: skip
