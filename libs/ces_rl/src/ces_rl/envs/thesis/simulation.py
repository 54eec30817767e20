"""The thesis's environment in compiled code: many jobs at once, one decision of each per step.

First every task gets its node, then, where bandwidth is decided too, every flow its level. No action that the mask
admits violates a capacity. A slot whose mask leaves nothing has failed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled
from ces_core.learned.thesis.schema import ACTIONS, NODES, TASKS, WIDTH
from ces_core.learned.thesis.state import GIVEN, MAPPED, OVER, PATH, Progress, act, begin, look, rate_of
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.placement.view import ProblemView
from ces_rl.envs.simulation import FAILURE, RUNNING, SUCCESS, Simulation, SlotSize
from ces_rl.envs.thesis.rewards import OUTCOME, TERMS, of_level, of_mapping, outcome, serve_by_importance
from ces_rl.problems.pool import Pool, view_of


class Slots(NamedTuple):
    """Arrays for S jobs at once, one row for each."""

    floats: FloatArray  # (S, ...)
    ints: IntArray
    problem: IntArray  # (S,) index into the pool
    status: IntArray  # (S,)
    phase: IntArray  # (S,) 0: a node is to be chosen, 1: a level
    state: NDArray[np.float32]  # (S, WIDTH) observed
    mask: BoolArray  # (S, ACTIONS) actions that may be chosen
    terms: FloatArray  # (S, TERMS) reward terms of the latest step: see ces_rl.envs.thesis.rewards
    importance: FloatArray  # (S, F) scratch: of the flows
    outcome: FloatArray  # (S, OUTCOME) after success, else 0: see ces_rl.envs.thesis.rewards


class ThesisSimulation(Simulation[Slots]):
    """Jobs being placed side by side: an action is a node, or a level.

    ``bandwidth``: whether levels are chosen, or rates follow from importance once all tasks are mapped.
    """

    def __init__(self, count: int, size: SlotSize, *, bandwidth: bool) -> None:
        if size.nodes > NODES or size.tasks > TASKS:
            raise ValueError(f"the state holds at most {NODES} nodes and {TASKS} tasks, not {size}")
        t, f, c, r = size.tasks, size.flows, size.nodes, size.resources
        self.bandwidth = bandwidth
        slots = Slots(
            floats=np.zeros((count, f + 5 * c + r + 3)),
            ints=np.zeros((count, 2 * t + 2 * f + 2 * r + 3), dtype=np.int64),
            problem=np.zeros(count, dtype=np.int64),
            status=np.full(count, FAILURE, dtype=np.int64),
            phase=np.zeros(count, dtype=np.int64),
            state=np.zeros((count, WIDTH), dtype=np.float32),
            mask=np.zeros((count, ACTIONS), dtype=np.bool_),
            terms=np.zeros((count, TERMS)),
            importance=np.zeros((count, f)),
            outcome=np.zeros((count, OUTCOME)),
        )
        super().__init__(size, slots)

    @property
    def score(self) -> FloatArray:
        """(S,) the composite of the slots that succeeded."""
        found: FloatArray = 0.5 * (1.0 - self.slots.outcome[:, 0]) + 0.5 * self.slots.outcome[:, 1]
        return found

    def slot(self, i: int) -> tuple[ProblemView, Progress]:
        """The problem and progress of slot ``i``."""
        view = self.view(i)
        return view, progress_of(view, self.slots, i)

    def _start(self, pool: Pool) -> None:
        _start(pool, self.slots, self.bandwidth)

    def _step(self, pool: Pool, actions: IntArray) -> int:
        return _step(pool, self.slots, self.bandwidth, actions)


@compiled
def progress_of(view: ProblemView, slots: Slots, i: int) -> Progress:
    """The progress of slot ``i``; its arrays are parts of ``slots``."""
    x, y = slots.floats[i], slots.ints[i]
    t, c = view.fits.shape
    f, r = len(view.low), len(view.residual)
    a = f + 3 * c
    b = 2 * t + 2 * f + 3
    return Progress(
        order=y[:t],
        queue=y[t : t + f],
        node_of=y[t + f : 2 * t + f],
        path=y[2 * t + f : 2 * t + 2 * f],
        rates=x[:f],
        done=y[2 * t + 2 * f : b],
        free=x[f:a].reshape((3, c)),
        spare=x[a : a + r],
        begins=y[b : b + r],
        ends=y[b + r : b + 2 * r],
        nearby=x[a + r : a + r + c],
        links=x[a + r + c : a + r + 2 * c],
        scales=x[a + r + 2 * c : a + r + 2 * c + 3],
    )


@compiled
def _start(pool: Pool, slots: Slots, bandwidth: bool) -> None:
    for i in range(len(slots.problem)):
        view = view_of(pool, slots.problem[i])
        progress = progress_of(view, slots, i)
        slots.outcome[i] = 0.0
        slots.terms[i] = 0.0
        begin(view, progress)
        _look(view, progress, slots, i, bandwidth)


@compiled
def _step(pool: Pool, slots: Slots, bandwidth: bool, actions: IntArray) -> int:
    """Returns a slot whose action was not allowed, else -1."""
    for i in range(len(slots.problem)):
        if slots.status[i] != RUNNING:
            continue
        action = actions[i]
        if action < 0 or action >= slots.mask.shape[1] or not slots.mask[i, action]:
            return i
        view = view_of(pool, slots.problem[i])
        progress = progress_of(view, slots, i)
        if slots.phase[i] == 0:
            of_mapping(view, progress, progress.order[progress.done[MAPPED]], action, slots.terms[i])
        else:
            flow = progress.queue[progress.done[GIVEN]]
            of_level(view, progress, flow, progress.done[PATH], rate_of(view, flow, action), slots.terms[i])
        act(view, progress, action)
        _look(view, progress, slots, i, bandwidth)
    return -1


@compiled
def _look(view: ProblemView, progress: Progress, slots: Slots, i: int, bandwidth: bool) -> None:
    mapped = progress.done[MAPPED] == len(progress.order)
    slots.phase[i] = 1 if mapped else 0
    if mapped and not bandwidth:
        slots.mask[i] = False
        found = OVER if serve_by_importance(view, progress, slots.importance[i], progress.queue) else 0
    else:
        found = look(view, progress, slots.state[i], slots.mask[i])
    if found == OVER:
        outcome(view, progress, slots.outcome[i])
        slots.status[i] = SUCCESS
    else:
        slots.status[i] = RUNNING if found else FAILURE
