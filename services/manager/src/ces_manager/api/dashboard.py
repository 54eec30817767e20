"""Routes from which the dashboard's pages are drawn, beside those that every client uses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import AwareDatetime
from sse_starlette import EventSourceResponse, ServerSentEvent

from ces_common.db.outbox import EventFilter
from ces_common.messages.api import Page
from ces_common.messages.bounds import MAX_ID
from ces_common.messages.dashboard import HeldFlow, JobProgress, Layout, NumberedEvent, PastState, UsageSamples
from ces_manager.api.auth import OPERATOR, VIEWER, identity_of, still_admitted
from ces_manager.api.context import context_of
from ces_manager.api.jobs import EVENTS, VisibleJob
from ces_manager.api.parameters import Cursor, EventNumber, Limit, QueryName
from ces_manager.api.streams import PING_S
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Invalid
from ces_manager.jobs.transitions import job_row
from ces_manager.live import event_pages
from ces_manager.network import held_flows, layout
from ces_manager.replay.changes import CHANGES

router = APIRouter(prefix="/v1", tags=["cluster"], route_class=StrictRoute)
MAX_LINK = 2 * MAX_ID + 1
Link = Annotated[str | None, Query(max_length=MAX_LINK, description="`SRC>DST`")]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=64, description="Go on after this frame")]


@router.get("/live", response_class=EventSourceResponse, responses=EVENTS, dependencies=[VIEWER])
async def live(request: Request, last_event_id: LastEventId = None) -> EventSourceResponse:
    """Server-sent events: a `keyframe` with nodes, links, media, jobs that are not over, numbers of jobs by state, and
    the cluster's name where it is a region, then every two seconds a `change` with the fields that changed; `null` for
    what is gone."""
    context, tenants, admitted = context_of(request), identity_of(request).tenants, still_admitted(request)

    async def body() -> AsyncIterator[ServerSentEvent]:
        async with aclosing(context.live.follow(tenants, last_event_id)) as frames:
            async for frame in frames:
                if context.stopping.is_set() or not await admitted():
                    return
                if frame is not None:
                    yield ServerSentEvent(id=context.live.id_of(frame), event=frame.kind, data=frame.data)

    return EventSourceResponse(body(), ping=PING_S, headers={"Cache-Control": "no-store"})


@router.get("/flows", dependencies=[VIEWER])
async def flows(
    request: Request,
    link: Link = None,
    node: QueryName = None,
    state: Literal["short"] | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[HeldFlow]:
    """Flows of jobs that reserve bandwidth now, on a link or by way of a node if one is named: asked, given and
    carried, and which link falls short. `state=short`: of those whose link carries less than it should."""
    context, tenants = context_of(request), identity_of(request).tenants
    ends, now = None if link is None else _ends(link), context.database.clock.now()
    return await context.database.read(
        lambda tx: held_flows.list_flows(
            tx,
            context.measurements,
            now,
            cursor=cursor,
            limit=limit,
            link=ends,
            node=node,
            short=state == "short",
            tenants=tenants,
        )
    )


@router.get("/events/page", dependencies=[VIEWER])
async def events_page(
    request: Request,
    kind: Annotated[str, Query(max_length=MAX_ID, description="How their type begins: `ces.v1.job.`")] = "",
    job: QueryName = None,
    changes: Annotated[bool, Query(description="Only those that change what is drawn of the cluster")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[NumberedEvent]:
    """Events that are kept, the newest first, also of one job alone, or only those by which nodes, links, placements
    and states of jobs change. Where few are of a kind, a page may be short, or empty, and there is a next one all the
    same."""
    if kind and changes:
        raise Invalid("query", "name a kind or ask for changes, not both")
    which = EventFilter(job=job, tenants=identity_of(request).tenants)
    return await context_of(request).database.read(
        lambda tx: event_pages.events_page(tx, which, CHANGES if changes else kind, cursor=cursor, limit=limit)
    )


@router.get("/state", dependencies=[VIEWER], response_model=PastState)
async def state(
    request: Request,
    at: Annotated[AwareDatetime | None, Query(description="An instant with its zone: `2026-11-27T09:30:00Z`")] = None,
    event: EventNumber = None,
    failure: Annotated[
        bool, Query(description="After a node or link last went down or a job last failed, if one did")
    ] = False,
) -> Response:
    """The cluster as it was at an instant of the last days, after an event and all that was committed with it, or after
    the last failure: exactly what was allocated, reserved and waited for. Without any of them: as of the last event."""
    if (at is not None) + (event is not None) + failure > 1:
        raise Invalid("query", "name an instant, an event or the last failure, one of them")
    try:
        at = None if at is None else at.astimezone(UTC)
    except OverflowError:
        raise Invalid("query.at", "lies beyond all times") from None
    told = await context_of(request).replays.state(identity_of(request), at, event, failure)
    return Response(told, media_type="application/json")


@router.get("/samples", dependencies=[VIEWER])
async def samples(request: Request, node: QueryName = None, link: Link = None) -> UsageSamples:
    """What a node used, or a link carried, in the last hour: means of twenty seconds. Kept in memory: a manager that
    has just started knows little."""
    usage = context_of(request).measurements.usage
    if (node is None) == (link is None):
        raise Invalid("query", "name a node or a link, one of the two")
    return usage.of_node(node) if node is not None else usage.of_link(*_ends(link or ""))


@router.get("/jobs/{job}/progress", dependencies=[VIEWER])
async def progress(request: Request, job: VisibleJob) -> JobProgress:
    """The numbers in the lines of progress that a job's tasks printed, as curves: 200 points of each task at most,
    spread over its whole run. Kept in memory, and for an hour after the last line."""
    context = context_of(request)
    name = await context.database.read(lambda tx: job_row(tx, job).name)
    return JobProgress(id=job, name=name, tasks=context.measurements.curves.of_job(job))


def _ends(link: str) -> tuple[str, str]:
    src, between, dst = link.partition(">")
    if not (between and src and dst) or ">" in dst:
        raise Invalid("query.link", "write it SRC>DST, such as roof1>roof2 (`%3E` stands for `>`)")
    return src, dst


@router.get("/layout", dependencies=[VIEWER])
async def get_layout(request: Request) -> Layout:
    """Where nodes lie on the map."""
    return await context_of(request).database.read(layout.layout)


@router.put("/layout", dependencies=[OPERATOR])
async def put_layout(request: Request, body: Layout) -> Layout:
    """Keep positions on the map, for everybody; nodes that are not named stay where they are."""
    context = context_of(request)
    await context.database.requested_write(lambda tx: layout.put_layout(tx, body), identity_of(request).name)
    return await context.database.read(layout.layout)
