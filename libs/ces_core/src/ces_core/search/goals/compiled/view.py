"""A job with goals as flat arrays over candidate nodes, the input of the compiled search of this package.

Tasks of a group are one *unit*: they move together. Of the chains only those are here that bind or score; all chains of
a request class lie beside each other. Equations and letters: :mod:`ces_core.model.service`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ces_core.model.goals import Chain
from ces_core.model.problem import BoolArray, FloatArray, Problem
from ces_core.model.service import ROUNDING, Service
from ces_core.model.topology import IntArray
from ces_core.placement.candidates import Rule, candidates
from ces_core.placement.view import ProblemView, problem_view
from ces_core.search.goals.domains import narrowed

FASTEST = 4
"""So many nodes where a task's work takes least are always candidates."""
FAR = 1e9
"""In ms."""
IMPOSSIBLE = -1e3
"""The logarithm of a reliability of 0."""
BALANCE, BANDWIDTH, TIME, WATT, CONSTANT = range(5)
"""Indices of :attr:`GoalView.aims`."""


class GoalView(NamedTuple):
    """T tasks in U units, F flows, K chains of G request classes, C candidates of N nodes, R resources."""

    nodes: IntArray  # (C,) the candidates' indices in the cluster
    free: FloatArray  # (3, C) these nine as in ProblemView
    use: FloatArray  # (2, C)
    inverse: FloatArray  # (2, C)
    node_count: FloatArray  # (2,)
    node_sum: FloatArray  # (2,)
    node_squares: FloatArray  # (2,)
    residual: FloatArray  # (R,)
    link_use: FloatArray  # (R,)
    link_inverse: FloatArray  # (R,)
    link_sums: FloatArray  # (3,) number of links, at least 1; sum of their utilisation, and of its squares
    before: FloatArray  # (C,) share of the CPU in use, whatever the basis
    watts: FloatArray  # (C, CURVE_POINTS)
    sleeping: BoolArray  # (C,)
    # Units and tasks.
    fits: BoolArray  # (U, C) where the unit may be, alone
    unit_first: IntArray  # (U + 1,) tasks of unit u: unit_tasks[unit_first[u] : unit_first[u + 1]]
    unit_tasks: IntArray
    unit_flows_first: IntArray  # (U + 1,) likewise flows with an end in the unit
    unit_flows: IntArray
    unit_of: IntArray  # (T,)
    demand: FloatArray  # (T, 3)
    response: FloatArray  # (T, C) ms; 0 where the task may not be
    moved: FloatArray  # (T, C) what it costs to have the task there
    visits: FloatArray  # (T, K) how often a chain passes through the task
    # Flows.
    flow_src: IntArray  # (F,) a task, or -1: one of the sources
    flow_dst: IntArray  # (F,) a task, or -1 - c for candidate c
    sources_first: IntArray  # (F + 1,) sources[sources_first[f] : sources_first[f + 1]] are candidates
    sources: IntArray
    low: FloatArray  # (F,)
    high: FloatArray  # (F,)
    message: FloatArray  # (F,) ms at one unit of bandwidth; 0 where no chain counts it
    passes: FloatArray  # (F, K) how often a chain passes over the flow
    pair_first: IntArray  # these four as in FlatPaths
    path_first: IntArray
    path_resource: IntArray
    path_times: FloatArray
    delay: FloatArray  # (R,) ms
    near: FloatArray  # (C, C) ms of the path with the least delay; FAR where there is none
    link_w: FloatArray  # (R,) watts for a unit of bandwidth
    # Goals.
    chain_fixed: FloatArray  # (K,) ms
    class_first: IntArray  # (G + 1,) chains of class g: class_first[g] up to class_first[g + 1]
    deadline: FloatArray  # (G,) ms
    hard: BoolArray  # (G,)
    log_node: FloatArray  # (N,) logarithms of reliabilities; (0,): any reliability will do
    log_link: FloatArray  # (R,)
    link_end: IntArray  # (R,) the node that a link leads to; -1 for a medium
    log_least: float
    weights: FloatArray  # (3,) of CPU, memory and bandwidth in L
    aims: FloatArray  # (5,) weight of balance, of a flow's satisfaction, of a class's time, of a watt; what is constant


