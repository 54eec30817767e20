"""Where the tasks of a job with goals may be, and what of that can be seen without a search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ces_core.model.problem import SLACK, BoolArray, Problem
from ces_core.model.reason import Reason
from ces_core.model.service import LOAD_LIMIT, ROUNDING, Service
from ces_core.model.topology import IntArray
from ces_core.network.cache import paths_for
from ces_core.network.path_table import PathTable

MAX_TIES = 1024
"""Maximum number of equally short paths per pair of nodes where the usual table had to drop some."""


def without_goals(problem: Problem) -> Problem:
    """The same job with no goals, and without the flows whose source may be chosen: what has no place then has none
    with them."""
    kept = np.array([flow.sources is None for flow in problem.flows], dtype=np.bool_)
    columns = {name: getattr(problem, name)[kept] for name in ("flow_min", "flow_max", "flow_src", "flow_dst")}
    for column in columns.values():
        column.setflags(write=False)  # as those of every problem: compiled code is made for a type
    return replace(
        problem,
        goals=None,
        tasks=tuple(replace(task, profile=None) for task in problem.tasks),
        flows=tuple(flow for flow in problem.flows if flow.sources is None),
        **columns,
    )


def domains(problem: Problem) -> BoolArray:
    """(tasks, nodes): where each task fits alone within its limits, with its group, and where it is held."""
    service, nodes = Service(problem), problem.cluster.topology.node_index
    domain = problem.homes & service.in_time
    task = {each.name: t for t, each in enumerate(problem.tasks)}
    for held in service.goals.held:
        if held.cost is None:
            domain[task[held.task]] &= np.arange(domain.shape[1]) == nodes[held.node]
    groups: dict[str, BoolArray] = {}
    for t, profile in enumerate(service.tasks):
        if profile.group is not None:
            groups[profile.group] = domain[t] & groups.get(profile.group, domain[t])
    for t, profile in enumerate(service.tasks):
        if profile.group is not None:
            domain[t] = groups[profile.group]
    return domain


def narrowed(problem: Problem) -> Problem:
    """The same problem, whose tasks may be only where their own limits, held places and groups admit."""
    domain = domains(problem)
    groups: dict[str, list[int]] = {}
    for t, profile in enumerate(Service(problem).tasks):
        if profile.group is not None:
            groups.setdefault(profile.group, []).append(t)
    free = problem.cluster.node_free + SLACK * problem.cluster.node_capacity
    for tasks in groups.values():
        domain[tasks] &= (problem.demand[tasks].sum(axis=0)[:, None] <= free).all(axis=0)
    domain.setflags(write=False)
    return replace(problem, allowed=domain)


def slow_task(problem: Problem) -> Reason | None:
    """A task that keeps its own limits on load or time on no node where it fits."""
    service = Service(problem)
    for t, task in enumerate(problem.tasks):
        homes = problem.homes[t]
        if (homes & service.in_time[t]).any():
            continue
        permanent = not (problem.allowed[t] & service.in_time[t]).any()
        loads = np.where(homes, service.load[t], np.inf)
        best = int(np.argmin(loads))
        code, needed, most = "task-load", float(loads[best]), LOAD_LIMIT
        longest = service.tasks[t].longest_ms
        if needed <= LOAD_LIMIT * (1 + ROUNDING) and longest is not None:
            times = np.where(homes, service.response_ms[t], np.inf)
            best = int(np.argmin(times))
            code, needed, most = "task-time", float(times[best]), longest
        where = problem.cluster.topology.nodes[best]
        return Reason(code, permanent=permanent, needed=needed, available=most, where=where, task=task.name)
    return None


def places(problem: Problem) -> IntArray:
    """The nodes that tasks may be on, or that flows begin or end at, ascending."""
    ends = np.concatenate([problem.flow_src, problem.flow_dst])
    index = problem.cluster.topology.node_index
    sources = [index[name] for flow in problem.flows for name in flow.sources or ()]
    homes = np.flatnonzero(problem.homes.any(axis=0))
    found: IntArray = np.unique(np.concatenate([homes, -1 - ends[ends < 0], np.array(sources, dtype=np.int64)]))
    return found


def all_paths(problem: Problem) -> PathTable:
    """Every path that flows may take, as far as their number permits."""
    routes = paths_for(problem)
    return routes.wider(MAX_TIES) if problem.flows and routes.truncated(places(problem)) else routes
