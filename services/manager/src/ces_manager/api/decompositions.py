"""Dividing an application's graph into tasks, for whoever wants to see that before a job is submitted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from ces_common import subjects
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
from ces_manager.api.auth import SUBMITTER
from ces_manager.api.context import context_of
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Invalid

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
ANSWER_S = 25.0  # the scheduler gives it up before
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
    query = DecompositionQuery(graph=file.graph, by=by, parts=parts, granularity=granularity)
    subject = subjects.rpc("scheduler", "decompose")
    raw = await context_of(request).bus.request(subject, query.encode(), timeout_s=ANSWER_S)
    return DecompositionAnswer.model_validate_json(raw)


def _check_size(field: str, count: int, most: int) -> None:
    if count > most:
        raise Invalid(f"graph.{field}", f"there are {count}, and {most} at most are divided here: use `ces decompose`")
