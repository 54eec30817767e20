"""How an actor of numbers chooses among discrete actions, as deterministic policy gradients need it.

``scalar``: one number, squeezed by tanh and cut into as many bins as there are actions: the literal reading of the
EADE-DDPG paper, in which neighbouring numbers must be alike. ``onehot``: a score for each action; the critic is given
the chosen one as a vector of 0 and 1, and the gradient goes through a softmax with Gumbel noise (straight-through; Jang
et al., arXiv 1611.01144).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ces_core.model.topology import IntArray
from ces_rl.needs import torch

Rows = NDArray[Any]
FORBIDDEN = -1e9


class Choice(Protocol):
    """``width``: numbers that the actor gives, and the critic takes."""

    width: int

    def scores(self, raw: torch.Tensor) -> torch.Tensor:
        """(B, actions) from what the actor gives, (B, width): the most is chosen."""

    def explored(self, raw: Rows, mask: Rows, noise: float, rng: np.random.Generator) -> IntArray:
        """(B,) allowed actions, drawn around what the actor would choose."""

    def vector(self, chosen: IntArray) -> Rows:
        """(B, width) actions as the critic takes them."""

    def target(self, raw: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(B, width) what the actor would choose, as the critic takes it."""

    def differentiable(self, raw: torch.Tensor, mask: torch.Tensor, gumbel: torch.Tensor) -> torch.Tensor:
        """The same with a gradient. ``gumbel``: noise (B, actions)."""


class Scalar:
    """``noise``: standard deviation beside a number between -1 and 1."""

    width = 1

    def __init__(self, actions: int) -> None:
        self.centres = (2 * np.arange(actions, dtype=np.float32) + 1) / actions - 1
        self._centres = torch.from_numpy(self.centres)

    def scores(self, raw: torch.Tensor) -> torch.Tensor:
        return -(torch.tanh(raw) - self._centres).abs()

    def explored(self, raw: Rows, mask: Rows, noise: float, rng: np.random.Generator) -> IntArray:
        number = np.clip(np.tanh(raw) + noise * rng.standard_normal(raw.shape), -1, 1)
        found: IntArray = np.where(mask, -np.abs(number - self.centres), -np.inf).argmax(axis=1)
        return found

    def vector(self, chosen: IntArray) -> Rows:
        return self.centres[chosen][:, None]

    def target(self, raw: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        nearest = self.scores(raw).masked_fill(~mask, FORBIDDEN).argmax(dim=1)
        return self._centres[nearest].unsqueeze(1)

    def differentiable(self, raw: torch.Tensor, mask: torch.Tensor, gumbel: torch.Tensor) -> torch.Tensor:
        return torch.tanh(raw)


class OneHot:
    """``noise``: the share of actions that are drawn evenly."""

    def __init__(self, actions: int) -> None:
        self.width = actions

    def scores(self, raw: torch.Tensor) -> torch.Tensor:
        return raw

    def explored(self, raw: Rows, mask: Rows, noise: float, rng: np.random.Generator) -> IntArray:
        best = np.where(mask, raw, -np.inf).argmax(axis=1)
        any_allowed = np.where(mask, rng.random(mask.shape), -np.inf).argmax(axis=1)
        found: IntArray = np.where(rng.random(len(raw)) < noise, any_allowed, best)
        return found

    def vector(self, chosen: IntArray) -> Rows:
        return np.eye(self.width, dtype=np.float32)[chosen]

    def target(self, raw: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        best = raw.masked_fill(~mask, FORBIDDEN).argmax(dim=1)
        return torch.nn.functional.one_hot(best, self.width).float()

    def differentiable(self, raw: torch.Tensor, mask: torch.Tensor, gumbel: torch.Tensor) -> torch.Tensor:
        soft = torch.softmax(raw.masked_fill(~mask, FORBIDDEN) + gumbel, dim=1)
        hard = torch.nn.functional.one_hot(soft.argmax(dim=1), self.width).float()
        return hard + soft - soft.detach()


CHOICES: dict[str, Callable[[int], Choice]] = {"onehot": OneHot, "scalar": Scalar}
