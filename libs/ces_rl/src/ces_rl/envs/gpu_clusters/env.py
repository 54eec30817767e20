"""The environment ``gpu-clusters``: to which cluster of GPU hosts a task goes, or whether it waits, after the EADE-DDPG
paper.

Draws are as in ``ces bench gpu-clusters``, from the trace in ``CES_DATA_DIR``; those scored on are never learned from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ces_core.gpus.model import GpuNode, GpuTask
from ces_core.gpus.rules import CLUSTER_RULES
from ces_rl.algorithms.base import RefusedError
from ces_rl.envs.base import VALIDATION_SEED, Defaults, PolicyEnv, Scores, play_greedy
from ces_rl.envs.gpu_clusters.vector import EARNS, GpuVector
from ces_sim.gpus.episode import by_rule
from ces_sim.gpus.scenarios import SCENARIOS
from ces_sim.gpus.traces import TraceError, read_nodes, read_tasks

if TYPE_CHECKING:
    from torch import nn

ATTENTION = ("literal", "tokens")
RULES = ("expert", "refuse", "random")
"""Scored beside what was learned."""


def one_of(names: Iterable[str]) -> str:
    """A pattern."""
    return f"^({'|'.join(names)})$"


@dataclass(frozen=True)
class GpuClustersSettings:
    """Which draws are learned on, and what is earned."""

    scenario: Annotated[
        str, Field(pattern=one_of(SCENARIOS), description="hosts and tasks, see docs/benchmarks/gpu-clusters.md")
    ] = "D1"
    earns: Annotated[
        str,
        Field(
            pattern=one_of(EARNS),
            description="the paper's reward, read after the step or in thought before it; count: 1 for a placed task",
        ),
    ] = "thought"
    masked: Annotated[bool, Field(description="only right actions are allowed; with count, to wait always is")] = True
    attention: Annotated[
        str,
        Field(
            pattern=one_of(ATTENTION),
            description="literal: over one vector, as the paper has it; tokens: over clusters",
        ),
    ] = "tokens"
    validation: Annotated[int, Field(ge=1, description="draws to validate on")] = 10


class GpuClusters(PolicyEnv):
    """Its vectors are :class:`~ces_rl.envs.gpu_clusters.vector.GpuVector`."""

    Settings = GpuClustersSettings
    inputs: ClassVar[tuple[str, ...]] = ("free", "asked")
    settings: GpuClustersSettings

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        ppo = {"problems": 16, "minibatch_size": 512, "learning_rate": (1e-3, 1e-4)}
        return Defaults(ppo if algorithm == "ppo" else {}, {})

    @cached_property
    def trace(self) -> tuple[list[GpuNode], list[GpuTask]]:
        """Nodes and tasks. Raises RefusedError where they are not there."""
        try:
            return read_nodes(), read_tasks("default")
        except TraceError as error:
            raise RefusedError(str(error)) from error

    def policy(self) -> nn.Module:
        from ces_rl.envs.gpu_clusters.network import ClusterPolicy

        return ClusterPolicy(self.settings.attention)

    def networks(self, width: int) -> tuple[nn.Module, nn.Module]:
        from ces_rl.envs.gpu_clusters.network import OneVector, Tokens
        from ces_rl.envs.gpu_clusters.vector import ACTIONS

        scored = self.settings.attention == "tokens" and width == ACTIONS
        return Tokens() if scored else OneVector(width), OneVector(1, more=width)

    def vector(self, slots: int, seed: int) -> GpuVector:
        chosen = self.settings
        return GpuVector(SCENARIOS[chosen.scenario], self.trace, slots, seed, earns=chosen.earns, masked=chosen.masked)

    @property
    def instances(self) -> str:
        return f"{self.settings.validation} draws of {self.settings.scenario} that training does not make"

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        """The best action always."""
        vector = self._unseen()
        returns = play_greedy(solution, vector)
        wrong = [episode.wrong for episode in vector.episodes]
        figures = {"deployed": vector.score.mean(), "return": returns.mean(), "wrong": np.mean(wrong)}
        return {"greedy": {self.settings.scenario: {name: float(value) for name, value in figures.items()}}}

    def baselines(self) -> Scores:
        drawn = [episode.drawn for episode in self._unseen().episodes]
        return {
            name: {
                self.settings.scenario: {
                    "deployed": float(np.mean([by_rule(each, CLUSTER_RULES[name], 0)["deployed"] for each in drawn]))
                }
            }
            for name in RULES
        }

    def _unseen(self) -> GpuVector:
        vector = self.vector(self.settings.validation, VALIDATION_SEED)
        vector.reset(1.0)
        return vector
