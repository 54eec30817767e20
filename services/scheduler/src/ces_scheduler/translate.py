"""Between the committed state and the scheduling core: the one place that knows both. Pure.

Millicores, bytes and bit/s stay as they are; the core takes any consistent units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ces_common.jobfile import Flow, Task
from ces_common.messages.events import FlowPlan, Reason
from ces_common.messages.records import FlowRecord, JobRecord, NodeRecord, tunnelled_media
from ces_common.messages.records import Topology as TopologyRecord
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_common.shares import reservable, reservable_of_medium
from ces_common.view import StateView
from ces_core.plan import Plan, Result
from ces_core.problem import Cluster, Link, Node, Problem
from ces_core.problem import Flow as CoreFlow
from ces_core.problem import Task as CoreTask
from ces_core.reason import Reason as CoreReason
from ces_core.topology import Topology

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Offer:
    """What the cluster offers now: the core's cluster, and the records behind its columns."""

    cluster: Cluster
    nodes: dict[str, NodeRecord]
    topology: TopologyRecord

    def less(self, used: Usage) -> Offer:
        """The same with more in use."""
        cluster = self.cluster
        return replace(self, cluster=cluster.with_used(cluster.node_used + used.nodes, cluster.link_used + used.links))

    def nothing_freed_since(self, earlier: Offer) -> bool:
        """Whether a job that found no place then can find none now: the same cluster, and nothing of it freer."""
        now, then = self.cluster, earlier.cluster
        return (
            now.topology is then.topology
            and _filters(self.nodes) == _filters(earlier.nodes)
            and bool(
                np.array_equal(now.node_capacity, then.node_capacity)
                and np.array_equal(now.link_capacity, then.link_capacity)
                and np.array_equal(now.medium_capacity, then.medium_capacity)
                and (now.node_used >= then.node_used).all()
                and (now.link_used >= then.link_used).all()
            )
        )


@dataclass(frozen=True)
class Usage:
    """What a plan takes, in the columns of a cluster."""

    nodes: Floats  # (resources, nodes)
    links: Floats


def offer_of(view: StateView, earlier: Offer | None = None) -> Offer:
    """The cluster as committed. A link is there only while it is up and between nodes that have joined and
    are within reach.

    Where nodes and links are those of an ``earlier`` offer, only what is in use is looked at anew: at ten thousand
    nodes that is what makes a change cheap.
    """
    same = earlier is not None and _same_cluster(earlier, view)
    cluster = earlier.cluster if earlier is not None and same else _cluster_of(view)
    topology = cluster.topology
    nodes, links = np.zeros_like(cluster.node_used), np.zeros_like(cluster.link_used)
    for job in view.jobs.values():
        for allocation in job.allocations:
            if not allocation.over and allocation.node in topology.node_index:
                task = job.tasks[allocation.rank]
                nodes[:, topology.node_index[allocation.node]] += (task.cpu, task.memory, task.gpu)
        for flow in job.reserved if not job.released else ():
            for link in links_of(flow, topology):
                links[link] += flow.bandwidth
    return Offer(cluster.with_used(nodes, links), dict(view.nodes), view.topology)


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
    ends = [topology.node_index.get(name, -1) for name in flow.path]
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


def refusals(tasks: list[Task], offer: Offer) -> dict[str, dict[str, str]]:
    """Task -> node -> why it may not run there. Switches are nobody's candidates and are left out."""
    found: dict[str, dict[str, str]] = {}
    for task in tasks:
        row = {name: why for name, node in offer.nodes.items() if node.cpu and (why := refusal(task, node))}
        if row:
            found[task.name] = row
    return found


def problem_of(name: str, tasks: list[Task], flows: list[Flow], offer: Offer, paths: int | None = None) -> Problem:
    """``paths``: flows may take any of so many shortest simple paths; None: any hop-shortest one."""
    barred = refusals(tasks, offer)
    candidates = sorted(name for name, node in offer.nodes.items() if node.cpu)

    def allowed(task: Task) -> tuple[str, ...] | None:
        row = barred.get(task.name)
        return None if row is None else tuple(node for node in candidates if node not in row)

    return Problem.make(
        offer.cluster,
        [CoreTask(task.name, task.cpu, task.memory, task.gpu, allowed(task)) for task in tasks],
        [CoreFlow(flow.src, flow.dst, flow.min, flow.max) for flow in flows],
        name=name,
        paths=paths,
    )


def problem_of_job(job: JobRecord, offer: Offer) -> Problem:
    return problem_of(job.name, job.tasks, job.flows, offer)


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


def usage_of(problem: Problem, assignments: dict[str, str], flows: list[FlowPlan]) -> Usage:
    """What a plan takes of the problem's cluster."""
    cluster = problem.cluster
    topology = cluster.topology
    nodes = np.zeros_like(cluster.node_used)
    links = np.zeros_like(cluster.link_used)
    for row, task in zip(problem.demand, problem.tasks, strict=True):
        nodes[:, topology.node_index[assignments[task.name]]] += row
    for flow in flows:
        for src, dst in zip(flow.path, flow.path[1:], strict=False):
            links[topology.link_index[(topology.node_index[src], topology.node_index[dst])]] += flow.bandwidth
    return Usage(nodes, links)


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


def explain_refusals(tasks: list[Task], offer: Offer, result: Result) -> dict[str, dict[str, str]]:
    """Task -> node -> why not: what bars a node for good first, then what the solver found lacking."""
    barred = refusals(tasks, offer)
    explained: dict[str, dict[str, str]] = {}
    for task in tasks:
        lacking = {
            node: why
            for node, why in result.considered.refused(task.name).items()
            if why != "not-allowed" and offer.nodes[node].cpu
        }
        row = lacking | barred.get(task.name, {})
        if row:
            explained[task.name] = row
    return explained


def _filters(nodes: dict[str, NodeRecord]) -> dict[str, tuple[object, ...]]:
    return {name: (node.state, node.cordoned, node.arch, node.labels, node.datasets) for name, node in nodes.items()}
