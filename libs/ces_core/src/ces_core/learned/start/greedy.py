"""Greedy construction: each task goes to the node with the highest weighted sum of a few features.

The features are cheap: each needs only the task's own flows and the node's own links. The weights are learned
(:mod:`ces_core.learned.start.weights`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.learned.episode import Episode, begin, finish, new_episode, place
from ces_core.learned.start.weights import Weights
from ces_core.model.problem import FloatArray, Problem
from ces_core.model.topology import IntArray
from ces_core.network.cache import network_of
from ces_core.network.hops import Neighbours
from ces_core.placement.fill import FillWork, fill_work
from ces_core.placement.state import State, new_state, node_imbalance
from ces_core.placement.step import flow_loss, holds, imbalance_with
from ces_core.placement.task_order import task_order
from ces_core.placement.view import ProblemView


class Surroundings(NamedTuple):
    """The network around C candidates, as greedy construction needs it."""

    out_first: IntArray  # (C + 1,) links that leave candidate c: out_link[out_first[c] : out_first[c + 1]]
    out_link: IntArray
    in_first: IntArray
    in_link: IntArray
    closeness: FloatArray  # (C,) how near the room of other candidates is, 1 for the nearest


def surroundings_of(problem: Problem, view: ProblemView) -> Surroundings:
    """The network of one problem."""
    topology = problem.cluster.topology
    closeness = np.zeros(len(view.nodes))
    close(view, closeness)
    return Surroundings(
        *_links(network_of(topology).out, view.nodes), *_links(network_of(topology).into, view.nodes), closeness
    )


def _links(side: Neighbours, nodes: IntArray) -> tuple[IntArray, IntArray]:
    """Each node's links as a flat array with offsets."""
    lengths = side.first[nodes + 1] - side.first[nodes]
    first = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=first[1:])
    at = np.repeat(side.first[nodes] - first[:-1], lengths) + np.arange(first[-1])
    return first, side.link[at].astype(np.int64)


@compiled
def close(view: ProblemView, closeness: FloatArray) -> None:
    """Set ``closeness``: the tasks that other candidates hold, weighted by path width and the inverse square of the
    hops."""
    count = len(view.nodes)
    mean0 = max(view.demand[:, 0].mean(), 1e-300)
    mean1 = max(view.demand[:, 1].mean(), 1e-300)
    typical = max(view.high.mean(), 1e-300) if len(view.high) > 0 else 1.0
    for m in range(count):
        if not view.fits[:, m].any():
            continue
        worth = min(view.free[0, m] / mean0, view.free[1, m] / mean1, 4.0)
        if worth <= 0.0:
            continue
        for n in range(count):
            if n == m:
                closeness[n] += worth
                continue
            pair = n * count + m
            q = view.pair_first[pair]
            if q == view.pair_first[pair + 1]:
                continue
            hops = view.path_first[q + 1] - view.path_first[q]
            width = math.inf
            for i in range(view.path_first[q], view.path_first[q + 1]):
                width = min(width, view.residual[view.path_resource[i]])
            closeness[n] += worth * min(width / typical, 2.0) / (hops * hops)
    most = max(closeness.max(), 1e-300)
    closeness /= most


@compiled
def construct(
    view: ProblemView, state: State, episode: Episode, around: Surroundings, weights: FloatArray, skip: int
) -> bool:
    """Play the episode; the first task skips the ``skip`` best nodes. False if a task found no node: the state then
    holds the tasks placed before it."""
    if not begin(view, state, episode):
        return False
    tasks, candidates = view.fits.shape
    asked = np.zeros(2)
    values = np.empty(candidates)
    for level in range(tasks):
        task = episode.order[level]
        asked[:] = 0.0
        for i in range(level + 1, tasks):
            for k in range(2):
                asked[k] += view.demand[episode.order[i], k]
        before = node_imbalance(view, state)
        for n in range(candidates):
            values[n] = -math.inf
            if not view.fits[task, n] or not holds(view, state, task, n):
                continue
            lost = flow_loss(view, state, episode, 1.0, task, n)
            if lost == math.inf:
                continue
            values[n] = _value(view, state, episode, around, weights, level, n, lost, before, asked)
        if level == 0:
            for _ in range(skip):
                values[np.argmax(values)] = -math.inf
        placed = False
        while not placed:
            best = int(np.argmax(values))
            if values[best] == -math.inf:
                return False
            values[best] = -math.inf
            placed = place(view, state, episode, best)
    return True


