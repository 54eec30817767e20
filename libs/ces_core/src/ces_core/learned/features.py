"""The features a policy sees: numbers per node and per decision, for any number of nodes and tasks.

Training and inference share one kernel. All numbers are ratios or parts of the composite, so that units do not matter,
scaled and clipped (:mod:`ces_core.learned.schema`). Node features come from tentatively placing the task on the node,
routing its flows to placed tasks, reading the numbers off and undoing the step.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np

from ces_core.compiled.jit import compiled, lent
from ces_core.learned.episode import Episode
from ces_core.learned.node_features import (
    Features,
    FeatureScratch,
    about_node,
    about_open,
    about_others,
    about_placed,
    best_next,
    part,
    rate_loss,
    rates_lost,
    ratio,
)
from ces_core.learned.rollout import end_of, even_end
from ces_core.learned.schema import CONTEXT_FEATURES, LIMIT, NODE_FEATURES
from ces_core.model.problem import BoolArray
from ces_core.placement.state import State, link_spread, node_imbalance
from ces_core.placement.step import flow_loss, holds, step_back, step_to
from ces_core.placement.view import ProblemView

NODE_SCALES = np.array([scale for _, scale in NODE_FEATURES])
CONTEXT_SCALES = np.array([scale for _, scale in CONTEXT_FEATURES])
NODE_WIDTH, CONTEXT_WIDTH = len(NODE_FEATURES), len(CONTEXT_FEATURES)
FOLLOWED = 4
"""Nodes followed to the end of the episode, and more as long as all of these are blocked."""
MANY, FOLLOWED_OF_MANY = 5, 6
"""From this many tasks on, this many nodes."""
COSTS, EVEN = cast(bool, np.False_), cast(bool, np.True_)
"""The rule that places the remaining tasks in a rollout."""
TIES = 4
"""Paths of a pair that are considered for future flows."""


class Observation(NamedTuple):
    """What a policy sees of one decision, or of a batch of B of them, each array with one axis more."""

    nodes: Features  # (C, features)
    context: Features  # (features,)
    mask: BoolArray  # (C,) nodes that the task may go to


def new_observations(count: int, nodes: int) -> Observation:
    """An empty batch of ``count`` decisions between this many nodes."""
    return Observation(
        np.zeros((count, nodes, NODE_WIDTH), dtype=np.float32),
        np.zeros((count, CONTEXT_WIDTH), dtype=np.float32),
        np.zeros((count, nodes), dtype=np.bool_),
    )


@compiled
def observe(view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, seen: Observation) -> int:
    """Set ``seen`` for the next task. Returns the number of nodes it may go to; rows of the others are zero."""
    view, state, episode, scratch = lent(view), lent(state), lent(episode), lent(scratch)
    nodes, context, mask = lent(seen)
    level = episode.level[0]
    task = episode.order[level]
    candidates = view.fits.shape[1]
    flows = max(len(view.low), 1)
    _look(view, state, episode, scratch)
    imbalance, spread = node_imbalance(view, state), link_spread(view, state)
    following = episode.order[level + 1] if level + 1 < len(episode.order) else -1
    count = 0
    least = least_next = least_even = math.inf
    for n in range(candidates):
        nodes[n, :] = 0.0
        mask[n] = False
        if not view.fits[task, n] or not holds(view, state, task, n):
            continue
        outlook = flow_loss(view, state, episode, 1.0, task, n)
        if outlook == math.inf or not step_to(view, state, episode, level, n):
            continue
        mask[n] = True
        count += 1
        row = nodes[n]
        more = node_imbalance(view, state) - imbalance
        wider = link_spread(view, state) - spread
        lost = rates_lost(view, state, episode, level)
        row[0] = 0.5 * more
        row[1] = 0.5 * view.weights[2] * wider
        row[2] = 0.5 * lost / flows
        row[3] = 0.5 * outlook / flows
        cost = 0.5 * (more + view.weights[2] * wider + max(lost, outlook) / flows)
        about_node(view, state, episode, task, n, row)
        about_placed(view, episode, scratch, task, n, row)
        about_open(view, state, episode, scratch, task, n, row)
        about_others(view, state, episode, scratch, n, row)
        then = 0.0
        if following >= 0:
            then, joins = best_next(view, state, episode, scratch, following)
            row[31] = 1.0 if joins == n else 0.0
            if then == math.inf:
                row[6] = 1.0
                then = 1.0
        scratch.cost[0, n] = cost
        scratch.cost[1, n] = cost + then
        scratch.cost[3, n] = even_end(view, state, episode, scratch)
        least_even = min(least_even, scratch.cost[3, n])
        scratch.cost[4, n], row[36] = end_of(view, state, episode, scratch, EVEN)
        least = min(least, cost)
        least_next = min(least_next, cost + then)
        step_back(view, state, episode, level)
    least_end = _follow(view, state, episode, scratch, nodes, mask, count)
    known = _known(episode, scratch, task)
    least_known = math.inf
    out = into = 0.0
    for n in range(candidates):
        if mask[n]:
            nodes[n, 4] = scratch.cost[0, n] - least
            nodes[n, 5] = scratch.cost[1, n] - least_next
            nodes[n, 34] = scratch.cost[3, n] - least_even
            nodes[n, 35] = scratch.cost[4, n] - least_end
            scratch.cost[4, n] = min(scratch.cost[4, n], scratch.cost[2, n])
            if n == known:
                scratch.cost[4, n] = min(scratch.cost[4, n], scratch.end[0])
            least_known = min(least_known, scratch.cost[4, n])
            out += nodes[n, 27]
            into += nodes[n, 28]
    for n in range(candidates):
        if mask[n]:
            nodes[n, 37] = scratch.cost[4, n] - least_known
            nodes[n, 27] = part(nodes[n, 27], out / count)
            nodes[n, 28] = part(nodes[n, 28], into / count)
            for i in range(NODE_WIDTH):
                nodes[n, i] = min(max(nodes[n, i] * NODE_SCALES[i], -LIMIT), LIMIT)
    _about_all(view, state, episode, scratch, task, following, context)
    context[5] = count / candidates
    context[14] = least if count else 0.0
    context[15] = imbalance
    context[16] = spread
    for i in range(CONTEXT_WIDTH):
        context[i] = min(max(context[i] * CONTEXT_SCALES[i], -LIMIT), LIMIT)
    return count


@compiled
def _follow(
    view: ProblemView,
    state: State,
    episode: Episode,
    scratch: FeatureScratch,
    nodes: Features,
    mask: BoolArray,
    count: int,
) -> float:
    """Roll out the most promising nodes (:func:`ces_core.learned.rollout.end_of`). The other nodes are assumed to end
    worse than the last of these by as much as they looked worse. Returns the least cost at the end."""
    level = episode.level[0]
    least, last, worst = math.inf, 0.0, -math.inf
    blocked = 0.0
    scratch.cost[2, :] = math.inf
    open_end = False
    followed = FOLLOWED if len(episode.order) - level < MANY else FOLLOWED_OF_MANY
    for k in range(count):
        if k >= followed and open_end:
            break
        node = -1
        for n in range(len(mask)):
            if mask[n] and scratch.cost[2, n] == math.inf and (node < 0 or scratch.cost[1, n] < scratch.cost[1, node]):
                node = n
        last = scratch.cost[1, node]
        step_to(view, state, episode, level, node)
        end, blocked = end_of(view, state, episode, scratch, COSTS)
        step_back(view, state, episode, level)
        scratch.cost[2, node] = end
        nodes[node, 33] = blocked
        open_end = open_end or blocked == 0.0
        least, worst = min(least, end), max(worst, end)
    for n in range(len(mask)):
        if mask[n]:
            if scratch.cost[2, n] == math.inf:
                scratch.cost[2, n] = worst + scratch.cost[1, n] - last
                nodes[n, 33] = blocked
            nodes[n, 32] = scratch.cost[2, n] - least
    return least


@compiled
def _known(episode: Episode, scratch: FeatureScratch, task: int) -> int:
    """The next task's node in the cheapest whole plan seen so far; -1 if the placed tasks deviate from that plan."""
    if scratch.end[0] == math.inf:
        return -1
    for i in range(episode.level[0]):
        placed = episode.order[i]
        if episode.placement[placed] != scratch.ended[placed]:
            return -1
    known: int = scratch.ended[task]
    return known


