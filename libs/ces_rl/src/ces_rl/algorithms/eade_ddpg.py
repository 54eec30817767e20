"""DDPG with two pools of experience, as the EADE-DDPG paper has it: a tenth of every batch is an adviser's.

Hu et al., "Multi-cluster computing power resource scheduling algorithm based on DDPG reinforcement learning", Journal
on Communications, 2025. Its attention is the environment's network; what it leaves open is told in
docs/benchmarks/gpu-clusters.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ces_rl.algorithms.ddpg import Ddpg, DdpgSettings


@dataclass(frozen=True)
class EadeDdpgSettings(DdpgSettings):
    """As those of DDPG, with a share of the expert's."""

    expert_share: Annotated[float, Field(ge=0, le=1, description="of a batch, from what the adviser has played")] = 0.1


class EadeDdpg(Ddpg):
    """One run of EADE-DDPG."""

    Settings = EadeDdpgSettings
    settings: EadeDdpgSettings
