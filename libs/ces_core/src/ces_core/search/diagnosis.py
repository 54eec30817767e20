"""Diagnosis of infeasible jobs: one dominant reason why a job cannot be placed.

:func:`obstacle` finds reasons that need no search: a task that fits on no node, a total demand above the free capacity,
a flow that no path can carry. :func:`explain` derives a reason from what a search recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled
from ces_core.model.path import Path
from ces_core.model.plan import REFUSALS, Considered
from ces_core.model.problem import RESOURCES, SLACK, BoolArray, FloatArray, Problem
from ces_core.model.reason import Reason
from ces_core.model.too_few import nodes_for, too_few_nodes
from ces_core.model.topology import IntArray
from ces_core.network.cache import paths_for

if TYPE_CHECKING:
    from ces_core.search.greedy_state import GreedyState

PAIRS = 4096
"""A flow with more possible pairs of nodes is examined only if its minimum exceeds what every link has free."""
FREEST_NODES = 64
"""Nodes with the most free capacity, examined before all others."""


@dataclass(frozen=True)
class SearchTrace:
    """What a search recorded. ``complete``: it ended because nothing was left to try."""

    considered: Considered
    complete: bool = False
    blocked: tuple[int, ...] = ()  # per flow: how often its minimum did not fit
    widest: tuple[float, ...] = ()  # per flow: the largest capacity found then
    stuck: tuple[int, ...] = ()  # per task: how often it had no node left

    @staticmethod
    def of(problem: Problem, state: GreedyState | None = None, complete: bool = False) -> SearchTrace:
        """What the greedy ``state`` has recorded so far; without one, only what each node alone refuses."""
        tasks = tuple(task.name for task in problem.tasks)
        nodes = problem.cluster.topology.nodes
        if state is None:
            return SearchTrace(Considered(tasks, nodes, _refused_alone(problem)), complete)
        codes = state.refused.copy()
        codes.setflags(write=False)
        return SearchTrace(
            Considered(tasks, nodes, codes),
            complete,
            tuple(state.blocked),
            tuple(state.widest_seen),
            tuple(state.stuck),
        )


Search = Callable[[Problem], tuple[object | None, SearchTrace]]
"""A solver's search applied to variations of a problem: what it found, if anything, and its trace."""


def obstacle(problem: Problem) -> Reason | None:
    """A reason that needs no search, or None. If the empty cluster has an obstacle, too, that one is returned, marked
    as permanent, even if it is another one than now."""
    cluster, topology = problem.cluster, problem.cluster.topology
    nodes = problem.homes, problem.demand, cluster.node_capacity, cluster.node_free
    ends = problem.flow_src, problem.flow_dst, problem.flow_min
    if unhindered(*nodes, *ends, topology.link_src, topology.link_dst, topology.link_medium, cluster.bandwidth_free):
        return None
    now = _obstacle(problem)
    if now is None or now.code == "no-allowed-node":
        return now if now is None else replace(now, permanent=True)
    ever = _obstacle(problem.on_empty_cluster())
    return now if ever is None else replace(ever, permanent=True)


def explain(problem: Problem, trace: SearchTrace, search: Search) -> Reason:
    """The reason why a search found no placement; ``search`` is applied to variations of the problem. ``trace``: of a
    greedy search, with ``blocked`` and ``widest`` of every flow."""
    tasks_alone = _without_flows(problem)
    found, without = search(tasks_alone) if problem.flows else (None, trace)
    if found is not None:
        return _bandwidth_together(problem, trace, permanent=trace.complete and _never(problem, search))
    stuck = without.stuck or (0,)
    permanent = without.complete and _never(tasks_alone, search)
    return Reason(
        "packing",
        permanent=permanent,
        proven=without.complete,
        task=problem.tasks[max(range(len(stuck)), key=lambda t: (stuck[t], -t))].name,
        nodes=too_few_nodes(problem.on_empty_cluster() if permanent else problem),
    )


def _never(problem: Problem, search: Search) -> bool:
    """Whether the job is proven infeasible on the empty cluster."""
    found, trace = search(problem.on_empty_cluster())
    return found is None and trace.complete


