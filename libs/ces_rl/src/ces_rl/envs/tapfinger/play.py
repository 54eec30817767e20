"""Whole episodes of a team that does not learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ces_core.model.topology import IntArray
from ces_rl.envs.base import TeamVector


def play_team(policy: Any, vector: TeamVector, rng: np.random.Generator | None = None) -> None:
    """Plays all slots to the end: always the likeliest task and amounts, or drawn ones where ``rng`` is given."""
    while vector.running.any():
        rows = np.flatnonzero(vector.running)
        mask = vector.mask[rows]
        with torch.no_grad():
            logits, known, _ = policy(*(torch.from_numpy(part) for part in vector.observe(rows)))
            tasks = _chosen(logits, rng)
            odds = torch.softmax(logits, -1).numpy().astype(np.float64)
            odds = np.take_along_axis(odds, tasks[..., None], -1)[..., 0]
            amounts = _chosen(policy.amounts(known, torch.from_numpy(tasks)), rng)
        ties = np.zeros(tasks.shape) if rng is None else rng.random(tasks.shape)
        lost = vector.losers(rows, np.where(mask, tasks, -1), odds, ties)
        actions = np.zeros((vector.slots, tasks.shape[1], 3), dtype=np.int64)
        actions[rows] = np.stack([tasks, amounts, lost], axis=-1)
        vector.step(actions)


def _chosen(logits: Any, rng: np.random.Generator | None) -> IntArray:
    scores = logits.numpy()
    if rng is not None:
        scores = scores + rng.gumbel(size=scores.shape)
    chosen: IntArray = np.argmax(scores, axis=-1)
    return chosen
