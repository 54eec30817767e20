"""TapFinger's network (arXiv 2302.00571): graph attention, a pointer to a pending task, amounts for that task, and a
critic whose last layer is linear (returns are negative, and the public one ends in a ReLU). One network serves all
agents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ces_core.amounts.features import Numbers, Seen
from ces_core.amounts.policy import Ask
from ces_core.amounts.schema import (
    CELLS,
    CLUSTER_FEATURES,
    INPUTS,
    MOST,
    OUTPUTS,
    PENDING_FEATURES,
    RUNNING_FEATURES,
    schema_hash,
)
from ces_core.model.topology import IntArray
from ces_rl.envs.tapfinger.attention import FORBIDDEN, Block, Layer
from ces_rl.export import export_network

OUTLOOK = 2
WAITED = PENDING_FEATURES.index("waited")
EMPTY = PENDING_FEATURES.index("empty")
LEAST = slice(0, 2)


class Known(NamedTuple):
    """What amounts are chosen by."""

    slots: Tensor  # (B, A, P, width)
    clusters: Tensor  # (B, A, width)
    allowed: Tensor  # (B, A, CELLS)


class TapFingerPolicy(nn.Module):
    """``han``: graph attention, or else a perceptron that sees a slot and its cluster. ``pointer``: chooses among the
    pending tasks, or else draws one (with ``first``, takes the one that has waited longest)."""

    def __init__(self, width: int, layers: int, heads: int, *, han: bool, pointer: bool, first: bool) -> None:
        super().__init__()
        self.han, self.pointer, self.first = han, pointer, first
        self.cluster, self.pending, self.running = (
            nn.Linear(len(names), width) for names in (CLUSTER_FEATURES, PENDING_FEATURES, RUNNING_FEATURES)
        )
        if han:
            self.hub = nn.Parameter(torch.zeros(width))
            self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        else:
            self.stack = nn.Sequential(
                nn.Linear(len(PENDING_FEATURES) + len(CLUSTER_FEATURES), width), nn.ReLU(), nn.Linear(width, width)
            )
        if pointer:
            self.blocks = nn.ModuleList(Block(width, heads) for _ in range(2))
            self.query, self.reference = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.score = nn.Linear(width, 1, bias=False)
        self.allocate = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), _last(width, CELLS, 0.01))
        self.critic = nn.Sequential(
            nn.Linear(3 * width + OUTLOOK, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), _last(width, 1, 1.0)
        )

    def forward(
        self, clusters: Tensor, pending: Tensor, running: Tensor, seen: Tensor, usable: Tensor, most: Tensor,
        outlook: Tensor,
    ) -> tuple[Tensor, Known, Tensor]:  # fmt: skip
        """As :class:`ces_rl.envs.base.TeamPolicy`; inputs as in :mod:`ces_core.amounts.schema`, and the outlook (B,
        2)."""
        slots, agents = self.encode(clusters, pending, running, seen)
        there = 1.0 - pending[..., EMPTY]
        mean = (slots * there.unsqueeze(-1)).sum(2) / there.sum(2).clamp(min=1.0).unsqueeze(-1)
        team = agents.mean(1, keepdim=True).expand_as(agents)
        about = outlook.unsqueeze(1).expand(-1, agents.shape[1], -1)
        values = self.critic(torch.cat([agents, mean, team, about], -1)).squeeze(-1)
        known = Known(slots, agents, allowed(pending, most))
        return self.tasks(slots, pending, there, usable), known, values

    def encode(self, clusters: Tensor, pending: Tensor, running: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """States of the slots (B, A, P, width) and of the clusters (B, A, width)."""
        agents = torch.relu(self.cluster(clusters))
        if not self.han:
            beside = clusters.unsqueeze(2).expand(-1, -1, pending.shape[2], -1)
            return self.stack(torch.cat([pending, beside], -1)), agents
        nodes = {
            "cluster": agents,
            "pending": torch.relu(self.pending(pending)),
            "running": torch.relu(self.running(running)),
            "hub": self.hub + torch.zeros_like(agents[:, :1]),
        }
        runs = (running[..., 0] > 0).float()
        for layer in self.layers:
            nodes = layer(nodes, 1.0 - pending[..., EMPTY], runs, seen)
        return nodes["pending"], nodes["cluster"]

    def tasks(self, slots: Tensor, pending: Tensor, there: Tensor, usable: Tensor) -> Tensor:
        """(B, A, P) logits."""
        if self.pointer:
            for block in self.blocks:
                slots = block(slots, there)
            mean = (slots * there.unsqueeze(-1)).sum(2, keepdim=True) / there.sum(2)[..., None, None].clamp(min=1.0)
            logits = self.score(torch.tanh(self.query(mean) + self.reference(slots))).squeeze(-1)
        elif self.first:
            longest = pending[..., WAITED].masked_fill(usable == 0, -1.0)
            logits = 100.0 * (longest - longest.max(-1, keepdim=True).values)
        else:
            logits = torch.zeros_like(usable)
        found: Tensor = logits.masked_fill(usable == 0, FORBIDDEN)
        return found

    def amounts(self, known: Known, chosen: Tensor) -> Tensor:
        """(B, A, CELLS) logits for the slots ``chosen`` (B, A)."""
        slots, agents, mask = known
        width = slots.shape[-1]
        slot = slots.gather(2, chosen[..., None, None].expand(-1, -1, 1, width)).squeeze(2)
        found: Tensor = self.allocate(torch.cat([slot, agents], -1)).masked_fill(~mask, FORBIDDEN)
        return found

    def all_amounts(self, known: Known) -> Tensor:
        """(B, A, P, CELLS) logits for every slot."""
        slots, agents, mask = known
        both = torch.cat([slots, agents.unsqueeze(2).expand_as(slots)], -1)
        found: Tensor = self.allocate(both).masked_fill(~mask.unsqueeze(2), FORBIDDEN)
        return found


def allowed(pending: Tensor, most: Tensor) -> Tensor:
    """(B, A, CELLS) whether amounts are from the least of the pending tasks to ``most`` (B, A, 2), or nothing."""
    least = (16.0 * pending[..., LEAST]).amax(2).round()
    side = torch.arange(MOST + 1, device=most.device, dtype=most.dtype)
    cpus = (side >= least[..., :1]) & (side <= most[..., :1])
    gpus = (side >= least[..., 1:]) & (side <= most[..., 1:])
    both = (cpus.unsqueeze(-1) & gpus.unsqueeze(-2)).flatten(-2)
    nothing = torch.arange(CELLS, device=most.device) == 0
    anything = least[..., :1] > 0
    return (both & anything) | nothing


def asked(policy: TapFingerPolicy) -> Ask:
    """The policy as :func:`ces_core.amounts.policy.choose` asks it."""

    def ask(seen: Seen) -> tuple[Numbers, Callable[[IntArray], Numbers]]:
        with torch.no_grad():
            logits, known, _ = policy(*(torch.from_numpy(part) for part in seen))

        def amounts(chosen: IntArray) -> Numbers:
            with torch.no_grad():
                found: Numbers = policy.amounts(known, torch.from_numpy(chosen)).numpy()
            return found

        return logits.numpy(), amounts

    return ask


class Heads(nn.Module):
    """The part of a policy that decisions need."""

    def __init__(self, policy: TapFingerPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        clusters, pending, running, seen, usable, most = inputs
        slots, agents = self.policy.encode(clusters, pending, running, seen)
        known = Known(slots, agents, allowed(pending, most))
        return self.policy.tasks(slots, pending, 1.0 - pending[..., EMPTY], usable), self.policy.all_amounts(known)


def _last(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain * math.sqrt(2.0))
    nn.init.zeros_(layer.bias)
    return layer


def export(
    policy: TapFingerPolicy, example: tuple[Tensor, ...], path: Path, version: str, card: Mapping[str, Any]
) -> None:
    """Writes ``policy`` as ONNX, for any number of worlds, clusters and running tasks."""
    axes: dict[str, dict[int, str]] = {name: {0: "batch", 1: "agents"} for name in (*INPUTS, *OUTPUTS)}
    axes["running"][2] = "running"
    axes["seen"][3] = "agents"
    export_network(
        Heads(policy), example[: len(INPUTS)], path, inputs=INPUTS, outputs=OUTPUTS, axes=axes,
        schema=schema_hash(), version=version, card=card,
    )  # fmt: skip
