"""Attention over the graph of clusters, tasks and a hub, in plain torch: a layer is what Wang et al. describe as a
heterogeneous graph attention network (WWW 2019), on dense arrays.

Every relation attends over its own neighbours; a cluster, which has three relations, then weighs them against each
other. Unlike there, a node keeps what it knew (a residual connection with normalisation), which lets deep stacks
train.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

KINDS = ("cluster", "pending", "running", "hub")
"""Of nodes."""
FORBIDDEN = -1e9
"""The score of what may not be chosen, and of neighbours that are not there."""


class Relation(nn.Module):
    """Attention of one kind of node over its neighbours of another."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.source, self.target = (nn.Linear(width, heads, bias=False) for _ in range(2))

    def forward(self, target: Tensor, source: Tensor, there: Tensor) -> Tensor:
        """(..., T, width) from targets (..., T, width), sources (..., S, width) and ``there`` (..., T, S), which is 1
        for neighbours; 0 where a target has none."""
        scores = self.target(target).unsqueeze(-2) + self.source(source).unsqueeze(-3)
        scores = nn.functional.leaky_relu(scores, 0.2).masked_fill(there.unsqueeze(-1) == 0, FORBIDDEN)
        weights = torch.softmax(scores, -2) * there.unsqueeze(-1)
        values = torch.unflatten(source, -1, (self.heads, -1))
        return torch.einsum("...tsh,...shd->...thd", weights, values).flatten(-2)


class Layer(nn.Module):
    """One round of messages along all edges."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.project = nn.ModuleDict({kind: nn.Linear(width, width) for kind in KINDS})
        self.norm = nn.ModuleDict({kind: nn.LayerNorm(width) for kind in self.project})
        self.of_clusters, self.of_pending, self.of_running, self.of_hub, self.to_hub = (
            Relation(width, heads) for _ in range(5)
        )
        self.running_gate = nn.Linear(width, width)
        self.semantic = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1, bias=False))

    def forward(self, nodes: dict[str, Tensor], pending: Tensor, running: Tensor, seen: Tensor) -> dict[str, Tensor]:
        """New states of clusters (B, A, width), pending (B, A, P, width), running (B, A, R, width) and hub (B, 1,
        width). ``pending`` (B, A, P) and ``running`` (B, A, R) are 1 where there is a task; ``seen`` (B, A, P, A) as
        in the schema. A task that several clusters see has equal states in all their slots."""
        x = {kind: self.project[kind](state) for kind, state in nodes.items()}
        clusters = x["cluster"]
        one, agents = clusters.unsqueeze(2), clusters.shape[1]
        all_agents = torch.ones_like(clusters[:, None, :, 0])
        messages = torch.stack(
            [
                self.of_pending(one, x["pending"], pending.unsqueeze(2)).squeeze(2),
                self.of_running(one, x["running"], running.unsqueeze(2)).squeeze(2),
                self.of_hub(clusters, x["hub"], torch.ones_like(clusters[..., :1])),
            ],
            dim=2,
        )
        weights = torch.softmax(self.semantic(messages).mean(1, keepdim=True), 2)
        flat = x["pending"].flatten(1, 2)
        of_clusters = self.of_clusters(flat, clusters, seen.flatten(1, 2)).unflatten(1, (agents, -1))
        news = {
            "cluster": (weights * messages).sum(2),
            "pending": of_clusters,
            "running": self.running_gate(clusters).unsqueeze(2).expand_as(x["running"]),
            "hub": self.to_hub(x["hub"], clusters, all_agents),
        }
        return {kind: self.norm[kind](state + torch.relu(x[kind] + news[kind])) for kind, state in nodes.items()}


class Block(nn.Module):
    """A layer of a transformer's encoder (Vaswani et al., 2017), normalised first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor, there: Tensor) -> Tensor:
        """(..., P, width) from tokens (..., P, width), of which those with ``there`` (..., P) 0 are not looked at."""
        parts = self.qkv(self.before(tokens)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(-2, -3) for part in parts)
        scores = torch.matmul(q, k.transpose(-1, -2)) / (q.shape[-1] ** 0.5)
        weights = torch.softmax(scores.masked_fill(there[..., None, None, :] == 0, FORBIDDEN), -1)
        tokens = tokens + self.out(torch.matmul(weights, v).transpose(-2, -3).flatten(-2))
        found: Tensor = tokens + self.feed(self.between(tokens))
        return found
