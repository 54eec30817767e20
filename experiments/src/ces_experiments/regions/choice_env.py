"""The environment ``region-choice``: which region a job is offered to first, by what regions tell of themselves.

A decision is one offer of a simulated run, as ``ces bench regions`` plays it. The expert has every region that the rule
does not refuse make its dry run, and takes the best: what no home could afford to ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray
from ces_core.registry import DEFAULT
from ces_experiments.regions.drawn import Shape
from ces_experiments.regions.offers import TASKS, Offers, simulated
from ces_federation.choice import MOST_ASKED
from ces_federation.policy import INPUTS
from ces_federation.sight import JOB, REGION, schema_hash
from ces_rl.envs.base import VALIDATION_SEED, Defaults, Expert, PolicyEnv, Scores, VectorEnv
from ces_sim.rounds import derived_seed

if TYPE_CHECKING:
    from torch import nn

NO_PLACE = 0.3
"""What it costs to choose a region without a place, beside differences of the composite."""


@dataclass(frozen=True)
class RegionChoiceSettings:
    """Which runs are learned from."""

    regions: Annotated[int, Field(ge=3, le=64, description="of a run")] = 8
    nodes: Annotated[int, Field(ge=2, description="of each region")] = 10
    jobs: Annotated[int, Field(ge=1, description="of each region, on average")] = 25
    load: Annotated[float, Field(gt=0, description="what jobs ask for over time, by what is free")] = 0.8
    regime: Annotated[str, Field(description="of clusters and jobs, as for ces bench regions")] = "tight"
    duration_s: Annotated[float, Field(gt=0, description="that a job runs, on average")] = 600.0
    solver: Annotated[str, Field(description="that decides in every region")] = DEFAULT
    runs: Annotated[int, Field(ge=1, description="to learn from")] = 8
    validation: Annotated[int, Field(ge=1, description="runs to validate on")] = 2
    width: Annotated[int, Field(ge=1, description="of the network's layers")] = 32


class OfferVector:
    """Episodes of one offer each, drawn from those that were recorded. See :class:`ces_rl.envs.base.VectorEnv`."""

    def __init__(self, env: RegionChoice, slots: int, seed: int) -> None:
        self.slots, self._env, self._seed, self._count = slots, env, seed, 0
        self._rows, self._open = np.zeros(slots, np.int64), False
        self._score = np.full(slots, np.nan)

    @property
    def running(self) -> BoolArray:
        return np.full(self.slots, self._open)

    @property
    def mask(self) -> BoolArray:
        found: BoolArray = self._env.offers.allowed[self._rows]
        return found

    @property
    def success(self) -> BoolArray:
        found: BoolArray = ~np.isnan(self._score)
        return found

    @property
    def score(self) -> FloatArray:
        found: FloatArray = np.nan_to_num(self._score)
        return found

    def reset(self, progress: float, group: int = 1) -> None:
        rng = np.random.default_rng([self._seed, self._count])
        self._count += 1
        drawn = rng.integers(len(self._env.offers), size=-(-self.slots // group))
        self._rows, self._open = np.repeat(drawn, group)[: self.slots], True
        self._score = np.full(self.slots, np.nan)

    def observe(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        return seen(self._env.offers, self._rows[rows])

    def step(self, actions: IntArray) -> NDArray[np.float32]:
        self._score, self._open = self._env.offers.worth[self._rows, actions], False
        found: NDArray[np.float32] = np.nan_to_num(self._score, nan=-NO_PLACE).astype(np.float32)
        return found

    def regrets(self, rows: IntArray, most: float) -> tuple[NDArray[np.float32], FloatArray]:
        """See :class:`ces_rl.envs.base.Expert`."""
        worth = np.nan_to_num(self._env.offers.worth[self._rows[rows]], nan=-np.inf)
        best = worth.max(axis=1)
        known = np.isfinite(best)
        lost = np.where(known, best, 0.0)[:, None] - worth
        lost[~known] = most
        return np.minimum(lost, most).astype(np.float32), best

    def state(self) -> list[int]:
        return [self._count]

    def restore(self, state: Sequence[int]) -> None:
        self._count = state[0]


@dataclass(frozen=True)
class Asked:
    """Everybody was. See :class:`ces_rl.envs.base.Expert`."""

    vector: OfferVector
    most: float

    def judge(self, rows: IntArray) -> tuple[NDArray[np.float32], FloatArray]:
        return self.vector.regrets(rows, self.most)


def seen(offers: Offers, rows: IntArray) -> tuple[NDArray[Any], ...]:
    """What a network takes."""
    return offers.regions[rows], offers.job[rows], offers.allowed[rows].astype(np.float32)


class RegionChoice(PolicyEnv):
    """Its vectors are :class:`OfferVector`."""

    Settings = RegionChoiceSettings
    file = "regions.onnx"
    inputs: tuple[str, ...] = INPUTS
    axes: Mapping[str, Mapping[int, str]] = {
        "regions": {1: "regions"}, "allowed": {1: "regions"}, "scores": {1: "regions"},
    }  # fmt: skip
    schema = schema_hash()
    settings: RegionChoiceSettings

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        own = {
            "imitation": {
                "updates": 8, "episodes": 512, "gradient_steps": 250, "batch_size": 256, "regret_cap": NO_PLACE,
                "unit": (0.03, 0.015), "learning_rate": (2e-3, 1e-4), "evaluate_every": 4,
            }
        }  # fmt: skip
        return Defaults(own.get(algorithm, {}), {})

    @cached_property
    def offers(self) -> Offers:
        """To learn from."""
        return self._simulated(0, self.settings.runs)

    @cached_property
    def _unseen(self) -> Offers:
        return self._simulated(VALIDATION_SEED, self.settings.validation)

    def _simulated(self, first: int, runs: int) -> Offers:
        chosen = self.settings
        shape = Shape(
            chosen.regions, chosen.nodes, chosen.jobs, chosen.load, "even", chosen.regime, TASKS, chosen.duration_s
        )
        return simulated(shape, chosen.solver, [derived_seed(first, number) for number in range(runs)])

    def policy(self) -> nn.Module:
        from ces_experiments.regions.choice_network import RegionNetwork

        return RegionNetwork(len(REGION), len(JOB), self.settings.width)

    def vector(self, slots: int, seed: int) -> OfferVector:
        return OfferVector(self, slots, seed)

    @contextmanager
    def expert(self, vector: VectorEnv, *, limit: int, regret_cap: float, threads: int) -> Iterator[Expert]:
        """Knows every region's bid."""
        assert isinstance(vector, OfferVector)
        yield Asked(vector, regret_cap)

    @property
    def instances(self) -> str:
        return f"offers of {self.settings.validation} simulated runs that training does not play"

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        import torch

        offers = self._unseen
        with torch.no_grad():
            found = solution(*(torch.from_numpy(part) for part in seen(offers, np.arange(len(offers)))))[0].numpy()
        return {"policy": {"offers": judged(offers, np.where(offers.allowed, found, -np.inf), final=True)}}

    def baselines(self) -> Scores:
        offers = self._unseen
        scores = np.where(offers.allowed, -offers.rank.astype(np.float64), -np.inf)
        drawn = np.random.default_rng(VALIDATION_SEED).random(scores.shape)
        return {
            "rule": {"offers": judged(offers, scores, final=False)},
            "any order": {"offers": judged(offers, np.where(offers.allowed, drawn, -np.inf), final=False)},
        }


def judged(offers: Offers, scores: FloatArray, *, final: bool) -> dict[str, float]:
    """Of the offers for which any region had a place: how often the first choice had one, how often one of those that
    are asked, and by how much what is taken is worse than the best of all. ``final``: the order decides; else the best
    bid does."""
    rows = np.flatnonzero(~np.isnan(offers.worth).all(axis=1))
    order = np.argsort(-scores[rows], axis=1, kind="stable")[:, :MOST_ASKED]
    asked = np.take_along_axis(np.nan_to_num(offers.worth[rows], nan=-np.inf), order, axis=1)
    has = np.isfinite(asked)
    first = np.take_along_axis(asked, has.argmax(axis=1)[:, None], axis=1)[:, 0]
    taken = first if final else asked.max(axis=1)
    best = np.nanmax(offers.worth[rows], axis=1)
    regret = np.where(np.isfinite(taken), best - np.where(np.isfinite(taken), taken, 0.0), NO_PLACE)
    return {
        "first has room": float(has[:, 0].mean()),
        "one has room": float(has.any(axis=1).mean()),
        "regret": float(regret.mean()),
    }
