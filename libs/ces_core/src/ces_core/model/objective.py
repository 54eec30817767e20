"""How good a plan is: load imbalance L, bandwidth satisfaction D, and their composite (higher is better).

L = w1*std(U_cpu) + w2*std(U_memory) + w3*std(U_bandwidth), population standard deviations over the nodes that have
the capacity and over the links; U counts what is already used plus the job (basis ``system``) or the job alone
(basis ``job``). D is the mean over the flows of (bandwidth - min) / (max - min), 1 where max = min, and 1 for a flow
within a node or where there are no flows. The composite is 0.5*(1 - L) + 0.5*D.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ces_core.model.path import Path
from ces_core.model.plan import Metrics, Plan
from ces_core.model.problem import FloatArray, Problem
from ces_core.model.service import Service


def evaluate(problem: Problem, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]) -> Metrics:
    """The metrics of a plan given by indices: ``assignment`` has each task's node; ``paths`` and ``bandwidth`` are in
    the order of the problem's flows. Checks no constraint: that is the checker's task."""
    imbalance = load_imbalance(problem, assignment, paths, bandwidth)
    satisfaction = bandwidth_satisfaction(problem, paths, bandwidth)
    service = None
    if problem.has_goals:
        service = Service(problem).metrics(imbalance, satisfaction, assignment, paths, bandwidth)
    return Metrics(imbalance, satisfaction, composite(imbalance, satisfaction), service)


def metrics_of(problem: Problem, plan: Plan) -> Metrics:
    """The metrics of a plan given by names, its flows in the problem's order. Raises KeyError for an unknown node or
    link."""
    topology = problem.cluster.topology
    paths = []
    for flow in plan.flows:
        nodes = tuple(topology.node_index[name] for name in flow.path)
        paths.append(Path(nodes, tuple(topology.link_index[hop] for hop in pairwise(nodes)), ()))
    assignment = [topology.node_index[plan.assignments[task.name]] for task in problem.tasks]
    return evaluate(problem, assignment, paths, [flow.bandwidth for flow in plan.flows])


def composite(imbalance: float, satisfaction: float) -> float:
    return 0.5 * (1.0 - imbalance) + 0.5 * satisfaction


def load_imbalance(
    problem: Problem, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]
) -> float:
    cluster = problem.cluster
    system = problem.basis == "system"
    node_load = cluster.node_used.copy() if system else np.zeros_like(cluster.node_used)
    link_load = cluster.link_used.copy() if system else np.zeros_like(cluster.link_used)
    for task, node in enumerate(assignment):
        node_load[:, node] += problem.demand[task]
    for path, rate in zip(paths, bandwidth, strict=True):
        for link in path.links:
            link_load[link] += rate
    w_cpu, w_memory, w_bandwidth = problem.weights
    return (
        w_cpu * _spread(node_load[0], cluster.node_capacity[0])
        + w_memory * _spread(node_load[1], cluster.node_capacity[1])
        + w_bandwidth * _spread(link_load, cluster.link_capacity)
    )


def bandwidth_satisfaction(problem: Problem, paths: Sequence[Path], bandwidth: Sequence[float]) -> float:
    if not problem.flows:
        return 1.0
    total = 0.0
    for f, (path, rate) in enumerate(zip(paths, bandwidth, strict=True)):
        low, high = float(problem.flow_min[f]), float(problem.flow_max[f])
        total += 1.0 if high == low or not path.links else (rate - low) / (high - low)
    return total / len(problem.flows)


def _spread(load: FloatArray, capacity: FloatArray) -> float:
    there = capacity > 0
    if not there.any():
        return 0.0
    return float(np.std(load[there] / capacity[there]))
