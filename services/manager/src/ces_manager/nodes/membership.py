"""Membership of nodes: a one-time token admits one key."""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import IPv4Network

from sqlalchemy import bindparam, delete, select

from ces_common.db.access_tables import JoinTokenRow
from ces_common.db.availability_tables import NodeAvailabilityRow
from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, LeaseRow, NodeRow, RevokedKeyRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.hosts import WORKERS
from ces_common.messages.cards import Card, cards_of, is_model
from ces_common.messages.membership import JoinRequest, JoinToken, JoinTokenRequest
from ces_common.quantities import show_cpu, show_memory
from ces_manager.errors import Conflict, Forbidden, Invalid
from ces_manager.network import link_states
from ces_manager.nodes.applicants import forget_applicants
from ces_manager.nodes.link_keys import forget_keys
from ces_manager.nodes.rows import emit_node, revoke_key, tasks_on
from ces_manager.plans.addresses import Exhausted, next_subnet
from ces_manager.plans.residual import held_on_nodes, taken_cards

_ASKING = (
    select(AllocationRow.cards, AllocationRow.gpu_share, AllocationRow.rank, JobRow.tasks)
    .join(JobRow, JobRow.id == AllocationRow.job)
    .where(AllocationRow.node == bindparam("node"), AllocationRow.state.in_(LIVE_STATES))
)


@dataclass(frozen=True, slots=True)
class Joined:
    """A node that was admitted. ``replaced``: in the place of another device, whose key is revoked."""

    node: str
    subnet: str
    replaced: bool


def create_token(tx: WriteTx, request: JoinTokenRequest) -> JoinToken:
    """A new secret that admits one node; only its hash is stored."""
    token = secrets.token_urlsafe(32)
    expires_at = tx.now + timedelta(seconds=request.ttl_s)
    tx.session.add(JoinTokenRow(hash=_hash(token), node=request.node, expires_at=expires_at))
    return JoinToken(token=token, node=request.node, expires_at=expires_at)


def join_node(tx: WriteTx, request: JoinRequest, block: IPv4Network = WORKERS) -> Joined:
    """Add the node, or update one that joins again; it is unreachable until its first heartbeat. The request must be
    signed by its key. ``block``: from which its workers get their addresses.

    A token admits one request once; the same one may come again, since an answer can be lost, and changes nothing then.
    A token for the node alone admits another key in place of the one before. Raises Forbidden, Invalid, Conflict (no
    subnet left; less than what runs there holds; work of the device before)."""
    if not request.arch.isprintable():
        raise Invalid("arch", "must be printable")
    standing = tx.session.get(NodeRow, request.name)
    if standing is not None and standing.region is not None:
        raise Conflict(f"node {request.name} stands for the gateway of region {standing.region}: take another name")
    before = admitted_before(tx, request, tx.now)
    if before is not None:
        return before
    token = tx.session.get_one(JoinTokenRow, _hash(request.token))
    token.used_at, token.used_by = token.used_at or tx.now, request.public_key
    token.used_for = _digest(request)
    row = tx.session.get(NodeRow, request.name)
    joined, replaced = row is None, row is not None and row.public_key != request.public_key
    if row is None:
        cluster = tx.cluster()
        try:
            subnet, cluster.last_subnet = next_subnet(
                cluster.last_subnet, tx.session.scalars(select(NodeRow.subnet)).all(), block
            )
        except Exhausted as error:
            raise Conflict(str(error)) from error
        row = NodeRow(
            name=request.name, subnet=subnet, last_host=0, cordoned=False, state="unreachable",
            least_generation=tx.version,
        )  # fmt: skip
        tx.session.add(row)
    elif replaced:
        _replace(tx, row)
    else:
        _check_held(tx, row, request)
    row.cpu, row.memory, row.gpu = request.cpu, request.memory, request.gpu
    row.cards, row.profile = cards_of(request.gpu, request.cards), request.profile
    row.arch, row.labels = request.arch, request.labels
    row.runtime, row.network, row.host_address = request.runtime.value, request.network, request.host_address
    row.public_key, row.joined_at, row.version = request.public_key, tx.now, tx.version
    forget_applicants(tx, row.name)
    row.confinement = row.measured = None  # until its agent, which may be another one, has told
    tx.session.flush()
    if joined:
        tx.session.add(LeaseRow(node=row.name, boot="", heard_at=tx.now, beats=0))
    if row.network == "none":
        link_states.reset_links(tx, row.name)
        forget_keys(row)
    emit_node(tx, row, "joined" if joined else "changed")
    return Joined(row.name, row.subnet, replaced)


