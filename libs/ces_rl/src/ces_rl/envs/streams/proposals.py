"""A few plans for one job on a cluster as it is: one search for each of several attitudes to what a plan leaves behind.

An attitude is a value of residual capacity (:mod:`ces_core.placement.value`) that the search maximises beside the
composite. The first is that of ``search-longrun``, the second that of ``search``; the others put more weight on one
side. The search is quick and looks at a fixed number of placements, so a job is always answered alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from ces_core.model.problem import BoolArray, FloatArray, Problem
from ces_core.placement.path_choice import better_paths
from ces_core.placement.state import State
from ces_core.placement.value import Value, shipped
from ces_core.placement.view import ProblemView, problem_view
from ces_core.search.annealing import keep
from ces_core.search.solver import OPTIMISTIC, Bench
from ces_core.search.workspace import (
    improve_neighbourhoods,
    reset_tree,
    return_to_best,
    search_tree,
    worst_fit_start,
)

DIVES, BREADTH = 4, 12
"""First plans, and nodes tried for each task of one."""
NEARBY, NEIGHBOURHOOD, LIMIT, PATIENCE = 40, 4, 20, 25
"""Partial placements in neighbourhoods, tasks of one, partial placements for one, and neighbourhoods without gain
before a perturbation."""


@dataclass(frozen=True)
class Attitude:
    """``value`` None: what is left behind counts for nothing."""

    name: str
    value: Value | None


@cache
def attitudes() -> tuple[Attitude, ...]:
    """Those that propose. The first is the rule that a policy begins with."""
    value = shipped()
    return (
        Attitude("longrun", value),
        Attitude("search", None),
        Attitude("half", _scaled(value, 0.5, 0.5, 0.5)),
        Attitude("packed", _scaled(value, 3.0, 1.0, 0.0)),
        Attitude("links", _scaled(value, 1.0, 6.0, 1.0)),
        Attitude("satisfied", _scaled(value, 0.0, 0.0, 0.0)),
    )


def _scaled(value: Value, node: float, link: float, balance: float) -> Value:
    return Value(tuple(node * x for x in value.node), tuple(link * x for x in value.link), balance * value.balance)


class Proposals(NamedTuple):
    """P plans for a job of T tasks on N nodes and L links; rows of attitudes that found none are 0. ``states``: those
    of the searches, for whoever carries a plan out."""

    there: BoolArray  # (P,)
    node_load: FloatArray  # (P, 3, N) what the tasks take
    link_load: FloatArray  # (P, L)
    satisfaction: FloatArray  # (P,)
    view: ProblemView
    states: tuple[State, ...]


def hopeless(problem: Problem) -> bool:
    """Whether a task fits on no node as things are, which is how nearly all refusals begin."""
    return not bool(problem.homes.any(axis=1).all())


def propose(problem: Problem, chosen: tuple[Attitude, ...]) -> Proposals:
    """What each of the attitudes would do with the job. Where the first finds nothing, the others are not asked: most
    jobs that wait are asked for again and again, and hardly one of them has a place that the first does not see."""
    plain = problem_view(problem)
    cluster, count = problem.cluster, len(chosen)
    there, satisfaction = np.zeros(count, np.bool_), np.zeros(count)
    node_load = np.zeros((count, *cluster.node_used.shape))
    link_load = np.zeros((count, len(cluster.link_used)))
    states = []
    for number, attitude in enumerate(chosen):
        state = _searched(plain if attitude.value is None else attitude.value.on(problem, plain))
        states.append(state)
        if not state.fits[0]:
            if number == 0:
                break
            continue
        there[number] = True
        np.add.at(node_load[number].T, plain.nodes[state.node_of], problem.demand)
        _carry(plain, state, link_load[number])
        satisfaction[number] = satisfaction_of(plain, state)
    return Proposals(there, node_load, link_load, satisfaction, plain, tuple(states))


def satisfaction_of(view: ProblemView, state: State) -> float:
    """Bandwidth satisfaction D of a feasible state."""
    if not len(view.low):
        return 1.0
    span = view.high - view.low
    inside = view.path_first[state.path] == view.path_first[state.path + 1]
    shares = np.where((span <= 0) | inside, 1.0, (state.rates - view.low) / np.where(span > 0, span, 1.0))
    return float(shares.mean())


def _carry(view: ProblemView, state: State, load: FloatArray) -> None:
    for q, rate in zip(state.path.tolist(), state.rates.tolist(), strict=True):
        for r in view.path_resource[view.path_first[q] : view.path_first[q + 1]].tolist():
            if r < len(load):  # media come after the links
                load[r] += rate


def _searched(view: ProblemView) -> State:
    bench = Bench.of(view, 0)
    workspace, tasks = bench.workspace, len(view.fits)
    worst_fit_start(workspace)
    reset_tree(workspace)
    for _ in range(DIVES):
        if search_tree(workspace, OPTIMISTIC, tasks, tasks, BREADTH) < tasks:
            break
    keep(bench.state, bench.walk)
    improve_neighbourhoods(workspace, OPTIMISTIC, min(NEIGHBOURHOOD, tasks), LIMIT, BREADTH, PATIENCE, NEARBY)
    return_to_best(workspace)
    better_paths(view, bench.work, bench.state)
    return bench.state
