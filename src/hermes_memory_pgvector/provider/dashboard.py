"""The memory tab in the host's web dashboard: its routes, below /api/plugins/pgvector/.

The host checks its session token before any of them. Handlers are plain functions: the host runs those in worker
threads, and its event loop never waits for Postgres.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse
from hermes_cli import profiles
from hermes_constants import get_hermes_home

from hermes_memory_pgvector.web import routes
from hermes_memory_pgvector.web.asked import BAD, MISSING, Asked

FORBIDDEN = 403
NO_STORE = {"Cache-Control": "no-store"}


def make_router() -> APIRouter:
    """Every route of the page."""
    made = APIRouter()
    for name, handler in routes.READS.items():
        made.add_api_route(f"/{name}", _reading(handler), methods=["GET"], name=f"pgvector_{name}")
    for name, handler in routes.CHANGES.items():
        made.add_api_route(f"/{name}", _changing(handler), methods=["POST"], name=f"pgvector_change_{name}")
    return made


def _reading(handler: routes.Handler) -> Callable[[Request], JSONResponse]:
    def read(request: Request) -> JSONResponse:
        return _respond(handler, request, {})

    return read


def _changing(handler: routes.Handler) -> Callable[..., JSONResponse]:
    def change(request: Request, body: dict[str, Any] = Body(default={})) -> JSONResponse:  # noqa: B008
        return _respond(handler, request, body)

    return change


def _respond(handler: routes.Handler, request: Request, body: Mapping[str, Any]) -> JSONResponse:
    # The host lets pages of other local ports in; this one holds what people said.
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return _refusal(FORBIDDEN, "This page answers only the dashboard itself.")
    query = dict(request.query_params)
    profile = query.pop("profile", "")
    try:
        profiles.validate_profile_name(profile or "default")
    except ValueError:
        return _refusal(BAD, "That is not the name of a profile.")
    if profile and not profiles.profile_exists(profile):
        return _refusal(MISSING, "There is no such profile.")
    home = Path(profiles.get_profile_dir(profile) if profile else get_hermes_home()).absolute()
    status, document = routes.answer(handler, Asked(home, query, body))
    return JSONResponse(document, status, headers=NO_STORE)


def _refusal(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"detail": sentence}, status, headers=NO_STORE)


router = make_router()
