"""How much a placement of GPU tasks fragments what is left of the cards: FGD's measure, as a value for solvers that
choose nodes by something else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled
from ces_core.gpus.fragmentation import Typical, fragments
from ces_core.gpus.model import CARD, Asked, Fleet
from ces_core.gpus.scores import tightest_card

Floats = NDArray[np.float64]


def left_over(fleet: Fleet, usual: Typical, task: Asked, steps: int) -> Floats:
    """By how much fewer cards typical tasks can use once a number of steps are on a node: a change that is 0 or less,
    shape (nodes, steps + 1). ``task``: one step, of one card; it goes on the fullest that has room. Beyond what a node
    has room for nothing changes further.

    A step may also make fragments disappear. Each counts as many less as the best step of any node, so that no step
    has a positive value: the number of steps is the same wherever they are."""
    lost = np.zeros((len(fleet.cpu), steps + 1), np.int64)
    done = np.zeros(len(fleet.cpu), np.int64)
    _left_over(fleet, usual, task, lost, done)
    change = -lost / (CARD * usual.total)
    made = np.arange(1, steps + 1) <= done[:, None]
    best = np.diff(change, axis=1).max(initial=-np.inf, where=made)
    return change - np.minimum(np.arange(steps + 1), done[:, None]) * (best if np.isfinite(best) else 0.0)


@compiled
def _left_over(fleet: Fleet, usual: Typical, task: Asked, lost: NDArray[np.int64], done: NDArray[np.int64]) -> None:
    """Sets ``lost``: fragments that a node has more, times ``usual.total``; and ``done``: steps that fit."""
    for node in range(len(lost)):
        left = fleet.milli[node].copy()
        before = fragments(fleet.cpu[node], left, fleet.model[node], usual)
        for step in range(1, lost.shape[1]):
            card = tightest_card(fleet, node, task)
            if card < 0:
                lost[node, step:] = lost[node, step - 1]
                break
            fleet.milli[node, card] -= task.milli
            fleet.card_memory[node, card] -= task.card_memory
            cpu = fleet.cpu[node] - step * task.cpu
            lost[node, step] = fragments(cpu, fleet.milli[node], fleet.model[node], usual) - before
            done[node] = step
        for card in range(len(left)):
            placed = (left[card] - fleet.milli[node, card]) // task.milli
            fleet.milli[node, card] = left[card]
            fleet.card_memory[node, card] += placed * task.card_memory
