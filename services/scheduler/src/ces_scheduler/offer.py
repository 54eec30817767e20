"""What the cluster offers to waiting jobs: the committed state as the scheduling core's cluster. Pure.

Millicores, bytes and bit/s stay as they are; the core takes any consistent units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ces_common.change_log import Mark
from ces_common.jobfile import Task
from ces_common.messages.cards import Held, held_of
from ces_common.messages.plans import FlowPlan
from ces_common.messages.records import AllocationRecord, FlowRecord, JobRecord, NodeRecord, kinds_on_media
from ces_common.messages.records import Topology as TopologyRecord
from ces_common.resources import WHOLE
from ces_common.shares import reservable, reservable_of_medium
from ces_common.state_view import StateView
from ces_common.states import JobState
from ces_core.model.parts import Link, Node
from ces_core.model.problem import RESOURCES, Cluster
from ces_core.model.profiles import ClusterProfile
from ces_core.model.topology import Topology
from ces_core.queue.jobs import kept_by
from ces_core.queue.ledger import LINK, Cell
from ces_scheduler.application_goals import link_profile, node_profile
from ces_scheduler.eligibility import filters_of, kind_of, refusal

Floats = NDArray[np.float64]
GPU: Final = RESOURCES.index("gpu")
Cells = Mapping[Cell, float]
"""What a job holds of each node and link."""
CardPlace = tuple[str, str]
"""A node, and the id of a card there."""
HeldCards = Mapping[CardPlace, Held]
Barred = Mapping[str, str]
"""Node -> why a task may not run there."""


@dataclass(frozen=True, eq=False)
class Offer:
    """The core's cluster with everything held in use, and the records behind its columns.

    ``held``: what each job holds (a suspended one: what it keeps), by the name under which the core knows it;
    ``records``: of those jobs whose plan is committed; ``made``: of which moments of its jobs and nodes it is;
    ``cards``: those that jobs have by plans that are committed or proposed, whatever is supposed beside."""

    cluster: Cluster
    nodes: dict[str, NodeRecord]
    topology: TopologyRecord
    held: dict[str, Cells] = field(default_factory=dict)
    records: dict[str, JobRecord] = field(default_factory=dict)
    made: tuple[Mark, Mark] = field(default_factory=lambda: (Mark(), Mark()))
    cards: dict[str, HeldCards] = field(default_factory=dict)
    _barred: dict[object, Barred] = field(default_factory=dict, init=False)  # each row is worked out once

    def less(self, proposed: Mapping[str, Cells]) -> Offer:
        """The same offer with what these jobs were given held as well."""
        nodes, links = self.cluster.node_used.copy(), self.cluster.link_used.copy()
        for cells in proposed.values():
            _add(cells, nodes, links)
        return replace(self, cluster=self.cluster.with_used(nodes, links), held={**self.held, **proposed})

    def without(self, job: str) -> Offer:
        """The same offer with what this job holds free."""
        nodes, links = self.cluster.node_used.copy(), self.cluster.link_used.copy()
        _add(self.held[job], nodes, links, -1)
        held = {name: cells for name, cells in self.held.items() if name != job}
        return replace(self, cluster=self.cluster.with_used(nodes, links), held=held)

    def free_part(self, cells: Cells) -> Cells:
        """Of these amounts, what nobody holds."""
        cluster = self.cluster
        nodes, links = cluster.node_free, cluster.link_capacity - cluster.link_used
        free = {cell: links[cell[1]] if cell[0] == LINK else nodes[cell] for cell in cells}
        found = {cell: min(amount, float(free[cell])) for cell, amount in cells.items()}
        return {cell: amount for cell, amount in found.items() if amount > 0}

    def same_ground(self, other: Offer) -> bool:
        """Whether both are of the same nodes and links, with the same tasks allowed on them and the same data."""
        now, then = self.cluster, other.cluster
        return (
            now.topology is then.topology
            and np.array_equal(now.node_capacity, then.node_capacity)
            and np.array_equal(now.link_capacity, then.link_capacity)
            and np.array_equal(now.medium_capacity, then.medium_capacity)
            and _same_profile(now.profile, then.profile)
            and (self.nodes is other.nodes or filters_of(self.nodes) == filters_of(other.nodes))
        )

    def nothing_freed_since(self, earlier: Offer) -> bool:
        """Whether a job that found no place then can find none now: the same nodes and links, and none freer."""
        now, then = self.cluster, earlier.cluster
        return self.same_ground(earlier) and bool(
            (now.node_used >= then.node_used).all() and (now.link_used >= then.link_used).all()
        )

    def barred(self, task: Task) -> Barred:
        """Why the task may not run on some nodes. Switches never run tasks and are left out."""
        key = kind_of(task)
        if key not in self._barred:
            nodes = ((name, node) for name, node in self.nodes.items() if node.cpu)
            self._barred[key] = {name: why for name, node in nodes if (why := refusal(task, node))}
        return self._barred[key]


def offer_of(view: StateView, earlier: Offer | None = None) -> Offer:
    """The cluster as committed. A link is part of it only while it is up and between nodes that are within reach.

    Where nodes and links are those of an ``earlier`` offer, only jobs that have changed since are looked at: with ten
    thousand nodes or jobs that is what makes a change cheap. Amounts are whole numbers, so nothing is lost by adding
    them up and down.
    """
    made = view.changed_jobs.mark, view.changed_nodes.mark
    same_nodes = earlier is not None and earlier.made[1] == made[1]
    if earlier is not None and same_nodes and earlier.made[0] == made[0] and earlier.topology is view.topology:
        return earlier
    same_cluster = earlier is not None and _same_cluster(earlier, view, same_nodes)
    changed = view.changed_jobs.since(earlier.made[0]) if earlier is not None and same_cluster else None
    cluster = earlier.cluster if earlier is not None and same_cluster else _cluster_of(view)
    records: dict[str, JobRecord] = {}
    held: dict[str, Cells] = {}
    cards: dict[str, HeldCards] = {}
    nodes, links = np.zeros_like(cluster.node_used), np.zeros_like(cluster.link_used)
    if earlier is not None and changed is not None:
        records, held, cards = dict(earlier.records), dict(earlier.held), dict(earlier.cards)
        nodes, links = cluster.node_used.copy(), cluster.link_used.copy()
    for job in view.jobs if changed is None else changed:
        record = view.jobs.get(job)
        holder = None if record is None or record.released else holder_of(record)
        for name in (job, kept_by(job)):
            if name in held:
                _add(held[name], nodes, links, -1)
                cards.pop(name, None)
                if name != holder:
                    del records[name], held[name]
        if record is not None and holder is not None:
            records[holder], held[holder] = record, _cells_of(record, cluster.topology)
            _add(held[holder], nodes, links)
            if named := cards_held_by(record):
                cards[holder] = named
    known = earlier.nodes if earlier is not None and same_nodes else dict(view.nodes)
    return Offer(cluster.with_used(nodes, links), known, view.topology, held, records, made, cards)


def holder_of(job: JobRecord) -> str:
    """The name under which the core knows a job that holds something."""
    return kept_by(job.id) if job.state is JobState.SUSPENDED else job.id


def cells_of_plan(
    tasks: Sequence[Task], assignments: Mapping[str, str], flows: Sequence[FlowPlan], topology: Topology
) -> Cells:
    """What a plan takes of the nodes and links that are there now."""
    places = [(task, assignments[task.name]) for task in tasks]
    return _cells(places, [(flow.path, flow.rate) for flow in flows], topology)


def links_of(flow: FlowRecord, topology: Topology) -> list[int]:
    """The links of the flow's path that are there now."""
    return _links(flow.path, topology)


