"""The value of a setting that is really used, and where it comes from.

Some defaults give way to what the embedding model wants, so the value in config.yaml is not the whole answer.
"""

from __future__ import annotations

from typing import Any

from hermes_memory_pgvector.config.settings import Settings, shown

FROM_MODEL = "the model"


def in_force(settings: Settings, name: str) -> tuple[Any, str]:
    """The value in force without passwords, and its source: a file, the environment, the model or the default."""
    from hermes_memory_pgvector.embedding.known_models import LOCAL_MODEL, WORDLLAMA, spec_of

    source = settings.set_by.get(name, "default")
    is_local = settings.uses_local_model
    if name == "embed_model" and is_local:
        return LOCAL_MODEL, "local model"
    spec = WORDLLAMA if is_local else spec_of(settings.embed_model)
    if name == "embed_dim" and settings.embed_dim is None and spec.dim is not None:
        return spec.dim, FROM_MODEL
    return shown(settings, name), source
