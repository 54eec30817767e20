"""Learning a value for the long run by evolution strategies, on the simulator of jobs that come and go.

The numbers of a value, as logarithms, are moved a little to both sides in random directions; the two sides play the
same cluster with the same jobs, and the difference of what they earn, weighed by the direction, points uphill
(antithetic evolution strategies with common random numbers). What counts is earned over a whole run: the share of the
jobs that found a place, and satisfaction and balance over time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ces_core.problem import FloatArray
from ces_core.simulator.rounds import derived_seed
from ces_core.value.value import LINK_TICKS, NODE_TICKS, SCHEMA, Value
from ces_train.longrun_play import Scene

News = Callable[[int, int, Mapping[str, float]], None]
"""Told after each generation: how many are done, of how many, and what its runs came to on average."""


@dataclass(frozen=True)
class Settings:
    """How a value is learned. ``odds``: of the regimes of the links."""

    generations: int = 30
    pairs: int = 8
    """Directions per generation, each with a scene of its own."""
    jobs: int = 100
    loads: tuple[float, ...] = (0.8, 0.9, 1.0)
    odds: Mapping[str, float] = field(default_factory=lambda: {"thesis": 0.2, "tight": 0.6, "scarce": 0.2})
    earns: Mapping[str, float] = field(
        default_factory=lambda: {"accepted": 1.0, "bandwidth_satisfaction": 5.0, "load_imbalance": -0.25}
    )
    """What a run earns for each. Satisfaction hardly moves where acceptance moves much, so it weighs more."""
    reach: float = 0.4
    """How far to both sides, as a logarithm."""
    stride: tuple[float, float] = (0.6, 0.1)
    """How far a generation goes uphill, at first and at last."""
    validated: int = 20
    """Scenes per regime that the card's scores are from, at load 0.9."""


VALIDATION = 900_000
"""Scenes that training never draws begin here."""


def begin() -> FloatArray:
    """Logarithms of the first value: more room is evenly worth more, and balance half of what the composite says."""
    node = 0.2 * np.diff((0.0, *NODE_TICKS))
    link = 0.001 * np.diff((0.0, *LINK_TICKS))
    logarithms: FloatArray = np.log(np.concatenate([node, link, [0.5]]))
    return logarithms


def value_of(theta: FloatArray) -> Value:
    """Rounded, so that the file says all of it."""
    numbers = [float(f"{number:.4g}") for number in np.exp(np.clip(theta, -12.0, 1.0))]
    nodes = len(NODE_TICKS)
    return Value(tuple(numbers[:nodes]), tuple(numbers[nodes:-1]), min(numbers[-1], 1.0))


def learn(settings: Settings, seed: int, news: News = lambda *_: None) -> Value:
    """The same settings and seed give the same value."""
    rng = np.random.default_rng(derived_seed(seed, 0))
    regimes, odds = list(settings.odds), np.array(list(settings.odds.values()))
    theta, mean, averaged = begin(), np.zeros(len(begin())), 0
    speed, scale = np.zeros(len(theta)), 0.0
    for generation in range(settings.generations):
        uphill, gains, earned = np.zeros(len(theta)), [], []
        for pair in range(settings.pairs):
            direction = rng.standard_normal(len(theta))
            scene = Scene(
                str(rng.choice(regimes, p=odds / odds.sum())),
                float(rng.choice(settings.loads)),
                settings.jobs,
                derived_seed(seed, 1, generation, pair) % VALIDATION,
            )
            sides = [scene.play(value_of(theta + side * settings.reach * direction)) for side in (1, -1)]
            gains.append(_earned(settings, sides[0]) - _earned(settings, sides[1]))
            uphill += gains[-1] * direction / settings.pairs
            earned += sides
        spread = float(np.sqrt(np.mean(np.square(gains))))
        scale = spread if generation == 0 else 0.8 * scale + 0.2 * spread
        speed = 0.5 * speed + 0.5 * uphill / max(scale, 1e-9)
        share = generation / max(settings.generations - 1, 1)
        theta = theta + (settings.stride[0] * (1 - share) + settings.stride[1] * share) * speed
        if 3 * generation >= 2 * settings.generations - 3:  # the mean of the last third is steadier than the last
            mean, averaged = mean + theta, averaged + 1
        told = {name: float(np.mean([run[name] for run in earned])) for name in settings.earns}
        news(generation + 1, settings.generations, told)
    return value_of(mean / averaged)


def _earned(settings: Settings, run: Mapping[str, float]) -> float:
    return sum(weight * run[name] for name, weight in settings.earns.items())


def validate(value: Value | None, settings: Settings) -> dict[str, dict[str, float]]:
    """Regime -> means over scenes that training never draws."""
    found = {}
    for regime in settings.odds:
        runs = [Scene(regime, 0.9, settings.jobs, VALIDATION + i).play(value) for i in range(settings.validated)]
        found[regime] = {name: float(np.mean([run[name] for run in runs])) for name in settings.earns}
    return found


def train(settings: Settings, seed: int, out: Path, news: News = lambda *_: None) -> dict[str, Any]:
    """Learns a value, and writes it to ``out`` with its card, which is returned."""
    started = time.perf_counter()
    value = learn(settings, seed, news)
    seconds = time.perf_counter() - started
    runs = 2 * settings.generations * settings.pairs
    card = {
        "command": f"ces train value --generations {settings.generations} --seed {seed}",
        "seed": seed,
        "runs": runs,
        "jobs": runs * settings.jobs,
        "seconds": round(seconds),
        "settings": asdict(settings),
        "scores": {"with the value": validate(value, settings), "myopic": validate(None, settings)},
    }
    version = f"longrun-{SCHEMA}.{settings.generations}.{seed}"
    whole = Value(value.node, value.link, value.balance, version, card)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(whole.to_dict(), indent=2) + "\n", encoding="utf-8")
    return card