def _cells_of(job: JobRecord, topology: Topology) -> Cells:
    """What a job holds of the nodes and links that are there now."""
    places = [(_held_by(each, job), each.node) for each in job.allocations if not each.over]
    if job.state is JobState.SUSPENDED:
        places = [(task.model_copy(update={"cpu": 0}), node) for task, node in places]
    flows = [*job.reserved, *([] if job.moving is None else job.moving.reserved)]
    if job.moving is not None and job.moving.beside is not None:
        places.append((_held_by(job.moving.beside, job), job.moving.beside.node))
    cells = _cells(places, [(flow.path, flow.rate) for flow in flows], topology)
    if job.resizing is None:
        return cells
    coming = [(job.resizing.tasks[each.rank], each.node) for each in job.resizing.allocations]
    most = _most(cells, _cells(coming, [(flow.path, flow.rate) for flow in job.resizing.reserved], topology))
    named = Counter(topology.node_index.get(node) for node, _ in cards_held_by(job))  # a malleable job's are whole
    return _most(most, {(GPU, node): float(number) for node, number in named.items() if node is not None})


def cards_held_by(job: JobRecord) -> HeldCards:
    """What tasks of the job have of cards, or are to have at the size that it goes to."""
    coming = () if job.resizing is None else job.resizing.allocations
    live = [each for each in (*job.allocations, *coming) if each.cards and not each.over]
    return _together((each.node, card, each.gpu_share, each.gpu_memory) for each in live for card in each.cards)


