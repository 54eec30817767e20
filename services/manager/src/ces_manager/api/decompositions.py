"""Dividing an application's graph into tasks, for whoever wants to see that before a job is submitted."""

from __future__ import annotations

import asyncio
from typing import Annotated

import structlog
from fastapi import APIRouter, Query, Request

from ces_common import subjects
from ces_common.bus.port import LARGEST_REQUEST, Bus, NoResponder
from ces_common.graphfile import GraphFile
from ces_common.messages.decompositions import (
    MOST_EDGES_PREVIEWED,
    MOST_PARTS,
    MOST_PREVIEWED,
    DecompositionAnswer,
    DecompositionQuery,
    Granularity,
    Way,
)
from ces_manager.api.auth import SUBMITTER, identity_of
from ces_manager.api.context import context_of
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Invalid, Overloaded, Unavailable

log = structlog.get_logger()
router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
ANSWER_S = 30.0  # the scheduler gives it up before
PartCount = Annotated[int | None, Query(ge=1, le=MOST_PARTS)]


@router.post("/decompositions", dependencies=[SUBMITTER])
async def decompose(
    request: Request,
    file: GraphFile,
    by: Way = "clusters",
    parts: PartCount = None,
    granularity: Granularity = "medium",
) -> DecompositionAnswer:
    """What the graph of an application would be divided into, beside other ways to divide it, and the job that it would
    become. Nothing is stored."""
    _check_size("vertices", len(file.graph.vertices), MOST_PREVIEWED)
    _check_size("edges", len(file.graph.edges), MOST_EDGES_PREVIEWED)
    context = context_of(request)
    if not context.divisions.allows(identity_of(request).name, context.database.clock.steady()):
        raise Overloaded("graphs are divided for you too often: wait a moment")
    query = DecompositionQuery(graph=file.graph, by=by, parts=parts, granularity=granularity)
    answer = await _asked(context.bus, query)
    if answer.busy:
        raise Overloaded(answer.refusal or "other graphs are being divided")
    return answer


async def _asked(bus: Bus, query: DecompositionQuery) -> DecompositionAnswer:
    """Raises Unavailable and BusError."""
    subject = subjects.rpc("scheduler", "decompose")
    try:
        raw = await bus.request(subject, query.encode(), timeout_s=ANSWER_S, largest=LARGEST_REQUEST)
        return await asyncio.to_thread(DecompositionAnswer.model_validate_json, raw)
    except NoResponder as error:
        raise Unavailable("no scheduler is there, or an older one, which divides no graphs") from error
    except ValueError as error:
        log.error("a scheduler's answer about a graph cannot be read", kind=type(error).__name__)
        raise Unavailable("the scheduler answers with what cannot be read; the manager's log says more") from error


def _check_size(field: str, count: int, most: int) -> None:
    if count > most:
        raise Invalid(f"graph.{field}", f"there are {count}, and {most} at most are divided here: use `ces decompose`")
