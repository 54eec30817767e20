"""The plan that runs, seen against a problem that may have changed since: which limits it breaks now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ces_core.model.errors import ProblemError
from ces_core.model.path import Path
from ces_core.model.plan import Plan
from ces_core.model.problem import RESOURCES, SLACK, FloatArray, Problem
from ces_core.model.reason import FormatQuantity
from ces_core.model.service import LOAD_LIMIT, ROUNDING, Service
from ces_core.network.path_table import PathTable

BANDWIDTH = "bandwidth"
RATE_ROUNDING = 1e-9
"""Relative: how far rates, and what they add up to on a link, may be beyond a limit."""


@dataclass(frozen=True)
class BrokenLimit:
    """``code`` is for programs; ``text`` names the offender and the numbers."""

    code: str
    text: str


@dataclass(frozen=True)
class RunningPlan:
    """By indices. A path is None where it is no longer one that its flow may take: a link is gone, or an end moved."""

    assignment: tuple[int, ...]
    paths: tuple[Path | None, ...]
    bandwidth: tuple[float, ...]

    @staticmethod
    def of(problem: Problem, plan: Plan, routes: PathTable) -> RunningPlan:
        """Flows are matched by their order, since the ends of a user's flows change names as the user moves. Raises
        ProblemError for a plan of other tasks, flows or nodes."""
        index = problem.cluster.topology.node_index
        assignment = []
        for task in problem.tasks:
            node = plan.assignments.get(task.name, "")
            if node not in index:
                what = f"is on {node}, which is not there" if node else "has no node"
                raise ProblemError("plan.assignments", f"task {task.name} {what}: place the job anew")
            assignment.append(index[node])
        if len(plan.flows) != len(problem.flows):
            raise ProblemError("plan.flows", f"has {len(plan.flows)} flows, the job has {len(problem.flows)}")
        paths = []
        for (src, dst), asked, flow in zip(problem.flow_ends(assignment), problem.flows, plan.flows, strict=True):
            starts = [src] if asked.sources is None else [index[name] for name in asked.sources]
            nodes = tuple(index.get(name, -1) for name in flow.path)
            open_to_it = routes.between(nodes[0], dst) if nodes and nodes[0] in starts else ()
            paths.append(next((path for path in open_to_it if path.nodes == nodes), None))
        return RunningPlan(tuple(assignment), tuple(paths), tuple(flow.bandwidth for flow in plan.flows))

    @property
    def known_paths(self) -> tuple[Path, ...] | None:
        """All paths; None where one is broken."""
        found = tuple(path for path in self.paths if path is not None)
        return found if len(found) == len(self.paths) else None

    def load(self, problem: Problem) -> FloatArray:
        """What the flows use of each link and medium; those on broken paths use nothing."""
        load = np.zeros(len(problem.cluster.bandwidth_capacity))
        for path, rate in zip(self.paths, self.bandwidth, strict=True):
            for resource, times in () if path is None else path.loads:
                load[resource] += times * rate
        return load


def plain(resource: str, value: float) -> str:
    """The number, and what it counts where a node has it; rates stand for themselves."""
    return f"{value:g}" if resource == BANDWIDTH else f"{value:g} {resource}"


def broken_limits(
    service: Service, running: RunningPlan, format_quantity: FormatQuantity = plain
) -> tuple[BrokenLimit, ...]:
    """The limits that the running plan breaks as things are now; empty where it may go on."""
    found = [*_placement(service, running, format_quantity), *_flows(service.problem, running, format_quantity)]
    paths = running.known_paths
    if paths is not None:
        found += _goals(service, running, paths)
    return tuple(found)


def _placement(service: Service, running: RunningPlan, shown: FormatQuantity) -> Iterator[BrokenLimit]:
    problem, names = service.problem, service.problem.cluster.topology.nodes
    together: dict[str, int] = {}
    stays: Mapping[str, str] = {held.task: held.node for held in service.goals.held if held.cost is None}
    for t, n in enumerate(running.assignment):
        task, profile = problem.tasks[t], service.tasks[t]
        if not problem.allowed[t, n]:
            yield BrokenLimit("not-allowed", f"task {task.name} may not run on {names[n]}")
        elif service.load[t, n] > LOAD_LIMIT * (1 + ROUNDING):
            text = f"task {task.name} is loaded to {service.load[t, n]:.4g} on {names[n]}; {LOAD_LIMIT} is the most"
            yield BrokenLimit("load", text)
        elif not service.in_time[t, n]:
            text = f"task {task.name} takes {service.response_ms[t, n]:.4g} ms on {names[n]}"
            yield BrokenLimit("task-time", f"{text}; {profile.longest_ms:.4g} ms is its limit")
        if profile.group is not None and together.setdefault(profile.group, n) != n:
            yield BrokenLimit("group", f"the tasks of group {profile.group} are not on one node")
        if stays.get(task.name, names[n]) != names[n]:
            yield BrokenLimit("held", f"task {task.name} is on {names[n]}, but stays on {stays[task.name]}")
    load = np.zeros_like(problem.cluster.node_capacity)
    np.add.at(load.T, list(running.assignment), problem.demand)
    capacity = problem.cluster.node_capacity
    over = (load > 0) & (problem.cluster.node_used + load > capacity + RATE_ROUNDING * capacity)
    for r, n in np.argwhere(over).tolist():
        left = float(problem.cluster.node_free[r, n])
        used = shown(RESOURCES[r], float(load[r, n]))
        text = f"node {names[n]} has {shown(RESOURCES[r], left)} for the job, which uses {used}"
        yield BrokenLimit(f"{RESOURCES[r]}-capacity", text)


def _flows(problem: Problem, running: RunningPlan, shown: FormatQuantity) -> Iterator[BrokenLimit]:
    topology, cluster = problem.cluster.topology, problem.cluster
    for flow, path, rate in zip(problem.flows, running.paths, running.bandwidth, strict=True):
        if path is None:
            yield BrokenLimit("path", f"flow {flow.src} -> {flow.dst} has a path that it may not take, or not any more")
        elif path.links and not flow.min * (1 - RATE_ROUNDING) <= rate <= flow.max * (1 + RATE_ROUNDING):
            got, least, most = (shown(BANDWIDTH, value) for value in (rate, flow.min, flow.max))
            yield BrokenLimit("rate", f"flow {flow.src} -> {flow.dst} gets {got}, outside {least}..{most}")
    load, free = running.load(problem), cluster.bandwidth_free
    over = (load > 0) & (load > free + (RATE_ROUNDING + SLACK) * cluster.bandwidth_capacity)
    for resource in np.flatnonzero(over).tolist():
        links = len(topology.link_src)
        if resource < links:
            src, dst = topology.link_src[resource], topology.link_dst[resource]
            where = f"link {topology.nodes[src]} -> {topology.nodes[dst]}"
        else:
            where = f"medium {topology.media[resource - links]}"
        left, used = (shown(BANDWIDTH, float(each[resource])) for each in (free, load))
        text = f"{where} has {left} for the job, which uses {used}"
        yield BrokenLimit("bandwidth-capacity", text)


def _goals(service: Service, running: RunningPlan, paths: tuple[Path, ...]) -> Iterator[BrokenLimit]:
    for request in service.requests(running.assignment, paths, running.bandwidth):
        if request.hard and request.missing_ms:
            yield BrokenLimit("deadline", request.text())
    works, least = service.reliability(running.assignment, paths), service.goals.least_reliability
    if works < least * (1 - ROUNDING):
        yield BrokenLimit("reliability", f"the plan works with probability {works:.6g}; {least:g} is wanted")
