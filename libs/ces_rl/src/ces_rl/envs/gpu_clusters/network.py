"""The network of the EADE-DDPG paper: attention of 128 on the input, then layers of 128 and 64 with ReLU.

How attention is read is a setting (``Shape.attention``). ``none``: the layers alone. ``literal``: the whole state is
one token, which makes attention a linear layer. ``tokens``: each cluster is a token of what is observed of it and of
the task, and the same layers score each one. Every ``forward`` takes the mask of allowed actions; only
:class:`ClusterPolicy` uses it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ces_rl.algorithms.choices import FORBIDDEN

WIDTH = 128


@dataclass(frozen=True)
class Shape:
    """``attention``: ``none``, ``literal`` or ``tokens``. ``count``: of clusters; actions are one more. ``cluster`` and
    ``task``: numbers observed of each cluster and of the task. ``hidden``: widths of the two hidden layers."""

    attention: str
    count: int
    cluster: int
    task: int
    hidden: tuple[int, int]


class Attending(nn.Module):
    """(B, tokens, inputs) -> (B, tokens, WIDTH): one head of attention over the tokens (Vaswani et al., 2017)."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(inputs, WIDTH) for _ in range(3))

    def forward(self, tokens: Tensor) -> Tensor:
        weights = torch.softmax(self.query(tokens) @ self.key(tokens).transpose(1, 2) / WIDTH**0.5, dim=-1)
        found: Tensor = weights @ self.value(tokens)
        return found


def layers(inputs: int, hidden: tuple[int, int], outputs: int) -> list[nn.Module]:
    """Two hidden layers with ReLU, and a last one of ``outputs``."""
    first, second = hidden
    return [nn.Linear(inputs, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, outputs)]


class OneVector(nn.Module):
    """Takes the whole state as one vector; gives (B, outputs). ``more``: how many numbers come beside the state, such
    as an action's."""

    def __init__(self, shape: Shape, outputs: int, more: int = 0) -> None:
        super().__init__()
        inputs = shape.count * shape.cluster + shape.task + more
        attends = shape.attention != "none"
        self.attention = Attending(inputs) if attends else None
        between: list[nn.Module] = [nn.ReLU()] if attends else []
        self.layers = nn.Sequential(*between, *layers(WIDTH if attends else inputs, shape.hidden, outputs))

    def forward(self, clusters: Tensor, task: Tensor, allowed: Tensor, *more: Tensor) -> Tensor:
        state = torch.cat([clusters.flatten(1), task, *more], dim=1)
        if self.attention is not None:
            state = self.attention(state.unsqueeze(1)).squeeze(1)
        found: Tensor = self.layers(state)
        return found


class Tokens(nn.Module):
    """Takes each cluster as a token; gives a score for each cluster, and a last one for waiting, (B, actions)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        inputs = shape.cluster + shape.task
        self.attention = Attending(inputs)
        self.each = nn.Sequential(nn.ReLU(), *layers(WIDTH + inputs, shape.hidden, 1))
        self.waiting = nn.Sequential(nn.ReLU(), *layers(WIDTH + shape.task, shape.hidden, 1))

    def forward(self, clusters: Tensor, task: Tensor, allowed: Tensor) -> Tensor:
        tokens = torch.cat([clusters, task.unsqueeze(1).expand(-1, clusters.shape[1], -1)], dim=2)
        attended = self.attention(tokens)
        each = self.each(torch.cat([attended, tokens], dim=2)).squeeze(2)
        return torch.cat([each, self.waiting(torch.cat([attended.mean(dim=1), task], dim=1))], dim=1)


def scoring(shape: Shape) -> nn.Module:
    """The network that scores actions, (B, actions), by the shape's attention."""
    return Tokens(shape) if shape.attention == "tokens" else OneVector(shape, shape.count + 1)


class ClusterPolicy(nn.Module):
    """(B, actions) scores, with the lowest for actions that are not allowed, and (B,) values. The two networks share no
    weights."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.actor = scoring(shape)
        self.critic = OneVector(shape, 1)

    def forward(self, clusters: Tensor, task: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.actor(clusters, task, allowed).masked_fill(allowed == 0, FORBIDDEN)
        return scores, self.critic(clusters, task, allowed).squeeze(1)
