"""The thesis's network (4.2.3): a shared encoder of two layers, heads for the mapping, for bandwidth levels and
for the value (eqs 4-26..4-29). Without the bandwidth head it is the network of ``ppo-balance``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ces_core.learned.thesis.policy import BANDWIDTH, INPUT, MAPPING
from ces_core.learned.thesis.schema import ACTIONS, LEVELS, NODES, WIDTH, schema_hash
from ces_rl.export import export_network

FORBIDDEN = -1e9
"""The score of an action that may not be chosen."""


class ThesisPolicy(nn.Module):
    """Logits of both heads and a value from states (B, WIDTH)."""

    def __init__(self, width: int, *, bandwidth: bool) -> None:
        super().__init__()
        self.encoder = nn.Sequential(_layer(WIDTH, width), nn.ReLU(), _layer(width, width), nn.ReLU())
        self.mapping = _layer(width, NODES, 0.01)
        self.bandwidth = _layer(width, LEVELS, 0.01) if bandwidth else None
        self.value = nn.Sequential(_layer(width, width), nn.ReLU(), _layer(width, 1, 1.0))

    def heads(self, state: Tensor) -> tuple[Tensor, ...]:
        """Logits (B, NODES) and, with the bandwidth head, (B, LEVELS)."""
        hidden = self.encoder(state)
        return (self.mapping(hidden),) if self.bandwidth is None else (self.mapping(hidden), self.bandwidth(hidden))

    def forward(self, state: Tensor, phase: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(B, ACTIONS) scores of the head that ``phase`` (B,) asks for, ``FORBIDDEN`` where ``mask`` (B, ACTIONS) is
        False, and (B,) values."""
        hidden = self.encoder(state)
        scores = nn.functional.pad(self.mapping(hidden), (0, ACTIONS - NODES))
        if self.bandwidth is not None:
            levels = nn.functional.pad(self.bandwidth(hidden), (0, ACTIONS - LEVELS))
            scores = torch.where(phase.unsqueeze(-1) == 0, scores, levels)
        return scores.masked_fill(~mask, FORBIDDEN), self.value(hidden).squeeze(-1)


class Heads(nn.Module):
    """The part of a policy that decisions need."""

    def __init__(self, policy: ThesisPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, state: Tensor) -> tuple[Tensor, ...]:
        return self.policy.heads(state)


def _layer(inputs: int, outputs: int, gain: float = math.sqrt(2.0)) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def export(policy: ThesisPolicy, path: Path, version: str, card: Mapping[str, Any]) -> None:
    """Writes ``policy`` as ONNX, for any number of states at once."""
    heads = [MAPPING] if policy.bandwidth is None else [MAPPING, BANDWIDTH]
    axes = {name: {0: "batch"} for name in (INPUT, *heads)}
    export_network(
        Heads(policy), (torch.zeros(2, WIDTH),), path, inputs=[INPUT], outputs=heads, axes=axes,
        schema=schema_hash(), version=version, card=card,
    )  # fmt: skip
