"""Task-by-task placement: filter the nodes, score them, take the best, book the task's demand. Never backtracks.

A heuristic of this kind is a filter and a score, both pure functions of a :class:`View`. Equal scores go to the node
with the lower index, so that answers repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ces_core.model.plan import REFUSALS, Considered
from ces_core.model.problem import RESOURCES, SLACK, BoolArray, FloatArray, Problem
from ces_core.model.topology import IntArray
from ces_core.search.diagnosis import SearchTrace


@dataclass(frozen=True)
class View:
    """The input of a rule that chooses a node for one task."""

    problem: Problem
    task: int
    demand: FloatArray  # (resources,) what the task asks for
    used: FloatArray  # (resources, nodes) by others and by this job's tasks so far
    chosen: IntArray  # (nodes,) how many of this job's tasks are there

    def share_with_task(self) -> FloatArray:
        """(2, nodes): CPU and memory use including the task, as shares of capacity; 0 for a node without any."""
        capacity = self.problem.cluster.node_capacity[:2]
        return np.divide(
            self.used[:2] + self.demand[:2, None], capacity, out=np.zeros_like(capacity), where=capacity > 0
        )


Score = Callable[[View], FloatArray]
"""(nodes,): the higher the better. Values of nodes that did not pass the filters are ignored."""
Filter = Callable[[View], BoolArray]
"""(nodes,): whether the rule admits the node; that the task fits there is checked separately."""


@dataclass(frozen=True)
class Placement:
    """A node per task, or the task for which there was none (``stuck``)."""

    considered: Considered
    assignment: tuple[int, ...] | None = None
    stuck: int | None = None


def place(problem: Problem, order: Iterable[int], score: Score, admit: Filter | None = None) -> Placement:
    """Place the tasks in this order, each on the best-scored node among those that admit and hold it."""
    cluster = problem.cluster
    residual = cluster.node_free + SLACK * cluster.node_capacity
    used = np.array(cluster.node_used)
    chosen = np.zeros(len(cluster.topology.nodes), dtype=np.int64)
    seen = SearchTrace.of(problem).considered  # tasks that are never reached keep what the nodes alone refuse
    codes = np.array(seen.codes)
    node_of = [-1] * len(problem.tasks)
    for task in order:
        demand = problem.demand[task]
        view = View(problem, task, demand, used.copy(), chosen.copy())
        codes[task] = _refusals(
            problem.allowed[task], demand[:, None] > residual, None if admit is None else admit(view)
        )
        fits = np.flatnonzero(codes[task] == 0)
        if not len(fits):
            return Placement(_considered(seen, codes), stuck=task)
        node = int(fits[np.argmax(score(view)[fits])])
        node_of[task] = node
        residual[:, node] -= demand
        used[:, node] += demand
        chosen[node] += 1
    return Placement(_considered(seen, codes), tuple(node_of))


def _refusals(allowed: BoolArray, short: BoolArray, admitted: BoolArray | None) -> NDArray[np.int8]:
    """(nodes,): the first obstacle, as an index into REFUSALS."""
    codes = np.zeros(len(allowed), dtype=np.int8)
    if admitted is not None:
        codes[~admitted] = REFUSALS.index("policy")
    for r in reversed(range(len(RESOURCES))):
        codes[short[r]] = REFUSALS.index(RESOURCES[r])
    codes[~allowed] = REFUSALS.index("not-allowed")
    return codes


def _considered(seen: Considered, codes: NDArray[np.int8]) -> Considered:
    codes.setflags(write=False)
    return Considered(seen.tasks, seen.nodes, codes)
