"""Placement in compiled code: one job in every slot, one task placed per step.

An action is the node of the next task. The mask leaves only nodes where the task fits and its flows to placed tasks
have residual capacity for their minimums, so no capacity is ever violated. Paths are chosen on the way; at the end
rates are set as every solver of CES sets them, and the slot's score is the composite of its plan. A slot whose next
task has no node left has failed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled, lent
from ces_core.learned.episode import Episode, begin, finish, place
from ces_core.learned.features import CONTEXT_WIDTH, NODE_WIDTH, Observation, observe
from ces_core.learned.node_features import FeatureScratch, new_feature_scratch
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.fill import FillWork, fill_work_of
from ces_core.placement.state import State
from ces_core.placement.task_order import task_order
from ces_core.placement.view import ProblemView
from ces_rl.envs.simulation import FAILURE, RUNNING, SUCCESS, Simulation, SlotSize
from ces_rl.problems.pool import Pool, view_of


class Slots(NamedTuple):
    """Arrays for S jobs at once, one row for each."""

    floats: FloatArray  # (S, ...)
    ints: IntArray
    bools: BoolArray
    problem: IntArray  # (S,) index into the pool
    status: IntArray  # (S,)
    score: FloatArray  # (S,) the plan's composite after success, else 0
    nodes: NDArray[np.float32]  # (S, C, features) observed
    context: NDArray[np.float32]  # (S, features)
    mask: BoolArray  # (S, C) nodes that may be chosen


class PlacementSimulation(Simulation[Slots]):
    """Jobs being placed side by side: an action is the node of the next task."""

    def __init__(self, count: int, size: SlotSize) -> None:
        t, f, c, r = size.tasks, size.flows, size.nodes, size.resources
        slots = Slots(
            floats=np.zeros((count, 3 * f + 5 * c + 3 * r + 11)),
            ints=np.zeros((count, 6 * t + 4 * f + 2), dtype=np.int64),
            bools=np.zeros((count, 2 + f), dtype=np.bool_),
            problem=np.zeros(count, dtype=np.int64),
            status=np.full(count, FAILURE, dtype=np.int64),
            score=np.zeros(count),
            nodes=np.zeros((count, c, NODE_WIDTH), dtype=np.float32),
            context=np.zeros((count, CONTEXT_WIDTH), dtype=np.float32),
            mask=np.zeros((count, c), dtype=np.bool_),
        )
        super().__init__(size, slots)
        self._scratch, self._work = new_feature_scratch(t, c, f), fill_work_of(r, f)

    def slot(self, i: int) -> tuple[ProblemView, State, Episode]:
        """The problem, state and moves of slot ``i``, as the kernels of ``ces_core`` know them."""
        view = self.view(i)
        return view, state_of(view, self.slots, i), episode_of(view, self.slots, i)

    def observed(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        """What a network takes for these slots: nodes, context and mask, one row of each array for each slot."""
        return self.slots.nodes[rows], self.slots.context[rows], self.slots.mask[rows].astype(np.float32)

    def _start(self, pool: Pool) -> None:
        _start(pool, self.slots, self._scratch)

    def _step(self, pool: Pool, actions: IntArray) -> int:
        return _step(pool, self.slots, self._work, self._scratch, actions)


@compiled
def state_of(view: ProblemView, slots: Slots, i: int) -> State:
    """The state of slot ``i``; its arrays are parts of ``slots``."""
    x, y, z = slots.floats[i], slots.ints[i], slots.bools[i]
    t, c = view.fits.shape
    f, r = len(view.low), len(view.residual)
    a = 10 + 3 * f
    b = a + 5 * c
    return State(
        node_of=y[:t],
        path=y[t : t + f],
        rates=x[10 : 10 + f],
        score=x[0:1],
        fits=z[:2],
        free=x[a : a + 3 * c].reshape((3, c)),
        use=x[a + 3 * c : b].reshape((2, c)),
        node_sums=x[1:5].reshape((2, 2)),
        ahead=x[:0],
        asked=x[5:8],
        spare=x[b : b + r],
        reserve=x[b + r : b + 2 * r],
        link_use=x[b + 2 * r : b + 3 * r],
        link_sums=x[8:10],
        trial_path=y[t + f : t + 2 * f],
        trial_rates=x[10 + f : 10 + 2 * f],
        guess=x[10 + 2 * f : a],
        affected=y[t + 2 * f : t + 3 * f],
        is_affected=z[2 : 2 + f],
    )


@compiled
def episode_of(view: ProblemView, slots: Slots, i: int) -> Episode:
    """The moves of slot ``i``, likewise."""
    y = slots.ints[i]
    t, f = view.fits.shape[0], len(view.low)
    a = t + 3 * f
    b = a + 3 * t
    return Episode(
        order=y[a : a + t],
        placement=y[a + t : a + 2 * t],
        is_open=y[a + 2 * t : b],
        trail=y[b : b + f],
        carried=y[b + f : b + f + t + 1],
        level=y[b + f + t + 1 : b + f + t + 2],
    )


@compiled
def _scratch_of(view: ProblemView, slots: Slots, i: int, scratch: FeatureScratch) -> FeatureScratch:
    """``scratch``, with the cheapest plan seen so far in slot ``i``."""
    t, c = view.fits.shape
    f, r = len(view.low), len(view.residual)
    a = 10 + 3 * f + 5 * c + 3 * r
    b = 5 * t + 4 * f + 2
    return FeatureScratch(
        width=scratch.width,
        likely=scratch.likely,
        hops=scratch.hops,
        places=scratch.places,
        cost=scratch.cost,
        there=scratch.there,
        path=scratch.path,
        rate=scratch.rate,
        end=slots.floats[i, a : a + 1],
        ended=slots.ints[i, b : b + t],
    )


@compiled
def _start(pool: Pool, slots: Slots, scratch: FeatureScratch) -> None:
    pool, slots, scratch = lent(pool), lent(slots), lent(scratch)
    for i in range(len(slots.problem)):
        view = view_of(pool, slots.problem[i])
        state, episode = state_of(view, slots, i), episode_of(view, slots, i)
        episode.order[:] = task_order(view)
        for k in range(3):
            state.asked[k] = max(view.demand[:, k].sum(), 1e-300)
        slots.score[i] = 0.0
        own = _scratch_of(view, slots, i, scratch)
        own.end[0] = math.inf
        fits = begin(view, state, episode)
        _look(view, state, episode, own, slots, i, fits)


@compiled
def _step(pool: Pool, slots: Slots, work: FillWork, scratch: FeatureScratch, actions: IntArray) -> int:
    """Returns a slot whose action was not allowed, else -1."""
    pool, slots, work, scratch = lent(pool), lent(slots), lent(work), lent(scratch)
    for i in range(len(slots.problem)):
        if slots.status[i] != RUNNING:
            continue
        node = actions[i]
        if node < 0 or node >= slots.mask.shape[1] or not slots.mask[i, node]:
            return i
        view = view_of(pool, slots.problem[i])
        state, episode = state_of(view, slots, i), episode_of(view, slots, i)
        fits = place(view, state, episode, node)
        if fits and episode.level[0] == len(episode.order):
            slots.score[i] = finish(view, work, state, episode)
            slots.status[i] = SUCCESS
            slots.mask[i] = False
        else:
            _look(view, state, episode, _scratch_of(view, slots, i, scratch), slots, i, fits)
    return -1


@compiled
def _look(
    view: ProblemView, state: State, episode: Episode, scratch: FeatureScratch, slots: Slots, i: int, fits: bool
) -> None:
    slots.nodes[i] = 0.0
    slots.mask[i] = False
    found = 0
    if fits:
        seen = Observation(slots.nodes[i], slots.context[i], slots.mask[i])
        found = observe(view, state, episode, scratch, seen)
    slots.status[i] = RUNNING if found else FAILURE
