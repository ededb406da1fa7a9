"""The memory tab in the host's web dashboard: its routes, below /api/plugins/pgvector/.

The host checks its session token before any of them. Handlers are plain functions: the host runs those in worker
threads, and its event loop never waits for Postgres.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse
from hermes_cli import profiles
from hermes_constants import get_hermes_home

from hermes_memory_pgvector.terminal.operation import BAD, MISSING
from hermes_memory_pgvector.web import routes

FORBIDDEN = 403
NO_STORE = {"Cache-Control": "no-store"}

router = APIRouter()


@router.get("/{name}", name="pgvector_read")
def read(name: str, request: Request) -> JSONResponse:
    """What an operation answers that only reads."""
    params = request.query_params
    given = {key: params.getlist(key) for key in params}
    return _respond(name, request, {key: values if len(values) > 1 else values[0] for key, values in given.items()})


@router.post("/{name}", name="pgvector_change")
def change(name: str, request: Request, body: dict[str, Any] = Body(default={})) -> JSONResponse:  # noqa: B008
    """What an operation that changes something would do, or has done."""
    return _respond(name, request, body)


def _respond(name: str, request: Request, given: Mapping[str, Any]) -> JSONResponse:
    # The host lets pages of other local ports in; this one holds what people said.
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return _refusal(FORBIDDEN, "This page answers only the dashboard itself.")
    profile = request.query_params.get("profile", "")
    try:
        profiles.validate_profile_name(profile or "default")
    except ValueError:
        return _refusal(BAD, "That is not the name of a profile.")
    if profile and not profiles.profile_exists(profile):
        return _refusal(MISSING, "There is no such profile.")
    home = Path(profiles.get_profile_dir(profile) if profile else get_hermes_home()).absolute()
    asked = {key: value for key, value in given.items() if key != "profile"}
    status, document = routes.answer(home, request.method, name, asked)
    return JSONResponse(document, status, headers=NO_STORE)


def _refusal(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"detail": sentence}, status, headers=NO_STORE)
