"""Routes about nodes, links and the topology."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import structlog
from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import PlainTextResponse

from ces_common import subjects
from ces_common.bus.port import RemoteError
from ces_common.db import WriteTx
from ces_common.messages.agent_queries import Credential
from ces_common.messages.api import (
    LinkProbeRequest,
    LinkProbeView,
    LinkView,
    NodeView,
    Page,
    TopologyFile,
    TopologyView,
)
from ces_common.messages.drains import DrainForecast
from ces_common.messages.membership import (
    ForgottenNode,
    JoinAnswer,
    JoinRequest,
    JoinToken,
    JoinTokenRequest,
    RenewRequest,
)
from ces_common.messages.owner_calendar import CalendarRequest
from ces_common.natsauth import SIGNATURE, is_signed
from ces_common.natsauth.signed_requests import Purpose
from ces_manager.api.auth import AUDITED, OPERATOR, VIEWER, identity_of
from ces_manager.api.context import Context, context_of
from ces_manager.api.parameters import Cursor, Limit, PathName
from ces_manager.api.strict_route import StrictRoute
from ces_manager.errors import Conflict, Forbidden, Invalid, NotFound, Overloaded
from ces_manager.network import link_views
from ces_manager.nodes import drain_forecast, link_keys, membership, node_views, operations, owners, scores
from ces_manager.nodes.credentials import check_member
from ces_manager.nodes.heartbeats import unheard
from ces_manager.nodes.host_address import check_host_address
from ces_manager.nodes.removal import forget_node
from ces_manager.nodes.revocation import Outcome
from ces_manager.replay.topology_change import rewire

log = structlog.get_logger()
FORECAST: dict[int | str, dict[str, Any]] = {200: {"model": DrainForecast, "description": "What would be hit"}}
router = APIRouter(prefix="/v1", tags=["cluster"], route_class=StrictRoute)
Signature = Annotated[str | None, Header(alias=SIGNATURE, max_length=256, description="Of the body, by the node's key")]


@router.get("/nodes", dependencies=[VIEWER])
async def nodes(request: Request, limit: Limit = 100, cursor: Cursor = None) -> Page[NodeView]:
    """Nodes with what they have, what is allocated and what was last measured."""
    context, tenants = context_of(request), identity_of(request).tenants
    return await context.database.read(
        lambda tx: node_views.list_nodes(tx, context.measurements, cursor=cursor, limit=limit, tenants=tenants)
    )


@router.get("/nodes/{node}", dependencies=[VIEWER])
async def get_node(request: Request, node: PathName) -> NodeView:
    """A node with what it has, what is allocated and what was last measured."""
    context, tenants = context_of(request), identity_of(request).tenants
    return await context.database.read(lambda tx: node_views.node_view(tx, node, context.measurements, tenants))


@router.get("/links", dependencies=[VIEWER])
async def links(request: Request, limit: Limit = 100, cursor: Cursor = None) -> Page[LinkView]:
    """Directed links with capacity, reservations and what was last measured."""
    context = context_of(request)
    return await context.database.read(
        lambda tx: link_views.list_links(tx, context.measurements, cursor=cursor, limit=limit)
    )


@router.get("/links/{src}/{dst}", dependencies=[VIEWER])
async def get_link(request: Request, src: PathName, dst: PathName) -> LinkView:
    """A directed link with capacity, reservations and what was last measured."""
    context = context_of(request)
    return await context.database.read(lambda tx: link_views.link_view(tx, context.measurements, src, dst))


@router.post("/links/{src}/{dst}/probe", dependencies=[OPERATOR])
async def probe(request: Request, src: PathName, dst: PathName, body: LinkProbeRequest | None = None) -> LinkProbeView:
    """Fill what is idle of a link for a moment, to measure its capacity; a measured one counts where it is lower than
    configured. Reserved flows keep their rates, unless the wire carries less than is configured."""
    seconds = (body or LinkProbeRequest()).seconds
    return await context_of(request).prober.probe(src, dst, seconds, identity_of(request).name)


@router.get("/topology", dependencies=[AUDITED])
async def get_topology(request: Request) -> TopologyView:
    """All nodes, links and media."""
    context, tenants = context_of(request), identity_of(request).tenants
    return await context.database.read(lambda tx: node_views.topology_view(tx, context.measurements, tenants))


@router.put("/topology", dependencies=[OPERATOR])
async def put_topology(request: Request, topology: TopologyFile) -> TopologyView:
    """Replace all links and media."""
    context = context_of(request)
    await context.database.requested_write(lambda tx: rewire(tx, topology), identity_of(request).name)
    return await context.database.read(lambda tx: node_views.topology_view(tx, context.measurements))


@router.post("/nodes/tokens", status_code=201, dependencies=[OPERATOR])
async def create_token(request: Request, body: JoinTokenRequest) -> JoinToken:
    """A one-time token with which a node may join. It is shown only here."""
    context = context_of(request)
    made = await context.database.requested_write(
        lambda tx: membership.create_token(tx, body), identity_of(request).name
    )
    return made.model_copy(update={"token": context.pinned(made.token)})


@router.get("/authority", response_class=PlainTextResponse)
async def authority(request: Request) -> str:
    """The certificate (PEM) of the authority that certifies this API and NATS. Whoever asks cannot know yet who
    answers: a token names its fingerprint."""
    held = context_of(request).authority
    if held is None:
        raise NotFound("this API has no authority: it is plain HTTP, or a proxy in front of it speaks TLS")
    return held.pem


@router.post("/nodes/join")
async def join(request: Request, body: JoinRequest, signature: Signature = None) -> JoinAnswer:
    """Join with a one-time token: the node's credential for the bus, signed for the key that it made itself."""
    context, database = context_of(request), context_of(request).database
    now = database.clock.now()
    # Before anything that costs more than a look: whoever has no token takes nobody's turn.
    joined = await database.read(lambda tx: membership.admitted_before(tx, body, now))
    await _check_signed(request, "join", body.public_key, signature)
    if joined is None:
        check_host_address(body.host_address, request.client.host if request.client else None)
    jwt = context.issuer.issue(body.name, body.public_key)
    if joined is None:
        joined = await database.requested_write(
            lambda tx: membership.join_node(tx, body, context.address_block), f"node:{body.name}"
        )
        if joined.replaced and (outcome := await _revoke(context, body.name)) != "revoked":
            log.error("the device before can still speak for the node", node=body.name, its_key=outcome)
    return JoinAnswer(node=joined.node, jwt=jwt, nats_urls=context.agents_nats_urls, subnet=joined.subnet)


