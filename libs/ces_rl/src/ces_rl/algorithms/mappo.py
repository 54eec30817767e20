"""Multi-agent PPO: one network for all agents of a team, each with values, advantages and probabilities of its own.

An agent draws a task and then amounts for it, p(task) p(amounts | task). Of an agent whose task goes to another, the
second factor does not count (arXiv 2302.00571). At first the agents are drawn to what a rule advises, by a
cross-entropy whose weight falls to 0 ("kickstarting", Schmitt et al., arXiv 1803.03835); everything else is
:mod:`ces_rl.algorithms.ppo`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ces_core.model.topology import IntArray
from ces_rl.algorithms.base import RefusedError
from ces_rl.algorithms.policy_run import Pair
from ces_rl.algorithms.ppo import Ppo, PpoSettings, Rows
from ces_rl.envs.base import Environment, TeamVector
from ces_rl.needs import torch
from ces_rl.schedules import linear

TASK, AMOUNTS, LOST, ADVISED_TASK, ADVISED_AMOUNTS = range(5)
"""Columns of what a batch holds of an agent's action."""


@dataclass(frozen=True)
class MappoSettings(PpoSettings):
    """As those of PPO."""

    advice: Annotated[
        Pair, Field(description="weight of the cross-entropy to the rule's advice, at first and after its share")
    ] = (1.0, 0.0)
    advice_share: Annotated[
        float, Field(ge=0, le=1, description="share of the updates in which the weight falls; afterwards it is 0")
    ] = 0.5


class Mappo(Ppo):
    """One run of multi-agent PPO."""

    Settings = MappoSettings
    team = True
    settings: MappoSettings
    vector: TeamVector
    policy: Any  # a TeamPolicy and a network

    def __init__(self, env: Environment, settings: MappoSettings, seed: int) -> None:
        if settings.group > 1:
            raise RefusedError("agents have rewards of their own: no groups")
        super().__init__(env, settings, seed)

    @property
    def advice(self) -> float:
        """The weight of the rule's advice in this update."""
        progress = self.updates / self.settings.updates
        if progress >= self.settings.advice_share:
            return 0.0
        return linear(self.settings.advice, progress / self.settings.advice_share)

    def update(self) -> dict[str, float]:
        weight = self.advice
        return super().update() | {"advice": weight}

    def act(
        self, rows: IntArray, observations: tuple[Rows, ...], mask: Rows, temperature: float
    ) -> tuple[IntArray, Rows, Rows]:
        """Draws tasks, finds out who gets them, and draws amounts."""
        with torch.no_grad():
            logits, known, values = self.policy(*(torch.from_numpy(part) for part in observations))
            tasks, task_logs = self._draw(logits / temperature)
            odds = np.exp(task_logs).astype(np.float64)
            lost = self.vector.losers(rows, np.where(mask, tasks, -1), odds, self.rng.random(tasks.shape))
            amounts, amount_logs = self._draw(self.policy.amounts(known, torch.from_numpy(tasks)) / temperature)
        advised = self.vector.advice(rows) if self.advice > 0.0 else np.zeros((*tasks.shape, 2), dtype=np.int64)
        actions = np.concatenate([np.stack([tasks, amounts, lost], axis=-1), advised], axis=-1)
        log_prob = np.where(mask, task_logs + np.where(lost, 0.0, amount_logs), 0.0).astype(np.float32)
        return actions, log_prob, values.numpy()

    def _draw(self, logits: torch.Tensor) -> tuple[IntArray, Rows]:
        """For logits (..., n): one of n, and the logarithm of its probability."""
        logs = torch.log_softmax(logits, -1).numpy()
        drawn = np.argmax(logs + self.rng.gumbel(size=logs.shape).astype(np.float32), axis=-1)
        return drawn, np.take_along_axis(logs, drawn[..., None], -1)[..., 0]

    def judge(
        self, observations: tuple[torch.Tensor, ...], mask: torch.Tensor, actions: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        logits, known, values = self.policy(*observations)
        task_log, task_entropy = of_choice(logits / temperature, actions[..., TASK])
        amounts = self.policy.amounts(known, actions[..., TASK]) / temperature
        amount_log, amount_entropy = of_choice(amounts, actions[..., AMOUNTS])
        counts = (actions[..., LOST] == 0).float()
        log_prob = (task_log + counts * amount_log) * mask
        entropy = task_entropy + counts * amount_entropy
        weight = self.advice
        if weight == 0.0:
            return log_prob, entropy, values, None
        task_log, _ = of_choice(logits, actions[..., ADVISED_TASK])
        amount_log, _ = of_choice(self.policy.amounts(known, actions[..., ADVISED_TASK]), actions[..., ADVISED_AMOUNTS])
        return log_prob, entropy, values, -weight * self.mean(task_log + amount_log, mask)

    def mean(self, numbers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (numbers * mask).sum() / mask.sum().clamp(min=1)

    def normalised(self, advantages: Rows, mask: Rows) -> Rows:
        mean, deviation = self.gang.moments(advantages[mask])
        normal: Rows = (advantages - mean) / (deviation + 1e-8)
        return normal


def of_choice(logits: torch.Tensor, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(...) the logarithm of the probability of ``chosen`` (...) under ``logits`` (..., n), and the entropy."""
    logs = torch.log_softmax(logits, -1)
    entropy = -(logs.exp() * logs).sum(-1)
    return logs.gather(-1, chosen.unsqueeze(-1)).squeeze(-1), entropy
