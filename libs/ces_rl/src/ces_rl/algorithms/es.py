"""Evolution strategies: numbers are moved a little to both sides in random directions, and the difference in fitness,
weighed by the direction, points uphill (antithetic, with common random numbers: both sides meet the same scenario).

Salimans, Ho, Chen, Sidor, Sutskever, "Evolution strategies as a scalable alternative to reinforcement learning" (2017).
The same seed gives the same run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ces_core.model.problem import FloatArray
from ces_rl.algorithms.base import Length, RefusedError
from ces_rl.algorithms.numbers import NumbersRun
from ces_rl.envs.base import Environment, Judged
from ces_sim.rounds import derived_seed


@dataclass(frozen=True)
class EsSettings(Length):
    """``updates`` are generations."""

    pairs: Annotated[int, Field(ge=1, description="directions of a generation, each with a scenario of its own")] = 8
    sigma: Annotated[float, Field(gt=0, description="how far candidates are moved, in units of the spread")] = 0.4
    learning_rate: Annotated[
        tuple[float, float], Field(description="how far a generation goes uphill, at first and at last")
    ] = (0.6, 0.1)
    momentum: Annotated[float, Field(ge=0, lt=1, description="share of the direction before that is kept")] = 0.5


class Es(NumbersRun):
    """One run of evolution strategies."""

    Settings = EsSettings
    settings: EsSettings

    def __init__(self, env: Environment, settings: EsSettings, seed: int) -> None:
        super().__init__(env, settings, seed)
        if self.problem.objectives != 1:
            raise RefusedError("it has several objectives, found one after the other: use cem")
        self.objective = self.problem.objective(0, [])
        self.rng = np.random.default_rng(derived_seed(seed, 0))
        self.theta = self.objective.start
        self.total, self.averaged = np.zeros(len(self.theta)), 0
        self.velocity, self.scale = np.zeros(len(self.theta)), 0.0

    @property
    def current(self) -> FloatArray:
        """The mean of the last third, which is steadier than the last."""
        return self.total / self.averaged if self.averaged else self.theta

    def update(self) -> dict[str, float]:
        """One generation. Measures what its candidates came to on average."""
        settings, objective, spread = self.settings, self.objective, self.objective.spread
        generation, size = self.updates, len(self.theta)
        drawn: list[tuple[FloatArray, Any]] = []
        for pair in range(settings.pairs):
            direction = self.rng.standard_normal(size)
            drawn.append((direction, objective.scenario(self.rng, self.scenario_seed(pair))))
        judged = self.gang.each(self._sides, drawn)
        uphill, gains = np.zeros(size), []
        for (direction, _), sides in zip(drawn, judged, strict=True):
            gains.append(sides[0].fitness.mean() - sides[1].fitness.mean())
            uphill += gains[-1] * direction / settings.pairs
        deviation = float(np.sqrt(np.mean(np.square(gains))))
        self.scale = deviation if generation == 0 else 0.8 * self.scale + 0.2 * deviation
        self.velocity = settings.momentum * self.velocity + (1.0 - settings.momentum) * uphill / max(self.scale, 1e-9)
        share = generation / max(settings.updates - 1, 1)
        rate = settings.learning_rate[0] * (1 - share) + settings.learning_rate[1] * share
        self.theta = self.theta + rate * self.velocity * spread
        if 3 * generation >= 2 * settings.updates - 3:
            self.total, self.averaged = self.total + self.theta, self.averaged + 1
        self.updates += 1
        self.steps += 2 * settings.pairs
        if self.updates == settings.updates:
            self.found = [self.current]
        all_sides = [each for sides in judged for each in sides]
        measured = {name: float(np.mean([each.measured[name] for each in all_sides])) for name in all_sides[0].measured}
        fitness = float(np.mean([each.fitness.mean() for each in all_sides]))
        return {"fitness": fitness, **measured, "steps": float(self.steps)}

    def _sides(self, drawn: tuple[FloatArray, Any]) -> tuple[Judged, Judged]:
        """What comes of moving in a direction, and of moving the opposite way, in the same scenario."""
        (direction, scenario), objective = drawn, self.objective
        step = self.settings.sigma * (objective.spread * direction)
        return objective.evaluate(self.theta + step, scenario), objective.evaluate(self.theta - step, scenario)

    def own_state(self) -> dict[str, Any]:
        arrays = {"theta": self.theta, "total": self.total, "velocity": self.velocity}
        return {name: array.tolist() for name, array in arrays.items()} | {
            "averaged": self.averaged,
            "scale": self.scale,
        }

    def take_over(self, state: dict[str, Any]) -> None:
        self.theta, self.total, self.velocity = (np.array(state[name]) for name in ("theta", "total", "velocity"))
        self.averaged, self.scale = state["averaged"], state["scale"]
