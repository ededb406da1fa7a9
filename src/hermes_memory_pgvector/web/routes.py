"""What the page may ask: the operations of the catalogue, with errors as a status and a sentence."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hermes_memory_pgvector.errors import ServerError, outline
from hermes_memory_pgvector.ops.catalogue import OPERATIONS
from hermes_memory_pgvector.terminal import operation
from hermes_memory_pgvector.web import access

logger = logging.getLogger(__name__)

FAILED: Final = 500


def answer(home: Path, method: str, name: str, parameters: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """A status and a document; an error is a sentence under "detail", and says nothing of what was stored."""
    try:
        if not access.is_set_up(home):
            return operation.UNAVAILABLE, {"detail": operation.sentence(ServerError(access.NO_MEMORY)), "set_up": False}
        status, document = operation.answer(OPERATIONS, access.memory_of(home), method, name, parameters)
        if method == "POST" and status == operation.OK:
            access.embed_soon(home)
    except Exception as error:  # noqa: BLE001 - a page must not end the thread, nor show what went wrong inside
        logger.error("a request of the memory page failed: %s", outline(error))
        return FAILED, {"detail": "This failed unexpectedly; the log of the program that serves this page says more."}
    return status, document
