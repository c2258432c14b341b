"""``/admin/reload``: take a changed configuration into service, try it, or see what came of the last time."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel

from gateway.errors import InvalidConfigurationError
from gateway.http.admin_guard import admins_only, only_known_query
from gateway.http.strict_bodies import StrictBodyRoute
from gateway.reload.outcome import Outcome
from gateway.services import Services

TRIGGER: Final = "POST /admin/reload"


class ChangeOut(BaseModel):
    """A value that differs; null where there was none, or is none any more. Secrets show as asterisks."""

    path: str
    before: Any
    after: Any


class ProblemOut(BaseModel):
    """One thing that is wrong; *line* 0: it has no place in the file."""

    file: str
    line: int
    column: int
    path: str
    message: str


class ReloadOut(BaseModel):
    """What came of a reload."""

    object: Literal["reload"] = "reload"
    ok: bool
    dry_run: bool = False
    trigger: str
    at: float
    changed: list[ChangeOut]
    needs_restart: list[str]
    problems: list[ProblemOut]


def router(services: Services) -> APIRouter:
    """The routes, all behind the admin key."""
    routes = APIRouter(
        prefix="/admin/reload",
        tags=["operations"],
        dependencies=[admins_only(services), only_known_query],
        route_class=StrictBodyRoute,
    )

    @routes.post("")
    async def reload(
        dry_run: Annotated[bool, Query(description="Only tell what a reload would change.")] = False,
    ) -> ReloadOut:
        """Load the configuration again, in every worker. A wrong one is a 400 and changes nothing."""
        outcome = await services.reloads.reload(TRIGGER, dry_run=dry_run)
        if not outcome.ok:
            raise InvalidConfigurationError(outcome.in_words(), outcome.as_json()["problems"])
        return _out(outcome, dry_run=dry_run)

    @routes.get("")
    async def last_reload() -> ReloadOut:
        """What came of the last reload, or of the start."""
        return _out(services.reloads.last)

    return routes


def _out(outcome: Outcome, *, dry_run: bool = False) -> ReloadOut:
    return ReloadOut(dry_run=dry_run, **outcome.as_json())
