"""How far apart candidates are, and what that costs: which nodes ruin and recreate looks at closely under a time limit.

The nodes where a task costs the balance least may all be far from the tasks that it talks to. In a network where paths
are long, that costs more than balance gains, so the nodes are listed by both.
"""

from __future__ import annotations

import math

import numpy as np

from ces_core.compiled.jit import compiled, inner
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.state import State, link_spread
from ces_core.placement.step import loss_of
from ces_core.placement.view import ProblemView
from ces_core.search.tree import Tree

APART = 100.0
"""The hops that count between nodes without a path."""
NOWHERE: FloatArray = np.zeros((0, 0))
"""Hops where none count."""


def hops_of(view: ProblemView) -> FloatArray:
    """(C, C) hops between candidates, the mean of both ways."""
    hops: FloatArray = _hops(view.pair_first, view.path_first, len(view.nodes))
    return hops


@compiled
def _hops(pair_first: IntArray, path_first: IntArray, count: int) -> FloatArray:
    """Takes two arrays, since unpacking a whole view would take longer than this."""
    hops = np.zeros((count, count))
    for a in range(count):
        for b in range(count):
            q = pair_first[a * count + b]
            way = APART
            if q < pair_first[a * count + b + 1]:
                way = float(path_first[q + 1] - path_first[q])
            hops[a, b] += 0.5 * way
            hops[b, a] += 0.5 * way
    return hops


@compiled
def flows_cost(view: ProblemView, state: State) -> float:
    """The part of the composite that the flows of a state with a path for each lose: satisfaction, and what they add to
    the links' spread."""
    lost = 0.0
    for f in range(len(view.low)):
        lost += loss_of(view, f, state.rates[f])
    mean = view.link_sum / view.link_count
    before = math.sqrt(max(view.link_squares / view.link_count - mean * mean, 0.0))
    spread = max(link_spread(view, state) - before, 0.0)
    cost: float = 0.5 * (lost / max(len(view.low), 1) + view.weights[2] * spread)
    return cost


@inner
def hop_cost(view: ProblemView, state: State) -> float:
    """The same for each hop of a flow, on average."""
    hops = 0
    for f in range(len(view.low)):
        hops += view.path_first[state.path[f] + 1] - view.path_first[state.path[f]]
    return flows_cost(view, state) / max(hops, 1)


@inner
def add_distances(
    view: ProblemView,
    state: State,
    tree: Tree,
    task: int,
    hops: FloatArray,
    cost: float,
    returning: float,
    away: FloatArray,
) -> None:
    """Adds to ``away`` (C,) what a task's flows would cost for each node, at ``cost`` for each hop. Flows to open tasks
    count ``returning`` times, as if those came back to where they were."""
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        other = view.flow_dst[f] if view.flow_src[f] == task else view.flow_src[f]
        if other == task:
            continue
        share, there = cost, -1 - other
        if other >= 0 and tree.is_open[other] == 1:
            share, there = cost * returning, state.node_of[other]
        elif other >= 0:
            there = tree.placement[other]
        for n in range(len(away)):
            away[n] += share * hops[there, n]