def goal_view(problem: Problem, service: Service, seed: int, rule: Rule) -> GoalView:
    """The view for :func:`ces_core.search.goals.compiled.moves.improve`."""
    near = narrowed(problem)
    fits = near.homes
    view = problem_view(near, np.union1d(candidates(near, seed, rule), _known(problem, service, fits)))
    cluster, nodes, profile = problem.cluster, view.nodes, service.profile
    inside = fits[:, nodes]
    low, high = service.power_range_w
    goals, weights = service.goals, service.goals.weights
    per_watt = weights.energy / (high - low) if high > low else 0.0
    chains, classes, visits, passes = _chains(service)
    soft = sum(not chain.hard for chain in classes)
    constant = weights.energy + per_watt * low
    constant += (0.0 if soft else weights.time) + (0.0 if problem.flows else weights.bandwidth)
    media = len(cluster.medium_capacity)
    delay = np.append(profile.delay_ms, np.zeros(media))
    sources = _sources(problem, nodes)
    tracked = goals.least_reliability > 0
    units = _units(service)
    unit_of = np.zeros(len(problem.tasks), dtype=np.int64)
    for u, tasks in enumerate(units):
        unit_of[tasks] = u
    touching = [_touching(problem, tasks) for tasks in units]
    names = [chain.name for chain in classes]
    return GoalView(
        nodes=nodes,
        free=view.free,
        use=view.use,
        inverse=view.inverse,
        node_count=view.node_count,
        node_sum=view.node_sum,
        node_squares=view.node_squares,
        residual=view.residual,
        link_use=view.link_use,
        link_inverse=view.link_inverse,
        link_sums=np.array([view.link_count, view.link_sum, view.link_squares]),
        before=service.use_before[nodes],
        watts=profile.power_w[nodes],
        sleeping=profile.sleeping[nodes],
        fits=np.array([inside[tasks].all(axis=0) for tasks in units]),
        unit_first=_offsets(units),
        unit_tasks=np.concatenate(units).astype(np.int64),
        unit_flows_first=_offsets(touching),
        unit_flows=np.concatenate(touching).astype(np.int64),
        unit_of=unit_of,
        demand=np.array(problem.demand),
        response=np.where(inside, service.response_ms[:, nodes], 0.0),
        moved=_moved(problem, service)[:, nodes],
        visits=visits,
        flow_src=np.maximum(problem.flow_src, -1),
        flow_dst=np.where(problem.flow_dst < 0, -1 - np.searchsorted(nodes, -1 - problem.flow_dst), problem.flow_dst),
        sources_first=_offsets(sources),
        sources=np.concatenate([*sources, np.zeros(0)]).astype(np.int64),
        low=np.array(problem.flow_min),
        high=np.array(problem.flow_max),
        message=service.message_ms * passes.any(axis=1),
        passes=passes,
        pair_first=view.pair_first,
        path_first=view.path_first,
        path_resource=view.path_resource,
        path_times=view.path_times,
        delay=delay,
        near=_near(view, delay),
        link_w=np.append(service.link_w, np.zeros(media)),
        chain_fixed=np.array([goals.chains[c].fixed_ms for c in chains], dtype=np.float64),
        class_first=np.array(
            [sum(goals.chains[c].name in names[:g] for c in chains) for g in range(len(names) + 1)], dtype=np.int64
        ),
        deadline=np.array([chain.deadline_ms for chain in classes], dtype=np.float64),
        hard=np.array([chain.hard for chain in classes], dtype=np.bool_),
        log_node=_logarithms(profile.node_reliability) if tracked else np.zeros(0),
        log_link=_logarithms(np.append(profile.link_reliability, np.ones(media))),
        link_end=np.append(cluster.topology.link_dst, np.full(media, -1)).astype(np.int64),
        log_least=math.log(goals.least_reliability * (1 - ROUNDING)) if tracked else -math.inf,
        weights=np.array(problem.weights),
        aims=np.array(
            [
                weights.balance,
                weights.bandwidth / max(1, len(problem.flows)),
                weights.time / max(1, soft),
                per_watt,
                constant,
            ]
        ),
    )


