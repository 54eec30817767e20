"""Reads the applications that CES may change by itself, and what is around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from ces_common.access_nodes import Uncovered, access_node
from ces_common.db.tables import JobRow, LinkRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.scores import speeds_of
from ces_common.shares import usable
from ces_common.states import JobState
from ces_manager.adjusting.surroundings import Hop, LinkSeen, NodeSeen, Place, Seen, Surroundings
from ces_manager.jobs.records import reservations_of
from ces_manager.jobs.transitions import allocations_of

_WATCHED = select(JobRow).where(JobRow.state == JobState.RUNNING, JobRow.adjusts).order_by(JobRow.id)
_NODES = select(
    NodeRow.name, NodeRow.state, NodeRow.cordoned, NodeRow.reclaimed, NodeRow.region, NodeRow.measured, NodeRow.profile
)
_LINKS = select(LinkRow.src, LinkRow.dst, LinkRow.bandwidth, LinkRow.measured, LinkRow.state, LinkRow.delay)
NOTHING = Surroundings({}, {})


@dataclass(frozen=True, slots=True)
class Watched:
    """An application that runs. ``senders``: node and allocation of the tasks that tell how long requests take;
    ``still``: whether none of its tasks is being moved."""

    job: str
    name: str
    seen: Seen
    senders: tuple[tuple[str, str], ...]
    still: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """As of a version of the database. ``jobs``: in order of their ids."""

    version: int
    around: Surroundings
    jobs: Sequence[Watched]


def scene_of(tx: ReadTx, former: Scene | None) -> Scene:
    """``former``: what is returned again where nothing has changed since."""
    version = tx.cluster().version
    if former is not None and former.version == version:
        return former
    rows = tx.session.scalars(_WATCHED).all()
    if not rows:
        return Scene(version, NOTHING, ())
    nodes = tx.session.execute(_NODES).all()
    around = Surroundings(_links(tx), {node.name: _node_seen(node) for node in nodes if node.region is None})
    if former is not None and former.around == around:
        around = former.around
    allocations, reservations = allocations_of(tx, rows), reservations_of(tx, rows)
    found = []
    for row in rows:
        held, senders = allocations[row.id], {task.name for task in row.tasks if task.user is not None}
        flows = {(each.src, each.dst): (each.rate, tuple(each.path)) for each in reservations[row.id] if each.held}
        place = Place(row.attempt, {each.task: each.node for each in held}, flows, _access(row, nodes))
        told = tuple((each.node, each.id) for each in held if each.task in senders)
        found.append(Watched(row.id, row.name, Seen(around, place), told, row.move is None))
    return Scene(version, around, found)


def _links(tx: ReadTx) -> dict[Hop, LinkSeen]:
    return {
        (link.src, link.dst): LinkSeen(usable(link.bandwidth, link.measured) if link.state == "up" else 0, link.delay)
        for link in tx.session.execute(_LINKS)
    }


def _node_seen(node: Any) -> NodeSeen:
    takes_work = node.state == "ready" and not (node.cordoned or node.reclaimed)
    return NodeSeen(takes_work, {} if node.measured is None else speeds_of(node.measured))


def _access(row: JobRow, nodes: Sequence[Any]) -> Mapping[str, str]:
    """User -> access node, without those whom no node covers."""
    found = {}
    for user in row.spec.users:
        try:
            found[user.name] = access_node(user.at, nodes)
        except Uncovered:
            continue
    return found
