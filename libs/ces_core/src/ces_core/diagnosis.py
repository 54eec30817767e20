"""Why a job has no place, reduced to one dominant reason.

First what can be seen without searching (:func:`obstacle`): a task that no node holds, a sum that exceeds what is
free, a flow that no path carries. Then what a search saw (:func:`explain`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ces_core.plan import REFUSALS, Considered
from ces_core.problem import RESOURCES, SLACK, FloatArray, Problem
from ces_core.reason import Reason

if TYPE_CHECKING:
    from ces_core.solvers.placing import Placing

PAIRS = 4096
"""So many pairs of nodes are looked at, at most, to see whether any path carries a flow."""


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


def obstacle(problem: Problem) -> Reason | None:
    """A reason that needs no search, or None. Where it holds on the empty cluster too, it says so."""
    now = _obstacle(problem)
    if now is None or now.code in ("no-allowed-node", "unreachable"):
        return now if now is None else replace(now, permanent=True)
    ever = _obstacle(problem.on_empty_cluster())
    return now if ever is None else replace(ever, permanent=True)


def explain(
    problem: Problem, trace: SearchTrace, search: Callable[[Problem], tuple[object | None, SearchTrace]]
) -> Reason:
    """The reason behind a search that found no place. ``search`` answers variations of the problem."""
    proven = trace.complete
    permanent = False
    if proven:
        found, empty = search(problem.on_empty_cluster())
        permanent = found is None and empty.complete
    if problem.flows:
        found, without = search(_without_flows(problem))
        if found is not None:
            blocked = trace.blocked or (0,) * len(problem.flows)
            worst = max(range(len(blocked)), key=lambda f: (blocked[f], -f))
            flow = problem.flows[worst]
            known = bool(blocked[worst])
            return Reason(
                "bandwidth-together",
                permanent=permanent,
                proven=proven,
                resource="bandwidth",
                needed=float(flow.min) if known else None,
                available=max(0.0, trace.widest[worst]) if known else None,
                flow=(flow.src, flow.dst),
            )
        trace, proven = without, proven or without.complete
    stuck = trace.stuck or (0,)
    task = problem.tasks[max(range(len(stuck)), key=lambda t: (stuck[t], -t))].name
    return Reason("packing", permanent=permanent, proven=proven, task=task)


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
    room = cluster.bandwidth_free + SLACK * cluster.bandwidth_capacity
    widest_link = float(room.max(initial=0.0))
    homes = _fits(problem).all(axis=1) & problem.allowed
    for f, flow in enumerate(problem.flows):
        sources, targets = (_homes(end, homes) for end in (int(problem.flow_src[f]), int(problem.flow_dst[f])))
        if _may_share(problem, f, homes):
            continue
        if flow.min > widest_link or len(sources) * len(targets) <= PAIRS:
            widest, ends = _widest(problem, room, sources, targets, flow.min)
            if ends is None:
                return Reason("unreachable", flow=(flow.src, flow.dst))
            if widest < flow.min:
                nodes = cluster.topology.nodes
                return Reason(
                    "bandwidth-per-flow",
                    resource="bandwidth",
                    needed=float(flow.min),
                    available=widest,
                    where=f"{nodes[ends[0]]} -> {nodes[ends[1]]}",
                    flow=(flow.src, flow.dst),
                )
    return None


def _homes(end: int, homes: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
    return [-1 - end] if end < 0 else np.flatnonzero(homes[end]).tolist()


def _may_share(problem: Problem, f: int, homes: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> bool:
    """Whether both ends of the flow could be on one node."""
    src, dst = int(problem.flow_src[f]), int(problem.flow_dst[f])
    if src < 0 and dst < 0:
        return False
    if src < 0 or dst < 0:
        return bool(homes[max(src, dst), -1 - min(src, dst)])
    cluster = problem.cluster
    free = cluster.node_free + SLACK * cluster.node_capacity
    together = (problem.demand[src] + problem.demand[dst])[:, None] <= free
    return bool((together.all(axis=0) & homes[src] & homes[dst]).any())


def _widest(
    problem: Problem, room: FloatArray, sources: list[int], targets: list[int], enough: float
) -> tuple[float, tuple[int, int] | None]:
    """The widest hop-shortest path found, looking no further than ``enough``."""
    between = problem.cluster.topology.paths.between
    left = room.tolist()
    widest, ends = -1.0, None
    for a in sources:
        for b in targets:
            for path in between(a, b) if a != b else ():
                width = min(left[r] / times for r, times in path.loads)
                if width > widest:
                    widest, ends = width, (a, b)
                    if width >= enough:
                        return widest, ends
    return widest, ends


def _without_flows(problem: Problem) -> Problem:
    return Problem.make(problem.cluster, problem.tasks, name=problem.name, weights=problem.weights, basis=problem.basis)