@compiled
def _value(
    view: ProblemView,
    state: State,
    episode: Episode,
    around: Surroundings,
    weights: FloatArray,
    level: int,
    n: int,
    lost: float,
    before: float,
    asked: FloatArray,
) -> float:
    """The value of node ``n`` for the level's task, which would lose ``lost`` of its satisfaction there; ``before``:
    node imbalance without it, ``asked``: CPU and memory of the later tasks."""
    task, waiting = episode.order[level], len(view.fits) - 1 - level
    candidates = view.fits.shape[1]
    flows = max(len(view.low), 1)
    above = 0.0
    for k in range(2):
        more = view.demand[task, k] * view.inverse[k, n]
        above += state.use[k, n] + more - (state.node_sums[k, 0] + more) / view.node_count[k]
    hops = joined = may_join = 0.0
    open_out = open_in = 0.0
    waiting_out = waiting_in = 0.0
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        src, dst = view.flow_src[f], view.flow_dst[f]
        other = dst if src == task else src
        if other >= 0 and episode.is_open[other]:
            if src == task:
                open_out += view.high[f]
                waiting_out += 1.0
            else:
                open_in += view.high[f]
                waiting_in += 1.0
            if view.fits[other, n]:
                held = True
                for r in range(3):
                    held = held and view.demand[task, r] + view.demand[other, r] <= state.free[r, n]
                may_join += held
            continue
        there = episode.placement[other] if other >= 0 else -1 - other
        if there == n:
            joined += 1.0
            continue
        pair = n * candidates + there if src == task else there * candidates + n
        q = view.pair_first[pair]
        hops += view.path_first[q + 1] - view.path_first[q]
    out_pressure = in_pressure = 0.0
    if waiting_out > 0.0:
        spare = 0.0
        for i in range(around.out_first[n], around.out_first[n + 1]):
            spare += max(state.spare[around.out_link[i]], 0.0)
        out_pressure = waiting_out * min(open_out / max(spare, 1e-300), 2.0)
    if waiting_in > 0.0:
        spare = 0.0
        for i in range(around.in_first[n], around.in_first[n + 1]):
            spare += max(state.spare[around.in_link[i]], 0.0)
        in_pressure = waiting_in * min(open_in / max(spare, 1e-300), 2.0)
    room = 0.0
    if waiting > 0:
        room = 2.0
        for k in range(2):
            if asked[k] > 0.0:
                room = min(room, (state.free[k, n] - view.demand[task, k]) * waiting / asked[k])
    value: float = weights[0] * (imbalance_with(view, state, task, n) - before)
    value += (
        weights[1] * lost
        + weights[2] * hops
        + weights[3] * out_pressure
        + weights[4] * in_pressure
        + weights[5] * may_join
        + weights[6] * joined
        + weights[7] * (waiting_out + waiting_in) * around.closeness[n]
    ) / flows
    value += weights[8] * room / len(view.fits) + weights[9] * above / len(view.fits)
    return value


@dataclass(frozen=True)
class GreedyConstruction:
    """Builds plans of one problem in a state of its own."""

    view: ProblemView
    state: State
    work: FillWork
    episode: Episode
    around: Surroundings
    weights: FloatArray

    @staticmethod
    def of(problem: Problem, view: ProblemView, weights: Weights) -> GreedyConstruction:
        episode = new_episode(view, task_order(view))
        return GreedyConstruction(
            view, new_state(view), fill_work(view), episode, surroundings_of(problem, view), weights.dive
        )

    def plan(self, skip: int) -> float | None:
        """The composite of the plan whose first task skips the ``skip`` best nodes; the plan is left in ``state``. None
        if it does not fit."""
        if not construct(self.view, self.state, self.episode, self.around, self.weights, skip):
            return None
        score = finish(self.view, self.work, self.state, self.episode)
        return score if self.state.fits[0] else None
