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
from ces_rl.envs.placement.links import LINK_WIDTH

FORBIDDEN = -1e9
"""The score of a node that may not be chosen."""
PRIORS = {"known-end-above-least": -1.0, "end-blocked": -2.0}
"""What the linear part begins with: feature of a node -> weight."""
ROUNDS = 2
"""Rounds of messages that the graph encoder passes."""


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
        return self._judged(nodes, self._encoded(nodes, whole) * seen, whole, seen, mask)

    def _encoded(self, nodes: Tensor, whole: Tensor) -> Tensor:
        """(B, N, width) what is known of each node alone."""
        return torch.relu(self.encoder(torch.relu(self.node(nodes) + whole.unsqueeze(1))))

    def _judged(
        self, nodes: Tensor, hidden: Tensor, whole: Tensor, seen: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores and values from what is known of each node; ``hidden`` is 0 where the mask is 0."""
        mean = hidden.sum(1) / seen.sum(1).clamp(min=1.0)
        pooled = torch.cat([mean, hidden.amax(1)], -1)
        joint = torch.relu(self.beside(hidden) + self.pooled(pooled).unsqueeze(1))
        scores = (self.score(joint) + self.prior(nodes)).squeeze(-1)
        value = self.value(torch.cat([pooled, torch.relu(whole)], -1)).squeeze(-1)
        return scores * mask + FORBIDDEN * (1.0 - mask), value


class GraphPolicy(PointerPolicy):
    """The same, with rounds of messages between neighbours before nodes are pooled. ``neighbours`` (B, N, K), -1 for
    none, and ``links`` (B, N, K, features) as :class:`ces_rl.envs.placement.links.LinkedSimulation` observes them.
    Messages begin without weight, so that with the same seed both encoders begin as the same policy."""

    def __init__(self, width: int = 64) -> None:
        super().__init__(width)
        self.rounds = nn.ModuleList(Messages(width) for _ in range(ROUNDS))

    def forward(  # type: ignore[override]  # it takes the links as well
        self, nodes: Tensor, context: Tensor, mask: Tensor, neighbours: Tensor, links: Tensor
    ) -> tuple[Tensor, Tensor]:
        seen = mask.unsqueeze(-1)
        whole = self.context(context)
        hidden = self._encoded(nodes, whole) * seen
        for messages in self.rounds:
            hidden = messages(hidden, neighbours, links)
        return self._judged(nodes, hidden * seen, whole, seen, mask)


class Messages(nn.Module):
    """One round: each neighbour says what is known of it in the light of the link, in half the width; a node adds the
    mean and the maximum of that to what it knows. Nodes that may not be chosen pass on what they heard."""

    def __init__(self, width: int) -> None:
        super().__init__()
        said = max(width // 2, 1)
        self.sender = nn.Linear(width, said)
        self.link = nn.Linear(LINK_WIDTH, said, bias=False)
        self.heard = nn.Linear(2 * said, width)
        nn.init.zeros_(self.heard.weight)
        nn.init.zeros_(self.heard.bias)

    def forward(self, hidden: Tensor, neighbours: Tensor, links: Tensor) -> Tensor:
        """(B, N, width), as ``hidden``."""
        there = (neighbours >= 0).unsqueeze(-1).to(hidden.dtype)
        at = neighbours.long().clamp(min=0).flatten(1).unsqueeze(-1)
        sent = self.sender(hidden)
        of_neighbours = sent.gather(1, at.expand(-1, -1, sent.shape[-1])).unflatten(1, neighbours.shape[1:])
        said = torch.relu(of_neighbours + self.link(links)) * there
        mean = said.sum(2) / there.sum(2).clamp(min=1.0)
        return torch.relu(hidden + self.heard(torch.cat([mean, said.amax(2)], -1)))
