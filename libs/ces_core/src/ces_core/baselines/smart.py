"""``smart``: the sum of four weighted factors per node, bandwidth by importance (thesis 4.3.1).

The thesis names the factors and gives neither formulas nor weights. They are read as follows, each within 0..1:

- resource efficiency: how much of the node is put to use with the task there, the mean of CPU and memory;
- load balance: how near the node's use with the task comes to the mean use of all nodes;
- network connectivity: the free bandwidth of the node's links, relative to the best connected node;
- resource margin: what the scarcer of CPU and memory has left with the task there.

Efficiency could also be read as the cosine between demand and what is left (the affinity of the thesis's eq. 4-30);
that places two to six jobs in a hundred fewer on the benchmark's networks, so the reading that serves it better stands.

``smart`` gives bandwidth by the importance of the ends, which leaves idle what no flow is meant to get. ``smart+fill``
has the same placement and the common bandwidth step; compare placements with that one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.baselines.baseline import Baseline, Placer, weights
from ces_core.baselines.rates import by_importance
from ces_core.baselines.sequential import Placement, View, place
from ces_core.model.problem import FloatArray, Problem


@dataclass(frozen=True)
class SmartSettings:
    """Weights of the factors; only their ratios matter."""

    efficiency: float = 1.0
    balance: float = 1.0
    connectivity: float = 1.0
    margin: float = 1.0

    def __post_init__(self) -> None:
        weights(self, "efficiency", "balance", "connectivity", "margin")


def efficiency(view: View) -> FloatArray:
    """(nodes,): the share in use with the task there, mean of CPU and memory."""
    return np.asarray(view.share_with_task().mean(axis=0))


def balance(view: View) -> FloatArray:
    """(nodes,): 1 where the node's use with the task is the mean use of all nodes that have the resource."""
    capacity = view.problem.cluster.node_capacity[:2]
    there = capacity > 0
    use = np.divide(view.used[:2], capacity, out=np.zeros_like(capacity), where=there)
    mean = use.sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    away = np.abs(view.share_with_task() - mean[:, None]).mean(axis=0)
    return np.asarray(1.0 - np.minimum(away, 1.0))


def connectivity(problem: Problem) -> FloatArray:
    """(nodes,): free bandwidth of the links from and to the node, the best connected node's being 1."""
    topology = problem.cluster.topology
    free = problem.cluster.bandwidth_free[: len(topology.link_src)]
    count = len(topology.nodes)
    ends = np.concatenate([topology.link_src, topology.link_dst])
    total = np.bincount(ends, np.concatenate([free, free]), count)
    most = float(total.max())
    return np.asarray(total / most if most > 0 else total, dtype=np.float64)


def margin(view: View) -> FloatArray:
    """(nodes,): the share of the scarcer resource that is left, with the task there."""
    return np.asarray(np.clip(1.0 - view.share_with_task().max(axis=0), 0.0, 1.0))


def placer(settings: SmartSettings) -> Placer:
    """The placement rule with these weights."""

    def by_factors(problem: Problem, rng: np.random.Generator) -> Placement:
        connected = settings.connectivity * connectivity(problem)

        def score(view: View) -> FloatArray:
            return (
                settings.efficiency * efficiency(view)
                + settings.balance * balance(view)
                + connected
                + settings.margin * margin(view)
            )

        return place(problem, range(len(problem.tasks)), score)

    return by_factors


SMART = Baseline("smart", "four weighted node factors, rates by importance", placer(SmartSettings()), by_importance)
SMART_FILL = Baseline("smart+fill", "four weighted node factors", placer(SmartSettings()))
