"""How far a placement policy stays below ``search``, on a validation set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ces_core.learned.sampling import best_of
from ces_core.model.problem import FloatArray
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import SUCCESS, SlotSize
from ces_rl.problems.pool import view_of
from ces_rl.problems.validation import Score, Validation

Scorer = Callable[..., NDArray[np.float32]]
"""Scores (B, N) from what a simulation observes: nodes, context, mask, and links where it observes them."""
Simulate = Callable[[int, SlotSize], PlacementSimulation]
"""Makes a simulation with this many slots of this size."""


def scorer_of(policy: nn.Module) -> Scorer:
    """The scores of a network."""

    def scores(*observation: NDArray[Any]) -> NDArray[np.float32]:
        with torch.no_grad():
            inputs = (
                torch.from_numpy(part if part.dtype.kind == "i" else part.astype(np.float32)) for part in observation
            )
            found: NDArray[np.float32] = policy(*inputs)[0].numpy()
        return found

    return scores


def regret(
    scorer: Scorer,
    validation: Validation,
    *,
    samples: int = 0,
    draws: int = 0,
    simulate: Simulate = PlacementSimulation,
) -> dict[str, Score]:
    """Group -> score of the raw policy: of the best node always, and no step back; with ``samples`` of the best of that
    many plans drawn, as :mod:`ces_core.learned.sampling` draws them without seeing links; with ``draws`` of
    :func:`best_drawn`."""
    if samples:
        rng = np.random.default_rng(0)
        count = len(validation.reference)
        boards = (best_of(view_of(validation.pool, i), scorer, samples, 1.0, rng) for i in range(count))
        drawn = [-np.inf if board is None else float(board.state.score[0]) for board in boards]
        return validation.regret(np.array(drawn))
    found = best_drawn(scorer, validation, draws, simulate) if draws else played(scorer, validation, simulate)
    return validation.regret(found)


def best_drawn(scorer: Scorer, validation: Validation, draws: int, simulate: Simulate) -> FloatArray:
    """(instances,) the composite of the best of ``draws`` plans, each drawn by the scores, with repetition; -inf where
    none was whole."""
    rng = np.random.default_rng(0)
    found: FloatArray = np.max([played(scorer, validation, simulate, rng) for _ in range(draws)], axis=0)
    return found


def played(
    scorer: Scorer, validation: Validation, simulate: Simulate, rng: np.random.Generator | None = None
) -> FloatArray:
    """(instances,) the composite of the plan of the best node always, or of nodes drawn by their scores where there is
    a generator; -inf where a task had no node left."""
    count = len(validation.reference)
    simulation = simulate(count, SlotSize.of(validation.pool))
    simulation.start(validation.pool, np.arange(count))
    slots = simulation.slots
    while simulation.running.any():
        rows = np.flatnonzero(simulation.running)
        scores = scorer(*simulation.observed(rows))
        noise = 0.0 if rng is None else rng.gumbel(size=scores.shape)
        actions = np.zeros(count, dtype=np.int64)
        actions[rows] = np.argmax(np.where(slots.mask[rows], scores + noise, -np.inf), axis=1)
        simulation.step(actions)
    return np.where(slots.status == SUCCESS, slots.score, -np.inf)
