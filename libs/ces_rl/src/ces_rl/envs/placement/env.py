"""The environment ``placement``: the size-agnostic policy of CES, trained on drawn jobs or on one's own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ces_core.learned.policy import INPUTS, OUTPUT
from ces_core.learned.schema import schema_hash
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_rl.envs.base import Defaults, Scores, VectorEnv
from ces_rl.envs.jobs import JobEnv, JobSettings, JobVector
from ces_rl.envs.placement import links
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import SlotSize

if TYPE_CHECKING:
    from torch import nn

    from ces_rl.envs.placement.network import PointerPolicy

SAMPLES = 64
"""Plans that are drawn for each instance in a thorough evaluation."""
ENCODERS = ("pooled", "graph")
"""How a policy learns of a node's surroundings: from all nodes at once, or from its neighbours as well."""


@dataclass(frozen=True)
class PlacementSettings(JobSettings):
    """Jobs, clusters and the size of the policy."""

    curriculum: Annotated[
        float, Field(ge=0, le=1, description="share of the updates in which task counts and scarcity rise")
    ] = 0.05
    width: Annotated[int, Field(ge=1, description="units of a layer")] = 64
    encoder: Annotated[
        str,
        Field(
            pattern=f"^({'|'.join(ENCODERS)})$",
            description="of the network: pooled, or graph, which passes messages over links, too",
        ),
    ] = ENCODERS[0]
    neighbours: Annotated[
        int, Field(ge=1, description="of the graph encoder: links of a node that are looked at, the widest")
    ] = 12


class PlacementVector(JobVector[PlacementSimulation]):
    """See :class:`ces_rl.envs.base.VectorEnv`. The only reward is the composite, at the end of a success."""

    @property
    def score(self) -> FloatArray:
        return self.simulation.slots.score

    def observe(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        return self.simulation.observed(rows)

    def step(self, actions: IntArray) -> NDArray[np.float32]:
        before = self.running
        self.simulation.step(actions)
        return np.where(before & self.success, self.score, 0.0).astype(np.float32)


class Placement(JobEnv):
    """A task after the other gets its node; bandwidth is settled as every solver of CES does."""

    Settings = PlacementSettings
    inputs: tuple[str, ...] = INPUTS
    axes = {name: {1: "count"} for name in ("nodes", "mask", OUTPUT)}
    settings: PlacementSettings
    schema = schema_hash()
    first_tasks, first_odds = 0.4, 0.2

    def __init__(self, settings: PlacementSettings) -> None:
        super().__init__(settings)
        if settings.encoder == "graph":
            self.schema = links.graph_schema()
            self.inputs = (*INPUTS, *links.INPUTS)
            self.axes = {**Placement.axes, **{name: {1: "count", 2: "most"} for name in links.INPUTS}}
            self.unasked = "no scheduler shows a policy the links yet, which the graph encoder needs"

    @property
    def untrained(self) -> str:  # type: ignore[override]
        from ces_rl.envs.placement.network import PRIORS

        prior = ", ".join(f"{weight:g} times {name}" for name, weight in PRIORS.items())
        return f"random weights beside the linear prior ({prior}), a look-ahead rule that needs no learning"

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        if algorithm == "imitation":
            # Where bandwidth is plenty, regrets are small and teach little: three of five jobs are of that regime.
            odds = {"thesis": 3.0, "tight": 1.0, "scarce": 1.0}
            return Defaults({}, {"odds": odds, "curriculum": 0.0})
        if algorithm == "ppo":
            numbers = {
                "updates": 1000, "problems": 64, "group": 32, "gamma": 1.0, "ent_coef": (0.3, 0.0),
                "ent_target": (0.5, 0.1), "temperature": (1.2, 1.0), "learning_rate": (6e-4, 2e-5),
                "minibatch_size": 2816,
            }  # fmt: skip
            return Defaults(numbers, {})
        return super().defaults(algorithm)

    def policy(self) -> PointerPolicy:
        from ces_rl.envs.placement.network import GraphPolicy, PointerPolicy

        return (GraphPolicy if self.settings.encoder == "graph" else PointerPolicy)(self.settings.width)

    def simulation(self, slots: int, size: SlotSize) -> PlacementSimulation:
        """Which observes what the network takes."""
        if self.settings.encoder == "graph":
            return links.LinkedSimulation(slots, size, self.settings.neighbours)
        return PlacementSimulation(slots, size)

    def searched(self, policy: nn.Module) -> list[nn.Parameter]:
        """The linear part, a number for each feature of a node: whole networks are too many for CEM and ES."""
        return [policy.get_parameter("prior.weight")]

    def vector(self, slots: int, seed: int) -> PlacementVector:
        return PlacementVector(self.simulation(slots, self.source.size), self.source, seed)

    @contextmanager
    def expert(self, vector: VectorEnv, *, limit: int, regret_cap: float, threads: int) -> Iterator[Any]:
        """Tree searches on from each node that a task may go to: :mod:`ces_rl.envs.placement.teacher`."""
        from ces_rl.envs.placement.teacher import Teacher

        assert isinstance(vector, PlacementVector)
        with ThreadPoolExecutor(threads) as pool:
            yield Teacher(vector.simulation, limit, regret_cap, pool)

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        from ces_rl.envs.placement.evaluation import regret, scorer_of

        ask = partial(regret, scorer_of(solution), self.validation, simulate=self.simulation)
        ways = {"greedy": ask}
        if thorough and self.settings.encoder == "graph":
            ways[f"best of {SAMPLES} draws"] = partial(ask, draws=SAMPLES)
        elif thorough:
            ways[f"best of {SAMPLES}"] = partial(ask, samples=SAMPLES)
        return {way: {group: asdict(score) for group, score in found().items()} for way, found in ways.items()}
