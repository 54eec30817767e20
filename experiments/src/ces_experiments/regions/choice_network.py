"""The network of the environment ``region-choice``: every region is seen by the same layers, beside the mean and the
most of all regions that may be chosen. So it takes any number of them, in any order."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ces_rl.algorithms.choices import FORBIDDEN


class RegionNetwork(nn.Module):
    """(B, R) scores, least for what is not allowed, and (B,) values."""

    def __init__(self, region: int, job: int, width: int) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(region + job, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.score = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, 1))
        self.value = nn.Linear(2 * width, 1)

    def forward(self, regions: Tensor, job: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        count = regions.shape[1]
        heeded = allowed.unsqueeze(2)
        found = self.each(torch.cat([regions, job.unsqueeze(1).expand(-1, count, -1)], dim=2)) * heeded
        mean = found.sum(dim=1) / heeded.sum(dim=1).clamp(min=1.0)
        around = torch.cat([mean, found.amax(dim=1)], dim=1)
        beside = around.unsqueeze(1).expand(-1, count, -1)
        scores = self.score(torch.cat([found, beside], dim=2)).squeeze(2).masked_fill(allowed == 0, FORBIDDEN)
        return scores, self.value(around).squeeze(1)
