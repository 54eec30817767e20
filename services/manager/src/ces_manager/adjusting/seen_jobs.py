"""Reads the applications that CES may change by itself, and what is around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import undefer, undefer_group

from ces_common.access_nodes import Uncovered, access_node
from ces_common.application import User
from ces_common.db.tables import EXPANDED, JobRow, LinkRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.scores import speeds_of
from ces_common.shares import usable
from ces_common.states import JobState
from ces_manager.adjusting.surroundings import Hop, LinkSeen, NodeSeen, Place, Seen, Surroundings
from ces_manager.jobs.records import reservations_of
from ces_manager.jobs.transitions import allocations_of

_WATCHED = select(JobRow.id, JobRow.version).where(JobRow.state == JobState.RUNNING, JobRow.adjusts).order_by(JobRow.id)
_NODES = select(
    NodeRow.name, NodeRow.state, NodeRow.cordoned, NodeRow.reclaimed, NodeRow.region, NodeRow.measured, NodeRow.profile
)
_LINKS = select(LinkRow.src, LinkRow.dst, LinkRow.bandwidth, LinkRow.measured, LinkRow.state, LinkRow.delay)
NOTHING = Surroundings({}, {})


@dataclass(frozen=True, slots=True)
class Watched:
    """An application that runs, as of a ``version`` of its own. ``requests``: its classes that have a deadline;
    ``senders``: node and allocation of the tasks that tell how long requests take; ``still``: whether none of its tasks
    is being moved."""

    job: str
    version: int
    seen: Seen
    users: Sequence[User]
    requests: frozenset[str]
    senders: tuple[tuple[str, str], ...]
    still: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """As of a version of the database; ``epoch``: of which, since one that was put back counts again. ``jobs``: by
    id."""

    epoch: str
    version: int
    around: Surroundings
    jobs: Mapping[str, Watched]


def scene_of(tx: ReadTx, former: Scene | None) -> Scene:
    """``former``: of which is kept what has not changed since."""
    cluster = tx.cluster()
    epoch, version = cluster.epoch, cluster.version
    if former is not None and former.epoch != epoch:
        former = None
    if former is not None and former.version == version:
        return former
    found = {row.id: row.version for row in tx.session.execute(_WATCHED)}
    if not found:
        return Scene(epoch, version, NOTHING, {})
    nodes = tx.session.execute(_NODES).all()
    around = Surroundings(_links(tx), {node.name: _node_seen(node) for node in nodes if node.region is None})
    if former is not None and former.around == around:
        around = former.around
    known = {} if former is None else {job: kept for job, kept in former.jobs.items() if found.get(job) == kept.version}
    jobs = {job: replace(kept, seen=_seen(kept, around, nodes)) for job, kept in known.items()}
    jobs |= _read(tx, [job for job in found if job not in known], around, nodes)
    return Scene(epoch, version, around, jobs)


def _seen(kept: Watched, around: Surroundings, nodes: Sequence[Any]) -> Seen:
    """A node's position is none of the surroundings: users are looked for each time."""
    access = _access(kept.users, nodes)
    if kept.seen.around is around and access == kept.seen.place.users:
        return kept.seen
    return Seen(around, replace(kept.seen.place, users=access))


def _read(tx: ReadTx, jobs: Sequence[str], around: Surroundings, nodes: Sequence[Any]) -> dict[str, Watched]:
    if not jobs:
        return {}
    query = select(JobRow).where(JobRow.id.in_(jobs)).options(undefer_group(EXPANDED), undefer(JobRow.spec))
    rows = tx.session.scalars(query).all()
    allocations, reservations = allocations_of(tx, rows), reservations_of(tx, rows)
    found = {}
    for row in rows:
        held, senders = allocations[row.id], {task.name for task in row.tasks if task.user is not None}
        flows = {(each.src, each.dst): (each.rate, tuple(each.path)) for each in reservations[row.id] if each.held}
        place = Place(row.attempt, {each.task: each.node for each in held}, flows, _access(row.spec.users, nodes))
        found[row.id] = Watched(
            job=row.id,
            version=row.version,
            seen=Seen(around, place),
            users=row.spec.users,
            requests=frozenset(each.name for each in row.spec.requests if each.deadline is not None),
            senders=tuple((each.node, each.id) for each in held if each.task in senders),
            still=row.move is None,
        )
    return found


def _links(tx: ReadTx) -> dict[Hop, LinkSeen]:
    return {
        (link.src, link.dst): LinkSeen(usable(link.bandwidth, link.measured) if link.state == "up" else 0, link.delay)
        for link in tx.session.execute(_LINKS)
    }


def _node_seen(node: Any) -> NodeSeen:
    takes_work = node.state == "ready" and not (node.cordoned or node.reclaimed)
    return NodeSeen(takes_work, {} if node.measured is None else speeds_of(node.measured))


def _access(users: Sequence[User], nodes: Sequence[Any]) -> Mapping[str, str]:
    """User -> access node, without those whom no node covers."""
    found = {}
    for user in users:
        try:
            found[user.name] = access_node(user.at, nodes)
        except Uncovered:
            continue
    return found
