"""Why the tasks of a finished placement are not elsewhere."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled, inner
from ces_core.kernels.state import State, _carry, _rebuild


@compiled
def refusals(view: Compact, state: State, codes: NDArray[np.int8]) -> None:
    """Sets ``codes`` (T, C) to why a task could not move to a candidate while the others stay: 1, 2, 3 for no room of
    CPU, memory, GPU, 4 for a flow without room for its minimum beside the others', 0 where it could."""
    # Rounding errors of a long search would make a full link look fuller than full.
    state.spare[:] = view.room
    state.reserve[:] = view.room
    state.link_use[:] = view.link_use
    _rebuild(view, state, state.node_of)
    for t in range(len(state.node_of)):
        for k in range(view.flows_first[t], view.flows_first[t + 1]):
            f = view.flows_of[k]
            _carry(view, state, state.path[f], -state.rates[f], -view.low[f])
        for n in range(view.fits.shape[1]):
            codes[t, n] = 0
            if n == state.node_of[t]:
                continue
            for row in range(2, -1, -1):
                if view.demand[t, row] > state.free[row, n]:
                    codes[t, n] = row + 1
            if codes[t, n] == 0 and not _reaches(view, state, t, n):
                codes[t, n] = 4
        for k in range(view.flows_first[t], view.flows_first[t + 1]):
            f = view.flows_of[k]
            _carry(view, state, state.path[f], state.rates[f], view.low[f])


@inner
def _reaches(view: Compact, state: State, task: int, node: int) -> bool:
    """Whether each flow of the task, were it on ``node``, has a path with room for its minimum."""
    for k in range(view.flows_first[task], view.flows_first[task + 1]):
        f = view.flows_of[k]
        src, dst = view.flow_src[f], view.flow_dst[f]
        a = node if src == task else (state.node_of[src] if src >= 0 else -1 - src)
        b = node if dst == task else (state.node_of[dst] if dst >= 0 else -1 - dst)
        pair = a * view.fits.shape[1] + b
        found = False
        for q in range(view.pair_first[pair], view.pair_first[pair + 1]):
            room = math.inf
            for i in range(view.path_first[q], view.path_first[q + 1]):
                room = min(room, state.reserve[view.path_resource[i]] / view.path_times[i])
            if room >= view.low[f]:
                found = True
                break
        if not found:
            return False
    return True