def _known(problem: Problem, service: Service, fits: BoolArray) -> IntArray:
    """Nodes that are candidates wherever they lie: sources of data, held places, and the fastest for each task."""
    index = problem.cluster.topology.node_index
    named = [index[name] for flow in problem.flows for name in flow.sources or ()]
    named += [index[held.node] for held in service.goals.held]
    for t in range(len(problem.tasks)):
        homes = np.flatnonzero(fits[t])
        fast = np.argsort(service.response_ms[t, homes], kind="stable")[:FASTEST]
        named += homes[fast].tolist()
    return np.unique(np.array(named, dtype=np.int64))


def _units(service: Service) -> list[IntArray]:
    """The tasks of each unit, in the order of their first."""
    found: dict[str | int, list[int]] = {}
    for t, profile in enumerate(service.tasks):
        found.setdefault(t if profile.group is None else profile.group, []).append(t)
    return [np.array(tasks, dtype=np.int64) for tasks in found.values()]


def _touching(problem: Problem, tasks: IntArray) -> IntArray:
    touching = np.isin(problem.flow_src, tasks) | np.isin(problem.flow_dst, tasks)
    found: IntArray = np.flatnonzero(touching)
    return found


def _offsets(lists: list[IntArray]) -> IntArray:
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)


def _sources(problem: Problem, nodes: IntArray) -> list[IntArray]:
    """For each flow the candidates that it may begin at; none where it begins at a task."""
    index = problem.cluster.topology.node_index
    found = []
    for flow, src in zip(problem.flows, problem.flow_src.tolist(), strict=True):
        ends = [] if src >= 0 else [-1 - src] if flow.sources is None else [index[name] for name in flow.sources]
        found.append(np.searchsorted(nodes, np.array(ends, dtype=np.int64)).astype(np.int64))
    return found


def _near(view: ProblemView, delay: FloatArray) -> FloatArray:
    """The least delay over the paths of each pair of candidates."""
    total = np.append(0.0, np.cumsum(delay[view.path_resource]))
    paths = np.append(total[view.path_first[1:]] - total[view.path_first[:-1]], FAR)
    count, first = len(view.nodes), view.pair_first[:-1]
    near: FloatArray = np.minimum.reduceat(paths, first) if count else np.zeros(0)
    return np.where(view.pair_first[1:] > first, near, FAR).reshape(count, count)


def _moved(problem: Problem, service: Service) -> FloatArray:
    cost = np.zeros(problem.allowed.shape)
    task = {each.name: t for t, each in enumerate(problem.tasks)}
    for held in service.goals.held:
        cost[task[held.task]] = held.cost or 0.0
        cost[task[held.task], problem.cluster.topology.node_index[held.node]] = 0.0
    return cost


def _chains(service: Service) -> tuple[list[int], list[Chain], FloatArray, FloatArray]:
    """Indices of the chains that bind or score, one chain of each of their classes, and how often they pass through
    each task, (T, K), and over each flow, (F, K)."""
    goals = service.goals
    scored = goals.weights.time > 0
    counted = [c for c, chain in enumerate(goals.chains) if chain.hard or (scored and chain.deadline_ms is not None)]
    classes = {goals.chains[c].name: goals.chains[c] for c in counted}
    order = sorted(counted, key=lambda c: (list(classes).index(goals.chains[c].name), c))
    visits, passes = np.zeros((len(service.tasks), len(order))), np.zeros((len(service.message_ms), len(order)))
    for k, c in enumerate(order):
        for t in service.chain_tasks[c]:
            visits[t, k] += 1
        for f in service.chain_flows[c]:
            passes[f, k] += 1
    return order, list(classes.values()), visits, passes


def _logarithms(reliability: FloatArray) -> FloatArray:
    found: FloatArray = np.where(reliability > 0, np.log(np.where(reliability > 0, reliability, 1.0)), IMPOSSIBLE)
    return found
