"""The environment ``gpu-clusters``: to which cluster of GPU hosts a task goes, or whether it waits, after the EADE-DDPG
paper.

Draws are as in ``ces bench gpu-clusters``, from the trace in ``CES_DATA_DIR``; those scored on are never learned from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ces_core.gpus.rules import CLUSTER_RULES
from ces_core.gpus.sight import HOST, OUTLOOK, SUMS, TASK, View, schema_hash
from ces_core.learned.clusters import INPUTS
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_rl.algorithms.base import RefusedError
from ces_rl.envs.base import VALIDATION_SEED, Defaults, Expert, PolicyEnv, Scores, VectorEnv, play_greedy
from ces_rl.envs.gpu_clusters.vector import EARNS, SIZES, GpuVector
from ces_sim.gpus.episode import by_rule
from ces_sim.gpus.scenarios import HOSTS, SCENARIOS, Source
from ces_sim.gpus.traces import TraceError, read_nodes, read_tasks

if TYPE_CHECKING:
    from torch import nn

    from ces_rl.envs.gpu_clusters.network import Shape

ATTENTION = ("none", "literal", "tokens")
SEES = ("sums", "hosts")
RULES = ("expert", "refuse", "random")
"""Scored beside what was learned."""


def one_of(names: Iterable[str]) -> str:
    """A pattern."""
    return f"^({'|'.join(names)})$"


@dataclass(frozen=True)
class GpuClustersSettings:
    """Which draws are learned on, what is seen, and what is earned."""

    scenario: Annotated[
        str, Field(pattern=one_of(SCENARIOS), description="hosts and tasks, see docs/benchmarks/gpu-clusters.md")
    ] = "D1"
    among: Annotated[
        str,
        Field(
            pattern=one_of(SIZES), description="what a task is sent to: one of 16 clusters, or one of their 64 hosts"
        ),
    ] = "clusters"
    earns: Annotated[
        str,
        Field(
            pattern=one_of(EARNS),
            description="the paper's reward in units of 50, read after the step or in thought before it; count: the "
            "share of tasks that are placed",
        ),
    ] = "thought"
    masked: Annotated[bool, Field(description="only right actions are allowed; with count, to wait always is")] = True
    sees: Annotated[
        str,
        Field(
            pattern=one_of(SEES),
            description="of each cluster sums, as the paper has it; hosts: also the host that the task would get",
        ),
    ] = "hosts"
    renumbered: Annotated[bool, Field(description="clusters are numbered by how full they are")] = False
    attention: Annotated[
        str,
        Field(
            pattern=one_of(ATTENTION),
            description="literal: over one vector, as the paper has it; tokens: over clusters",
        ),
    ] = "tokens"
    hidden: Annotated[tuple[int, int], Field(description="widths of the network's two layers")] = (128, 64)
    validation: Annotated[int, Field(ge=1, description="draws to validate on")] = 10


@dataclass(frozen=True)
class Advised:
    """See :class:`ces_rl.envs.base.Expert`."""

    vector: GpuVector
    regret: float

    def judge(self, rows: IntArray) -> tuple[NDArray[np.float32], FloatArray]:
        regret = np.full((len(rows), self.vector.count + 1), self.regret, np.float32)
        regret[np.arange(len(rows)), self.vector.advice(rows)] = 0.0
        return regret, np.zeros(len(rows))


class GpuClusters(PolicyEnv):
    """Its vectors are :class:`~ces_rl.envs.gpu_clusters.vector.GpuVector`."""

    Settings = GpuClustersSettings
    inputs: tuple[str, ...] = INPUTS
    schema = schema_hash()
    settings: GpuClustersSettings

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        own = {
            "ppo": {"problems": 16, "minibatch_size": 512, "learning_rate": (1e-3, 1e-4)},
            "imitation": {"updates": 6, "episodes": 32, "gradient_steps": 60, "unit": (0.01, 0.01)},
        }
        return Defaults(own.get(algorithm, {}), {})

    @cached_property
    def source(self) -> Source:
        """What draws are made from. Raises RefusedError where the trace is not there, or too small."""
        try:
            return Source.of(SCENARIOS[self.settings.scenario], read_nodes(), read_tasks("default"))
        except (TraceError, ValueError) as error:
            raise RefusedError(str(error)) from error

    @property
    def view(self) -> View:
        """What a policy is shown."""
        chosen = self.settings
        return View(chosen.sees == "sums", chosen.masked, chosen.earns == "count", chosen.renumbered)

    @property
    def size(self) -> int:
        """Hosts of what a task is sent to."""
        return SIZES[self.settings.among]

    @property
    def shape(self) -> Shape:
        """Of networks."""
        from ces_rl.envs.gpu_clusters.network import Shape

        chosen, more = self.settings, self.settings.sees == "hosts"
        cluster, task = len(SUMS) + more * len(HOST), len(TASK) + more * len(OUTLOOK)
        return Shape(chosen.attention, HOSTS // self.size, cluster, task, chosen.hidden)

    def policy(self) -> nn.Module:
        from ces_rl.envs.gpu_clusters.network import ClusterPolicy

        return ClusterPolicy(self.shape)

    def networks(self, width: int) -> tuple[nn.Module, nn.Module]:
        from ces_rl.envs.gpu_clusters.network import OneVector, scoring

        shape = self.shape
        actor = scoring(shape) if width == shape.count + 1 else OneVector(shape, width)
        return actor, OneVector(shape, 1, more=width)

    def vector(self, slots: int, seed: int) -> GpuVector:
        return GpuVector(self.source, slots, seed, earns=self.settings.earns, view=self.view, size=self.size)

    @contextmanager
    def expert(self, vector: VectorEnv, *, limit: int, regret_cap: float, threads: int) -> Iterator[Expert]:
        """The vector's adviser: every other action is regretted as much as can be."""
        assert isinstance(vector, GpuVector)
        yield Advised(vector, regret_cap)

    @property
    def instances(self) -> str:
        return f"{self.settings.validation} draws of {self.settings.scenario} that training does not make"

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        """The best action always."""
        vector = self._unseen()
        returns = play_greedy(solution, vector)
        figures = {"deployed": vector.score.mean(), "return": returns.mean(), "wrong": vector.wrong.mean()}
        return {"greedy": {self.settings.scenario: {name: float(value) for name, value in figures.items()}}}

    def baselines(self) -> Scores:
        drawn = self._unseen().drawn
        return {
            name: {
                self.settings.scenario: {
                    "deployed": float(
                        np.mean([by_rule(each, CLUSTER_RULES[name], 0, self.size)["deployed"] for each in drawn])
                    )
                }
            }
            for name in RULES
        }

    def _unseen(self) -> GpuVector:
        vector = self.vector(self.settings.validation, VALIDATION_SEED)
        vector.reset(1.0)
        return vector
