"""The teacher of imitation: how much worse the final plan becomes by each node that the next task may go to, found by
short searches.

For each node the task is put there, tasks placed before stay, and compiled tree search (:mod:`ces_core.search.tree`)
places the rest in the order and along the paths of the simulation. A node's regret is the best score of all nodes less
that of its own best plan. The search is bounded by counts and not by clocks, so a state is always judged alike.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled, lent
from ces_core.learned.episode import Episode
from ces_core.learned.schema import NODE
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork, fill_work
from ces_core.placement.state import State, new_state
from ces_core.placement.trial import install
from ces_core.placement.view import ProblemView
from ces_core.search.tree import PruningWeights, Tree, new_tree, recreate, shares
from ces_rl.envs.placement.simulation import PlacementSimulation

CERTAIN, LIKELY = PruningWeights(0.0, 0.9, 0.0, 0.0), PruningWeights(1.0, 1.0, 0.6, 0.6)
"""How the trees look ahead: hardly missing anything, or fast."""
DIVES = 3
"""Partial placements per task that go into a first plan."""
WIDE = 4
"""With more tasks to come, a third of the effort goes into a fast tree first."""
HINT = NODE["known-end-above-least"]
"""The feature by which nodes are looked at, the least first."""


@compiled
def regrets(
    view: ProblemView,
    work: FillWork,
    state: State,
    tree: Tree,
    episode: Episode,
    mask: BoolArray,
    hint: NDArray[np.float32],
    limit: int,
    cap: float,
    certain: PruningWeights,
    likely: PruningWeights,
    found: FloatArray,
) -> float:
    """Sets ``found`` (C,) to the regrets of the next task's nodes in ``mask`` (C,), and returns the score of the best
    plan; -inf where no node leads to one. Looks at nodes with the smallest ``hint`` (C,) first. Changes
    ``view.fits``."""
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
        shares(view, tree.share)
        install(view, work, state, now)
        floor = best - cap
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
        found[n] = min(best - found[n], cap) if mask[n] else cap
    return best


@compiled
def _grow(
    view: ProblemView, work: FillWork, state: State, tree: Tree, episode: Episode, pruning: PruningWeights, limit: int
) -> int:
    tree.order[:] = episode.order
    tree.level[0] = -1
    seen: int = recreate(view, work, state, tree, pruning, len(tree.order), limit, view.fits.shape[1])
    return seen


class Teacher:
    """See :class:`ces_rl.envs.base.Expert`. ``limit``: partial placements looked at for each node; ``cap``: the largest
    regret, and that of a node that may not be chosen. The number of threads changes no answer."""

    def __init__(self, simulation: PlacementSimulation, limit: int, cap: float, threads: ThreadPoolExecutor) -> None:
        self._simulation, self._limit, self._cap, self._threads = simulation, limit, cap, threads

    def judge(self, rows: IntArray) -> tuple[NDArray[np.float32], FloatArray]:
        """For the next task of each of ``rows`` (indices of running slots): the nodes' regrets (rows, C), and the score
        of the best node's plan (rows,), -inf where no plan was found."""
        simulation = self._simulation
        found = np.full((len(rows), simulation.slots.mask.shape[1]), self._cap)

        def one(at: int) -> float:
            i = int(rows[at])
            view, _, episode = simulation.slot(i)
            nodes = view.fits.shape[1]
            view = view._replace(fits=view.fits.copy())
            mask, hint = simulation.slots.mask[i, :nodes], simulation.slots.nodes[i, :nodes, HINT]
            scratch = fill_work(view), new_state(view), new_tree(view)
            out = found[at, :nodes]
            return float(regrets(view, *scratch, episode, mask, hint, self._limit, self._cap, CERTAIN, LIKELY, out))

        best = np.array(list(self._threads.map(one, range(len(rows)))))
        return found.astype(np.float32), best