def cards_of_plan(
    cards: Mapping[str, Sequence[str]],
    assignments: Mapping[str, str],
    tasks: Sequence[Task],
    nodes: Mapping[str, NodeRecord],
) -> HeldCards:
    """What the tasks of a plan are to have of cards."""
    found = []
    for task in tasks:
        node = assignments[task.name]
        known = {card.id: card for card in nodes[node].cards} if node in nodes else {}
        for each in cards.get(task.name, ()):
            share, memory = held_of(known[each], task.gpu_share, task.gpu_memory) if each in known else (WHOLE, 0)
            found.append((node, each, share if task.gpu_share else 0, memory))
    return _together(found)


def _together(held: Iterable[tuple[str, str, int, int]]) -> HeldCards:
    """Node, card, thousandths and memory of each; 0 thousandths are all of it."""
    found: dict[CardPlace, Held] = {}
    for node, card, share, memory in held:
        before = found.get((node, card), (0, 0))
        found[node, card] = (before[0] + share, before[1] + memory) if share else (WHOLE, 0)
    return found


def _held_by(allocation: AllocationRecord, job: JobRecord) -> Task:
    """The task with what its allocation holds, which changes while it runs."""
    task = job.tasks[allocation.rank]
    same = allocation.cpu is None or allocation.cpu == task.cpu
    return task if same else task.model_copy(update={"cpu": allocation.cpu})


def _most(one: Cells, other: Cells) -> Cells:
    """Of each cell the larger amount: a job that goes to another size never needs both at once."""
    return {cell: max(one.get(cell, 0.0), other.get(cell, 0.0)) for cell in one.keys() | other.keys()}


def _cells(
    places: Iterable[tuple[Task, str]], paths: Iterable[tuple[list[str], int]], topology: Topology
) -> dict[Cell, float]:
    found: dict[Cell, float] = {}
    for task, name in places:
        node = topology.node_index.get(name)
        for resource, amount in enumerate((task.cpu, task.memory, task.gpus) if node is not None else ()):
            if node is not None and amount:
                found[resource, node] = found.get((resource, node), 0.0) + amount
    for path, rate in paths:
        for link in _links(path, topology) if rate else ():
            found[LINK, link] = found.get((LINK, link), 0.0) + rate
    return found


def _links(path: list[str], topology: Topology) -> list[int]:
    ends = [topology.node_index.get(name, -1) for name in path]
    links = (topology.link_index.get(hop) for hop in pairwise(ends))
    return [link for link in links if link is not None]


def _add(cells: Cells, nodes: Floats, links: Floats, times: int = 1) -> None:
    for (resource, index), amount in cells.items():
        if resource == LINK:
            links[index] += times * amount
        else:
            nodes[resource, index] += times * amount
            if resource == GPU:  # shares of cards are no whole numbers, and nothing of them may be lost either
                nodes[resource, index] = round(nodes[resource, index], 3)


def _same_cluster(earlier: Offer, view: StateView, same_nodes: bool) -> bool:
    """Whether the earlier offer was of the same nodes, as far as the core sees them, and of the same links.
    ``same_nodes``: nothing of them has changed."""
    if earlier.topology is not view.topology or (not same_nodes and earlier.nodes.keys() != view.nodes.keys()):
        return False
    if same_nodes:
        return True
    pairs = ((node, earlier.nodes[name]) for name, node in view.nodes.items())
    return all(now is then or _static(now) == _static(then) for now, then in pairs)


def _static(node: NodeRecord) -> tuple[object, ...]:
    return node.cpu, node.memory, node.gpu, node.state == "ready", node_profile(node)


def _same_profile(now: ClusterProfile | None, then: ClusterProfile | None) -> bool:
    if now is None or then is None:
        return now is then
    return now is then or (now.nodes, now.links) == (then.nodes, then.links)


def _cluster_of(view: StateView) -> Cluster:
    """Nodes and links with nothing in use."""
    nodes = [
        Node(n.name, n.cpu, n.memory, n.gpu, profile=node_profile(n))
        for n in sorted(view.nodes.values(), key=lambda n: n.name)
    ]
    within_reach = {name for name, node in view.nodes.items() if node.state == "ready"}
    links = [
        Link(link.src, link.dst, reservable(link.capacity), medium=link.medium, profile=link_profile(link.delay))
        for link in view.topology.links
        if link.up and link.src in within_reach and link.dst in within_reach
    ]
    kinds = kinds_on_media(view.topology.links)
    media = {each.name: reservable_of_medium(each.bandwidth, kinds.get(each.name, ())) for each in view.topology.media}
    return Cluster.make(nodes, links, media)