@router.post("/nodes/renew")
async def renew(request: Request, body: RenewRequest, signature: Signature = None) -> Credential:
    """Another credential for a member's own key, for an agent that NATS does not let in any more: it was off when its
    credential ended."""
    context = context_of(request)
    await _check_signed(request, "renew", body.public_key, signature)  # before the database is asked
    if not context.renewals.allows(body.public_key, context.database.clock.steady()):
        raise Overloaded("this key asks for another credential too often")
    await context.database.read(lambda tx: check_member(tx, body.name, body.public_key))
    return Credential(node=body.name, jwt=context.issuer.issue(body.name, body.public_key))


async def _check_signed(request: Request, purpose: Purpose, public_key: str, signature: str | None) -> None:
    """Raises Invalid, Forbidden."""
    if signature is None:
        remedy = "an agent signs this request with its node's key, and this one does not: upgrade the agent"
        raise Invalid(f"header.{SIGNATURE}", remedy)
    try:
        signed = is_signed(public_key, purpose, await request.body(), signature)
    except ValueError as error:
        raise Invalid("public_key", str(error)) from error
    if not signed:
        raise Forbidden("the key that this request names has not signed it: somebody has changed it on its way")


async def _revoke(context: Context, node: str) -> Outcome:
    """Tell the broker now, of whatever keys it should refuse; what became of it."""
    context.measurements.forget_node(node)
    outcome = await context.revoker.apply()
    if outcome == "pending":
        context.revoker.hint.set()
    return outcome


@router.post("/nodes/{node}/cordon", dependencies=[OPERATOR])
async def cordon(request: Request, node: PathName) -> NodeView:
    """No new tasks go to the node; those that run stay."""
    return await _operate(request, operations.cordon, node)


@router.post("/nodes/{node}/uncordon", dependencies=[OPERATOR])
async def uncordon(request: Request, node: PathName) -> NodeView:
    """New tasks may go to the node again."""
    return await _operate(request, operations.uncordon, node)


@router.post("/nodes/{node}/drain", status_code=202, responses=FORECAST, dependencies=[OPERATOR])
async def drain(
    request: Request, response: Response, node: PathName, dry_run: bool = False
) -> NodeView | DrainForecast:
    """Cordon the node and have its jobs rescheduled elsewhere. With `dry_run` nothing is changed: the answer (200) is
    what would be hit, and whether there are other places for it."""
    if not dry_run:
        return await _operate(request, operations.drain, node)
    context = context_of(request)
    forecast = await context.database.read(lambda tx: drain_forecast.hit_by_drain(tx, node))
    response.status_code = 200
    return await drain_forecast.with_places(context.bus, forecast)


