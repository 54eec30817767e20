"""Why a job has no place, reduced to one dominant reason.

First what can be seen without searching (:func:`obstacle`): a task that no node holds, a sum that exceeds what is
free, a flow that no path carries. Then what a search saw (:func:`explain`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ces_core.kernels.unhindered import unhindered
from ces_core.paths import Path
from ces_core.plan import REFUSALS, Considered
from ces_core.problem import RESOURCES, SLACK, FloatArray, Problem
from ces_core.reason import Reason
from ces_core.topology import IntArray

if TYPE_CHECKING:
    from ces_core.solvers.placing import Placing

PAIRS = 4096
"""So many pairs of nodes are looked at, at most, to see whether any path carries a flow."""
ROOMIEST = 64
"""So many of the nodes with most room are looked at before all of them."""


@dataclass(frozen=True)
class SearchTrace:
    """What a search saw. ``complete``: it ended because nothing was left to try."""

    considered: Considered
    complete: bool = False
    blocked: tuple[int, ...] = ()  # per flow: how often its minimum found no room
    widest: tuple[float, ...] = ()  # per flow: the most it found then
    stuck: tuple[int, ...] = ()  # per task: how often no node was left for it

    @staticmethod
    def of(problem: Problem, placing: Placing | None = None, complete: bool = False) -> SearchTrace:
        """What ``placing`` has seen so far; without one, what the nodes alone refuse."""
        tasks = tuple(task.name for task in problem.tasks)
        nodes = problem.cluster.topology.nodes
        if placing is None:
            return SearchTrace(Considered(tasks, nodes, _refused_alone(problem)), complete)
        codes = placing.refused.copy()
        codes.setflags(write=False)
        return SearchTrace(
            Considered(tasks, nodes, codes),
            complete,
            tuple(placing.blocked),
            tuple(placing.widest_seen),
            tuple(placing.stuck),
        )


Search = Callable[[Problem], tuple[object | None, SearchTrace]]
"""What a solver offers to examine variations of a problem: what it found, if anything, and what it saw."""


def obstacle(problem: Problem) -> Reason | None:
    """A reason that needs no search, or None. Where it holds on the empty cluster too, it says so."""
    if _unhindered(problem):
        return None
    now = _obstacle(problem)
    if now is None or now.code == "no-allowed-node":
        return now if now is None else replace(now, permanent=True)
    ever = _obstacle(problem.on_empty_cluster())
    return now if ever is None else replace(ever, permanent=True)


def explain(problem: Problem, trace: SearchTrace, search: Search) -> Reason:
    """The reason behind a search that found no place. ``search`` answers variations of the problem."""
    tasks_alone = _without_flows(problem)
    found, without = search(tasks_alone) if problem.flows else (None, trace)
    if found is not None:
        return _bandwidth_together(problem, trace, permanent=trace.complete and _never(problem, search))
    stuck = without.stuck or (0,)
    return Reason(
        "packing",
        permanent=without.complete and _never(tasks_alone, search),
        proven=without.complete,
        task=problem.tasks[max(range(len(stuck)), key=lambda t: (stuck[t], -t))].name,
    )


def _never(problem: Problem, search: Search) -> bool:
    """Whether the job is proven to have no place on the empty cluster."""
    found, trace = search(problem.on_empty_cluster())
    return found is None and trace.complete


def _bandwidth_together(problem: Problem, trace: SearchTrace, *, permanent: bool) -> Reason:
    """Names the flow that found no room most often."""
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


def _unhindered(problem: Problem) -> bool:
    cluster, topology = problem.cluster, problem.cluster.topology
    return unhindered(
        problem.homes,
        problem.demand,
        cluster.node_capacity,
        cluster.node_free,
        problem.flow_src,
        problem.flow_dst,
        problem.flow_min,
        topology.link_src,
        topology.link_dst,
        topology.link_medium,
        cluster.bandwidth_free,
    )


def _obstacle(problem: Problem) -> Reason | None:
    return _task_obstacle(problem) or _total_obstacle(problem) or _flow_obstacle(problem)


def _fits(problem: Problem) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """(tasks, resources, nodes): whether the node has enough of the resource."""
    cluster = problem.cluster
    free = cluster.node_free + SLACK * cluster.node_capacity
    return problem.demand[:, :, None] <= free[None, :, :]


def _refused_alone(problem: Problem) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
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
                )
        return Reason("no-node-fits", task=name)
    return None


def _total_obstacle(problem: Problem) -> Reason | None:
    needed, free = problem.demand.sum(axis=0), problem.cluster.node_free.sum(axis=1)
    for r, resource in enumerate(RESOURCES):
        if needed[r] > free[r] * (1 + 1e-12):
            return Reason(f"{resource}-total", resource=resource, needed=float(needed[r]), available=float(free[r]))
    return None


def _flow_obstacle(problem: Problem) -> Reason | None:
    """A flow whose minimum exceeds every path between nodes that could hold its ends."""
    cluster = problem.cluster
    if not problem.flows:
        return None
    roomy = cluster.bandwidth_free + SLACK * cluster.bandwidth_capacity
    widest_link, room = float(roomy.max(initial=0.0)), None
    homes = problem.homes
    free = cluster.node_free + SLACK * cluster.node_capacity
    # Nearly always one of the roomiest nodes holds both ends: no need to look at all of a large cluster.
    roomiest = np.argpartition(-free.sum(axis=0), ROOMIEST)[:ROOMIEST] if free.shape[1] > ROOMIEST else None
    for f in _apart(problem, _apart(problem, np.arange(len(problem.flows)), free, roomiest), free).tolist():
        flow = problem.flows[f]
        sources, targets = (_homes(end, homes) for end in (int(problem.flow_src[f]), int(problem.flow_dst[f])))
        if flow.min > widest_link or len(sources) * len(targets) <= PAIRS:
            room = roomy.tolist() if room is None else room
            widest = _widest(problem, room, sources, targets, flow.min)
            if widest is None:
                return Reason("unreachable", flow=(flow.src, flow.dst))
            if _width(widest, room) < flow.min:
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


def _homes(end: int, homes: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
    return [-1 - end] if end < 0 else np.flatnonzero(homes[end]).tolist()


def _apart(problem: Problem, flows: IntArray, free: FloatArray, nodes: IntArray | None = None) -> IntArray:
    """Those of ``flows`` whose ends fit together on none of ``nodes`` (all where None)."""
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


def _width(path: Path, room: list[float]) -> float:
    return min(room[r] / times for r, times in path.loads)


def _widest(problem: Problem, room: list[float], sources: list[int], targets: list[int], enough: float) -> Path | None:
    """The widest hop-shortest path between different nodes; the first that is wide enough will do."""
    between = problem.routes.between
    widest, width = None, -1.0
    for a in sources:
        for b in targets:
            for path in between(a, b) if a != b else ():
                if _width(path, room) > width:
                    widest, width = path, _width(path, room)
                    if width >= enough:
                        return widest
    return widest


def _without_flows(problem: Problem) -> Problem:
    return Problem.make(problem.cluster, problem.tasks, name=problem.name, weights=problem.weights, basis=problem.basis)
