"""The size-agnostic policy: it scores every node on its own, in the light of what all nodes look like together.

Nodes share one encoder; the mean and the maximum over the nodes that may be chosen tell each what it competes with.
So the same weights serve any number of nodes and tasks. A linear part beside the network starts out as the look-ahead
costs of :mod:`ces_core.learned.features`, so that training begins from a sensible rule and not from chance.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ces_core.learned.features import CONTEXT_WIDTH, NODE_WIDTH
from ces_core.learned.schema import NODE

FORBIDDEN = -1e9
"""The score of a node that may not be chosen."""
PRIORS = {"known-end-above-least": -1.0, "end-blocked": -2.0}
"""What the linear part begins with: feature of a node -> weight."""


class PointerPolicy(nn.Module):
    """Scores and a value from nodes (B, N, features), context (B, features) and mask (B, N), 1 where allowed."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.width = width
        self.node = nn.Linear(NODE_WIDTH, width)
        self.context = nn.Linear(CONTEXT_WIDTH, width, bias=False)
        self.encoder = nn.Linear(width, width)
        self.pooled = nn.Linear(2 * width, width)
        self.beside = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.prior = nn.Linear(NODE_WIDTH, 1, bias=False)
        self.value = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, 1))
        with torch.no_grad():
            self.prior.weight.zero_()
            for name, weight in PRIORS.items():
                self.prior.weight[0, NODE[name]] = weight
            self.score.weight.mul_(0.1)

    def forward(self, nodes: Tensor, context: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N) scores, ``FORBIDDEN`` where the mask is 0, and (B,) values."""
        seen = mask.unsqueeze(-1)
        whole = self.context(context)
        hidden = torch.relu(self.encoder(torch.relu(self.node(nodes) + whole.unsqueeze(1)))) * seen
        mean = hidden.sum(1) / seen.sum(1).clamp(min=1.0)
        pooled = torch.cat([mean, hidden.amax(1)], -1)
        joint = torch.relu(self.beside(hidden) + self.pooled(pooled).unsqueeze(1))
        scores = (self.score(joint) + self.prior(nodes)).squeeze(-1)
        value = self.value(torch.cat([pooled, torch.relu(whole)], -1)).squeeze(-1)
        return scores * mask + FORBIDDEN * (1.0 - mask), value
