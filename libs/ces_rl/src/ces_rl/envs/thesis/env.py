"""The environments ``thesis`` and ``balance``: the thesis's schedulers as it describes them (4.2, 4.3.1).

The thesis gives ``clip_coef``, ``gae_lambda``, ``heuristic`` and the ideal utilisation; all other numbers are CES's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ces_core.learned.thesis.schema import NODES, TASKS, schema_hash
from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_rl.envs.base import Defaults, Scores
from ces_rl.envs.jobs import JobEnv, JobSettings, JobVector
from ces_rl.envs.simulation import SUCCESS, SlotSize
from ces_rl.envs.thesis.simulation import ThesisSimulation
from ces_rl.problems.source import Source
from ces_rl.problems.validation import Score, Validation
from ces_rl.schedules import linear

if TYPE_CHECKING:
    from ces_rl.envs.thesis.network import ThesisPolicy


@dataclass(frozen=True)
class ThesisSettings(JobSettings):
    """Jobs, rewards and the size of the network. Pairs change linearly from the first to the second."""

    tasks: Annotated[tuple[int, int], Field(description="least and most tasks of a drawn job")] = (3, TASKS)
    nodes: Annotated[tuple[int, int], Field(description="least and most nodes of a drawn cluster")] = (NODES, NODES)
    base_weight: Annotated[float, Field(description="of the base reward, in units of the final one")] = 0.1
    heuristic_weights: Annotated[
        tuple[float, float, float, float, float],
        Field(description="eta 1..5 (4-30, 4-31): load, affinity, topology, importance, competition"),
    ] = (0.1, 0.1, 0.1, 0.1, 0.1)
    heuristic: Annotated[tuple[float, float], Field(description="lambda of eq. 4-25, at first and at last")] = (
        0.8,
        0.1,
    )
    final_weights: Annotated[
        tuple[float, float, float], Field(description="gamma 1..3 (4-32): 1 - L, D, mean use; nothing for a failure")
    ] = (0.5, 0.5, 0.02)
    width: Annotated[int, Field(ge=1, description="units of a layer")] = 128
    curriculum: Annotated[
        float, Field(ge=0, le=1, description="share of the updates in which task counts and scarcity rise")
    ] = 0.2


class ThesisVector(JobVector[ThesisSimulation]):
    """See :class:`ces_rl.envs.base.VectorEnv`. R_total = R_step + lambda * R_heuristic + R_final (eq. 4-25)."""

    def __init__(self, settings: ThesisSettings, simulation: ThesisSimulation, source: Source, seed: int) -> None:
        super().__init__(simulation, source, seed)
        self.settings, self._progress = settings, 0.0

    @property
    def score(self) -> FloatArray:
        return self.simulation.score

    def reset(self, progress: float, group: int = 1) -> None:
        self._progress = progress
        super().reset(progress, group)

    def observe(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        slots = self.simulation.slots
        return slots.state[rows], slots.phase[rows], slots.mask[rows]

    def step(self, actions: IntArray) -> NDArray[np.float32]:
        settings, slots = self.settings, self.simulation.slots
        rows = np.flatnonzero(self.running)
        self.simulation.step(actions)
        heuristic = linear(settings.heuristic, self._progress)
        weights = np.array([settings.base_weight, *(heuristic * eta for eta in settings.heuristic_weights)])
        even, satisfied, used = settings.final_weights
        imbalance, satisfaction, use = slots.outcome[rows].T
        final = even * (1.0 - imbalance) + satisfied * satisfaction + used * use
        reward = np.zeros(self.slots, dtype=np.float32)
        reward[rows] = slots.terms[rows] @ weights + np.where(slots.status[rows] == SUCCESS, final, 0.0)
        return reward


class Thesis(JobEnv):
    """First every task gets its node, then every flow its bandwidth level."""

    Settings = ThesisSettings
    inputs = ("state", "phase", "mask")
    untrained = "random weights, no prior"
    bandwidth: ClassVar[bool] = True
    settings: ThesisSettings
    schema = schema_hash()

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        if algorithm == "ppo":
            numbers = {
                "updates": 700, "evaluate_every": 50, "problems": 2048, "gamma": 0.99, "ent_coef": (0.01, 0.0),
                "temperature": (1.5, 1.0), "learning_rate": (2e-3, 1e-5), "update_epochs": 4, "minibatch_size": 2048,
            }  # fmt: skip
            return Defaults(numbers, {})
        return super().defaults(algorithm)

    def policy(self) -> ThesisPolicy:
        from ces_rl.envs.thesis.network import ThesisPolicy

        return ThesisPolicy(self.settings.width, bandwidth=self.bandwidth)

    def vector(self, slots: int, seed: int) -> ThesisVector:
        simulation = ThesisSimulation(slots, self.source.size, bandwidth=self.bandwidth)
        return ThesisVector(self.settings, simulation, self.source, seed)

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        """The best action always."""
        found = regret(solution, self.validation)
        return {"greedy": {group: asdict(score) for group, score in found.items()}}

    def export(self, solution: Any, path: Path, version: str, card: Mapping[str, Any]) -> None:
        from ces_rl.envs.thesis.network import export

        export(solution, path, version, card)


class Balance(Thesis):
    """Nodes only, for `ppo-balance`: rates follow from importance once all tasks are mapped."""

    bandwidth = False


def regret(policy: ThesisPolicy, validation: Validation) -> dict[str, Score]:
    """Group -> score, always taking the best action. Without a bandwidth head rates follow from importance, as in
    training: on the widest shortest paths."""
    import torch

    count = len(validation.reference)
    simulation = ThesisSimulation(count, SlotSize.of(validation.pool), bandwidth=policy.bandwidth is not None)
    simulation.start(validation.pool, np.arange(count))
    slots = simulation.slots
    while simulation.running.any():
        with torch.no_grad():
            observed = (torch.from_numpy(part) for part in (slots.state, slots.phase, slots.mask))
            scores = policy(*observed)[0].numpy()
        simulation.step(np.argmax(np.where(slots.mask, scores, -np.inf), axis=1))
    return validation.regret(np.where(slots.status == SUCCESS, simulation.score, -np.inf))
