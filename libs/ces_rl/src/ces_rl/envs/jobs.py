"""What environments share whose episodes place one job each: settings, slots and validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np
from pydantic import Field

from ces_core.model.generate import REGIMES
from ces_core.model.problem import BoolArray
from ces_rl.envs.base import PolicyEnv
from ces_rl.envs.simulation import SUCCESS, Simulation, SlotSize
from ces_rl.problems.data import Data
from ces_rl.problems.draw import new_random
from ces_rl.problems.source import Source, curriculum


@dataclass(frozen=True)
class JobSettings(Data):
    """Jobs and clusters to learn on."""

    odds: Annotated[dict[str, float], Field(description="regime=weight,...: how often each is drawn, in the end")] = (
        field(default_factory=lambda: dict.fromkeys(REGIMES, 1.0))
    )
    tasks: Annotated[tuple[int, int], Field(description="least and most tasks of a drawn job")] = (3, 8)
    nodes: Annotated[tuple[int, int], Field(description="least and most nodes of a drawn cluster")] = (10, 10)
    curriculum: Annotated[
        float, Field(ge=0, le=1, description="share of the updates in which task counts and scarcity rise")
    ] = 0.0


Simulated = TypeVar("Simulated", bound=Simulation[Any])


class JobVector(Generic[Simulated]):
    """The part of a :class:`ces_rl.envs.base.VectorEnv` that does not depend on observations and rewards."""

    def __init__(self, simulation: Simulated, source: Source, seed: int) -> None:
        self.simulation, self.source, self.random = simulation, source, new_random(seed)
        self.slots = len(simulation.slots.status)

    @property
    def running(self) -> BoolArray:
        return self.simulation.running

    @property
    def mask(self) -> BoolArray:
        mask: BoolArray = self.simulation.slots.mask
        return mask

    @property
    def success(self) -> BoolArray:
        success: BoolArray = self.simulation.slots.status == SUCCESS
        return success

    def reset(self, progress: float, group: int = 1) -> None:
        pool, which = self.source.sample(self.random, progress, self.slots // group)
        self.simulation.start(pool, np.repeat(which, group))

    def state(self) -> list[int]:
        found: list[int] = self.random.tolist()
        return found

    def restore(self, state: Sequence[int]) -> None:
        self.random[:] = state


class JobEnv(PolicyEnv):
    """An environment whose curriculum begins at these shares of the range of task counts, and of the odds."""

    first_tasks: ClassVar[float] = 0.0
    first_odds: ClassVar[float] = 0.0
    settings: JobSettings

    def __init__(self, settings: JobSettings) -> None:
        super().__init__(settings)
        s = settings
        at = curriculum(
            s.odds, s.nodes, s.tasks, share=s.curriculum, first_tasks=self.first_tasks, first_odds=self.first_odds
        )
        self.source = s.source(at, SlotSize.complete(s.tasks[1], s.nodes[1]), s.odds, s.tasks)

    def prepare(self, folder: Path) -> None:
        self.validation = self.settings.validation_set(folder)

    @property
    def instances(self) -> str:
        return self.settings.validated_on
