"""Border links: what a region's own books have of them. The gateway at the other end stands here as a node without
capacity and without an agent, so that flows end there, and are reserved and shaped on the link, as on any other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from ipaddress import IPv4Network

import structlog
from sqlalchemy import delete, or_, select

from ces_common.db.tables import NODE, LinkRow, MediumRow, NodeRow, RemovalRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.events import TopologyChanged
from ces_common.messages.records import LinkRecord
from ces_common.messages.regions import Border
from ces_common.messages.split import BorderSetup, NearEnd
from ces_common.names import border_node
from ces_common.shares import reservable, usable
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change
from ces_manager.network.carried import not_carried
from ces_manager.plans.residual import held_on_links

log = structlog.get_logger()
_STANDING = select(NodeRow).where(NodeRow.region.is_not(None)).order_by(NodeRow.name)


def near_ends(tx: ReadTx, setups: Iterable[BorderSetup]) -> list[NearEnd]:
    """What the other regions are told of this one's gateways that have joined."""
    found = []
    for setup in setups:
        node = tx.session.get(NodeRow, setup.gateway)
        if node is not None and node.region is None and node.subnet:
            found.append(NearEnd(region=setup.region, subnet=node.subnet, network=node.network))
    return found


def differs(tx: ReadTx, setups: Iterable[BorderSetup]) -> bool:
    """Whether the books have something else; of a border link whose other end was not heard, whatever they have is
    right."""
    setups = list(setups)
    stay = _unheard(setups)
    return _wanted(tx, setups) != {name: what for name, what in _known(tx).items() if name not in stay}


def put_borders(tx: WriteTx, setups: Iterable[BorderSetup]) -> None:
    """Make the books say what is set up. A border link of which the other end was not heard is left as it is; one that
    is set up no more goes with its node. Parts that a border link carries no longer fail, as bound jobs do whose link
    becomes too small within the region."""
    setups = list(setups)
    wanted = _wanted(tx, setups)
    stay = _unheard(setups)
    for row in tx.session.scalars(_STANDING).all():
        if row.name not in wanted | dict.fromkeys(stay):
            _delete_links(tx, row.name)
            tx.session.delete(row)
            tx.session.merge(RemovalRow(kind=NODE, name=row.name, version=tx.version, removed_at=tx.now))
    tx.session.flush()
    for setup in setups:
        name = border_node(setup.region, setup.there)
        if name in wanted and wanted[name] != _known(tx).get(name):
            _put(tx, setup, name)
    tx.session.flush()
    tx.cluster().topology_version = tx.version
    links = len(tx.session.scalars(select(LinkRow.src)).all())
    tx.emit("topology", "changed", "topology", TopologyChanged(links=links, media=0))
    _end_parts_not_carried(tx)


def _end_parts_not_carried(tx: WriteTx) -> None:
    links = [LinkRecord.model_validate(row, from_attributes=True) for row in tx.session.scalars(select(LinkRow))]
    idle = [link.model_copy(update={"measured": None}) for link in links]  # what probes say moves no job here either
    media = {row.name: row.bandwidth for row in tx.session.scalars(select(MediumRow))}
    for row, where in not_carried(tx, idle, media).jobs:
        if row.part is not None:
            why = f"the border link no longer carries it: {where}"
            change(tx, row, partial(lifecycle.reschedule, cause=lifecycle.Cause.TOPOLOGY, reason=why))


def _unheard(setups: Iterable[BorderSetup]) -> set[str]:
    return {border_node(each.region, each.there) for each in setups if each.far is None}


