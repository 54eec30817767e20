"""How far a placement policy stays below ``search``, on a validation set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ces_core.learned.sampling import best_of
from ces_core.model.problem import BoolArray
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import SUCCESS, SlotSize
from ces_rl.problems.pool import view_of
from ces_rl.problems.validation import Score, Validation

Scorer = Callable[[NDArray[np.float32], NDArray[np.float32], BoolArray], NDArray[np.float32]]
"""Scores (B, N) from nodes, context and mask, as :class:`ces_core.learned.policy.Policy` gives them."""


def scorer_of(policy: nn.Module) -> Scorer:
    """The scores of a network."""

    def scores(nodes: NDArray[np.float32], context: NDArray[np.float32], mask: BoolArray) -> NDArray[np.float32]:
        with torch.no_grad():
            inputs = (torch.from_numpy(part.astype(np.float32)) for part in (nodes, context, mask))
            found: NDArray[np.float32] = policy(*inputs)[0].numpy()
        return found

    return scores


def regret(scorer: Scorer, validation: Validation, *, samples: int = 0) -> dict[str, Score]:
    """Group -> score of the raw policy. ``samples`` 0: always the best node, and no step back; else the best of that
    many plans drawn, as :mod:`ces_core.learned.sampling` draws them."""
    count = len(validation.reference)
    if samples:
        rng = np.random.default_rng(0)
        boards = (best_of(view_of(validation.pool, i), scorer, samples, 1.0, rng) for i in range(count))
        drawn = [-np.inf if board is None else float(board.state.score[0]) for board in boards]
        return validation.regret(np.array(drawn))
    simulation = PlacementSimulation(count, SlotSize.of(validation.pool))
    simulation.start(validation.pool, np.arange(count))
    slots = simulation.slots
    while simulation.running.any():
        rows = np.flatnonzero(simulation.running)
        scores = scorer(slots.nodes[rows], slots.context[rows], slots.mask[rows])
        actions = np.zeros(count, dtype=np.int64)
        actions[rows] = np.argmax(np.where(slots.mask[rows], scores, -np.inf), axis=1)
        simulation.step(actions)
    return validation.regret(np.where(slots.status == SUCCESS, slots.score, -np.inf))
