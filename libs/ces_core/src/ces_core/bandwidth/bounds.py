"""Upper bound on the composite of any plan, cheap enough to accompany every answer.

For every vector g that sums to zero and has norm at most 1/sqrt(N), ``std(U) >= g . U``, with equality for ``g = (U -
mean(U)) / (N * std(U))``: the standard deviation is the largest of these linear functions. Taken at the plan that was
found, once for CPU and once for memory, they bound the imbalance of every plan by a sum of terms that each depend on
one task alone and are easy to minimise. The bound ignores links and satisfaction; the solver ``exact`` covers both, at
its price.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ces_core.model.problem import BoolArray, FloatArray, Problem

ROUNDING = 1e-12
"""Rounding error of sums of this size."""


def composite_limit(problem: Problem, assignment: Sequence[int]) -> float:
    """Upper bound on the composite of every plan. ``assignment`` (node of each task) only chooses where the bound is
    tight."""
    cluster = problem.cluster
    nodes = np.asarray(assignment)
    terms = np.zeros(problem.homes.shape)
    cost = 0.0
    for row in range(2):
        capacity = cluster.node_capacity[row]
        there = capacity > 0
        inverse = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=there)
        before = cluster.node_used[row] * inverse * (problem.basis == "system")
        after = before.copy()
        np.add.at(after, nodes, problem.demand[:, row] * inverse[nodes])
        slope = problem.weights[row] * _support(after, there)
        cost += float((slope * before).sum())
        terms += problem.demand[:, row, None] * (slope * inverse)[None, :]
    cost += float(np.where(problem.homes, terms, np.inf).min(axis=1).sum())
    return min(1.0, 1.0 - 0.5 * cost + ROUNDING)


def _support(use: FloatArray, there: BoolArray) -> FloatArray:
    """The g that attains std(use) over the entries that are ``there``; zero elsewhere."""
    count = max(int(there.sum()), 1)
    off = use
    for _ in range(
        2
    ):  # where all are equal, rounding is all that is left of the first difference: it need not sum to 0
        off = np.where(there, off - off[there].sum() / count, 0.0)
    spread = float(np.sqrt((off**2).sum() / count))
    support: FloatArray = off / (count * spread) if spread > 0 else np.zeros_like(use)
    return support
