"""A learned rule that chooses a cluster: a network from an ONNX file (the extra ``policy``), or one in training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ces_core.gpus.clusters import DELAY, Clusters
from ces_core.gpus.model import Asked
from ces_core.gpus.rules import Outlook
from ces_core.gpus.sight import Numbers, Usual, View, look, schema_hash
from ces_core.learned.policy import opened
from ces_core.model.errors import PolicyError

Ask = Callable[[Numbers, Numbers, Numbers], Numbers]
"""From what is seen of S streams with C clusters, (S, C, features) and (S, features), and from 1 for each action that
is allowed, else 0, (S, C + 1), to scores (S, C + 1): the last is that of waiting."""
INPUTS, OUTPUT = ("clusters", "task", "allowed"), "scores"
SHIPPED = {name: Path(__file__).with_name(f"clusters_{name.lower()}.onnx") for name in ("D1", "D2", "D5")}
"""Scenario (docs/benchmarks/gpu-clusters.md) -> the policy for it that comes with the core."""


@dataclass
class LearnedRule:
    """A :class:`ces_core.gpus.rules.ClusterRule`. ``usual``: tasks as they usually come. Not for several threads."""

    ask: Ask
    view: View
    usual: Usual

    def choose(self, clusters: Clusters, task: Asked, outlook: Outlook) -> int:
        """The cluster with the highest score. Raises PolicyError."""
        tasks = np.array([task], np.int64)
        seen = look(clusters.fleet, clusters.size, clusters.total[None], tasks, [outlook.more], self.usual)
        shown, about, mask, order = self.view.shown(seen)
        scores = np.where(mask, self.ask(shown, about, mask.astype(np.float32)), -np.inf)
        best = int(scores[0].argmax())
        return DELAY if best == clusters.count else int(order[0, best])


@dataclass(frozen=True)
class ClusterPolicy:
    """A policy from a file, as :data:`Ask`. ``card``: how it was trained."""

    version: str
    card: dict[str, Any]
    session: Any

    @property
    def view(self) -> View:
        """What it was shown in training, by its card. Raises PolicyError where that does not say."""
        try:
            env = self.card["settings"]["env"]
            return View(env["sees"] == "sums", env["masked"], env["earns"] == "count", env["renumbered"])
        except (KeyError, TypeError) as error:
            raise PolicyError(f"policy {self.version} does not say what it was shown") from error

    def __call__(self, clusters: Numbers, task: Numbers, allowed: Numbers) -> Numbers:
        """Raises PolicyError for answers that are not finite or have another shape."""
        given = dict(zip(INPUTS, (clusters, task, allowed), strict=True))
        try:
            inputs = {each.name: given[each.name] for each in self.session.get_inputs()}
            found: Numbers = self.session.run([OUTPUT], inputs)[0]
        except Exception as error:  # the runtime has many kinds, with no common parent
            raise PolicyError(f"policy {self.version} does not answer as one of clusters does: {error}") from error
        if found.shape != allowed.shape:
            raise PolicyError(f"policy {self.version} answers in the shape {found.shape}, not {allowed.shape}")
        if not np.isfinite(found).all():
            raise PolicyError(f"policy {self.version} answers with numbers that are not finite")
        return found


def load_cluster_policy(path: Path) -> ClusterPolicy:
    """The policy in ``path``. Raises PolicyError, saying what is wrong with the file and what to do."""
    return ClusterPolicy(*opened(path, schema_hash()))


def learned_rule(path: Path, usual: Iterable[Asked]) -> LearnedRule:
    """By the policy in ``path``, where tasks usually come as ``usual``. Raises PolicyError."""
    policy = load_cluster_policy(path)
    return LearnedRule(policy, policy.view, Usual.of(usual))
