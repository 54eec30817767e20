"""The environment ``streams``: which of a few plans that searches propose a job gets, or whether it waits, where jobs
come and go.

What one decision does to the next jobs is where a search for single jobs is blind: docs/benchmarks/long-ppo.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ces_core.model.problem import FloatArray
from ces_core.model.topology import IntArray
from ces_rl.envs.base import VALIDATION_SEED, Defaults, Expert, PolicyEnv, Scores, VectorEnv, play_greedy
from ces_rl.envs.streams.features import CONTEXT, DURATIONS
from ces_rl.envs.streams.lookahead import Lookahead
from ces_rl.envs.streams.proposals import attitudes
from ces_rl.envs.streams.stream import Scenario
from ces_rl.envs.streams.vector import StreamVector

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class StreamsSettings:
    """Which streams are learned on, what is chosen, seen and earned."""

    jobs: Annotated[int, Field(ge=1, description="jobs of a stream")] = 60
    loads: Annotated[tuple[float, ...], Field(min_length=1, description="offered load: one of them, by chance")] = (
        0.9,
    )
    odds: Annotated[dict[str, float], Field(description="regime=weight,... of the links")] = field(
        default_factory=lambda: {"tight": 1.0}
    )
    plans: Annotated[int, Field(ge=1, le=6, description="attitudes that propose a plan each, the first ones")] = 6
    waits: Annotated[bool, Field(description="whether a job that has a place may be told to wait")] = True
    durations: Annotated[bool, Field(description="whether it is seen how long jobs run")] = False
    earns: Annotated[
        dict[str, float],
        Field(
            description="accepted=, satisfied=, work= for each job that starts, for its satisfaction, and for that "
            "times its work; waited= taken off for the share of its patience; room= for what nodes have left"
        ),
    ] = field(default_factory=lambda: {"satisfied": 1.0})
    width: Annotated[int, Field(ge=1, description="units of a layer")] = 32
    ahead: Annotated[int, Field(ge=1, description="arrivals that the expert of imitation plays out")] = 12
    futures: Annotated[int, Field(ge=0, description="futures that it makes up; 0: it knows the true one")] = 0
    validation: Annotated[int, Field(ge=1, description="streams to validate on")] = 8


class Streams(PolicyEnv):
    """Its policy is a ``PlanPolicy``."""

    Settings = StreamsSettings
    inputs = ("plans", "context", "mask")
    axes = {name: {1: "choices"} for name in ("plans", "mask", "scores")}
    searched_episodes = 4
    untrained = "nearly the rule of search-longrun, which the linear prior stands for"
    settings: StreamsSettings

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        own: dict[str, dict[str, Any]] = {
            "ppo": {
                "updates": 100, "evaluate_every": 20, "problems": 8, "gamma": 0.97, "gae_lambda": 0.9,
                "ent_coef": (0.003, 0.0), "learning_rate": (5e-3, 5e-4), "minibatch_size": 64, "update_epochs": 4,
            },
            "imitation": {
                "updates": 10, "evaluate_every": 10, "episodes": 10, "temperatures": (1.0,), "regret_cap": 3.0,
                "unit": (0.3, 0.1), "gradient_steps": 400, "batch_size": 256,
            },
            "es": {"updates": 30, "evaluate_every": 30, "pairs": 3},
        }  # fmt: skip
        return Defaults(own.get(algorithm, {}), {})

    def policy(self) -> nn.Module:
        from ces_rl.envs.streams.network import PlanPolicy

        return PlanPolicy(len(CONTEXT) + self.settings.durations * len(DURATIONS), self.settings.width)

    def searched(self, policy: nn.Module) -> list[nn.Parameter]:
        """The linear part: whole networks are too many numbers for CEM and ES."""
        return [policy.get_parameter("prior.weight")]

    def vector(self, slots: int, seed: int) -> StreamVector:
        chosen = self.settings
        return StreamVector(
            self._draw, slots, seed, attitudes()[: chosen.plans], chosen.earns,
            waits=chosen.waits, durations=chosen.durations,
        )  # fmt: skip

    def _draw(self, rng: np.random.Generator) -> Scenario:
        settings, regimes = self.settings, list(self.settings.odds)
        weights = np.array(list(settings.odds.values()))
        regime = str(rng.choice(regimes, p=weights / weights.sum()))
        seed = VALIDATION_SEED + int(rng.integers(2**31))  # apart from the seeds that anyone names
        return Scenario.draw(regime, float(rng.choice(settings.loads)), settings.jobs, seed)

    @contextmanager
    def expert(self, vector: VectorEnv, *, limit: int, regret_cap: float, threads: int) -> Iterator[Expert]:
        """Plays the future out for every choice: :mod:`ces_rl.envs.streams.lookahead`."""
        assert isinstance(vector, StreamVector)
        yield _Oracle(vector, Lookahead(self.settings.ahead, self.settings.futures), regret_cap)

    @property
    def instances(self) -> str:
        return f"{self.settings.validation} streams of {self.settings.jobs} jobs that training does not draw"

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        """The best action always."""
        vector = self.vector(self.settings.validation, VALIDATION_SEED)
        vector.reset(1.0)
        play_greedy(solution, vector)
        figures = {"served": float(vector.score.mean()), "accepted": float(vector.accepted.mean())}
        return {"greedy": {"streams": figures}}


class _Oracle:
    """See :class:`ces_rl.envs.base.Expert`."""

    def __init__(self, vector: StreamVector, lookahead: Lookahead, cap: float) -> None:
        self._vector, self._lookahead, self._cap = vector, lookahead, cap
        self._rng = np.random.default_rng(0)

    def judge(self, rows: IntArray) -> tuple[NDArray[np.float32], FloatArray]:
        vector = self._vector
        regret, best = np.full((len(rows), vector.actions), self._cap, np.float32), np.zeros(len(rows))
        for at, slot in enumerate(rows.tolist()):
            found, mask = vector.found[slot], vector.mask[slot]
            assert found is not None
            if mask.sum() > 1:
                worth = self._lookahead.judge(vector.streams[slot], found, mask, self._rng)
                best[at] = worth.max()
                regret[at, mask] = np.minimum(worth.max() - worth[mask], self._cap)
            else:
                regret[at, mask] = 0.0
        return regret, best
