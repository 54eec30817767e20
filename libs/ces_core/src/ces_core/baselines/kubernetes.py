"""The scoring of kube-scheduler's resource plugins, pod by pod, without a look at the network.

``NodeResourcesFit`` filters nodes by what is requested and scores them by ``LeastAllocated`` (its default) or
``MostAllocated``: the weighted mean, over CPU and memory, of the share of capacity that stays free with the pod there,
or of the share that is taken. ``NodeResourcesBalancedAllocation`` scores 1 less the standard deviation of those shares;
kube-scheduler's documentation asks that it accompany the others. The default profile has both, at equal weight: that is
``kubernetes`` here. Upstream rounds scores to whole numbers 0..100 and draws among equals; here they stay exact, and
equals go by index. Tasks are taken in the job's order; nothing is tried again.

These systems neither choose paths nor reserve bandwidth. Under their plain names their placements get the common
bandwidth step, so that only placement is compared. ``least-allocated-blind`` is the whole system as it is run: each
flow limited to its maximum at its source, routed the one way a routing table knows, and left to share what the links
have: :func:`ces_core.baselines.rates.best_effort`. A job of which some flow misses its minimum that way counts
as having no place; the bandwidth that running jobs have reserved is taken as used up, which flatters it, since without
reservations they would compete. ``least-allocated+fair`` reserves the minimums and, above them, makes the rates max-min
fair rather than satisfying as many flows as it can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.baselines.baseline import Baseline, Placer, weights
from ces_core.baselines.rates import best_effort, fair
from ces_core.baselines.sequential import Placement, Score, View, place
from ces_core.model.problem import FloatArray, Problem


@dataclass(frozen=True)
class ResourceWeights:
    """How much each resource counts in a score, as in the plugins' ``resources``; upstream's default is 1 and 1."""

    cpu: float = 1.0
    memory: float = 1.0

    def __post_init__(self) -> None:
        weights(self, "cpu", "memory")


def allocated(view: View, settings: ResourceWeights) -> FloatArray:
    """(nodes,): weighted mean share in use with the task there, over the resources that the node has."""
    weight = np.array([[settings.cpu], [settings.memory]]) * (view.problem.cluster.node_capacity[:2] > 0)
    total = weight.sum(axis=0)
    share = (weight * view.share_with_task()).sum(axis=0)
    return np.asarray(np.divide(share, total, out=np.zeros_like(share), where=total > 0))


def balanced(view: View) -> FloatArray:
    """(nodes,): 1 less the standard deviation of the shares of CPU and memory; 1 where the node has one of them."""
    both = (view.problem.cluster.node_capacity[:2] > 0).all(axis=0)
    return np.asarray(1.0 - np.where(both, view.share_with_task().std(axis=0), 0.0))


def _in_order(score: Score) -> Placer:
    def by_score(problem: Problem, rng: np.random.Generator) -> Placement:
        return place(problem, range(len(problem.tasks)), score)

    return by_score


def least_allocated(settings: ResourceWeights) -> Placer:
    """The emptiest node, once the task is there."""
    return _in_order(lambda view: 1.0 - allocated(view, settings))


def most_allocated(settings: ResourceWeights) -> Placer:
    """The fullest node that still holds the task."""
    return _in_order(lambda view: allocated(view, settings))


def default_profile(settings: ResourceWeights) -> Placer:
    """Least allocated plus balanced, at equal weight."""
    return _in_order(lambda view: 1.0 - allocated(view, settings) + balanced(view))


_EMPTIEST = least_allocated(ResourceWeights())
LEAST_ALLOCATED = Baseline("least-allocated", "the emptiest node (NodeResourcesFit)", _EMPTIEST)
LEAST_ALLOCATED_FAIR = Baseline("least-allocated+fair", "the emptiest node; rates max-min fair", _EMPTIEST, fair)
LEAST_ALLOCATED_BLIND = Baseline(
    "least-allocated-blind",
    "the emptiest node; no bandwidth reserved",
    _EMPTIEST,
    best_effort,
)
MOST_ALLOCATED = Baseline(
    "most-allocated", "the fullest node with room (NodeResourcesFit)", most_allocated(ResourceWeights())
)
KUBERNETES = Baseline(
    "kubernetes",
    "emptiness and balance: kube-scheduler's default",
    default_profile(ResourceWeights()),
)
