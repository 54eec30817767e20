"""A toy environment and a toy algorithm, each as a third party would write it: what is shown is what is to be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_rl.algorithms.base import Length
from ces_rl.algorithms.numbers import NumbersRun
from ces_rl.envs.base import PolicyEnv

PLAIN = 3


@dataclass(frozen=True)
class ToySettings:
    actions: int = 4


class ToyVector:
    """One action is shown; the same one is worth 1, and the episode is over after three."""

    def __init__(self, slots: int, actions: int, seed: int) -> None:
        self.slots, self.mask = slots, np.ones((slots, actions), dtype=np.bool_)
        self._rng, self._count, self._shown, self._turn = np.random.default_rng(seed), 0, np.zeros(slots, np.int64), 3
        self.score, self._seed = np.zeros(slots), seed

    @property
    def running(self) -> NDArray[np.bool_]:
        return np.full(self.slots, self._turn < 3)

    @property
    def success(self) -> NDArray[np.bool_]:
        success: NDArray[np.bool_] = self.score > 0.5
        return success

    def reset(self, progress: float, group: int = 1) -> None:
        self._count += 1
        self._turn = 0
        self.score[:] = 0.0
        self._draw()

    def observe(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        shown = np.eye(self.mask.shape[1], dtype=np.float32)[self._shown[rows]]
        return shown, self.mask[rows].astype(np.float32)

    def step(self, actions: NDArray[np.int64]) -> NDArray[np.float32]:
        rewards = (actions == self._shown).astype(np.float32) / 3
        self.score += rewards
        self._turn += 1
        self._draw()
        return rewards

    def state(self) -> list[int]:
        return [self._count]

    def restore(self, state: Sequence[int]) -> None:
        self._count = state[0]

    def _draw(self) -> None:
        rng = np.random.default_rng([self._seed, self._count, self._turn])
        self._shown = rng.integers(self.mask.shape[1], size=self.slots)


class Toy(PolicyEnv):
    """Do what is shown."""

    Settings = ToySettings

    def policy(self) -> Any:
        from torch import nn

        class Network(nn.Module):
            def __init__(self, actions: int) -> None:
                super().__init__()
                self.scores, self.value = nn.Linear(actions, actions), nn.Linear(actions, 1)

            def forward(self, shown: Any, mask: Any) -> Any:
                return self.scores(shown) * mask - 1e9 * (1 - mask), self.value(shown).squeeze(-1)

        return Network(self.settings.actions)

    def vector(self, slots: int, seed: int) -> ToyVector:
        return ToyVector(slots, self.settings.actions, seed)


@dataclass(frozen=True)
class GuessSettings(Length):
    size: float = 0.5


class Guess(NumbersRun):
    """Keeps a random change where it is no worse."""

    Settings = GuessSettings

    def __init__(self, env: Any, settings: GuessSettings, seed: int) -> None:
        super().__init__(env, settings, seed)
        self.rng = np.random.default_rng(seed)
        self.objective = self.problem.objective(0, [])
        self._best = self.objective.start

    @property
    def current(self) -> NDArray[np.float64]:
        return self._best

    def update(self) -> dict[str, float]:
        other = self._best + self.settings.size * self.rng.standard_normal(len(self._best))
        mine, yours = (self.objective.evaluate(each, 7).fitness.mean() for each in (self._best, other))
        self._best = other if yours >= mine else self._best
        self.updates += 1
        return {"fitness": float(max(mine, yours))}

    def own_state(self) -> dict[str, Any]:
        return {"best": self._best.tolist()}

    def take_over(self, state: dict[str, Any]) -> None:
        self._best = np.array(state["best"])
