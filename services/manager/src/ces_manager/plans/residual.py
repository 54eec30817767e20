"""Residual capacity of nodes, links and media: what committed rows leave free."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import BindParameter, bindparam, func, select

from ces_common.db.tables import LIVE_STATES, AllocationRow, HopRow, LinkRow, MediumRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.messages.cards import Held
from ces_common.resources import WHOLE
from ces_common.scores import speeds_of
from ces_common.shares import reservable, reservable_of_medium, usable
from ces_manager.plans.feasibility import Hop, Residual, ResidualLink, ResidualNode

Amounts = tuple[int, int, int, int]  # millicores, bytes, whole GPUs, thousandths of others
# Built once: putting a statement together costs more than running it.
_IN_NAMES: BindParameter[str] = bindparam("names", expanding=True)
_NODES = select(NodeRow).where(NodeRow.name.in_(_IN_NAMES))
_LINKS = select(
    *(LinkRow.src, LinkRow.dst, LinkRow.bandwidth, LinkRow.measured, LinkRow.medium, LinkRow.state, LinkRow.delay)
).where(LinkRow.src.in_(_IN_NAMES))
_HELD = (
    select(
        AllocationRow.node,
        func.sum(AllocationRow.cpu),
        func.sum(AllocationRow.memory),
        func.sum(AllocationRow.gpu),
        func.sum(AllocationRow.gpu_share),
    )
    .where(AllocationRow.state.in_(LIVE_STATES))
    .group_by(AllocationRow.node)
)
_HELD_ON = _HELD.where(AllocationRow.node.in_(_IN_NAMES))
_CARDS_OF = select(NodeRow.name, NodeRow.cards).where(NodeRow.name.in_(_IN_NAMES))
_CARDS_ON = select(
    AllocationRow.node, AllocationRow.job, AllocationRow.cards, AllocationRow.gpu_share, AllocationRow.gpu_memory
).where(AllocationRow.state.in_(LIVE_STATES), AllocationRow.node.in_(_IN_NAMES))
_RESERVED = (
    select(HopRow.src, HopRow.dst, func.sum(HopRow.rate))
    .where(HopRow.src.in_(_IN_NAMES))
    .group_by(HopRow.src, HopRow.dst)
)
_LOADED = _RESERVED.add_columns(func.count().filter(HopRow.rate > 0))


def residual_of(tx: ReadTx, nodes: Collection[str], links: Collection[Hop], *, but: str | None = None) -> Residual:
    """Residual capacity of these nodes and links, and of the media that the links share. ``but``: a job whose cards
    count as free."""
    rows = tx.session.execute(_HELD_ON, {"names": list(nodes)}).all()
    used_nodes = {node: (int(cpu), int(memory), int(gpu)) for node, cpu, memory, gpu, _ in rows}
    with_cards = [row[0] for row in rows if row[3] or row[4]]
    taken = taken_cards(tx, with_cards, but) if with_cards else {}
    node_rooms = {}
    for node in tx.session.scalars(_NODES, {"names": list(nodes)}):
        cpu, memory, gpu = used_nodes.get(node.name, (0, 0, 0))
        node_rooms[node.name] = ResidualNode(
            node.state,
            node.cordoned,
            node.reclaimed,
            node.arch,
            node.labels,
            node.cpu - cpu,
            node.memory - memory,
            node.gpu - gpu,
            node.datasets,
            node.confinement,
            {card.id: card for card in node.cards},
            taken.get(node.name, {}),
            {} if node.measured is None else speeds_of(node.measured),
        )
    if not links:
        return Residual(node_rooms)
    sources = {src for src, _ in links}
    used_links = held_on_links(tx, sources)
    link_rooms = {}
    for link in tx.session.execute(_LINKS, {"names": list(sources)}):
        hop = (link.src, link.dst)
        if hop in links:
            left = reservable(usable(link.bandwidth, link.measured)) - used_links.get(hop, 0)
            link_rooms[hop] = ResidualLink(left, link.medium, link.state == "up", link.delay)
    media = {link.medium for link in link_rooms.values() if link.medium is not None}
    return Residual(node_rooms, link_rooms, _left_of_media(tx, media) if media else {})


def held_on_nodes(tx: ReadTx, nodes: Collection[str] | None = None) -> dict[str, Amounts]:
    """What live allocations hold of these nodes, or of all."""
    rows = tx.session.execute(_HELD) if nodes is None else tx.session.execute(_HELD_ON, {"names": list(nodes)})
    return {node: (int(cpu), int(memory), int(gpu), int(share)) for node, cpu, memory, gpu, share in rows}


def taken_cards(tx: ReadTx, nodes: Collection[str], but: str | None = None) -> dict[str, dict[str, Held]]:
    """By node, what is held of which cards. ``but``: a job that does not count."""
    found: dict[str, dict[str, Held]] = defaultdict(dict)
    known = tx.session.execute(_CARDS_OF, {"names": list(nodes)})
    memory = {name: {card.id: card.memory for card in cards} for name, cards in known}
    for node, job, cards, share, part in tx.session.execute(_CARDS_ON, {"names": list(nodes)}):
        for card in cards if job != but else ():
            if not share:  # a job holds it whole, maybe at two sizes
                found[node][card] = (WHOLE, memory[node].get(card, 0))
            else:
                before = found[node].get(card, (0, 0))
                found[node][card] = (before[0] + share, before[1] + part)
    return found


def held_on_links(tx: ReadTx, sources: Collection[str]) -> dict[Hop, int]:
    """What held flows reserve on links from these nodes, in bit/s."""
    rows = tx.session.execute(_RESERVED, {"names": list(sources)})
    return {(src, dst): int(total) for src, dst, total in rows}


def loads_of_links(tx: ReadTx, sources: Collection[str]) -> dict[Hop, tuple[int, int]]:
    """What held flows reserve on links from these nodes, in bit/s, and how many flows that are."""
    rows = tx.session.execute(_LOADED, {"names": list(sources)})
    return {(src, dst): (int(total), flows) for src, dst, total, flows in rows}


def _left_of_media(tx: ReadTx, names: Collection[str]) -> dict[str, int]:
    used = (
        select(LinkRow.medium, func.sum(HopRow.rate))
        .join(HopRow, (HopRow.src == LinkRow.src) & (HopRow.dst == LinkRow.dst))
        .where(LinkRow.medium.in_(names))
        .group_by(LinkRow.medium)
    )
    taken = {medium: int(total) for medium, total in tx.session.execute(used)}
    kinds: dict[str | None, list[str]] = defaultdict(list)
    for medium, kind in tx.session.execute(
        select(LinkRow.medium, LinkRow.kind).where(LinkRow.medium.in_(names)).distinct()
    ):
        kinds[medium].append(kind)
    rows = tx.session.execute(select(MediumRow.name, MediumRow.bandwidth).where(MediumRow.name.in_(names)))
    return {name: reservable_of_medium(bandwidth, kinds[name]) - taken.get(name, 0) for name, bandwidth in rows}
