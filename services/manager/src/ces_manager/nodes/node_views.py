"""Nodes and the topology as the REST API shows them, with what agents measured last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow, LeaseRow, MediumRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.messages.api import NodeView, Page, TopologyView
from ces_common.resources import gpus_of
from ces_common.scores import scores_of
from ces_manager.availability.views import availability_of_nodes
from ces_manager.columns import shared_columns
from ces_manager.cursors import node_cursor
from ces_manager.energy.views import energy_of_nodes
from ces_manager.errors import NotFound
from ces_manager.measurements import Measurements
from ces_manager.network.link_views import link_views_of
from ces_manager.nodes.card_views import card_views
from ces_manager.plans.residual import held_on_nodes

CONTESTED = "two machines use this node's credential, or it has just rebooted: one of them is refused"
KEY_REFUSED = (
    "its key for encrypted links is not taken, since node {} told the same before: one of them claims the other's, or "
    "both have a copy of one file (delete link-keys.json in this agent's state folder, and restart it)"
)


def list_nodes(
    tx: ReadTx, measurements: Measurements, *, cursor: str | None, limit: int, tenants: Collection[str] | None = None
) -> Page[NodeView]:
    """In order of their names; the cursor is the last name seen. ``tenants``: whose allocations are named; None for
    all."""
    last = node_cursor(cursor) or ""
    query = select(NodeRow.name).where(NodeRow.name > last).order_by(NodeRow.name).limit(limit + 1)
    names = tx.session.scalars(query).all()
    views = _node_views(tx, measurements, names[:limit], tenants)
    return Page[NodeView](items=views, next=names[limit - 1] if len(names) > limit else None)


def node_view(tx: ReadTx, node: str, measurements: Measurements, tenants: Collection[str] | None = None) -> NodeView:
    """``tenants``: whose allocations are named; None for all. Raises NotFound."""
    views = _node_views(tx, measurements, [node], tenants)
    if not views:
        raise NotFound(f"no node {node}: ces get nodes lists those that there are")
    return views[0]


def topology_view(tx: ReadTx, measurements: Measurements, tenants: Collection[str] | None = None) -> TopologyView:
    """``tenants``: whose allocations are named; None for all."""
    media = tx.session.scalars(select(MediumRow).order_by(MediumRow.name))
    return TopologyView(
        version=tx.cluster().topology_version,
        nodes=_node_views(tx, measurements, tenants=tenants),
        links=link_views_of(tx, measurements),
        media={row.name: row.bandwidth for row in media},
    )


def _node_views(
    tx: ReadTx,
    measurements: Measurements,
    names: Collection[str] | None = None,
    tenants: Collection[str] | None = None,
) -> list[NodeView]:
    """All nodes, or those named, in order of their names."""
    query = select(NodeRow, LeaseRow).outerjoin(LeaseRow, LeaseRow.node == NodeRow.name).order_by(NodeRow.name)
    live = (
        select(AllocationRow.node, JobRow.name, AllocationRow.task)
        .join(JobRow, JobRow.id == AllocationRow.job)
        .where(AllocationRow.state.in_(LIVE_STATES))
        .order_by(JobRow.id, AllocationRow.rank)
    )
    if names is not None:
        query, live = query.where(NodeRow.name.in_(names)), live.where(AllocationRow.node.in_(names))
    if tenants is not None:
        live = live.where(JobRow.tenant.in_(tenants))
    placed: dict[str, dict[str, None]] = defaultdict(dict)  # each name once: a task that moves may hold two things
    for node, job, task in tx.session.execute(live):
        placed[node][f"{job}/{task}"] = None
    held = held_on_nodes(tx, names)
    rows = tx.session.execute(query).all()
    cards = card_views(tx, {row.name: row.cards for row, _ in rows if row.gpu}, tenants)
    energy, availability = energy_of_nodes(tx, measurements.energy, names), availability_of_nodes(tx, names)
    views = []
    for row, lease in rows:
        beat = measurements.beat(row.name)
        cpu, memory, gpu, share = held.get(row.name, (0, 0, 0, 0))
        views.append(
            NodeView(
                **shared_columns(row, NodeView) | {"cards": cards.get(row.name, [])},
                scores=None if row.measured is None else scores_of(row.measured),
                cpu_allocated=cpu,
                memory_allocated=memory,
                gpu_allocated=gpus_of(gpu, share),
                cpu_used=beat[1].cpu if beat else None,
                memory_used=beat[1].memory if beat else None,
                warning=warning_of(row.name, measurements),
                last_heartbeat=lease.heard_at if lease is not None and lease.boot else None,
                allocations=list(placed[row.name]),
                energy=energy.get(row.name),
                availability=availability.get(row.name),
            )
        )
    return views


def warning_of(node: str, measurements: Measurements) -> str | None:
    """What an operator should look into."""
    found = [CONTESTED] if measurements.contested(node) else []
    if (owner := measurements.key_refused(node)) is not None:
        found.append(KEY_REFUSED.format(owner))
    return "; ".join(found) or None
