"""Between the committed state and the scheduling core: the one place that knows both. Pure.

Millicores, bytes and bit/s stay as they are; the core takes any consistent units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ces_common.jobfile import Flow, Task
from ces_common.messages.events import FlowPlan, Reason
from ces_common.messages.records import FlowRecord, JobRecord, NodeRecord, tunnelled_media
from ces_common.messages.records import Topology as TopologyRecord
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_common.shares import reservable, reservable_of_medium
from ces_common.states import JobState
from ces_common.view import StateView
from ces_core.ledger import LINK, Cell
from ces_core.multi.jobs import kept_by
from ces_core.plan import Considered, Plan
from ces_core.problem import Cluster, Link, Node, Problem
from ces_core.problem import Flow as CoreFlow
from ces_core.problem import Task as CoreTask
from ces_core.reason import Reason as CoreReason
from ces_core.topology import Topology

Floats = NDArray[np.float64]
Cells = Mapping[Cell, float]
"""What a job holds of each node and link."""
Row = Mapping[str, str]
"""Node -> why a task may not run there."""


@dataclass(frozen=True, eq=False)
class Offer:
    """What the cluster offers now: the core's cluster with all that is held in use, and the records behind its columns.
    ``held``: by job, of a suspended one by what it keeps; ``records``: of those of them that are committed."""

    cluster: Cluster
    nodes: dict[str, NodeRecord]
    topology: TopologyRecord
    held: dict[str, Cells] = field(default_factory=dict)
    records: dict[str, JobRecord] = field(default_factory=dict)
    _barred: dict[object, Row] = field(default_factory=dict, init=False)  # each row is worked out once

    def less(self, proposed: Mapping[str, Cells]) -> Offer:
        """The same with what these jobs were given held as well."""
        nodes, links = self.cluster.node_used.copy(), self.cluster.link_used.copy()
        for cells in proposed.values():
            _add(cells, nodes, links)
        return replace(self, cluster=self.cluster.with_used(nodes, links), held={**self.held, **proposed})

    def same_ground(self, other: Offer) -> bool:
        """Whether they are of the same nodes and links, with the same tasks allowed on them and the same data."""
        now, then = self.cluster, other.cluster
        return (
            now.topology is then.topology
            and np.array_equal(now.node_capacity, then.node_capacity)
            and np.array_equal(now.link_capacity, then.link_capacity)
            and np.array_equal(now.medium_capacity, then.medium_capacity)
            and _filters(self.nodes) == _filters(other.nodes)
        )

    def nothing_freed_since(self, earlier: Offer) -> bool:
        """Whether a job that found no place then can find none now: the same ground, and nothing of it freer."""
        now, then = self.cluster, earlier.cluster
        return self.same_ground(earlier) and bool(
            (now.node_used >= then.node_used).all() and (now.link_used >= then.link_used).all()
        )

    def barred(self, task: Task) -> Row:
        """Why the task may not run on some nodes. Switches are nobody's candidates and are left out."""
        key = (task.arch, frozenset(task.labels.items()))
        if key not in self._barred:
            nodes = ((name, node) for name, node in self.nodes.items() if node.cpu)
            self._barred[key] = {name: why for name, node in nodes if (why := refusal(task, node))}
        return self._barred[key]


def offer_of(view: StateView, earlier: Offer | None = None) -> Offer:
    """The cluster as committed. A link is there only while it is up and between nodes that have joined and
    are within reach.

    Where nodes and links are those of an ``earlier`` offer, only what is in use is looked at anew, and of that only
    what has changed: at ten thousand nodes that is what makes a change cheap.
    """
    same = earlier is not None and _same_cluster(earlier, view)
    cluster = earlier.cluster if earlier is not None and same else _cluster_of(view)
    records = {holder_of(job): job for job in view.jobs.values() if not job.released}
    held: dict[str, Cells] = {}
    nodes, links = np.zeros_like(cluster.node_used), np.zeros_like(cluster.link_used)
    for name, job in records.items():
        known = earlier is not None and same and earlier.records.get(name) is job
        held[name] = earlier.held[name] if earlier is not None and known else _cells_of(job, cluster.topology)
        _add(held[name], nodes, links)
    return Offer(cluster.with_used(nodes, links), dict(view.nodes), view.topology, held, records)