def _bandwidth_together(problem: Problem, trace: SearchTrace, *, permanent: bool) -> Reason:
    """Blames the flow whose minimum failed most often."""
    worst = max(range(len(problem.flows)), key=lambda f: (trace.blocked[f], -f))
    flow, met = problem.flows[worst], trace.blocked[worst] > 0
    return Reason(
        "bandwidth-together",
        permanent=permanent,
        proven=trace.complete,
        resource="bandwidth",
        needed=float(flow.min) if met else None,
        available=max(0.0, trace.widest[worst]) if met else None,
        flow=(flow.src, flow.dst),
    )


def _obstacle(problem: Problem) -> Reason | None:
    return _task_obstacle(problem) or _total_obstacle(problem) or _flow_obstacle(problem)


def _fits(problem: Problem) -> BoolArray:
    """(tasks, resources, nodes): whether the node has enough of the resource."""
    cluster = problem.cluster
    free = cluster.node_free + SLACK * cluster.node_capacity
    return problem.demand[:, :, None] <= free[None, :, :]


def _refused_alone(problem: Problem) -> NDArray[np.int8]:
    fits = _fits(problem)
    codes = np.zeros(problem.allowed.shape, dtype=np.int8)
    for r in reversed(range(len(RESOURCES))):
        codes[~fits[:, r]] = REFUSALS.index(RESOURCES[r])
    codes[~problem.allowed] = REFUSALS.index("not-allowed")
    codes.setflags(write=False)
    return codes


def _task_obstacle(problem: Problem) -> Reason | None:
    cluster = problem.cluster
    for t in np.flatnonzero(~problem.homes.any(axis=1)).tolist():
        fits = _fits(problem)
        name, allowed = problem.tasks[t].name, problem.allowed[t]
        if not allowed.any():
            return Reason("no-allowed-node", task=name)
        for r, resource in enumerate(RESOURCES):
            if not (fits[t, r] & allowed).any():
                best = int(np.argmax(np.where(allowed, cluster.node_free[r], -1.0)))
                return Reason(
                    f"{resource}-per-node",
                    resource=resource,
                    needed=float(problem.demand[t, r]),
                    available=float(cluster.node_free[r, best]),
                    where=cluster.topology.nodes[best],
                    task=name,
                    nodes=nodes_for(problem, t, r),
                )
        return Reason("no-node-fits", task=name, nodes=too_few_nodes(problem))
    return None


def _total_obstacle(problem: Problem) -> Reason | None:
    needed, free = problem.demand.sum(axis=0), problem.cluster.node_free.sum(axis=1)
    for r, resource in enumerate(RESOURCES):
        if needed[r] > free[r] * (1 + 1e-12):
            return Reason(
                f"{resource}-total",
                resource=resource,
                needed=float(needed[r]),
                available=float(free[r]),
                nodes=too_few_nodes(problem, r),
            )
    return None


def _flow_obstacle(problem: Problem) -> Reason | None:
    """A flow whose ends fit on no node together, and whose minimum exceeds what every path between their possible nodes
    has free, or that has no path. Flows with too many pairs of nodes are left out (:data:`PAIRS`)."""
    cluster = problem.cluster
    if not problem.flows:
        return None
    bandwidth = cluster.bandwidth_free + SLACK * cluster.bandwidth_capacity
    widest_link, residual = float(bandwidth.max(initial=0.0)), None
    homes = problem.homes
    free = cluster.node_free + SLACK * cluster.node_capacity
    # Nearly always one of the freest nodes fits both ends, which saves a scan of a large cluster.
    freest = np.argpartition(-free.sum(axis=0), FREEST_NODES)[:FREEST_NODES] if free.shape[1] > FREEST_NODES else None
    for f in _apart(problem, _apart(problem, np.arange(len(problem.flows)), free, freest), free).tolist():
        flow = problem.flows[f]
        sources, targets = (_homes(end, homes) for end in (int(problem.flow_src[f]), int(problem.flow_dst[f])))
        if flow.min > widest_link or len(sources) * len(targets) <= PAIRS:
            residual = bandwidth.tolist() if residual is None else residual
            widest = _widest(problem, residual, sources, targets, flow.min)
            if widest is None:
                return Reason("unreachable", flow=(flow.src, flow.dst))
            if _width(widest, residual) < flow.min:
                nodes = cluster.topology.nodes
                return Reason(
                    "bandwidth-per-flow",
                    resource="bandwidth",
                    needed=float(flow.min),
                    available=_width(widest, cluster.bandwidth_free.tolist()),
                    where=f"{nodes[widest.nodes[0]]} -> {nodes[widest.nodes[-1]]}",
                    flow=(flow.src, flow.dst),
                )
    return None


