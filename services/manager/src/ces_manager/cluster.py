"""What operators and joining nodes do to the cluster."""

from __future__ import annotations

import secrets
from datetime import timedelta
from functools import partial
from hashlib import sha256
from ipaddress import ip_address
from typing import Literal

from sqlalchemy import delete, insert, select

from ces_common.db.tables import (
    LIVE_STATES,
    AllocationRow,
    JobRow,
    JoinTokenRow,
    LeaseRow,
    LinkRow,
    MediumRow,
    NodeRow,
    RevokedKeyRow,
)
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.api import JoinRequest, JoinToken, JoinTokenRequest, TopologyFile
from ces_common.messages.events import NodeChanged, TopologyChanged
from ces_manager import lifecycle, link_states
from ces_manager.addressing import Exhausted, next_subnet
from ces_manager.changes import change
from ces_manager.errors import Conflict, Forbidden, Invalid, NotFound
from ces_manager.links import directed_links, uncarried

Change = Literal["joined", "ready", "unreachable", "cordoned", "uncordoned", "drained", "changed", "forgotten"]


def create_token(tx: WriteTx, request: JoinTokenRequest) -> JoinToken:
    """A fresh secret that admits one node; only its hash is kept."""
    token = secrets.token_urlsafe(32)
    expires_at = tx.now + timedelta(seconds=request.ttl_s)
    tx.session.add(JoinTokenRow(hash=_hash(token), node=request.node, expires_at=expires_at))
    return JoinToken(token=token, node=request.node, expires_at=expires_at)


def join_node(tx: WriteTx, request: JoinRequest) -> NodeRow:
    """The node that joins, or joins again with what it now has; it is unreachable until it is heard.

    A token admits one key once; the same key may come back with it, since an answer can be lost. Raises Forbidden,
    Invalid, Conflict (no subnet left)."""
    _admit(tx, request)
    if not request.arch.isprintable():
        raise Invalid("arch", "must be printable")
    try:
        ip_address(request.host_address)
    except ValueError as error:
        raise Invalid("host_address", f"{request.host_address!r} is no IP address") from error
    row = tx.session.get(NodeRow, request.name)
    joined = row is None
    if row is None:
        try:
            subnet = next_subnet(tx.session.scalars(select(NodeRow.subnet)).all())
        except Exhausted as error:
            raise Conflict(str(error)) from error
        row = NodeRow(name=request.name, subnet=subnet, last_host=0, cordoned=False, state="unreachable")
        tx.session.add(row)
    row.cpu, row.memory, row.gpu = request.cpu, request.memory, request.gpu
    row.arch, row.labels = request.arch, request.labels
    row.runtime, row.network, row.host_address = request.runtime, request.network, request.host_address
    row.public_key, row.joined_at, row.version = request.public_key, tx.now, tx.version
    tx.session.flush()
    if joined:
        tx.session.add(LeaseRow(node=row.name, boot="", heard_at=tx.now, beats=0))
    if row.network == "none":
        link_states.forget(tx, row.name)
    emit_node(tx, row, "joined" if joined else "changed")
    return row


def cordon(tx: WriteTx, name: str) -> NodeRow:
    """No new work for it. Raises NotFound."""
    return _mark(tx, name, True, "cordoned")


def uncordon(tx: WriteTx, name: str) -> NodeRow:
    """Raises NotFound."""
    return _mark(tx, name, False, "uncordoned")


def drain(tx: WriteTx, name: str) -> NodeRow:
    """Cordon it and place its jobs elsewhere. Raises NotFound."""
    row = node_row(tx, name)
    row.cordoned, row.version = True, tx.version
    for job in jobs_on(tx, name):
        change(tx, job, lambda course: lifecycle.reschedule(course, f"node {name} is drained"))
    emit_node(tx, row, "drained")
    return row


def put_topology(tx: WriteTx, file: TopologyFile) -> None:
    """Replace all links and media; jobs that these can no longer carry are placed anew. What is known of a link that
    stays is kept. Raises Invalid."""
    links = directed_links(file)
    known = link_states.live_states(tx, links)
    for table in (LinkRow, MediumRow):
        tx.session.execute(delete(table), execution_options={"synchronize_session": False})
    if file.media:
        tx.session.execute(insert(MediumRow), [medium.model_dump(mode="python") for medium in file.media])
    if links:
        rows = [link.model_dump(mode="python") | known[link.src, link.dst] for link in links]
        tx.session.execute(insert(LinkRow), rows)
    tx.cluster().topology_version = tx.version
    tx.emit("topology", "changed", "topology", TopologyChanged(links=len(links), media=len(file.media)))
    media = {medium.name: medium.bandwidth for medium in file.media}
    for row, where in uncarried(tx, links, media):
        change(tx, row, partial(lifecycle.reschedule, reason=where))


def node_row(tx: ReadTx, name: str) -> NodeRow:
    """Raises NotFound."""
    row = tx.session.get(NodeRow, name)
    if row is None:
        raise NotFound(f"no node {name}")
    return row


def jobs_on(tx: ReadTx, node: str) -> list[JobRow]:
    """Jobs with something on the node that holds capacity."""
    live = select(AllocationRow.job).where(AllocationRow.node == node, AllocationRow.state.in_(LIVE_STATES))
    return list(tx.session.scalars(select(JobRow).where(JobRow.id.in_(live)).order_by(JobRow.id)))


def emit_node(tx: WriteTx, row: NodeRow, what: Change) -> None:
    changed = NodeChanged(node=row.name, change=what, cpu=row.cpu, memory=row.memory, gpu=row.gpu)
    tx.emit("node", "changed", row.name, changed)


def _mark(tx: WriteTx, name: str, cordoned: bool, what: Change) -> NodeRow:
    row = node_row(tx, name)
    if row.cordoned is not cordoned:
        row.cordoned, row.version = cordoned, tx.version
        emit_node(tx, row, what)
    return row


def _admit(tx: WriteTx, request: JoinRequest) -> None:
    if tx.session.get(RevokedKeyRow, request.public_key) is not None:
        raise Forbidden("this key was a forgotten node's: delete the agent's state folder, so that it makes a new one")
    token = tx.session.get(JoinTokenRow, _hash(request.token))
    if token is None:
        raise Forbidden("this join token is not known")
    if token.expires_at < tx.now:
        raise Forbidden("this join token has expired")
    if token.node is not None and token.node != request.name:
        raise Forbidden(f"this join token is not for node {request.name}")
    if token.used_by is not None and token.used_by != request.public_key:
        raise Forbidden("this join token was used by another node")
    if token.used_by is not None and token.node is None and tx.session.get(NodeRow, request.name) is None:
        raise Forbidden("this join token was used by another node")
    if token.node is None:
        known = tx.session.get(NodeRow, request.name)
        if known is not None and known.public_key != request.public_key:
            raise Forbidden(
                f"node {request.name} has joined with another key: to let it join again, make a token for it alone "
                f"(ces node token --node {request.name})"
            )
    token.used_at, token.used_by = token.used_at or tx.now, request.public_key


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
