"""Learning curves with and without the heuristic reward (thesis figure 4-5), over several seeds.

Both kinds of run are PPO on the environment ``thesis`` and differ in one number: the weight of the heuristic reward,
which falls from 0.8 to 0.1 in the one and is 0 in the other. Base and final rewards stay. Runs with the same seed begin
with the same network and meet the same jobs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.progress import Progress

from ces_core.learned.thesis.solvers import ThesisPpo
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import Problem
from ces_core.network.cache import paths_of
from ces_experiments.common.command import Experiment
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.learned.curves_report import REPORT
from ces_rl.algorithms.ppo import Ppo, PpoSettings
from ces_rl.envs.thesis.env import Thesis, ThesisSettings
from ces_rl.problems.validation import FIRST_SEED
from ces_sim.decision import decide

VARIANTS: Mapping[str, ThesisSettings] = {
    "with heuristic reward": ThesisSettings(),
    "without": ThesisSettings(heuristic=(0.0, 0.0)),
}
TRAINING = PpoSettings(**Thesis.defaults("ppo").algorithm)
FIGURES = ("composite", "load_imbalance", "bandwidth_satisfaction")
Asked = tuple[dict[str, Any], Problem]


@dataclass(frozen=True)
class Question:
    """``runs`` of each variant, with seeds from ``seed`` on; evaluated every ``every`` updates on ``validation``
    instances of every regime, which training never draws."""

    updates: int
    runs: int
    seed: int
    every: int
    validation: int

    @property
    def marks(self) -> list[int]:
        """The numbers of updates after which a run is evaluated."""
        return sorted({*range(0, self.updates, self.every), self.updates})


def compare(question: Question, progress: Progress) -> Found:
    """One run after the other, in one thread. Raises BadDecisionError where a plan breaks a rule."""
    advance = counted(progress, "updates", len(VARIANTS) * question.runs * question.updates)
    torch.set_num_threads(1)
    asked = {regime: _instances(regime, question.validation) for regime in REGIMES}
    variants = {}
    training = replace(TRAINING, updates=question.updates)
    for name, settings in VARIANTS.items():
        runs = []
        for seed in range(question.seed, question.seed + question.runs):
            started = time.process_time()
            points = follow(Ppo(Thesis(settings), training, seed), question, asked, advance)
            runs.append({"seed": seed, "cpu_s": time.process_time() - started, "points": points})
        variants[name] = {"settings": asdict(training) | asdict(settings), "runs": runs}
    return Found({"question": asdict(question), "variants": variants} | summarise(variants))


def follow(
    run: Ppo, question: Question, asked: Mapping[str, Sequence[Asked]], advance: Callable[[], None]
) -> list[dict[str, Any]]:
    """What the policy is worth before the first update, at every mark, and after the last."""
    points = []
    with TemporaryDirectory(prefix="ces-curves-") as folder:
        for mark in question.marks:
            while run.updates < mark:
                run.update()
                advance()
            file = Path(folder) / f"{mark}.onnx"
            run.env.export(run.solution, file, f"after {mark} updates", {})
            found = {regime: measure(file, instances) for regime, instances in asked.items()}
            points.append({"updates": mark, "steps": run.steps, "regimes": found})
    return points


def measure(policy: Path, asked: Sequence[Asked]) -> dict[str, float | None]:
    """The share that the solver places with this policy, and means over what it placed; every plan is checked. In
    ``composite_or_0`` a job without a place counts as 0."""
    solver = ThesisPpo(policy.stem, "in training", policy, learned_bandwidth=True)
    results = [decide(solver, problem, instance).result for instance, problem in asked]
    placed = [result.metrics for result in results if result.metrics is not None]
    means = {what: fmean(getattr(metrics, what) for metrics in placed) if placed else None for what in FIGURES}
    whole = fmean(result.metrics.composite if result.metrics else 0.0 for result in results)
    return {"placed": len(placed) / len(asked), "composite_or_0": whole, **means}


def summarise(variants: Mapping[str, Any]) -> dict[str, Any]:
    """``curves``: variant -> regime -> figure -> a spread over the seeds for every mark; ``gain``: regime -> figure ->
    what the first variant ends above the second, a spread over the seeds. Pure."""
    curves = {
        name: {
            regime: {
                what: [_over_seeds(variant["runs"], i, regime, what) for i in range(len(variant["runs"][0]["points"]))]
                for what in variant["runs"][0]["points"][0]["regimes"][regime]
            }
            for regime in variant["runs"][0]["points"][0]["regimes"]
        }
        for name, variant in variants.items()
    }
    last = [[run["points"][-1]["regimes"] for run in variant["runs"]] for variant in variants.values()]
    gain = {
        regime: {
            what: spread(
                one[regime][what] - other[regime][what]
                for one, other in zip(*last, strict=True)
                if one[regime][what] is not None and other[regime][what] is not None
            )
            for what in figures
        }
        for regime, figures in last[0][0].items()
    }
    return {"curves": curves, "gain": gain}


def _over_seeds(runs: Sequence[Mapping[str, Any]], point: int, regime: str, what: str) -> dict[str, Any]:
    values = [run["points"][point]["regimes"][regime][what] for run in runs]
    return spread(value for value in values if value is not None)


def _instances(regime: str, count: int) -> list[Asked]:
    found = []
    for i in range(count):
        instance = random_instance(regime, FIRST_SEED + i)
        problem = read_instance(instance)
        paths_of(problem.cluster.topology).warm()
        found.append((instance, problem))
    return found


CURVES = Experiment(Question, compare, REPORT)