def _homes(end: int, homes: BoolArray) -> list[int]:
    return [-1 - end] if end < 0 else np.flatnonzero(homes[end]).tolist()


def _apart(problem: Problem, flows: IntArray, free: FloatArray, nodes: IntArray | None = None) -> IntArray:
    """The subset of ``flows`` whose ends do not fit together on any of ``nodes`` (None: any node)."""
    src, dst = problem.flow_src[flows], problem.flow_dst[flows]
    apart = np.ones(len(flows), dtype=np.bool_)
    mixed = (src >= 0) != (dst >= 0)
    apart[mixed] = ~problem.homes[np.maximum(src, dst)[mixed], -1 - np.minimum(src, dst)[mixed]]
    tasks = np.flatnonzero((src >= 0) & (dst >= 0))
    chosen = slice(None) if nodes is None else nodes
    together = problem.homes[src[tasks]][:, chosen] & problem.homes[dst[tasks]][:, chosen]
    demand = problem.demand[src[tasks]] + problem.demand[dst[tasks]]
    for needed, left in zip(demand.T, free, strict=True):
        together &= needed[:, None] <= left[None, chosen]
    apart[tasks] = ~together.any(axis=1)
    return flows[apart]


def _width(path: Path, residual: list[float]) -> float:
    return min(residual[r] / times for r, times in path.loads)


def _widest(
    problem: Problem, residual: list[float], sources: list[int], targets: list[int], enough: float
) -> Path | None:
    """The widest hop-shortest path between different nodes; stops at the first that is wide enough."""
    between = paths_for(problem).between
    widest, width = None, -1.0
    for a in sources:
        for b in targets:
            for path in between(a, b) if a != b else ():
                if _width(path, residual) > width:
                    widest, width = path, _width(path, residual)
                    if width >= enough:
                        return widest
    return widest


def _without_flows(problem: Problem) -> Problem:
    return Problem.make(problem.cluster, problem.tasks, name=problem.name, weights=problem.weights, basis=problem.basis)


@compiled
def unhindered(
    homes: BoolArray,
    demand: FloatArray,
    node_capacity: FloatArray,
    node_free: FloatArray,
    flow_src: IntArray,
    flow_dst: IntArray,
    flow_min: FloatArray,
    link_src: IntArray,
    link_dst: IntArray,
    link_medium: IntArray,
    residual: FloatArray,
) -> bool:
    """Quick sufficient test that no single constraint rules out a job, which holds for nearly all jobs.

    Whether every task fits somewhere (``homes``, (T, N)), total demand does not exceed what is free, and every flow
    fits within a node or on a single link between nodes allowed for its ends. False means undecided. ``residual`` is
    per link; ``flow_src`` and ``flow_dst`` hold a task, or -1 - n for node n.
    """
    tasks, nodes = homes.shape
    for row in range(len(node_free)):
        if demand[:, row].sum() > node_free[row].sum():
            return False
    for t in range(tasks):
        if not homes[t].any():
            return False
    for f in range(len(flow_src)):
        src, dst = flow_src[f], flow_dst[f]
        found = False
        for n in range(nodes):
            if not (homes[src, n] if src >= 0 else n == -1 - src) or not (homes[dst, n] if dst >= 0 else n == -1 - dst):
                continue
            found = True
            for row in range(len(node_free)):
                asked = (demand[src, row] if src >= 0 else 0.0) + (demand[dst, row] if dst >= 0 else 0.0)
                found = found and asked <= node_free[row, n] + SLACK * node_capacity[row, n]
            if found:
                break
        for link in range(0 if found else len(link_src)):
            if link_medium[link] >= 0 or residual[link] < flow_min[f]:
                continue
            a, b = link_src[link], link_dst[link]
            if (homes[src, a] if src >= 0 else a == -1 - src) and (homes[dst, b] if dst >= 0 else b == -1 - dst):
                found = True
                break
        if not found:
            return False
    return True
