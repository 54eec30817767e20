"""VR games on backbones under growing weights of energy: what they then draw, and what that takes from everything
else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.progress import Progress

from ces_core.model.instance import read_instance
from ces_core.registry import get_solver
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.latency.game import game_instance
from ces_sim.decision import decide

TOLD = ("power_change_w", "load_imbalance", "bandwidth_satisfaction", "time_score")
OTHERS = ("balance", "bandwidth", "time")
"""They share in equal parts what energy leaves."""


@dataclass(frozen=True)
class Question:
    """``weights``: of energy, the least first, each below 1; ``players``: of every game."""

    networks: tuple[str, ...]
    weights: tuple[float, ...]
    players: int
    seeds: int
    seed: int
    solver: str
    time_limit_s: float | None


def measure(question: Question, progress: Progress) -> Found:
    """By network. Counted are the games that have a plan under every weight, and each is compared with itself under
    the least one. Raises BadDecisionError."""
    step = counted(progress, "decisions", len(question.networks) * question.seeds * len(question.weights))
    solver, told, rows = get_solver(question.solver), {}, []
    for network in question.networks:
        games = []
        for seed in range(question.seed, question.seed + question.seeds):
            plans = []
            for weight in question.weights:
                instance = weighed(game_instance(network, question.players, seed), weight)
                made = decide(solver, read_instance(instance), instance, seed=seed, time_limit_s=question.time_limit_s)
                plans.append(None if made.result.metrics is None else made.result.metrics.to_dict())
                step()
            games.append(plans)
            rows += [
                {"network": network, "seed": seed, "weight": weight, "placed": plan is not None}
                | {key: None if plan is None else plan[key] for key in TOLD}
                for weight, plan in zip(question.weights, plans, strict=True)
            ]
        told[network] = _told(question.weights, games)
    return Found({"question": asdict(question), "networks": told}, raw={"plans.csv": rows})


def weighed(instance: dict[str, Any], energy: float) -> dict[str, Any]:
    """The instance with this weight of energy."""
    rest = (1.0 - energy) / len(OTHERS)
    return instance | {"job": instance["job"] | {"objective": dict.fromkeys(OTHERS, rest) | {"energy": energy}}}


def _told(weights: Sequence[float], games: Sequence[Sequence[Mapping[str, float] | None]]) -> dict[str, Any]:
    whole = [[plan for plan in plans if plan is not None] for plans in games if all(plan is not None for plan in plans)]
    by_weight = {
        f"{weight:g}": {key: spread(plans[i][key] for plans in whole) for key in TOLD}
        | {f"{key}_gain": spread(plans[i][key] - plans[0][key] for plans in whole) for key in TOLD}
        for i, weight in enumerate(weights)
    }
    return {"games": len(games), "placed_by_all": len(whole), "by_weight": by_weight}