def holder_of(job: JobRecord) -> str:
    """The name by which the core knows the job as one that holds something."""
    return kept_by(job.id) if job.state is JobState.SUSPENDED else job.id


def asked_by(job: JobRecord) -> list[Task]:
    """The job's tasks, and what they still ask for: of a suspended one CPU, where they have not ended."""
    if job.state is not JobState.SUSPENDED:
        return job.tasks
    over = {each.rank for each in job.allocations if each.over}
    return [_lacking(task, 0 if task.rank in over else task.cpu) for task in job.tasks]


def places_of(job: JobRecord) -> dict[str, str]:
    """Task -> the node where it has to go on; empty where that is open."""
    return {each.task: each.node for each in job.allocations} if job.state is JobState.SUSPENDED else {}


def _lacking(task: Task, cpu: int) -> Task:
    return task.model_copy(update={"cpu": cpu, "memory": 0, "gpu": 0})


def _add(cells: Cells, nodes: Floats, links: Floats) -> None:
    for (resource, index), amount in cells.items():
        if resource == LINK:
            links[index] += amount
        else:
            nodes[resource, index] += amount


def _cells_of(job: JobRecord, topology: Topology) -> Cells:
    """What a job holds of the nodes and links that are there now."""
    places = [(job.tasks[each.rank], each.node) for each in job.allocations if not each.over]
    if job.state is JobState.SUSPENDED:
        places = [(task.model_copy(update={"cpu": 0}), node) for task, node in places]
    return _cells(places, [(flow.path, flow.bandwidth) for flow in job.reserved], topology)


def cells_of_plan(
    tasks: list[Task], assignments: Mapping[str, str], flows: list[FlowPlan], topology: Topology
) -> Cells:
    """What a plan takes of the nodes and links that are there now."""
    places = [(task, assignments[task.name]) for task in tasks]
    return _cells(places, [(flow.path, flow.bandwidth) for flow in flows], topology)


def _cells(
    places: Iterable[tuple[Task, str]], ways: Iterable[tuple[list[str], int]], topology: Topology
) -> dict[Cell, float]:
    found: dict[Cell, float] = {}
    for task, name in places:
        node = topology.node_index.get(name)
        for resource, amount in enumerate((task.cpu, task.memory, task.gpu) if node is not None else ()):
            if node is not None and amount:
                found[resource, node] = found.get((resource, node), 0.0) + amount
    for path, rate in ways:
        for link in _links(path, topology) if rate else ():
            found[LINK, link] = found.get((LINK, link), 0.0) + rate
    return found


def _same_cluster(earlier: Offer, view: StateView) -> bool:
    """Whether the earlier offer was of the same nodes, as far as the core sees them, and of the same links."""
    if earlier.topology is not view.topology or earlier.nodes.keys() != view.nodes.keys():
        return False
    pairs = ((node, earlier.nodes[name]) for name, node in view.nodes.items())
    return all(now is then or _static(now) == _static(then) for now, then in pairs)


def _static(node: NodeRecord) -> tuple[int, int, int, bool]:
    return node.cpu, node.memory, node.gpu, node.state == "ready"


def _cluster_of(view: StateView) -> Cluster:
    """Nodes and links with nothing in use."""
    nodes = [Node(n.name, n.cpu, n.memory, n.gpu) for n in sorted(view.nodes.values(), key=lambda n: n.name)]
    within_reach = {name for name, node in view.nodes.items() if node.state == "ready"}
    links = [
        Link(link.src, link.dst, reservable(link.capacity), medium=link.medium)
        for link in view.topology.links
        if link.up and link.src in within_reach and link.dst in within_reach
    ]
    tunnelled = tunnelled_media(view.topology.links)
    media = {
        medium.name: reservable_of_medium(medium.bandwidth, medium.name in tunnelled) for medium in view.topology.media
    }
    return Cluster.make(nodes, links, media)


def links_of(flow: FlowRecord, topology: Topology) -> list[int]:
    """The links of the flow's path that are there now."""
    return _links(flow.path, topology)


def _links(path: list[str], topology: Topology) -> list[int]:
    ends = [topology.node_index.get(name, -1) for name in path]
    links = (topology.link_index.get(hop) for hop in pairwise(ends))
    return [link for link in links if link is not None]