@compiled
def _look(view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch) -> None:
    candidates = view.fits.shape[1]
    for pair in range(candidates * candidates):
        first = view.pair_first[pair]
        last = min(view.pair_first[pair + 1], first + TIES)
        width = likely = -1.0
        for q in range(first, last):
            sure = room = math.inf
            for i in range(view.path_first[q], view.path_first[q + 1]):
                r, times = view.path_resource[i], view.path_times[i]
                sure = min(sure, state.reserve[r] / times)
                room = min(room, state.spare[r] / times)
            width = max(width, sure)
            likely = max(likely, room)
        scratch.width[pair] = width
        scratch.likely[pair] = likely
        scratch.hops[pair] = view.path_first[first + 1] - view.path_first[first] if last > first else math.inf
    for t in range(len(episode.order)):
        places = 0.0
        if episode.is_open[t]:
            for n in range(candidates):
                if view.fits[t, n] and holds(view, state, t, n):
                    places += 1.0
        scratch.places[t] = places


@compiled
def _about_all(
    view: ProblemView,
    state: State,
    episode: Episode,
    scratch: FeatureScratch,
    task: int,
    following: int,
    context: Features,
) -> None:
    tasks, candidates = view.fits.shape
    flows = len(view.low)
    context[:] = 0.0
    left = tasks - episode.level[0]
    context[0] = left / tasks
    context[1] = tasks
    context[3] = flows / tasks
    context[4] = math.log(candidates)
    for k in range(2):
        free = asked = 0.0
        for n in range(candidates):
            free += max(state.free[k, n], 0.0)
        for t in range(tasks):
            if episode.is_open[t]:
                asked += view.demand[t, k]
        context[6 + k] = min(ratio(view.demand[task, k] * candidates, free), LIMIT)
        context[8 + k] = min(ratio(asked, free), LIMIT)
    waiting, lost = 0, 0.0
    for f in range(flows):
        src, dst = view.flow_src[f], view.flow_dst[f]
        if (src >= 0 and episode.is_open[src]) or (dst >= 0 and episode.is_open[dst]):
            waiting += 1
        else:
            lost += rate_loss(view, f, state.guess[f])
    context[2] = waiting / flows if flows else 0.0
    context[17] = lost / flows if flows else 0.0
    width, pairs = 0.0, 0
    for pair in range(candidates * candidates):
        if 0.0 <= scratch.width[pair] < math.inf:
            width += scratch.width[pair]
            pairs += 1
    width = width / pairs if pairs else 0.0
    low = high = 0.0
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        other = view.flow_dst[f] if view.flow_src[f] == task else view.flow_src[f]
        low += view.low[f]
        high += view.high[f]
        if other >= 0 and episode.is_open[other]:
            context[11] += 1.0 / flows
        else:
            context[10] += 1.0 / flows
        if other == following and other >= 0:
            context[18] = 1.0
    context[12] = min(ratio(low, width), LIMIT)
    context[13] = min(ratio(high, width), LIMIT)
