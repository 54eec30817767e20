"""Two agents that learn to do what each is shown: a task, and amounts that go with it. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_rl.envs.base import PolicyEnv

TASKS, AMOUNTS = 3, 4


@dataclass(frozen=True)
class ToyTeamSettings:
    agents: int = 2


class ToyTeamVector:
    """One round: an agent earns 1 for the task that it is shown, and 1 more if it gives it as much as its number.
    Agents are shown different tasks; who chooses what another was shown loses it."""

    def __init__(self, slots: int, agents: int, seed: int) -> None:
        self.slots, self.agents, self._seed, self._count = slots, agents, seed, 0
        self.mask = np.ones((slots, agents), dtype=np.bool_)
        self.score, self._over = np.zeros(slots), True
        self.shown = np.zeros((slots, agents), dtype=np.int64)

    @property
    def running(self) -> NDArray[np.bool_]:
        return np.full(self.slots, not self._over)

    @property
    def success(self) -> NDArray[np.bool_]:
        return np.full(self.slots, self._over)

    def reset(self, progress: float, group: int = 1) -> None:
        self._count += 1
        rng = np.random.default_rng([self._seed, self._count])
        self.shown = rng.permuted(np.tile(np.arange(TASKS), (self.slots, 1)), axis=1)[:, : self.agents]
        self._over = False

    def observe(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        return (np.eye(TASKS, dtype=np.float32)[self.shown[rows]],)

    def losers(self, rows: Any, chosen: NDArray[np.int64], odds: Any, chance: Any) -> NDArray[np.bool_]:
        lost: NDArray[np.bool_] = (chosen == self.shown[rows][:, ::-1]) & (chosen != self.shown[rows])
        return lost

    def advice(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.stack([self.shown[rows], self.shown[rows]], axis=-1)

    def step(self, actions: NDArray[np.int64]) -> NDArray[np.float32]:
        right = (actions[..., 0] == self.shown) & (actions[..., 2] == 0)
        rewards = right * (1.0 + (actions[..., 1] == self.shown))
        self.score = rewards.mean(axis=1)
        self._over = True
        return rewards.astype(np.float32)

    def state(self) -> list[int]:
        return [self._count]

    def restore(self, state: Sequence[int]) -> None:
        self._count = state[0]


class ToyTeam(PolicyEnv):
    """Do what is shown, each for itself."""

    Settings = ToyTeamSettings
    team = True

    def policy(self) -> Any:
        import torch
        from torch import nn

        class Network(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.task, self.value = nn.Linear(TASKS, TASKS), nn.Linear(TASKS, 1)
                self.amount = nn.Embedding(TASKS, AMOUNTS)

            def forward(self, shown: Any) -> Any:
                return self.task(shown), None, self.value(shown).squeeze(-1)

            def amounts(self, known: None, chosen: torch.Tensor) -> torch.Tensor:
                found: torch.Tensor = self.amount(chosen)
                return found

        return Network()

    def vector(self, slots: int, seed: int) -> Any:
        return ToyTeamVector(slots, self.settings.agents, seed)
