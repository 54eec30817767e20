"""What is left of nodes, links and media, from the committed rows."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import func, select

from ces_common.db.tables import LIVE_STATES, AllocationRow, HopRow, LinkRow, MediumRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.shares import reservable
from ces_manager.capacity import Hop, LinkRoom, NodeRoom, Room

Held = tuple[int, int, int]  # millicores, bytes, GPUs


def room_for(tx: ReadTx, nodes: Collection[str], links: Collection[Hop]) -> Room:
    """What is left of these nodes and links, and of the media that the links share."""
    used_nodes = held_on_nodes(tx, nodes)
    node_rooms = {}
    for node in tx.session.scalars(select(NodeRow).where(NodeRow.name.in_(nodes))):
        cpu, memory, gpu = used_nodes.get(node.name, (0, 0, 0))
        node_rooms[node.name] = NodeRoom(
            node.state, node.cordoned, node.arch, node.labels, node.cpu - cpu, node.memory - memory, node.gpu - gpu
        )
    if not links:
        return Room(node_rooms)
    sources = {src for src, _ in links}
    used_links = held_on_links(tx, sources)
    link_rooms = {}
    for link in tx.session.scalars(select(LinkRow).where(LinkRow.src.in_(sources))):
        hop = (link.src, link.dst)
        if hop in links:
            link_rooms[hop] = LinkRoom(reservable(link.bandwidth) - used_links.get(hop, 0), link.medium)
    media = {link.medium for link in link_rooms.values() if link.medium is not None}
    return Room(node_rooms, link_rooms, _left_of_media(tx, media) if media else {})


def held_on_nodes(tx: ReadTx, nodes: Collection[str] | None = None) -> dict[str, Held]:
    """What live allocations hold, of these nodes or of all."""
    query = select(
        AllocationRow.node,
        func.sum(AllocationRow.cpu),
        func.sum(AllocationRow.memory),
        func.sum(AllocationRow.gpu),
    ).where(AllocationRow.state.in_(LIVE_STATES))
    if nodes is not None:
        query = query.where(AllocationRow.node.in_(nodes))
    rows = tx.session.execute(query.group_by(AllocationRow.node))
    return {node: (int(cpu), int(memory), int(gpu)) for node, cpu, memory, gpu in rows}


def held_on_links(tx: ReadTx, sources: Collection[str] | None = None) -> dict[Hop, int]:
    """What held flows reserve, in bit/s, on links from these nodes or on all."""
    query = select(HopRow.src, HopRow.dst, func.sum(HopRow.bandwidth))
    if sources is not None:
        query = query.where(HopRow.src.in_(sources))
    return {(src, dst): int(total) for src, dst, total in tx.session.execute(query.group_by(HopRow.src, HopRow.dst))}


def _left_of_media(tx: ReadTx, names: Collection[str]) -> dict[str, int]:
    used = (
        select(LinkRow.medium, func.sum(HopRow.bandwidth))
        .join(HopRow, (HopRow.src == LinkRow.src) & (HopRow.dst == LinkRow.dst))
        .where(LinkRow.medium.in_(names))
        .group_by(LinkRow.medium)
    )
    taken = {medium: int(total) for medium, total in tx.session.execute(used)}
    rows = tx.session.execute(select(MediumRow.name, MediumRow.bandwidth).where(MediumRow.name.in_(names)))
    return {name: reservable(bandwidth) - taken.get(name, 0) for name, bandwidth in rows}