def _put(tx: WriteTx, setup: BorderSetup, name: str) -> None:
    assert setup.far is not None
    row = tx.session.get(NodeRow, name)
    if row is None:
        row = NodeRow(
            name=name, cpu=0, memory=0, gpu=0, arch="", labels={}, runtime="process", host_address="", last_host=0,
            public_key="", cordoned=False, state="ready", joined_at=tx.now,
        )  # fmt: skip
        tx.session.add(row)
    row.region, row.subnet, row.network = setup.region, str(setup.far.subnet), setup.far.network
    row.version = tx.version
    _delete_links(tx, name)
    tx.session.add_all(
        [
            LinkRow(src=setup.gateway, dst=name, bandwidth=setup.bandwidth, kind="veth", state="up"),
            LinkRow(src=name, dst=setup.gateway, bandwidth=setup.far.bandwidth, kind="veth", state="up"),
        ]
    )


def _delete_links(tx: WriteTx, node: str) -> None:
    statement = delete(LinkRow).where(or_(LinkRow.src == node, LinkRow.dst == node))
    tx.session.execute(statement, execution_options={"synchronize_session": "fetch"})


Standing = tuple[str, str, str, str, int, int]


def _wanted(tx: ReadTx, setups: Iterable[BorderSetup]) -> dict[str, Standing]:
    """By the node that stands for the other gateway: region, subnet, network, own gateway, bandwidth out and in. Both
    ends must have a data plane, or neither. Left out are those whose addresses a node here has, or another region's
    gateway, and those whose name a node here has: no region's word takes what is another's."""
    found: dict[str, Standing] = {}
    taken = {row.name: (row.region, row.subnet) for row in tx.session.scalars(select(NodeRow))}
    for setup in setups:
        name, gateway = border_node(setup.region, setup.there), tx.session.get(NodeRow, setup.gateway)
        if setup.far is None or gateway is None or gateway.network != setup.far.network:
            continue
        others = {other: what for other, what in taken.items() if other != name}
        if name in taken and taken[name][0] is None:
            log.warning("a border link is not set up: a node has its name", region=setup.region, node=name)
        elif where := [other for other, (_, subnet) in others.items() if _overlap(subnet, setup.far.subnet)]:
            log.warning("a border link is not set up: addresses overlap", region=setup.region, node=where[0])
        else:
            ends = (setup.region, str(setup.far.subnet), setup.far.network, setup.gateway)
            found[name] = (*ends, setup.bandwidth, setup.far.bandwidth)
            taken[name] = (setup.region, ends[1])
    return found


def _overlap(subnet: str, other: IPv4Network) -> bool:
    return bool(subnet) and IPv4Network(subnet).overlaps(other)


def _known(tx: ReadTx) -> dict[str, Standing]:
    found = {}
    for row in tx.session.scalars(_STANDING):
        there = tx.session.scalars(select(LinkRow).where(LinkRow.dst == row.name)).first()
        back = tx.session.scalars(select(LinkRow).where(LinkRow.src == row.name)).first()
        if there is not None and back is not None:
            bandwidths = (there.bandwidth, back.bandwidth)
            found[row.name] = (str(row.region), row.subnet, row.network, there.src, *bandwidths)
    return found


def border_names(tx: ReadTx) -> set[str]:
    """Of the nodes that stand here for other regions' gateways."""
    return {row.name for row in tx.session.scalars(_STANDING)}


def border_links(tx: ReadTx) -> list[LinkRecord]:
    """Both directions of each, as they stand."""
    names = border_names(tx)
    query = select(LinkRow).where(or_(LinkRow.src.in_(names), LinkRow.dst.in_(names)))
    return [LinkRecord.model_validate(row, from_attributes=True) for row in tx.session.scalars(query)]


def borders(tx: ReadTx) -> list[Border]:
    """This region's own border links with what is free on them."""
    found = []
    for row in tx.session.scalars(_STANDING):
        for link in tx.session.scalars(select(LinkRow).where(LinkRow.dst == row.name)):
            total = reservable(usable(link.bandwidth, link.measured))
            free = total - held_on_links(tx, [link.src]).get((link.src, link.dst), 0)
            found.append(Border(region=str(row.region), total=total, free=max(0, free), up=link.state == "up"))
    return found
