"""The environment ``start-weights``: the weights of start plans, and of how tasks are placed again, for `search` with
learned plans (:mod:`ces_core.learned.start`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from ces_core.learned.start.regions import rule_of
from ces_core.model.problem import FloatArray
from ces_rl.envs.base import Defaults, Judged, NumbersEnv, Objective, Scores
from ces_rl.envs.start_weights import plans, recreate

Kinds = tuple[tuple[str, int, int | None, int], ...]


@dataclass(frozen=True)
class StartWeightsSettings:
    """Which jobs are learned on and scored on."""

    kinds: Annotated[
        Kinds, Field(description="regime, nodes, tasks (null: 3 to 8) and jobs of each kind, for start plans")
    ] = (
        ("thesis", 10, None, 30),
        ("tight", 10, None, 30),
        ("scarce", 10, None, 30),
        ("tight", 100, 16, 8),
        ("scarce", 100, 16, 8),
        ("thesis", 1000, 16, 8),
        ("tight", 1000, 16, 8),
        ("scarce", 1000, 16, 8),
    )
    recreate_kinds: Annotated[Kinds, Field(description="likewise, for placing tasks again")] = (
        ("thesis", 100, 16, 24),
        ("tight", 100, 16, 24),
        ("scarce", 100, 16, 24),
        ("tight", 30, 16, 8),
        ("scarce", 30, 16, 8),
        ("thesis", 1000, 16, 8),
        ("tight", 1000, 16, 8),
        ("scarce", 1000, 16, 8),
    )
    train_from: Annotated[int, Field(ge=0, description="first seed of the jobs that weights are learned on")] = 810_000
    check_from: Annotated[int, Field(ge=0, description="first seed of the jobs that scores are from")] = 960_000


@dataclass(frozen=True)
class Gains:
    """What numbers gain on jobs that are always the same."""

    gained: Callable[[FloatArray], FloatArray]
    start: FloatArray
    spread: FloatArray
    least_spread: FloatArray

    def scenario(self, rng: np.random.Generator, seed: int) -> None:
        """There is nothing to draw."""

    def evaluate(self, numbers: FloatArray, scenario: None) -> Judged:
        return Judged(self.gained(numbers), {})


class StartWeights(NumbersEnv):
    """Two objectives: start plans, then placing tasks again on the nodes that the first chooses."""

    Settings = StartWeightsSettings
    file = "proposals.json"
    objectives = 2
    untrained = "the weights that learning begins with: balance and satisfaction alone count"
    settings: StartWeightsSettings

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        return Defaults({"updates": 40, "draws": 36}, {}) if algorithm == "cem" else super().defaults(algorithm)

    def start(self, number: int) -> FloatArray:
        return recreate.start() if number else plans.start()

    def objective(self, number: int, found: Sequence[FloatArray]) -> Objective:
        """Gains of start plans, one for each kind of job; then of placing tasks again, one for each job."""
        settings = self.settings
        if number == 0:
            spread, jobs = plans.spread(), plans.jobs_of(settings.kinds, settings.train_from)

            def of_plans(numbers: FloatArray) -> FloatArray:
                return plans.gains(jobs, plans.weights_of(numbers, recreate.start()), len(settings.kinds))

            return Gains(of_plans, plans.start(), spread, np.full(len(spread), plans.LEAST_SPREAD))
        rule = rule_of(plans.weights_of(found[0], recreate.start()))
        spread, again = recreate.spread(), recreate.jobs_of(settings.recreate_kinds, settings.train_from, rule)

        def of_recreated(numbers: FloatArray) -> FloatArray:
            return np.concatenate(recreate.gains(again, numbers))

        return Gains(of_recreated, recreate.start(), spread, recreate.LEAST_SPREAD * spread)

    def prepare(self, folder: Path) -> None:
        self._jobs = plans.jobs_of(self.settings.kinds, self.settings.check_from)

    @property
    def instances(self) -> str:
        return f"seeds from {self.settings.check_from}; gain in composite over search's own first plan"

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        settings = self.settings
        weights = plans.weights_of(*solution)
        first = plans.gains(self._jobs, weights, len(settings.kinds), 0.0)
        jobs = recreate.jobs_of(settings.recreate_kinds, settings.check_from, rule_of(weights))
        again = recreate.mean_gains(jobs, weights.remake)
        return {"start plan": _named(settings.kinds, first), "recreated": _named(settings.recreate_kinds, again)}

    def export(self, solution: Any, path: Path, version: str, card: Mapping[str, Any]) -> None:
        whole = replace(plans.weights_of(*solution), card={"version": version} | dict(card)).to_dict()
        path.write_text(json.dumps(whole, indent=1) + "\n")


def _named(kinds: Kinds, gained: FloatArray) -> dict[str, dict[str, float]]:
    return {
        f"{regime}, {nodes} nodes": {"gain": round(float(gain), 5)}
        for (regime, nodes, *_), gain in zip(kinds, gained, strict=True)
    }
