"""What the page may ask: every path with the function that answers it, and errors as a status and a sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from hermes_memory_pgvector.errors import CareError, ConfigError, MemoryPluginError, outline
from hermes_memory_pgvector.ops.catalogue import OPERATIONS
from hermes_memory_pgvector.terminal import operation
from hermes_memory_pgvector.web import access, changing, fleet, health, looking, searching
from hermes_memory_pgvector.web.asked import BAD, CHANGED, MISSING, UNAVAILABLE, Asked, Document, Refused

logger = logging.getLogger(__name__)

OK, FAILED = 200, 500
Handler = Callable[[Asked], Document]


def _operation(name: str) -> Handler:
    """What answers a request for an operation, or for their list."""

    def answer_it(asked: Asked) -> Document:
        status, document = operation.answer(OPERATIONS, access.memory_of(asked.home), "GET", name, asked.query)
        if status != OK:
            raise Refused(document.pop("detail"), status, document)
        return dict(document)

    return answer_it


def _change(name: str) -> Handler:
    """What answers a request to change something: the plan with its digest and, once that comes back, what was done."""

    def answer_it(asked: Asked) -> Document:
        given = {key: value for key, value in asked.body.items() if key != "confirm"}
        if asked.text("confirm"):
            given |= {"execute": True, "digest": asked.text("confirm")}
        status, document = operation.answer(OPERATIONS, access.memory_of(asked.home), "POST", name, given)
        if status != OK:
            raise Refused(document.pop("detail"), status, document)
        if document["executed"]:
            access.embed_soon(asked.home)
        return dict(document)

    return answer_it


READS: Final[Mapping[str, Handler]] = {
    **{each.name: _operation(each.name) for each in OPERATIONS if each.on_page and not each.changes},
    operation.LIST: _operation(operation.LIST),
    "health": health.health,
    "checks": health.checks,
    "fleet": fleet.fleet,
    "activity": fleet.activity,
    "search": searching.search,
    "why": searching.why,
    "names": looking.names,
    "theme": looking.theme,
    "rows": looking.rows,
    "row": looking.row,
    "history": looking.history,
    "sessions": looking.sessions,
    "transcript": looking.transcript,
    "delegations": looking.delegations,
}
CHANGES: Final[Mapping[str, Handler]] = {
    **{each.name: _change(each.name) for each in OPERATIONS if each.on_page and each.changes},
    "undo": changing.undo,
    "remove": changing.remove,
    "forget": changing.forget,
}


def answer(handler: Handler, asked: Asked) -> tuple[int, Document]:
    """A status and a document; an error is a sentence under "detail", and says nothing of what was stored."""
    try:
        return OK, handler(asked)
    except Refused as refused:
        return refused.status, {**refused.document, "detail": _sentence(refused)}
    except CareError as error:
        return (CHANGED if asked.body else MISSING), {"detail": _sentence(error)}
    except ConfigError as error:
        return BAD, {"detail": _sentence(error)}
    except MemoryPluginError as error:
        return UNAVAILABLE, {"detail": _sentence(error)}
    except Exception as error:  # noqa: BLE001 - a page must not end the thread, nor show what went wrong inside
        logger.error("a request of the memory page failed: %s", outline(error))
        return FAILED, {"detail": "This failed unexpectedly; the log of the program that serves this page says more."}


def _sentence(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
