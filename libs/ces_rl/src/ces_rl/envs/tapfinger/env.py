"""The environment ``tapfinger``: agents of edge clusters place tasks and give them their amounts, in the four settings
of TapFinger (arXiv 2302.00571).

The setting, the network's size and what is left out of it are flags. The published network has 8 layers of 256 units
and 4 heads; the default is one that two cores can train.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from ces_core.amounts.rules import PUBLISHED
from ces_core.amounts.schema import INPUTS, schema_hash
from ces_core.amounts.settings import SETTINGS, Setting
from ces_core.model.topology import IntArray
from ces_rl.envs.base import VALIDATION_SEED, Defaults, PolicyEnv, Scores
from ces_rl.envs.tapfinger.vector import TapFingerVector
from ces_sim.amounts import Outcome, play, play_policy
from ces_sim.profiles import speeds_of

if TYPE_CHECKING:
    from ces_rl.envs.tapfinger.network import TapFingerPolicy

VARIANTS = ("whole", "no-han", "no-pointer", "vanilla")
"""The network, and what it is without graph attention, without pointer, and without either."""
ADVISERS = ("thrifty", "least")
"""Rules that deal no running task other amounts, which no agent can."""


@dataclass(frozen=True)
class TapFingerSettings:
    """World, reward and network."""

    setting: Annotated[str, Field(pattern=f"^({'|'.join(SETTINGS)})$", description=f"one of {', '.join(SETTINGS)}")] = (
        "synthetic"
    )
    variant: Annotated[
        str, Field(pattern=f"^({'|'.join(VARIANTS)})$", description=f"of the network: {', '.join(VARIANTS)}")
    ] = "whole"
    width: Annotated[int, Field(ge=4, description="units of a layer; a multiple of heads")] = 32
    layers: Annotated[int, Field(ge=1, description="of graph attention")] = 2
    heads: Annotated[int, Field(ge=1, description="of attention")] = 4
    shared: Annotated[
        float, Field(ge=0, le=1, description="share of the reward that all agents have in common; 0 as in TapFinger")
    ] = 1.0
    unit: Annotated[float, Field(gt=0, description="what a task that is unfinished for a slot costs")] = 0.02
    rule: Annotated[
        str, Field(pattern=f"^({'|'.join(ADVISERS)})$", description=f"whose advice may be taken: {', '.join(ADVISERS)}")
    ] = "thrifty"
    validation: Annotated[int, Field(ge=1, description="worlds to score on")] = 32


class TapFinger(PolicyEnv):
    """A team of agents, one for each edge cluster."""

    Settings = TapFingerSettings
    team = True
    inputs = INPUTS
    schema = schema_hash()
    settings: TapFingerSettings

    def __init__(self, settings: TapFingerSettings) -> None:
        super().__init__(settings)
        self.setting: Setting = SETTINGS[settings.setting]
        self.table = speeds_of(self.setting)
        if settings.width % settings.heads:
            raise ValueError(f"width: {settings.width} is no multiple of the {settings.heads} heads")

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        numbers = {
            "updates": 200, "evaluate_every": 10, "problems": 24, "gamma": 0.99, "ent_coef": (0.01, 0.001),
            "learning_rate": (1e-3, 1e-4), "update_epochs": 2, "minibatch_size": 256,
        }  # fmt: skip
        return Defaults(numbers if algorithm == "mappo" else {}, {})

    @property
    def instances(self) -> str:
        first, last = VALIDATION_SEED, VALIDATION_SEED + self.settings.validation - 1
        return f"{self.setting.name}, seeds {first} to {last}: mean slots from arrival to end"

    def policy(self) -> TapFingerPolicy:
        from ces_rl.envs.tapfinger.network import TapFingerPolicy

        s = self.settings
        han, pointer = s.variant in ("whole", "no-pointer"), s.variant in ("whole", "no-han")
        return TapFingerPolicy(s.width, s.layers, s.heads, han=han, pointer=pointer, first=s.variant == "vanilla")

    def vector(self, slots: int, seed: int) -> TapFingerVector:
        s = self.settings
        return TapFingerVector(self.setting, self.table, slots, seed, shared=s.shared, unit=s.unit, rule=s.rule)

    @property
    def validation_seeds(self) -> IntArray:
        return np.arange(VALIDATION_SEED, VALIDATION_SEED + self.settings.validation)

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        """Drawn tasks and amounts, as in TapFinger: agents that do the same in the same place get into each other's
        way. Thorough: also the likeliest."""
        ways = {"drawn": True, "best": False} if thorough else {"drawn": True}
        return {
            way: {self.setting.name: figures(self.play(solution, self.validation_seeds, drawn=drawn))}
            for way, drawn in ways.items()
        }

    def baselines(self) -> Scores:
        found = {}
        for rule in (*PUBLISHED, "thrifty"):
            outcome = play(self.setting, self.table, rule, self.validation_seeds)
            found[PUBLISHED.get(rule, rule).lower()] = {self.setting.name: figures(outcome)}
        return found

    def play(self, policy: TapFingerPolicy, seeds: IntArray, *, drawn: bool = False) -> Outcome:
        """How the worlds of these seeds go under the likeliest actions, or drawn ones."""
        from ces_rl.envs.tapfinger.network import asked

        rng = np.random.default_rng(seeds) if drawn else None
        return play_policy(self.setting, self.table, asked(policy), seeds, rng)

    def export(self, solution: Any, path: Path, version: str, card: Mapping[str, Any]) -> None:
        import torch

        from ces_rl.envs.tapfinger.network import export

        vector = self.vector(2, 0)
        vector.reset(1.0)
        example = tuple(torch.from_numpy(part) for part in vector.observe(np.arange(2)))
        export(solution, example, path, version, card)


def figures(outcome: Outcome) -> dict[str, float]:
    """Mean slots from arrival to end, until the last task is done, and shares of CPUs and GPUs given away."""
    cpus, gpus = outcome.used.mean(axis=0)
    return {
        "jct": float(outcome.mean.mean()),
        "slots": float(outcome.slots.mean()),
        "cpus_used": float(cpus),
        "gpus_used": float(gpus),
    }
