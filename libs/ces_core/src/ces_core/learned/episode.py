"""An episode: tasks placed one after the other, each with its flows to tasks placed before.

Training and inference share these compiled moves. A move is possible only if the task fits and each of its flows to
placed tasks has a path with capacity for its minimum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ces_core.compiled.jit import compiled
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork
from ces_core.placement.state import State, empty_links, empty_nodes
from ces_core.placement.step import route_flow, step_back, step_to
from ces_core.placement.trial import accept, score_state
from ces_core.placement.view import ProblemView


class Episode(NamedTuple):
    """T tasks, F flows. ``order`` is the order of the tasks; see :class:`ces_core.placement.step.Partial`."""

    order: IntArray  # (T,)
    placement: IntArray  # (T,)
    is_open: IntArray  # (T,) 1: not placed
    trail: IntArray  # (F,)
    carried: IntArray  # (T + 1,)
    level: IntArray  # (1,) how many tasks are placed


def new_episode(view: ProblemView, order: IntArray) -> Episode:
    """An empty episode; call :func:`begin` next."""
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
def begin(view: ProblemView, state: State, episode: Episode) -> bool:
    """Remove all tasks from their nodes. Only flows between given nodes remain; False if those do not fit."""
    empty_nodes(view, state)
    empty_links(view, state)
    state.link_sums[0], state.link_sums[1] = view.link_sum, view.link_squares
    state.path[:] = -1
    state.trial_path[:] = -1
    episode.is_open[:] = 1
    episode.level[0] = 0
    carried = 0
    for f in range(len(view.low)):
        if view.flow_src[f] >= 0 or view.flow_dst[f] >= 0:
            continue
        if not route_flow(view, state, f, -1 - view.flow_src[f], -1 - view.flow_dst[f]):
            return False
        episode.trail[carried] = f
        carried += 1
    episode.carried[0] = carried
    return True


@compiled
def place(view: ProblemView, state: State, episode: Episode, node: int) -> bool:
    """Put the next task on ``node``, where it must fit; False, with nothing changed, if a flow's minimum does not
    fit."""
    level = episode.level[0]
    if not step_to(view, state, episode, level, node):
        return False
    episode.level[0] = level + 1
    return True


@compiled
def take_back(view: ProblemView, state: State, episode: Episode) -> None:
    """Undo the latest :func:`place`."""
    episode.level[0] -= 1
    step_back(view, state, episode, episode.level[0])


@compiled
def finish(view: ProblemView, work: FillWork, state: State, episode: Episode) -> float:
    """Once all tasks are placed: compute the best rates on the chosen paths and return the composite.

    ``state`` then holds the plan as in every solver. ``-inf`` if the plan does not fit.
    """
    score = score_state(view, work, state, 0.0, state.trial_path, state.trial_rates, True)
    accept(view, state, episode.placement, score)
    return score if state.fits[0] else -math.inf
