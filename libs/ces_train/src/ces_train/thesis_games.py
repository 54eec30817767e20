"""The thesis's environment in batches: many jobs at once, one decision of each per step, in compiled code.

A game is one job: first the node of each task, then, where bandwidth is part of it, the level of each flow. No action
that the mask admits violates a capacity. A game in which the mask leaves nothing is lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ces_core.kernels.compact import Compact
from ces_core.kernels.jit import compiled
from ces_core.policy.thesis_schema import ACTIONS, NODES, TASKS, WIDTH
from ces_core.policy.thesis_state import GIVEN, MAPPED, OVER, PATH, Progress, act, begin, look, rate_of
from ces_core.problem import FloatArray
from ces_core.topology import IntArray
from ces_train.games import LOST, PLAYING, WON, Batch, Most
from ces_train.pool import Pool, view_of
from ces_train.thesis_outcome import OUTCOME, outcome, serve_by_importance
from ces_train.thesis_rewards import TERMS, of_level, of_mapping


class Seats(NamedTuple):
    """Room for G games at once; what belongs to a game lies in its row."""

    floats: FloatArray  # (G, ...)
    ints: IntArray
    problem: IntArray  # (G,) of the pool
    status: IntArray  # (G,)
    phase: IntArray  # (G,) 0: a node is to be chosen, 1: a level
    state: NDArray[np.float32]  # (G, WIDTH) what is seen
    mask: NDArray[np.bool_]  # (G, ACTIONS) what may be chosen
    terms: FloatArray  # (G, TERMS) what the latest step earned: see ces_train.thesis_rewards
    importance: FloatArray  # (G, F) room for that of the flows
    outcome: FloatArray  # (G, OUTCOME) once won: see ces_train.thesis_outcome; 0 before and where lost


class ThesisGames(Batch[Seats]):
    """A batch of games: an action is a node, or a level.

    ``bandwidth``: whether levels are chosen, or rates follow from importance once all tasks are mapped.
    """

    def __init__(self, count: int, most: Most, *, bandwidth: bool) -> None:
        if most.nodes > NODES or most.tasks > TASKS:
            raise ValueError(f"the state holds at most {NODES} nodes and {TASKS} tasks, not {most}")
        t, f, c, r = most.tasks, most.flows, most.nodes, most.resources
        self.bandwidth = bandwidth
        seats = Seats(
            floats=np.zeros((count, f + 5 * c + r + 3)),
            ints=np.zeros((count, 2 * t + 2 * f + 2 * r + 3), dtype=np.int64),
            problem=np.zeros(count, dtype=np.int64),
            status=np.full(count, LOST, dtype=np.int64),
            phase=np.zeros(count, dtype=np.int64),
            state=np.zeros((count, WIDTH), dtype=np.float32),
            mask=np.zeros((count, ACTIONS), dtype=np.bool_),
            terms=np.zeros((count, TERMS)),
            importance=np.zeros((count, f)),
            outcome=np.zeros((count, OUTCOME)),
        )
        super().__init__(most, seats)

    @property
    def worth(self) -> FloatArray:
        """(G,) the composite of games that were won."""
        found: FloatArray = 0.5 * (1.0 - self.seats.outcome[:, 0]) + 0.5 * self.seats.outcome[:, 1]
        return found

    def game(self, i: int) -> tuple[Compact, Progress]:
        """What game ``i`` stands at."""
        view = self.view(i)
        return view, progress_of(view, self.seats, i)

    def _start(self, pool: Pool) -> None:
        _start(pool, self.seats, self.bandwidth)

    def _step(self, pool: Pool, actions: IntArray) -> int:
        return _step(pool, self.seats, self.bandwidth, actions)


@compiled
def progress_of(view: Compact, seats: Seats, i: int) -> Progress:
    """The progress of game ``i``; its arrays are parts of the seats."""
    x, y = seats.floats[i], seats.ints[i]
    t, c = view.fits.shape
    f, r = len(view.low), len(view.room)
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
def _start(pool: Pool, seats: Seats, bandwidth: bool) -> None:
    for i in range(len(seats.problem)):
        view = view_of(pool, seats.problem[i])
        progress = progress_of(view, seats, i)
        seats.outcome[i] = 0.0
        seats.terms[i] = 0.0
        begin(view, progress)
        _look(view, progress, seats, i, bandwidth)


@compiled
def _step(pool: Pool, seats: Seats, bandwidth: bool, actions: IntArray) -> int:
    """Returns a game whose action was not allowed, else -1."""
    for i in range(len(seats.problem)):
        if seats.status[i] != PLAYING:
            continue
        action = actions[i]
        if action < 0 or action >= seats.mask.shape[1] or not seats.mask[i, action]:
            return i
        view = view_of(pool, seats.problem[i])
        progress = progress_of(view, seats, i)
        if seats.phase[i] == 0:
            of_mapping(view, progress, progress.order[progress.done[MAPPED]], action, seats.terms[i])
        else:
            flow = progress.queue[progress.done[GIVEN]]
            of_level(view, progress, flow, progress.done[PATH], rate_of(view, flow, action), seats.terms[i])
        act(view, progress, action)
        _look(view, progress, seats, i, bandwidth)
    return -1


@compiled
def _look(view: Compact, progress: Progress, seats: Seats, i: int, bandwidth: bool) -> None:
    mapped = progress.done[MAPPED] == len(progress.order)
    seats.phase[i] = 1 if mapped else 0
    if mapped and not bandwidth:
        seats.mask[i] = False
        found = OVER if serve_by_importance(view, progress, seats.importance[i], progress.queue) else 0
    else:
        found = look(view, progress, seats.state[i], seats.mask[i])
    if found == OVER:
        outcome(view, progress, seats.outcome[i])
        seats.status[i] = WON
    else:
        seats.status[i] = PLAYING if found else LOST
