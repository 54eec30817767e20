"""What an algorithm is to a run: a class with a dataclass of settings, made for an environment and a seed.

A new algorithm is a class in a file of its own and an entry point of the group ``ces.algorithms``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from pydantic import Field

from ces_rl.envs.base import Environment
from ces_rl.gang import ALONE, Gang


@dataclass(frozen=True)
class Length:
    """What the settings of all algorithms have."""

    updates: Annotated[int, Field(ge=1, description="length of the run")] = 100
    evaluate_every: Annotated[
        int, Field(ge=1, description="updates between evaluations, and at most between checkpoints")
    ] = 20


class Algorithm(Protocol):
    """One run. The same environment, settings and seed give the same solution."""

    Settings: ClassVar[type]
    needs_torch: ClassVar[bool]
    seed: int
    updates: int
    """Done so far."""
    steps: int
    """Decisions, or whole runs of a simulation, that it has learned from."""
    gang: Gang
    """The ranks that learn the run together, set before the first update. One that leaves it at that does the whole
    work at every rank."""

    def __init__(self, env: Any, settings: Any, seed: int) -> None:
        """Raises RefusedError for an environment that it cannot learn."""

    @property
    def settings(self) -> Any: ...
    @property
    def env(self) -> Environment: ...
    @property
    def solution(self) -> Any:
        """What the environment evaluates and exports."""

    def update(self) -> dict[str, float]:
        """One step of the run. Returns what it measured, for the log."""

    def state(self) -> dict[str, Any]:
        """Everything that the next update depends on."""

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from such a state. Raises ValueError for that of another kind of run."""


class SeededRun:
    """The state that all runs have: environment, settings, seed, generator, and how far they have come."""

    rng: np.random.Generator
    gang: Gang = ALONE

    def __init__(self, env: Environment, settings: Any, seed: int) -> None:
        self.env, self.settings, self.seed = env, settings, seed
        self.updates = self.steps = 0

    def state(self) -> dict[str, Any]:
        return {
            "schema": self.env.schema,
            "settings": asdict(self.settings),
            "env_settings": asdict(self.env.settings),
            "seed": self.seed,
            "rng": self.rng.bit_generator.state,
            "updates": self.updates,
            "steps": self.steps,
        }

    def restore(self, state: dict[str, Any]) -> None:
        check_state(state, self.state())
        self.rng.bit_generator.state = state["rng"]
        self.updates, self.steps = state["updates"], state["steps"]


class RefusedError(ValueError):
    """This algorithm cannot learn that environment, and why."""


def check_state(state: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raises ValueError where a state was left by a run of other features, settings or seed."""
    if state["schema"] != expected["schema"]:
        raise ValueError("the checkpoint was made with other features")
    # As JSON, which checkpoints of numbers are kept in: it has lists for tuples.
    if any(json.dumps(state[key]) != json.dumps(expected[key]) for key in ("settings", "env_settings", "seed")):
        raise ValueError("the checkpoint was made with other settings or another seed")
