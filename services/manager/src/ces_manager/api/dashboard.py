"""Routes from which the dashboard's pages are drawn, beside those that every client uses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from ces_common.messages.api import Page
from ces_common.messages.bounds import MAX_ID
from ces_common.messages.dashboard import HeldFlow, Layout
from ces_manager.api.auth import OPERATOR, VIEWER, identity_of, still_admitted
from ces_manager.api.context import context_of
from ces_manager.api.parameters import Cursor, Limit, QueryName
from ces_manager.api.streams import PING_S
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Invalid
from ces_manager.network import held_flows, layout

router = APIRouter(prefix="/v1", tags=["cluster"], route_class=StrictRoute)
MAX_LINK = 2 * MAX_ID + 1
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=64, description="Go on after this frame")]


@router.get("/live", dependencies=[VIEWER], response_class=EventSourceResponse)
async def live(request: Request, last_event_id: LastEventId = None) -> EventSourceResponse:
    """Server-sent events: a `keyframe` with nodes, links, media, jobs that are not over and numbers of jobs by state,
    then every two seconds a `change` with the fields that changed; `null` for what is gone."""
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
    link: Annotated[str | None, Query(max_length=MAX_LINK, description="`SRC>DST`: flows that reserve it")] = None,
    node: QueryName = None,
    state: Annotated[Literal["short"] | None, Query(description="whose link carries less than it should")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[HeldFlow]:
    """Flows of jobs that reserve bandwidth now: asked, given and carried, and which link falls short."""
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