def admitted_before(tx: ReadTx, request: JoinRequest, now: datetime) -> Joined | None:
    """What became of this very request, if it was admitted before; None where it may be admitted now. Raises
    Forbidden."""
    if tx.session.get(RevokedKeyRow, request.public_key) is not None:
        raise Forbidden(
            "the node of this key was forgotten, or another device has joined in its place: delete the agent's state "
            "folder, so that it makes a new one"
        )
    token = tx.session.get(JoinTokenRow, _hash(request.token))
    if token is None:
        raise Forbidden("this join token is not known")
    if token.expires_at < now:
        raise Forbidden("this join token has expired")
    if token.node is not None and token.node != request.name:
        raise Forbidden(f"this join token is not for node {request.name}")
    if token.used_by is not None and token.used_by != request.public_key:
        raise Forbidden("this join token was used by another node")
    known = tx.session.get(NodeRow, request.name)
    if token.used_by is not None and token.node is None and known is None:
        raise Forbidden("this join token was used by another node")
    if token.used_for is not None and token.used_for != _digest(request):
        raise Forbidden(
            f"this join token has admitted node {request.name} already, with other settings: to change them, make "
            f"another one (ces node token --node {request.name})"
        )
    if token.node is None and known is not None and known.public_key != request.public_key:
        raise Forbidden(
            f"node {request.name} has joined with another key: to let it join again, make a token for it alone "
            f"(ces node token --node {request.name})"
        )
    if token.used_for is None or known is None:
        return None
    return Joined(known.name, known.subnet, replaced=False)


def _replace(tx: WriteTx, row: NodeRow) -> None:
    """Another device takes the node's place: the key before is good no more, and nothing starts on the new device that
    the one before was told to run. Raises Conflict where that may still run something."""
    tasks = tasks_on(tx, row.name)
    if tasks:
        raise Conflict(
            f"node {row.name} has joined with another key, and the device with that key may still run "
            f"{', '.join(tasks[:5])}: drain the node first (ces node drain {row.name}), or, if that device is gone, "
            f"wait until the node is lost, or forget it (ces node forget {row.name})"
        )
    revoke_key(tx, row)
    forget_keys(row)
    tx.session.execute(delete(NodeAvailabilityRow).where(NodeAvailabilityRow.node == row.name))
    row.least_generation = tx.version


def _check_held(tx: WriteTx, row: NodeRow, request: JoinRequest) -> None:
    """What runs on the node was placed by what it was. Raises Conflict where it would not fit what it becomes."""
    held = held_on_nodes(tx, [row.name]).get(row.name)
    if held is None:
        return
    before = {"runtime": row.runtime, "network": row.network}
    if request.network == "none":  # elsewhere workers have addresses of their own
        before["host_address"] = row.host_address
    becomes = {name: str(getattr(request, name)) for name in before}
    wrong = [f"{name} {was} -> {becomes[name]}" for name, was in before.items() if was != becomes[name]]
    cpu, memory, gpu, _ = held
    for name, offered, used, of_it in (
        ("cpu", request.cpu, cpu, f"{show_cpu(request.cpu)}, of which {show_cpu(cpu)} are in use"),
        ("memory", request.memory, memory, f"{show_memory(request.memory)}, of which {show_memory(memory)} is in use"),
        ("gpu", request.gpu, gpu, f"{request.gpu}, of which {gpu} are in use"),
    ):
        if offered < used:
            wrong.append(f"{name} {of_it}")
    wrong += _wrong_cards(tx, row.name, {card.id: card for card in cards_of(request.gpu, request.cards)})
    if wrong:
        remedy = f"drain it first (ces node drain {row.name})"
        if row.state != "ready":
            remedy += f", or, if it is gone for good, forget it (ces node forget {row.name})"
        raise Conflict(f"node {row.name} has work that does not fit what it becomes: {', '.join(wrong)}; {remedy}")


def _wrong_cards(tx: ReadTx, node: str, offers: Mapping[str, Card]) -> Iterator[str]:
    """What is held of the node's cards, and these do not give."""
    asking = defaultdict[str, set[tuple[bool, tuple[str, ...]]]](set)
    for cards, share, rank, tasks in tx.session.execute(_ASKING, {"node": node}):
        models = tuple(tasks[rank].gpu_models) if rank < len(tasks) else ()
        for held in cards:
            asking[held].add((bool(share), models))
    for name, (_, memory) in sorted(taken_cards(tx, [node])[node].items()):
        card = offers.get(name)
        if card is None:
            yield f"card {name} is in use"
            continue
        if card.memory < memory:
            yield f"card {name} has {show_memory(card.memory)}, of which {show_memory(memory)} is in use"
        if card.shareable == "no" and any(shared for shared, _ in asking[name]):
            yield f"card {name} is not shared any more, and shares of it are in use"
        for models in sorted({models for _, models in asking[name] if not is_model(card, models)}):
            yield f"card {name} is {card.model or 'of unknown model'}, and a job has it as {' or '.join(models)}"


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _digest(request: JoinRequest) -> str:
    # As those are remembered that were made before there were such fields.
    without = {name for name in ("cards", "profile") if not getattr(request, name)}
    return _hash(json.dumps(request.model_dump(mode="json", exclude=without), sort_keys=True))
