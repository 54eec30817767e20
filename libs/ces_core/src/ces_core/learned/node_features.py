"""Per-node features, computed by tentatively placing the next task on that node (for
:mod:`ces_core.learned.features`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled
from ces_core.learned.episode import Episode
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.state import State, node_imbalance
from ces_core.placement.step import holds, imbalance_with
from ces_core.placement.view import ProblemView

Features = NDArray[np.float32]
WORST_LOSS = 3.0
"""Upper limit for the satisfaction that a flow below its minimum counts as having lost."""


class FeatureScratch(NamedTuple):
    """Scratch space for C nodes, T tasks and F flows."""

    width: FloatArray  # (C * C,) room that the minimums leave on the widest path
    likely: FloatArray  # (C * C,) room that the rates leave
    hops: FloatArray  # (C * C,)
    places: FloatArray  # (T,) nodes that still hold the task
    cost: FloatArray  # (5, C) of a node at once; with the best of the next task; at the end; most evenly, nodes and all
    there: IntArray  # (T,)
    path: IntArray  # (F,) of a task's flows, while it is tried elsewhere
    rate: FloatArray  # (F,)
    end: FloatArray  # (1,) the least cost of a whole plan that any trial of a game has come to
    ended: IntArray  # (T,) that plan


def new_feature_scratch(tasks: int, nodes: int, flows: int) -> FeatureScratch:
    return FeatureScratch(
        width=np.zeros(nodes * nodes),
        likely=np.zeros(nodes * nodes),
        hops=np.zeros(nodes * nodes),
        places=np.zeros(tasks),
        cost=np.zeros((5, nodes)),
        there=np.zeros(tasks, dtype=np.int64),
        path=np.zeros(flows, dtype=np.int64),
        rate=np.zeros(flows),
        end=np.full(1, math.inf),
        ended=np.zeros(tasks, dtype=np.int64),
    )


@compiled
def part(value: float, whole: float) -> float:
    """How far ``value`` lies above ``whole``, from -1 to 1: (value - whole) / (value + whole)."""
    total = value + whole
    return (value - whole) / total if 0.0 < total < math.inf else (1.0 if total == math.inf else 0.0)


@compiled
def ratio(value: float, whole: float) -> float:
    return value / whole if whole > 0.0 else 0.0


@compiled
def rate_loss(view: ProblemView, f: int, room: float) -> float:
    span = view.high[f] - view.low[f]
    if room >= view.high[f]:
        return 0.0
    return min((view.high[f] - room) / span, WORST_LOSS) if span > 0.0 else WORST_LOSS


@compiled
def rates_lost(view: ProblemView, state: State, episode: Episode, level: int) -> float:
    """The satisfaction that flows of the latest step lose at the rates they can expect."""
    lost = 0.0
    for i in range(episode.carried[level], episode.carried[level + 1]):
        f = episode.trail[i]
        lost += rate_loss(view, f, state.guess[f])
    return lost


@compiled
def about_node(view: ProblemView, state: State, episode: Episode, task: int, node: int, row: Features) -> None:
    for k in range(2):
        row[7 + k] = view.demand[task, k] * view.inverse[k, node]
        row[9 + k] = max(state.free[k, node], 0.0) * view.inverse[k, node]
        row[11 + k] = state.use[k, node] - state.node_sums[k, 0] / view.node_count[k]
    here = 0.0
    for t in range(len(episode.order)):
        if t != task and not episode.is_open[t] and episode.placement[t] == node:
            here += 1.0
    row[13] = here / len(episode.order)


@compiled
def about_placed(
    view: ProblemView, episode: Episode, scratch: FeatureScratch, task: int, node: int, row: Features
) -> None:
    candidates = view.fits.shape[1]
    talk = within = hops = 0.0
    slack = spare = 1.0
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        src, dst = view.flow_src[f], view.flow_dst[f]
        other = dst if src == task else src
        if other >= 0 and episode.is_open[other]:
            continue
        there = episode.placement[other] if other >= 0 else -1 - other
        talk += view.high[f]
        if there == node:
            within += view.high[f]
            continue
        pair = node * candidates + there if src == task else there * candidates + node
        hops += view.high[f] * scratch.hops[pair]
        slack = min(slack, part(scratch.width[pair], view.low[f]))
        spare = min(spare, part(max(scratch.likely[pair], 0.0), view.high[f]))
    row[14] = ratio(hops, talk)
    row[15] = ratio(within, talk)
    row[16] = slack
    row[17] = spare


@compiled
def about_open(
    view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, task: int, node: int, row: Features
) -> None:
    """Residual capacity at and around the node for open tasks that ``task`` communicates with."""
    candidates = view.fits.shape[1]
    talk = joining = reach_sum = lost = 0.0
    reach_least = 1.0
    flows = 0
    cpu = memory = 0.0
    low_out = low_in = high_out = high_in = 0.0
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        outward = view.flow_src[f] == task
        other = view.flow_dst[f] if outward else view.flow_src[f]
        if other < 0 or not episode.is_open[other]:
            continue
        flows += 1
        talk += view.high[f]
        cpu += view.demand[other, 0]
        memory += view.demand[other, 1]
        joins = view.fits[other, node] and holds(view, state, other, node)
        reach, best = 0.0, WORST_LOSS
        for m in range(candidates):
            if m == node or not view.fits[other, m] or not holds(view, state, other, m):
                continue
            pair = node * candidates + m if outward else m * candidates + node
            if scratch.width[pair] >= view.low[f]:
                reach += 1.0
                best = min(best, rate_loss(view, f, scratch.likely[pair]))
        reach /= reach + 2.0
        reach_sum += reach
        lost += best / WORST_LOSS
        if joins:
            joining += view.high[f]
            continue
        reach_least = min(reach_least, reach)
        if outward:
            low_out += view.low[f]
            high_out += view.high[f]
        else:
            low_in += view.low[f]
            high_in += view.high[f]
    out, into = _ports(view, state, node)
    row[18] = ratio(joining, talk)
    room = min(_room_for(state.free[0, node], cpu), _room_for(state.free[1, node], memory))
    row[19] = room if flows else 0.0
    row[20] = reach_sum / flows if flows else 1.0
    row[21] = reach_least
    row[22] = lost / flows if flows else 0.0
    row[23] = part(out, low_out)
    row[24] = part(into, low_in)
    row[25] = part(out, high_out)
    row[26] = part(into, high_in)
    row[27] = out
    row[28] = into


@compiled
def _room_for(free: float, asked: float) -> float:
    return min(max(free, 0.0) / asked, 1.0) if asked > 0.0 else 1.0


@compiled
def _ports(view: ProblemView, state: State, node: int) -> tuple[float, float]:
    """Capacity left by the minimums on the links between the node and its neighbouring candidates: out, in."""
    candidates = view.fits.shape[1]
    out = into = 0.0
    for m in range(candidates):
        for direction in range(2):
            pair = node * candidates + m if direction == 0 else m * candidates + node
            q = view.pair_first[pair]
            if m == node or q == view.pair_first[pair + 1] or view.path_first[q + 1] - view.path_first[q] != 1:
                continue
            room = max(state.reserve[view.path_resource[view.path_first[q]]], 0.0)
            if direction == 0:
                out += room
            else:
                into += room
    return out, into


@compiled
def about_others(
    view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, node: int, row: Features
) -> None:
    """What the step takes from tasks yet to come."""
    tightest = 0.0
    displaced = 0.0
    waiting = 0
    for t in range(len(episode.order)):
        if not episode.is_open[t]:
            continue
        waiting += 1
        places = scratch.places[t]
        if view.fits[t, node] and not holds(view, state, t, node):
            before = True
            # It held the task before the step if what is free now plus the step's demand does.
            for k in range(3):
                step = view.demand[episode.order[episode.level[0]], k]
                before = before and view.demand[t, k] <= state.free[k, node] + step
            if before:
                places -= 1.0
                displaced += 1.0
        tightest = max(tightest, 1.0 / (1.0 + max(places, 0.0)))
    row[29] = tightest
    row[30] = displaced / waiting if waiting else 0.0


@compiled
def best_next(
    view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, task: int
) -> tuple[float, int]:
    """(cost, node): the next task's least cost after this step, and its node; infinite if it has none."""
    candidates = view.fits.shape[1]
    flows = max(len(view.low), 1)
    now = node_imbalance(view, state)
    best, where = math.inf, -1
    for m in range(candidates):
        if not view.fits[task, m] or not holds(view, state, task, m):
            continue
        lost = 0.0
        for k in range(view.flows_first[task], view.flows_first[task + 1]):
            f = view.flows_of[k]
            src, dst = view.flow_src[f], view.flow_dst[f]
            other = dst if src == task else src
            if other >= 0 and episode.is_open[other]:
                continue
            there = episode.placement[other] if other >= 0 else -1 - other
            if there == m:
                continue
            pair = m * candidates + there if src == task else there * candidates + m
            if scratch.width[pair] < view.low[f]:
                lost = math.inf
                break
            lost += rate_loss(view, f, scratch.likely[pair])
        if lost == math.inf:
            continue
        cost = 0.5 * (imbalance_with(view, state, task, m) - now + lost / flows)
        if cost < best:
            best, where = cost, m
    return best, where
