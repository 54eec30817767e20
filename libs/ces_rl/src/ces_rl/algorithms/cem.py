"""The cross-entropy method: numbers are drawn around a mean, and mean and spread move to those of the best fifth.

Rubinstein, "The cross-entropy method for combinatorial and continuous optimization" (1999). Each kind of job counts
alike, whatever the spread of its fitness. An environment with several objectives gets a whole search for each, one
after the other. The same seed gives the same run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ces_core.model.problem import FloatArray
from ces_rl.algorithms.base import Length, RefusedError
from ces_rl.algorithms.numbers import NumbersRun
from ces_rl.envs.base import Environment

LARGEST = 500
"""Each number is drawn by itself, which finds nothing in the thousands of a network."""


@dataclass(frozen=True)
class CemSettings(Length):
    """``updates`` are generations; environments with several objectives divide them evenly."""

    draws: Annotated[int, Field(ge=2, description="candidates of a generation")] = 36
    elite: Annotated[float, Field(gt=0, le=1, description="share of them that the next are drawn around")] = 0.2
    smoothing: Annotated[float, Field(ge=0, lt=1, description="share of mean and spread that a generation keeps")] = 0.3


class Cem(NumbersRun):
    """One run of the cross-entropy method."""

    Settings = CemSettings
    settings: CemSettings

    def __init__(self, env: Environment, settings: CemSettings, seed: int) -> None:
        super().__init__(env, settings, seed)
        if settings.updates % self.problem.objectives:
            raise RefusedError(f"updates must be a multiple of its {self.problem.objectives} objectives")
        self._begin()

    def _begin(self) -> None:
        """The next objective, with a generator of its own."""
        self.objective = self.problem.objective(len(self.found), self.found)
        self.mean, self.spread = self.objective.start, self.objective.spread
        if len(self.mean) > LARGEST:
            raise RefusedError(f"it has {len(self.mean)} numbers, and cem finds at most {LARGEST}: use es or ppo")
        self.rng = np.random.default_rng(self.seed)

    @property
    def current(self) -> FloatArray:
        return self.mean

    def update(self) -> dict[str, float]:
        """One generation. Measures the fitness of its mean."""
        settings, objective = self.settings, self.objective
        drawn = self.mean + self.spread * self.rng.standard_normal((settings.draws, len(self.mean)))
        drawn[0] = self.mean
        scenario = objective.scenario(self.rng, self.scenario_seed())
        judged = self.gang.each(lambda draw: objective.evaluate(draw, scenario), list(drawn))
        fitness = np.array([each.fitness for each in judged])
        level = fitness - fitness.mean(axis=0)
        standing = (level / np.maximum(fitness.std(axis=0), 1e-9)).mean(axis=1)
        best = drawn[np.argsort(-standing, kind="stable")[: max(2, int(settings.elite * settings.draws))]]
        keep, move = settings.smoothing, 1.0 - settings.smoothing
        self.mean = keep * self.mean + move * best.mean(axis=0)
        self.spread = keep * self.spread + move * best.std(axis=0) + objective.least_spread
        self.updates += 1
        self.steps += settings.draws
        if self.updates % (settings.updates // self.problem.objectives) == 0:
            self.found.append(self.mean)
            if len(self.found) < self.problem.objectives:
                self._begin()
        return {"fitness": float(fitness[0].mean()), **judged[0].measured, "steps": float(self.steps)}

    def own_state(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "spread": self.spread.tolist()}

    def take_over(self, state: dict[str, Any]) -> None:
        if len(self.found) < self.problem.objectives:
            self.objective = self.problem.objective(len(self.found), self.found)
        self.mean, self.spread = np.array(state["mean"]), np.array(state["spread"])
