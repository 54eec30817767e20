"""Twin delayed DDPG (Fujimoto et al., arXiv 1802.09477): two critics of which the lower counts, an actor that learns
every second time, and target actions with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ces_rl.algorithms.ddpg import Ddpg, DdpgSettings
from ces_rl.algorithms.pools import Steps
from ces_rl.needs import torch


@dataclass(frozen=True)
class Td3Settings(DdpgSettings):
    """As those of DDPG, and three more."""

    delay: Annotated[int, Field(ge=1, description="steps of the critics to one of the actor")] = 2
    smoothing: Annotated[float, Field(ge=0, description="noise of target actions, on what the actor gives")] = 0.2
    smoothing_clip: Annotated[float, Field(ge=0, description="the most of it")] = 0.5


class Td3(Ddpg):
    """One run of TD3."""

    Settings = Td3Settings
    critics: ClassVar[int] = 2
    settings: Td3Settings

    def __init__(self, env: Any, settings: Td3Settings, seed: int) -> None:
        super().__init__(env, settings, seed)
        self._learned = 0

    def later_action(self, batch: Steps) -> torch.Tensor:
        raw = self.targets["actor"](*batch.later)
        clip = self.settings.smoothing_clip
        noise = np.clip(self.settings.smoothing * self.rng.standard_normal(tuple(raw.shape)), -clip, clip)
        return self.choice.target(raw + torch.from_numpy(noise.astype(np.float32)), batch.later_mask)

    def learn_actor(self, batch: Steps) -> dict[str, float]:
        self._learned += 1
        return super().learn_actor(batch) if self._learned % self.settings.delay == 0 else {}

    def state(self) -> dict[str, Any]:
        return super().state() | {"learned": self._learned}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._learned = state["learned"]
