"""What a decoder does between two words of a policy, each in one call: crossing into compiled code with all these
arrays takes as long as a move itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork
from ces_core.kernels.improve import better_paths
from ces_core.kernels.jit import compiled
from ces_core.kernels.lending import lent
from ces_core.kernels.state import State
from ces_core.policy.episode import Episode, begin, finish, place
from ces_core.policy.features import observe
from ces_core.policy.judging import Sight
from ces_core.topology import IntArray


@compiled
def first_look(
    view: Compact,
    state: State,
    episode: Episode,
    sight: Sight,
    nodes: NDArray[np.float32],
    context: NDArray[np.float32],
    mask: NDArray[np.bool_],
) -> int:
    """Begins: how many nodes the first task may go to; -1 where flows between given nodes find no room."""
    view, state, episode, sight = lent(view), lent(state), lent(episode), lent(sight)
    nodes, context, mask = lent((nodes, context, mask))
    return observe(view, state, episode, sight, nodes, context, mask) if begin(view, state, episode) else -1


@compiled
def next_look(
    view: Compact,
    state: State,
    episode: Episode,
    sight: Sight,
    scores: NDArray[np.float32],
    nodes: NDArray[np.float32],
    context: NDArray[np.float32],
    mask: NDArray[np.bool_],
) -> int:
    """Places the next task on the best node by ``scores`` (N,), the first of equals, and looks at the one after it:
    how many nodes that may go to. 0 after the last task, and where no node holds this one, which then stays."""
    view, state, episode, sight = lent(view), lent(state), lent(episode), lent(sight)
    scores, nodes, context, mask = lent((scores, nodes, context, mask))
    while True:
        best = -1
        for n in range(len(mask)):
            if mask[n] and (best < 0 or scores[n] > scores[best]):
                best = n
        if best < 0:
            return 0
        if place(view, state, episode, best):
            break
        mask[best] = False
    if episode.level[0] == len(episode.order):
        return 0
    return observe(view, state, episode, sight, nodes, context, mask)


@compiled
def conclude(view: Compact, work: FillWork, state: State, episode: Episode) -> bool:
    """Settles rates and paths once all tasks are placed; whether that fits."""
    view, work, state, episode = lent(view), lent(work), lent(state), lent(episode)
    finish(view, work, state, episode)
    better_paths(view, work, state)
    return bool(state.fits[0])


@compiled
def follow(view: Compact, work: FillWork, state: State, episode: Episode, plan: IntArray) -> bool:
    """Carries out the plan with task t on ``plan[t]``; False where it does not fit."""
    view, work, state, episode = lent(view), lent(work), lent(state), lent(episode)
    if not begin(view, state, episode):
        return False
    for task in episode.order:
        if not place(view, state, episode, plan[task]):
            return False
    return conclude(view, work, state, episode)


@compiled
def retrace(
    view: Compact,
    state: State,
    episode: Episode,
    sight: Sight,
    plan: IntArray,
    level: int,
    nodes: NDArray[np.float32],
    context: NDArray[np.float32],
    mask: NDArray[np.bool_],
) -> None:
    """What is seen on the way to a plan that fits, from the task that comes as number ``level`` on: into as many rows
    of ``nodes`` (B, N, features), ``context`` and ``mask``."""
    view, state, episode, sight = lent(view), lent(state), lent(episode), lent(sight)
    begin(view, state, episode)
    for i in range(len(episode.order)):
        if i >= level:
            observe(view, state, episode, sight, nodes[i - level], context[i - level], mask[i - level])
        place(view, state, episode, plan[episode.order[i]])
