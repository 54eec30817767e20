"""What each node that a task may go to costs in the end, found by short searches: what a policy is first taught.

All that is placed stays, the task goes to the node, and compiled tree search (:mod:`ces_core.kernels.rebuild`) places
the rest in the same order and along the same paths as a game would. How far the node's best plan stays below that of
the best node is its regret. Counts bound the search, no clocks, so that a state is always judged alike.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork, fill_work
from ces_core.kernels.jit import compiled
from ces_core.kernels.lending import lent
from ces_core.kernels.rebuild import Caution, Tree, new_tree, rebuild
from ces_core.kernels.state import State, install, new_state
from ces_core.policy.episode import Episode
from ces_core.policy.schema import NODE_FEATURES
from ces_core.problem import FloatArray
from ces_core.topology import IntArray
from ces_train.games import Games

CERTAIN, LIKELY = Caution(0.0, 0.9, 0.0, 0.0), Caution(1.0, 1.0, 0.6, 0.6)
"""How the trees look ahead: hardly missing anything, or fast."""
DIVES = 3
"""So many partial placements per task go into a first plan."""
WIDE = 4
"""With more tasks to come, a third of the effort goes into a fast tree first."""
HINT = [name for name, _ in NODE_FEATURES].index("known-end-above-least")
"""The feature by which nodes are looked at, the least first."""


@compiled
def regrets(
    view: Compact,
    work: FillWork,
    state: State,
    tree: Tree,
    episode: Episode,
    mask: NDArray[np.bool_],
    hint: NDArray[np.float32],
    limit: int,
    cut: float,
    certain: Caution,
    likely: Caution,
    found: FloatArray,
) -> float:
    """Sets ``found`` (C,) to the regrets of the next task's nodes in ``mask`` (C,), and returns what the best is worth;
    -inf where no node leads to a plan. Looks at nodes of little ``hint`` (C,) first. Changes ``view.fits``."""
    view, work, state, tree, episode = lent(view), lent(work), lent(state), lent(tree), lent(episode)
    level = episode.level[0]
    tasks, candidates = view.fits.shape
    task = episode.order[level]
    now = np.zeros(tasks, dtype=np.int64)
    for t in range(tasks):
        now[t] = np.argmax(np.where(view.fits[t], view.free[0], -1.0))
    for i in range(level):
        t = episode.order[i]
        now[t] = episode.placement[t]
        view.fits[t, :] = False
        view.fits[t, now[t]] = True
    best = -math.inf
    found[:] = -math.inf
    waiting = mask.copy()
    for _ in range(candidates):
        node = -1
        for n in range(candidates):
            if waiting[n] and (node < 0 or hint[n] < hint[node]):
                node = n
        if node < 0:
            break
        waiting[node] = False
        view.fits[task, :] = False
        view.fits[task, node] = True
        now[task] = node
        _set_shares(view, tree)
        install(view, work, state, now)
        floor = best - cut
        if not state.fits[0] or state.score[0] < floor:
            # What lies below the floor is not looked for.
            state.fits[0] = floor > -math.inf
            state.score[0] = floor
        left = limit - _grow(view, work, state, tree, episode, certain, DIVES * tasks)
        if tree.level[0] >= 0:
            if tasks - level > WIDE:
                left -= _grow(view, work, state, tree, episode, likely, limit // 3)
            _grow(view, work, state, tree, episode, certain, left)
        if state.fits[0] and state.score[0] > floor:
            found[node] = state.score[0]
            best = max(best, found[node])
            now[:] = state.node_of
    for n in range(candidates):
        found[n] = min(best - found[n], cut) if mask[n] else cut
    return best


@compiled
def _grow(
    view: Compact, work: FillWork, state: State, tree: Tree, episode: Episode, caution: Caution, limit: int
) -> int:
    tree.order[:] = episode.order
    tree.level[0] = -1
    seen: int = rebuild(view, work, state, tree, caution, len(tree.order), limit, view.fits.shape[1])
    return seen


@compiled
def _set_shares(view: Compact, tree: Tree) -> None:
    """As ``new_tree`` does, for the nodes that are left to each task."""
    for t in range(len(view.fits)):
        for row in range(2):
            least, most = math.inf, 0.0
            for n in range(view.fits.shape[1]):
                if view.fits[t, n]:
                    share = view.demand[t, row] * view.inverse[row, n]
                    least, most = min(least, share), max(most, share)
            tree.share[row, 0, t] = least if least < math.inf else 0.0
            tree.share[row, 1, t] = most


def judge(
    games: Games, rows: IntArray, limit: int, cut: float, threads: ThreadPoolExecutor
) -> tuple[NDArray[np.float32], FloatArray]:
    """Of the next task of each of ``rows``, indices of games that are being played: (rows, C) the nodes' regrets, at
    most ``cut`` and that where a node may not be chosen; (rows,) what the best node is worth, -inf where no plan was
    found. ``limit``: partial placements that are looked at for a node. The number of threads changes no answer."""
    found = np.full((len(rows), games.seats.mask.shape[1]), cut)

    def one(at: int) -> float:
        i = int(rows[at])
        view, _, episode = games.game(i)
        nodes = view.fits.shape[1]
        view = view._replace(fits=view.fits.copy())
        mask, hint = games.seats.mask[i, :nodes], games.seats.nodes[i, :nodes, HINT]
        scratch = fill_work(view), new_state(view), new_tree(view)
        return float(regrets(view, *scratch, episode, mask, hint, limit, cut, CERTAIN, LIKELY, found[at, :nodes]))

    best = np.array(list(threads.map(one, range(len(rows)))))
    return found.astype(np.float32), best
