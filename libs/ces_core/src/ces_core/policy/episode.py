"""Tasks placed one after the other, each with its flows to those placed before: the moves that a policy makes.

Training and inference play by the same compiled moves. A move is only possible where the task fits, and where each of
its flows to placed tasks has a path with room for its minimum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork
from ces_core.kernels.jit import compiled
from ces_core.kernels.state import State, _score, accept
from ces_core.kernels.step import _lead, _step, _step_back
from ces_core.topology import IntArray


class Episode(NamedTuple):
    """T tasks, F flows. ``order`` says which task comes when; see :class:`ces_core.kernels.partial.Partial`."""

    order: IntArray  # (T,)
    placement: IntArray  # (T,)
    is_open: IntArray  # (T,) 1: not placed
    trail: IntArray  # (F,)
    carried: IntArray  # (T + 1,)
    level: IntArray  # (1,) how many tasks are placed


def new_episode(view: Compact, order: IntArray) -> Episode:
    """Nothing placed; :func:`begin` comes next."""
    tasks, flows = len(view.fits), len(view.low)
    return Episode(
        order=order,
        placement=np.zeros(tasks, dtype=np.int64),
        is_open=np.ones(tasks, dtype=np.int64),
        trail=np.zeros(flows, dtype=np.int64),
        carried=np.zeros(tasks + 1, dtype=np.int64),
        level=np.zeros(1, dtype=np.int64),
    )


@compiled
def begin(view: Compact, state: State, episode: Episode) -> bool:
    """Takes everything off its node. Only flows between given nodes are carried; False where those find no room."""
    state.free[:] = view.free
    state.use[:] = view.use
    for row in range(2):
        state.node_sums[row, 0] = view.node_sum[row]
        state.node_sums[row, 1] = view.node_squares[row]
    state.spare[:] = view.room
    state.reserve[:] = view.room
    state.link_use[:] = view.link_use
    state.link_sums[0], state.link_sums[1] = view.link_sum, view.link_squares
    state.path[:] = -1
    state.trial_path[:] = -1
    episode.is_open[:] = 1
    episode.level[0] = 0
    carried = 0
    for f in range(len(view.low)):
        if view.flow_src[f] >= 0 or view.flow_dst[f] >= 0:
            continue
        if not _lead(view, state, f, -1 - view.flow_src[f], -1 - view.flow_dst[f]):
            return False
        episode.trail[carried] = f
        carried += 1
    episode.carried[0] = carried
    return True


@compiled
def place(view: Compact, state: State, episode: Episode, node: int) -> bool:
    """Puts the next task on ``node``, where it must fit; False, and nothing changed, where a minimum has no room."""
    level = episode.level[0]
    if not _step(view, state, episode, level, node):
        return False
    episode.level[0] = level + 1
    return True


@compiled
def take_back(view: Compact, state: State, episode: Episode) -> None:
    """Undoes the latest :func:`place`."""
    episode.level[0] -= 1
    _step_back(view, state, episode, episode.level[0])


@compiled
def finish(view: Compact, work: FillWork, state: State, episode: Episode) -> float:
    """Once all tasks are placed: the best rates on the paths that were taken, and the composite that they give.

    ``state`` then holds the plan as every solver's does. ``-inf`` where the plan does not fit.
    """
    score = _score(view, work, state, 0.0, state.trial_path, state.trial_rates, True)
    accept(view, state, episode.placement, score)
    return score if state.fits[0] else -math.inf