@router.post("/nodes/{node}/rotate-key", status_code=202, dependencies=[OPERATOR])
async def rotate_key(request: Request, node: PathName) -> NodeView:
    """Have the node replace the key by which its links are encrypted, before its time. Neighbours are told the next one
    first, and no connection is lost."""
    context = context_of(request)
    await context.database.read(lambda tx: link_keys.check_rotatable(tx, node))
    await context.bus.request(subjects.agent_rpc(node, "rotate-key"), timeout_s=link_keys.ANSWER_S)
    return await context.database.read(lambda tx: node_views.node_view(tx, node, context.measurements))


@router.post("/nodes/{node}/reclaim", status_code=202, dependencies=[OPERATOR])
async def reclaim(request: Request, node: PathName) -> NodeView:
    """Have a lent node's agent give the device back to its owner, until it is lent again. Its jobs are placed
    elsewhere."""
    return await _tell_agent(request, node, "reclaim")


@router.post("/nodes/{node}/lend", status_code=202, dependencies=[OPERATOR])
async def lend(request: Request, node: PathName) -> NodeView:
    """Have a node that its owner reclaimed lent again, now."""
    return await _tell_agent(request, node, "lend")


@router.post("/nodes/{node}/measure", status_code=202, dependencies=[OPERATOR])
async def measure(request: Request, node: PathName) -> NodeView:
    """Have the node's agent measure again how fast the node is, for 15 seconds at most. It refuses where workers run,
    or while the owner of a lent device needs it."""
    context = context_of(request)
    await context.database.read(lambda tx: scores.check_measurable(tx, node))
    try:
        await context.bus.request(subjects.agent_rpc(node, "measure"), timeout_s=scores.ANSWER_S)
    except RemoteError as error:
        raise Conflict(f"node {node} does not measure: {error.message}") from error
    return await context.database.read(lambda tx: node_views.node_view(tx, node, context.measurements))


@router.put("/nodes/{node}/calendar", dependencies=[OPERATOR])
async def put_calendar(request: Request, node: PathName, asked: CalendarRequest) -> NodeView:
    """Say when the owner of a lent node usually needs it. A forecast: jobs prefer nodes on which they would end before,
    and nothing is given back for it."""
    return await _operate(request, lambda tx, name: operations.set_calendar(tx, name, asked.calendar), node)


@router.delete("/nodes/{node}/calendar", dependencies=[OPERATOR])
async def delete_calendar(request: Request, node: PathName) -> NodeView:
    """Forget when the owner of a node usually needs it."""
    return await _operate(request, lambda tx, name: operations.set_calendar(tx, name, None), node)


async def _tell_agent(request: Request, node: str, word: Literal["reclaim", "lend"]) -> NodeView:
    context = context_of(request)
    await context.database.read(lambda tx: owners.check_reachable(tx, node))
    try:
        await context.bus.request(subjects.agent_rpc(node, word), timeout_s=owners.ANSWER_S)
    except RemoteError as error:  # of an agent that lends nothing, or cannot keep the word
        raise Conflict(str(error)) from error
    return await context.database.read(lambda tx: node_views.node_view(tx, node, context.measurements))


@router.post("/nodes/{node}/forget", dependencies=[OPERATOR])
async def forget(request: Request, node: PathName) -> ForgottenNode:
    """Remove a lost node for good: its jobs are placed again, its credential is refused. One that is alive must be
    drained first. The name may join again, with a new token and a new key."""
    context = context_of(request)

    def act(tx: WriteTx) -> list[str]:
        detector = context.failure_detector
        silent = unheard(tx, [node], detector)
        age_s = detector.nodes.age(node, detector.hearing()) if silent else 0.0
        return forget_node(tx, context.timeouts, age_s, node)

    touched = await context.database.requested_write(act, identity_of(request).name)
    return ForgottenNode(node=node, jobs=touched, credential=await _revoke(context, node))


async def _operate(request: Request, operation: Callable[[WriteTx, str], str | None], node: str) -> NodeView:
    context, actor = context_of(request), identity_of(request).name
    remark = await context.database.requested_write(lambda tx: operation(tx, node), actor)
    view = await context.database.read(lambda tx: node_views.node_view(tx, node, context.measurements))
    return view.model_copy(update={"remark": remark})
