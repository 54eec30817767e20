"""The environment ``longrun``: what residual capacity is worth in the long run, on the simulator of jobs that come and
go.

The numbers of a value are searched for as logarithms. A whole run is judged: the share of the jobs that found a place,
and satisfaction and balance over time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ces_core.model.problem import FloatArray
from ces_core.placement.value import LINK_TICKS, NODE_TICKS, Value
from ces_rl.envs.base import Defaults, Judged, NumbersEnv, Objective, Scores
from ces_rl.envs.longrun.scene import Scene

VALIDATION = 900_000
"""Scenes that training never draws begin here."""


@dataclass(frozen=True)
class LongrunSettings:
    """Which runs of a cluster are learned on and scored on, and what counts in them."""

    jobs: Annotated[int, Field(ge=1, description="jobs of a run")] = 100
    loads: Annotated[tuple[float, ...], Field(description="offered load of a run: one of them, by chance")] = (
        0.8,
        0.9,
        1.0,
    )
    odds: Annotated[dict[str, float], Field(description="regime=weight,... of the links")] = field(
        default_factory=lambda: {"thesis": 0.2, "tight": 0.6, "scarce": 0.2}
    )
    earns: Annotated[
        dict[str, float],
        Field(description="what a run earns for each; satisfaction hardly moves, so it weighs more"),
    ] = field(default_factory=lambda: {"accepted": 1.0, "bandwidth_satisfaction": 5.0, "load_imbalance": -0.25})
    validation: Annotated[int, Field(ge=1, description="runs per regime to validate on, at load 0.9")] = 20


@dataclass(frozen=True)
class Earnings:
    """What a run earns with a value."""

    settings: LongrunSettings

    @property
    def start(self) -> FloatArray:
        """More residual capacity is evenly worth more, and balance is worth half of what the composite says."""
        node = 0.2 * np.diff((0.0, *NODE_TICKS))
        link = 0.001 * np.diff((0.0, *LINK_TICKS))
        logarithms: FloatArray = np.log(np.concatenate([node, link, [0.5]]))
        return logarithms

    @property
    def spread(self) -> FloatArray:
        return np.ones(len(self.start))

    @property
    def least_spread(self) -> FloatArray:
        return np.full(len(self.start), 0.05)

    def scenario(self, rng: np.random.Generator, seed: int) -> Scene:
        regimes, odds = list(self.settings.odds), np.array(list(self.settings.odds.values()))
        return Scene(
            str(rng.choice(regimes, p=odds / odds.sum())),
            float(rng.choice(self.settings.loads)),
            self.settings.jobs,
            seed % VALIDATION,
        )

    def evaluate(self, numbers: FloatArray, scenario: Scene) -> Judged:
        run = scenario.play(value_of(numbers))
        earned = sum(weight * run[name] for name, weight in self.settings.earns.items())
        return Judged(np.array([earned]), {name: run[name] for name in self.settings.earns})


class Longrun(NumbersEnv):
    """The rises of a value, and the weight of balance beside it."""

    Settings = LongrunSettings
    file = "value.json"
    untrained = "a value that rises evenly, as the search begins"
    settings: LongrunSettings

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        return Defaults({"updates": 30, "evaluate_every": 30}, {})

    def start(self, number: int) -> FloatArray:
        return Earnings(self.settings).start

    def objective(self, number: int, found: Sequence[FloatArray]) -> Objective:
        return Earnings(self.settings)

    @property
    def instances(self) -> str:
        each = f"{self.settings.validation} runs of {self.settings.jobs} jobs"
        return f"{each} of each regime at load 0.9, seeds from {VALIDATION}"

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        return {"with the value": validate(value_of(solution[0]), self.settings)}

    def baselines(self) -> Scores:
        return {"myopic": validate(None, self.settings)}

    def export(self, solution: Any, path: Path, version: str, card: Mapping[str, Any]) -> None:
        value = value_of(solution[0])
        whole = Value(value.node, value.link, value.balance, version, dict(card))
        path.write_text(json.dumps(whole.to_dict(), indent=2) + "\n", encoding="utf-8")


def value_of(theta: FloatArray) -> Value:
    """Rounded, so that the file says all of it."""
    numbers = [float(f"{number:.4g}") for number in np.exp(np.clip(theta, -12.0, 1.0))]
    nodes = len(NODE_TICKS)
    return Value(tuple(numbers[:nodes]), tuple(numbers[nodes:-1]), min(numbers[-1], 1.0))


def validate(value: Value | None, settings: LongrunSettings) -> dict[str, dict[str, float]]:
    """Regime -> means over runs that training never draws."""
    found = {}
    for regime in settings.odds:
        runs = [Scene(regime, 0.9, settings.jobs, VALIDATION + i).play(value) for i in range(settings.validation)]
        found[regime] = {name: float(np.mean([run[name] for run in runs])) for name in settings.earns}
    return found
