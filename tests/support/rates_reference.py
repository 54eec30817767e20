"""The best bandwidth on given paths by scipy and nothing of the core's own solvers: what others are judged by."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import linprog

from ces_core.model.path import Path
from ces_core.model.problem import Problem
from ces_core.network.cache import paths_for


def reference_rates(problem: Problem, paths: Sequence[Path], weight: float) -> tuple[float, list[float]] | None:
    """The most that D - weight*std(U_links) can be, and rates that reach it; None where the minimums do not fit.

    Tangents of the standard deviation are added to a linear program until they meet it.
    """
    cluster, flows = problem.cluster, len(paths)
    low, high = problem.flow_min, problem.flow_max
    resources = len(cluster.bandwidth_capacity)
    loads = np.zeros((resources, flows))
    for f, path in enumerate(paths):
        for r, times in path.loads:
            loads[r, f] += times
    links = len(cluster.link_capacity)
    there = cluster.link_capacity > 0
    used = cluster.link_used if problem.basis == "system" else cluster.link_used * 0

    def use(rates: np.ndarray) -> np.ndarray:
        return ((used + loads[:links] @ rates) / np.where(there, cluster.link_capacity, 1.0))[there]

    within = np.array([not path.loads for path in paths], dtype=bool)
    open_span = (high > low) & ~within
    worth = np.where(open_span, 1.0 / np.where(high > low, high - low, 1.0), 0.0) / max(1, flows)
    constant = (1.0 if not flows else np.where(open_span, 0.0, 1.0).sum() / flows) - float(worth @ low)
    rows, limits = [np.append(row, 0.0) for row in loads], list(cluster.bandwidth_free)
    fixed = np.where(within, high, low)
    bounds = [*zip(fixed.tolist(), high.tolist(), strict=True), (0.0, None)]
    best: tuple[float, list[float]] | None = None
    for _ in range(300):
        answer = linprog(
            np.append(-worth, 1.0), A_ub=np.array(rows) if rows else None, b_ub=limits or None, bounds=bounds
        )
        if answer.status == 2:
            return None
        assert answer.status == 0, answer.message
        rates = answer.x[:-1]
        now = use(rates)
        deviation = float(now.std()) if len(now) else 0.0
        value = constant + float(worth @ rates) - weight * deviation
        if best is None or value > best[0]:
            best = value, rates.tolist()
        if weight * deviation - answer.x[-1] <= 1e-10:
            return best
        slope = np.zeros(links)
        slope[there] = (now - now.mean()) / (len(now) * deviation)
        per_unit = np.where(there, slope / np.where(there, cluster.link_capacity, 1.0), 0.0)
        rows.append(np.append(weight * (per_unit @ loads[:links]), -1.0))
        limits.append(-weight * float(per_unit @ used))
    return best


def every_placement(problem: Problem) -> Iterator[tuple[tuple[int, ...], tuple[Path, ...]]]:
    """Every choice of nodes that respects the nodes, with every choice of paths."""
    cluster = problem.cluster
    for nodes in itertools.product(range(len(cluster.topology.nodes)), repeat=len(problem.tasks)):
        load = cluster.node_used.copy()
        for t, n in enumerate(nodes):
            load[:, n] += problem.demand[t]
        fits = load <= np.maximum(cluster.node_capacity * (1 + 1e-12), cluster.node_used)
        if not all(problem.allowed[t, n] for t, n in enumerate(nodes)) or not fits.all():
            continue
        for paths in itertools.product(*(paths_for(problem).between(a, b) for a, b in problem.flow_ends(nodes))):
            yield nodes, paths


def best_composite(problem: Problem) -> float | None:
    """The highest composite of any plan, by looking at all of them; None where there is none."""
    cluster, best = problem.cluster, None
    used = cluster.node_used if problem.basis == "system" else cluster.node_used * 0
    for nodes, paths in every_placement(problem):
        rates = reference_rates(problem, paths, problem.weights[2])
        if rates is None:
            continue
        load = used.copy()
        for t, n in enumerate(nodes):
            load[:, n] += problem.demand[t]
        imbalance = 0.0
        for r in range(2):
            there = cluster.node_capacity[r] > 0
            if there.any():
                imbalance += problem.weights[r] * float((load[r, there] / cluster.node_capacity[r, there]).std())
        value = 0.5 * (1.0 - imbalance) + 0.5 * rates[0]
        best = value if best is None else max(best, value)
    return best
