"""Soft actor-critic for discrete actions (Haarnoja et al., arXiv 1801.01290; Christodoulou, arXiv 1910.07207): critics
judge all actions at once, and expectations over them are exact.

The weight of the entropy follows, so that it stays near a share of what even chances would have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ces_core.model.topology import IntArray
from ces_rl.algorithms.base import RefusedError
from ces_rl.algorithms.choices import FORBIDDEN, Rows
from ces_rl.algorithms.ddpg import Ddpg, DdpgSettings
from ces_rl.algorithms.pools import Steps
from ces_rl.needs import torch


@dataclass(frozen=True)
class SacSettings(DdpgSettings):
    """As those of DDPG; ``noise`` counts for nothing, since actions are drawn."""

    entropy: Annotated[float, Field(ge=0, le=1, description="to hold, as a share of that of even chances")] = 0.3
    alpha: Annotated[float, Field(gt=0, description="weight of the entropy at first")] = 0.2
    alpha_rate: Annotated[float, Field(gt=0, description="learning rate of its logarithm")] = 1e-3


class Sac(Ddpg):
    """One run of SAC."""

    Settings = SacSettings
    critics: ClassVar[int] = 2
    settings: SacSettings

    def __init__(self, env: Any, settings: SacSettings, seed: int) -> None:
        if settings.choice != "onehot":
            raise RefusedError("choice: it has a chance for each action, so only onehot makes sense")
        super().__init__(env, settings, seed)
        self.log_alpha = torch.nn.Parameter(torch.tensor(math.log(settings.alpha)))
        self.optimizers["alpha"] = torch.optim.Adam([self.log_alpha], lr=settings.alpha_rate)

    def built(self) -> torch.nn.ModuleDict:
        made = [self.env.networks(self.choice.width) for _ in range(self.critics + 1)]
        networks = [each[0] for each in made if each is not None]
        if len(networks) < len(made):
            raise RefusedError("it has no network that judges an action")
        return torch.nn.ModuleDict({"actor": networks[0], "critics": torch.nn.ModuleList(networks[1:])})

    def act(self, observation: tuple[Rows, ...], mask: Rows, noise: float) -> IntArray:
        with torch.no_grad():
            raw = self.networks["actor"](*map(torch.from_numpy, observation)).numpy()
        drawn = np.where(mask, raw + self.rng.gumbel(size=raw.shape), -np.inf)
        found: IntArray = drawn.argmax(axis=1)
        return found

    def goal(self, batch: Steps) -> torch.Tensor:
        with torch.no_grad():
            chances, logs = self._chances(batch.later, batch.later_mask)
            judged = torch.stack([critic(*batch.later) for critic in self.targets["critics"]]).min(dim=0).values
            worth = (chances * (judged - self.log_alpha.exp() * logs)).sum(dim=1)
            goal: torch.Tensor = batch.reward + self.settings.gamma * (1 - batch.over) * worth
        return goal

    def judged(self, networks: Any, observation: tuple[torch.Tensor, ...], action: torch.Tensor) -> list[torch.Tensor]:
        return [(critic(*observation) * action).sum(dim=1) for critic in networks["critics"]]

    def learn_actor(self, batch: Steps) -> dict[str, float]:
        """A gradient step of the actor, and then one of the weight of its entropy."""
        chances, logs = self._chances(batch.observation, batch.mask)
        with torch.no_grad():
            judged = torch.stack([critic(*batch.observation) for critic in self.networks["critics"]]).min(dim=0).values
        alpha = self.log_alpha.exp().detach()
        loss = (chances * (alpha * logs - judged)).sum(dim=1).mean()
        self._descend("actor", loss)
        entropy = -(chances * logs).sum(dim=1).detach()
        even = torch.log(batch.mask.sum(dim=1).float())
        self._descend("alpha", (self.log_alpha * (entropy - self.settings.entropy * even)).mean())
        self.follow()
        return {"actor_loss": loss.item(), "entropy": float(entropy.mean()), "alpha": alpha.item()}

    def _chances(self, observation: tuple[torch.Tensor, ...], mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, actions) of each action, and their logarithms, 0 where it is not allowed."""
        logs = torch.log_softmax(self.networks["actor"](*observation).masked_fill(~mask, FORBIDDEN), dim=1)
        return logs.exp(), logs.masked_fill(~mask, 0.0)

    def state(self) -> dict[str, Any]:
        return super().state() | {"log_alpha": self.log_alpha.detach().clone()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        with torch.no_grad():
            self.log_alpha.copy_(state["log_alpha"])