def refusal(task: Task, node: NodeRecord) -> str | None:
    """Why a node may not run a task, whatever is free on it; None where it may."""
    if node.state != "ready":
        return "unreachable"
    if node.cordoned:
        return "cordoned"
    if task.arch is not None and task.arch != node.arch:
        return f"arch is {node.arch or 'unknown'}, not {task.arch}"
    for key, value in task.labels.items():
        if node.labels.get(key) != value:
            return f"label {key} is {node.labels.get(key, 'absent')}, not {value}"
    return None


def lacking_data(flows: list[Flow], offer: Offer) -> Reason | None:
    """Why a job cannot have the data that it reads, wherever its tasks are; None where it can."""
    for flow in flows:
        name = flow.data_node
        if name is None:
            continue
        node = offer.nodes.get(name)
        lacking = [dataset for dataset in flow.datasets if node is None or dataset not in node.datasets]
        if node is None:
            why = "has not joined"
        elif node.state != "ready":
            why = f"is {node.state}"
        elif lacking:
            why = f"offers no dataset {lacking[0]}"
        elif not node.datasets:
            why = "offers no data"
        else:
            continue
        away = node is not None and node.state != "ready"  # it may come back by itself
        return Reason(
            code="no-data", text=f"node {name}, where data of {flow.dst} lies, {why}", where=name, forever=not away
        )
    return None


def refusals(tasks: list[Task], offer: Offer) -> dict[str, Row]:
    """Task -> node -> why it may not run there."""
    return {task.name: row for task in tasks if (row := offer.barred(task))}


def problem_of(job: JobRecord, offer: Offer, paths: int | None = None) -> Problem:
    """What the job asks for. ``paths``: flows may take so many shortest simple paths; None: any hop-shortest one."""
    tasks, places = asked_by(job), places_of(job)
    candidates = sorted(name for name, node in offer.nodes.items() if node.cpu) if refusals(tasks, offer) else []

    def allowed(task: Task) -> tuple[str, ...] | None:
        row = offer.barred(task)
        if task.name in places:  # what bars others from it, such as a cordon, is against new work
            node = offer.nodes.get(places[task.name])
            return (node.name,) if node is not None and node.state == "ready" else ()
        return tuple(node for node in candidates if node not in row) if row else None

    return Problem.make(
        offer.cluster,
        [CoreTask(task.name, task.cpu, task.memory, task.gpu, allowed(task)) for task in tasks],
        [CoreFlow(flow.src, flow.dst, flow.min, flow.max) for flow in job.flows],
        name=job.name,
        paths=paths,
    )


def flow_plans(plan: Plan, flows: list[Flow]) -> list[FlowPlan]:
    """Bandwidth in whole bit/s: rounded down, so never more than there is, but never below the minimum, which a
    floating-point number may miss by a hair."""
    asked = {(flow.src, flow.dst): flow.min for flow in flows}
    return [
        FlowPlan(
            src=flow.src,
            dst=flow.dst,
            bandwidth=max(int(flow.bandwidth), asked[flow.src, flow.dst]),
            path=list(flow.path),
        )
        for flow in plan.flows
    ]


def quantity(resource: str, value: float) -> str:
    """A raw number of the core with the unit that it has here."""
    shown = {"cpu": show_cpu, "memory": show_memory, "bandwidth": show_bandwidth}.get(resource)
    return shown(value) if shown else f"{value:g} {resource}".strip()


def reason_of(reason: CoreReason) -> Reason:
    where = reason.where or (" -> ".join(reason.flow) if reason.flow else reason.task)
    return Reason(
        code=reason.code,
        text=reason.text(quantity),
        resource=reason.resource,
        needed=reason.needed,
        available=reason.available,
        where=where,
        forever=reason.permanent,
    )


def explain_refusals(tasks: list[Task], offer: Offer, considered: Considered) -> dict[str, dict[str, str]]:
    """Task -> node -> why not: what bars a node for good first, then what the solver found lacking."""
    barred = refusals(tasks, offer)
    explained: dict[str, dict[str, str]] = {}
    for task in tasks:
        lacking = {
            node: why
            for node, why in considered.refused(task.name).items()
            if why != "not-allowed" and offer.nodes[node].cpu
        }
        row = lacking | dict(barred.get(task.name, {}))
        if row:
            explained[task.name] = row
    return explained


def _filters(nodes: dict[str, NodeRecord]) -> dict[str, tuple[object, ...]]:
    return {name: (node.state, node.cordoned, node.arch, node.labels, node.datasets) for name, node in nodes.items()}
