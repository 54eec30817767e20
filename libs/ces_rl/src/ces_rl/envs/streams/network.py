"""The network of streams: it scores every proposed plan, and waiting, on its own, in the light of all of them.

A linear part beside the network starts out as the rule of ``search-longrun``, so that training begins from what that
does: the best plan by its criterion, or to wait where it would.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ces_rl.algorithms.choices import FORBIDDEN
from ces_rl.envs.streams.features import PLAN, PLAN_AT

PRIOR = {"criterion-below-best": 3.0, "is-wait": -4.0, "rule-waits": 8.0}
"""What the linear part begins with: column of a plan -> weight."""


class PlanPolicy(nn.Module):
    """(B, P + 1) scores and (B,) values from plans (B, P + 1, columns), context (B, columns) and mask (B, P + 1)."""

    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.plan = nn.Linear(len(PLAN), width)
        self.context = nn.Linear(context, width, bias=False)
        self.encoder = nn.Linear(width, width)
        self.beside = nn.Linear(2 * width, width)
        self.score = nn.Linear(width, 1, bias=False)
        self.prior = nn.Linear(len(PLAN), 1, bias=False)
        self.value = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))
        with torch.no_grad():
            self.prior.weight.zero_()
            for name, weight in PRIOR.items():
                self.prior.weight[0, PLAN_AT[name]] = weight
            self.score.weight.mul_(0.01)

    def forward(self, plans: Tensor, context: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        seen, whole = mask.unsqueeze(-1), self.context(context)
        hidden = torch.relu(self.encoder(torch.relu(self.plan(plans) + whole.unsqueeze(1)))) * seen
        mean = hidden.sum(1) / seen.sum(1).clamp(min=1.0)
        joint = torch.relu(self.beside(torch.cat([hidden, mean.unsqueeze(1).expand_as(hidden)], -1)))
        scores = (self.score(joint) + self.prior(plans)).squeeze(-1)
        value = self.value(torch.cat([mean, torch.relu(whole)], -1)).squeeze(-1)
        return scores * mask + FORBIDDEN * (1.0 - mask), value
