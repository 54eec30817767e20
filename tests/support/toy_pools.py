"""The toy environment for algorithms that learn from pools: with an actor, a critic, and an adviser who knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from toy_learning import Toy, ToySettings, ToyVector


class AdvisedToyVector(ToyVector):
    """Who reads what is shown."""

    def advice(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        advised: NDArray[np.int64] = self._shown[rows]
        return advised


class PooledToy(Toy):
    """Do what is shown, judged by a critic."""

    def networks(self, width: int) -> Any:
        import torch
        from torch import nn

        class Actor(nn.Module):
            def __init__(self, actions: int) -> None:
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(actions, 32), nn.ReLU(), nn.Linear(32, width))

            def forward(self, shown: Any, mask: Any) -> Any:
                return self.layers(shown)

        class Critic(nn.Module):
            def __init__(self, actions: int) -> None:
                super().__init__()
                self.layers = nn.Sequential(nn.Linear(actions + width, 64), nn.ReLU(), nn.Linear(64, 1))

            def forward(self, shown: Any, mask: Any, action: Any) -> Any:
                return self.layers(torch.cat([shown, action], dim=1))

        return Actor(self.settings.actions), Critic(self.settings.actions)

    def vector(self, slots: int, seed: int) -> ToyVector:
        return AdvisedToyVector(slots, self.settings.actions, seed)


def pooled_toy(actions: int = 4) -> PooledToy:
    return PooledToy(ToySettings(actions))
