"""The network of the EADE-DDPG paper: attention of 128 on the input, then layers of 128 and 64 with ReLU.

``literal``: the whole state is one token, so that attention is a linear layer. ``tokens``: every cluster is a token,
with what is free of it and what the task asks for; each gets a score of its own by the same layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ces_rl.envs.gpu_clusters.vector import ACTIONS, ASKED, CLUSTERS, RESOURCES

WIDTH, HIDDEN = 128, (128, 64)


class Attending(nn.Module):
    """(B, tokens, inputs) -> (B, tokens, WIDTH): one head of attention over the tokens (Vaswani et al., 2017)."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(inputs, WIDTH) for _ in range(3))

    def forward(self, tokens: Tensor) -> Tensor:
        weights = torch.softmax(self.query(tokens) @ self.key(tokens).transpose(1, 2) / WIDTH**0.5, dim=-1)
        found: Tensor = weights @ self.value(tokens)
        return found


def layers(inputs: int, outputs: int) -> nn.Sequential:
    """The two hidden ones and the last."""
    first, second = HIDDEN
    return nn.Sequential(
        nn.ReLU(), nn.Linear(inputs, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, outputs)
    )


class OneVector(nn.Module):
    """One vector in, ``outputs`` numbers out. ``more``: numbers beside the state, such as an action."""

    def __init__(self, outputs: int, more: int = 0) -> None:
        super().__init__()
        self.attention = Attending(CLUSTERS * RESOURCES + ASKED + more)
        self.layers = layers(WIDTH, outputs)

    def forward(self, free: Tensor, asked: Tensor, *more: Tensor) -> Tensor:
        state = torch.cat([free.flatten(1), asked, *more], dim=1)
        found: Tensor = self.layers(self.attention(state.unsqueeze(1)).squeeze(1))
        return found


class Tokens(nn.Module):
    """A number for each cluster and for waiting, (B, ACTIONS)."""

    def __init__(self) -> None:
        super().__init__()
        inputs = RESOURCES + ASKED
        self.attention = Attending(inputs)
        self.each, self.waiting = layers(WIDTH + inputs, 1), layers(WIDTH, 1)

    def forward(self, free: Tensor, asked: Tensor) -> Tensor:
        tokens = torch.cat([free, asked.unsqueeze(1).expand(-1, CLUSTERS, -1)], dim=2)
        attended = self.attention(tokens)
        each = self.each(torch.cat([attended, tokens], dim=2)).squeeze(2)
        return torch.cat([each, self.waiting(attended.mean(dim=1))], dim=1)


class ClusterPolicy(nn.Module):
    """(B, ACTIONS) scores and (B,) values, by networks that share nothing."""

    def __init__(self, attention: str) -> None:
        super().__init__()
        self.actor: nn.Module = OneVector(ACTIONS) if attention == "literal" else Tokens()
        self.critic = OneVector(1)

    def forward(self, free: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(free, asked), self.critic(free, asked).squeeze(1)
