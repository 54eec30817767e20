"""What a policy sees of a decision: numbers per node and of the whole, whatever the number of nodes and tasks.

One kernel serves training and inference. All numbers are ratios or parts of the composite, so that units do not
matter, scaled and clipped (:mod:`ces_core.policy.schema`). Each node is judged by trying it: the task is put there, its
flows to placed tasks are routed, the node's numbers are read off, and the step is taken back.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled
from ces_core.kernels.lending import lent
from ces_core.kernels.state import State, _node_imbalance
from ces_core.kernels.step import _holds, _outlook, _step, _step_back
from ces_core.policy.ending import end_of, even_end
from ces_core.policy.episode import Episode
from ces_core.policy.judging import (
    Sight,
    about_node,
    about_open,
    about_others,
    about_placed,
    best_next,
    link_spread,
    part,
    rate_loss,
    rates_lost,
    ratio,
)
from ces_core.policy.schema import CONTEXT_FEATURES, LIMIT, NODE_FEATURES

NODE_SCALES = np.array([scale for _, scale in NODE_FEATURES])
CONTEXT_SCALES = np.array([scale for _, scale in CONTEXT_FEATURES])
NODE_WIDTH, CONTEXT_WIDTH = len(NODE_FEATURES), len(CONTEXT_FEATURES)
FOLLOWED = 4
"""So many nodes are judged by where they end, and more while all of these are blocked."""
MANY, FOLLOWED_OF_MANY = 5, 6
"""With so many tasks to place, so many nodes."""
COSTS, EVEN = cast(bool, np.False_), cast(bool, np.True_)
"""How the tasks to come are placed for a trial."""
TIES = 4
"""So many of the paths of a pair are looked at for what lies ahead."""


@compiled
def observe(
    view: Compact,
    state: State,
    episode: Episode,
    sight: Sight,
    nodes: NDArray[np.float32],
    context: NDArray[np.float32],
    mask: NDArray[np.bool_],
) -> int:
    """Sets ``nodes`` (C, features), ``context`` (features,) and ``mask`` (C,) for the next task. Returns how many
    nodes it may go to; rows of the others are zero."""
    view, state, episode, sight = lent(view), lent(state), lent(episode), lent(sight)
    nodes, context, mask = lent((nodes, context, mask))
    level = episode.level[0]
    task = episode.order[level]
    candidates = view.fits.shape[1]
    flows = max(len(view.low), 1)
    _look(view, state, episode, sight)
    imbalance, spread = _node_imbalance(view, state), link_spread(view, state)
    following = episode.order[level + 1] if level + 1 < len(episode.order) else -1
    count = 0
    least = least_next = least_even = math.inf
    for n in range(candidates):
        nodes[n, :] = 0.0
        mask[n] = False
        if not view.fits[task, n] or not _holds(view, state, task, n):
            continue
        outlook = _outlook(view, state, episode, 1.0, task, n)
        if outlook == math.inf or not _step(view, state, episode, level, n):
            continue
        mask[n] = True
        count += 1
        row = nodes[n]
        more = _node_imbalance(view, state) - imbalance
        wider = link_spread(view, state) - spread
        lost = rates_lost(view, state, episode, level)
        row[0] = 0.5 * more
        row[1] = 0.5 * view.weights[2] * wider
        row[2] = 0.5 * lost / flows
        row[3] = 0.5 * outlook / flows
        cost = 0.5 * (more + view.weights[2] * wider + max(lost, outlook) / flows)
        about_node(view, state, episode, task, n, row)
        about_placed(view, state, episode, sight, task, n, row)
        about_open(view, state, episode, sight, task, n, row)
        about_others(view, state, episode, sight, n, row)
        then = 0.0
        if following >= 0:
            then, joins = best_next(view, state, episode, sight, following)
            row[31] = 1.0 if joins == n else 0.0
            if then == math.inf:
                row[6] = 1.0
                then = 1.0
        sight.cost[0, n] = cost
        sight.cost[1, n] = cost + then
        sight.cost[3, n] = even_end(view, state, episode, sight)
        least_even = min(least_even, sight.cost[3, n])
        sight.cost[4, n], row[36] = end_of(view, state, episode, sight, EVEN)
        least = min(least, cost)
        least_next = min(least_next, cost + then)
        _step_back(view, state, episode, level)
    least_end = _follow(view, state, episode, sight, nodes, mask, count)
    known = _known(episode, sight, task)
    least_known = math.inf
    out = into = 0.0
    for n in range(candidates):
        if mask[n]:
            nodes[n, 4] = sight.cost[0, n] - least
            nodes[n, 5] = sight.cost[1, n] - least_next
            nodes[n, 34] = sight.cost[3, n] - least_even
            nodes[n, 35] = sight.cost[4, n] - least_end
            sight.cost[4, n] = min(sight.cost[4, n], sight.cost[2, n])
            if n == known:
                sight.cost[4, n] = min(sight.cost[4, n], sight.end[0])
            least_known = min(least_known, sight.cost[4, n])
            out += nodes[n, 27]
            into += nodes[n, 28]
    for n in range(candidates):
        if mask[n]:
            nodes[n, 37] = sight.cost[4, n] - least_known
            nodes[n, 27] = part(nodes[n, 27], out / count)
            nodes[n, 28] = part(nodes[n, 28], into / count)
            for i in range(NODE_WIDTH):
                nodes[n, i] = min(max(nodes[n, i] * NODE_SCALES[i], -LIMIT), LIMIT)
    _about_all(view, state, episode, sight, task, following, context)
    context[5] = count / candidates
    context[14] = least if count else 0.0
    context[15] = imbalance
    context[16] = spread
    for i in range(CONTEXT_WIDTH):
        context[i] = min(max(context[i] * CONTEXT_SCALES[i], -LIMIT), LIMIT)
    return count


@compiled
def _follow(
    view: Compact,
    state: State,
    episode: Episode,
    sight: Sight,
    nodes: NDArray[np.float32],
    mask: NDArray[np.bool_],
    count: int,
) -> float:
    """Plays the most promising nodes to the end (:func:`ces_core.policy.ending.end_of`); the others are taken to end
    as much later than the last of these as they were less promising. Returns what the best costs at the end."""
    level = episode.level[0]
    least, last, worst = math.inf, 0.0, -math.inf
    blocked = 0.0
    sight.cost[2, :] = math.inf
    open_end = False
    followed = FOLLOWED if len(episode.order) - level < MANY else FOLLOWED_OF_MANY
    for k in range(count):
        if k >= followed and open_end:
            break
        node = -1
        for n in range(len(mask)):
            if mask[n] and sight.cost[2, n] == math.inf and (node < 0 or sight.cost[1, n] < sight.cost[1, node]):
                node = n
        last = sight.cost[1, node]
        _step(view, state, episode, level, node)
        end, blocked = end_of(view, state, episode, sight, COSTS)
        _step_back(view, state, episode, level)
        sight.cost[2, node] = end
        nodes[node, 33] = blocked
        open_end = open_end or blocked == 0.0
        least, worst = min(least, end), max(worst, end)
    for n in range(len(mask)):
        if mask[n]:
            if sight.cost[2, n] == math.inf:
                sight.cost[2, n] = worst + sight.cost[1, n] - last
                nodes[n, 33] = blocked
            nodes[n, 32] = sight.cost[2, n] - least
    return least


@compiled
def _known(episode: Episode, sight: Sight, task: int) -> int:
    """Where the cheapest whole plan that was ever seen has the next task; -1 where what is placed differs from it."""
    if sight.end[0] == math.inf:
        return -1
    for i in range(episode.level[0]):
        placed = episode.order[i]
        if episode.placement[placed] != sight.ended[placed]:
            return -1
    known: int = sight.ended[task]
    return known


@compiled
def _look(view: Compact, state: State, episode: Episode, sight: Sight) -> None:
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
        sight.width[pair] = width
        sight.likely[pair] = likely
        sight.hops[pair] = view.path_first[first + 1] - view.path_first[first] if last > first else math.inf
    for t in range(len(episode.order)):
        places = 0.0
        if episode.is_open[t]:
            for n in range(candidates):
                if view.fits[t, n] and _holds(view, state, t, n):
                    places += 1.0
        sight.places[t] = places


@compiled
def _about_all(
    view: Compact,
    state: State,
    episode: Episode,
    sight: Sight,
    task: int,
    following: int,
    context: NDArray[np.float32],
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
        if 0.0 <= sight.width[pair] < math.inf:
            width += sight.width[pair]
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
