"""Why a job has no place, reduced to one dominant reason.

First what can be seen without searching (:func:`obstacle`): a task that no node holds, a sum that exceeds what is
free, a flow that no path carries. Then what a search saw (:func:`explain`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

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
    fits = _fits(problem)
    for t in np.flatnonzero(~(fits.all(axis=1) & problem.allowed).any(axis=1)).tolist():
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
    room = (cluster.bandwidth_free + SLACK * cluster.bandwidth_capacity).tolist()
    widest_link = max(room, default=0.0)
    homes = _fits(problem).all(axis=1) & problem.allowed
    free = cluster.node_free + SLACK * cluster.node_capacity
    order = np.argsort(-free.sum(axis=0), kind="stable")
    for f, flow in enumerate(problem.flows):
        # Nearly always one of the roomiest nodes holds both ends: no need to look at all of a large cluster.
        if _may_share(problem, f, homes, free, order[:ROOMIEST]) or _may_share(problem, f, homes, free, order):
            continue
        sources, targets = (_homes(end, homes) for end in (int(problem.flow_src[f]), int(problem.flow_dst[f])))
        if flow.min > widest_link or len(sources) * len(targets) <= PAIRS:
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


def _may_share(
    problem: Problem,
    f: int,
    homes: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    free: FloatArray,
    nodes: IntArray,
) -> bool:
    """Whether both ends of the flow could be on one of ``nodes``."""
    src, dst = int(problem.flow_src[f]), int(problem.flow_dst[f])
    if src < 0 and dst < 0:
        return False
    if src < 0 or dst < 0:
        return bool(homes[max(src, dst), -1 - min(src, dst)])
    together = (problem.demand[src] + problem.demand[dst])[:, None] <= free[:, nodes]
    return bool((together.all(axis=0) & homes[src, nodes] & homes[dst, nodes]).any())


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
