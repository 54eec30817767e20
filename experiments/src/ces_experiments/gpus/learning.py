"""The learned part of the EADE-DDPG paper's experiment: algorithms learn to send tasks to clusters, and are judged on
draws that they have not learned from, the same on which ``ces bench gpu-clusters`` judges rules."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from rich.progress import Progress

from ces_core.gpus.frugal import Frugal
from ces_core.gpus.rules import CLUSTER_RULES, ClusterRule
from ces_core.gpus.sight import Numbers, Usual
from ces_core.learned.clusters import LearnedRule
from ces_experiments.common import cells
from ces_experiments.common.command import Experiment
from ces_experiments.common.console import told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.gpus.learning_report import REPORT
from ces_experiments.gpus.variants import OFTEN, STUDIES, VARIANTS, Variant
from ces_rl.envs.gpu_clusters.env import GpuClusters
from ces_rl.run import Run, ship
from ces_sim.gpus.episode import by_rule
from ces_sim.gpus.scenarios import numbered

FRUGAL = "frugal"
POINTS = 20
"""Of a learning curve."""
RULES = ("expert", "refuse", FRUGAL)


@dataclass(frozen=True)
class Question:
    """``seeds`` runs of each variant of the studies in OFTEN, ``few`` of others; ``draws``: that all are judged on;
    ``seconds``: of CPU that a run may learn at most; ``keep``: a folder for what has learned to count."""

    studies: tuple[str, ...]
    episodes: int
    seeds: int
    few: int
    seed: int
    draws: int
    seconds: float | None
    keep: Path | None
    processes: int


@dataclass(frozen=True)
class Cell:
    """One run of a variant; a rule without a seed."""

    name: str
    scenario: str
    seed: int | None
    question: Question


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """Runs in the order of seeds, so that variants are told by equally many however far it comes."""
    names = list(dict.fromkeys(name for study in question.studies for name in STUDIES[study]))
    scenarios = list(dict.fromkeys(VARIANTS[name].scenario for name in names))
    often = list(dict.fromkeys(name for study in question.studies if study in OFTEN for name in STUDIES[study]))
    work = [Cell(rule, scenario, None, question) for scenario in scenarios for rule in RULES]
    for some, runs in ((often, question.seeds), ([name for name in names if name not in often], question.few)):
        for seed in range(question.seed, question.seed + runs):
            work += [Cell(name, VARIANTS[name].scenario, seed, question) for name in some]
    step = told(progress, len(work))
    found: dict[str, Any] = {"rules": defaultdict(dict), "variants": {name: _said(name) for name in names}}
    asked = {key: value for key, value in asdict(question).items() if key not in ("processes", "keep")}
    for cell, came in zip(work, cells.each(carried_out, work, question.processes), strict=True):
        step(f"{cell.name} {cell.seed}" if cell.seed is not None else f"{cell.name} on {cell.scenario}")
        if cell.seed is None:
            found["rules"][cell.scenario][cell.name] = came["figures"]
        else:
            found["variants"][cell.name]["runs"].append({"seed": cell.seed, **came})
        yield Found({"question": asked, **found}, {"torch": torch.__version__})


def _said(name: str) -> dict[str, Any]:
    variant = VARIANTS[name]
    return {"algorithm": variant.algorithm, "settings": dict(variant.settings), "env": dict(variant.env), "runs": []}


def carried_out(cell: Cell) -> dict[str, Any]:
    """Figures on the draws, each a spread over them; of a run also its learning curve."""
    torch.set_num_threads(1)
    if cell.seed is None:
        place = GpuClusters(GpuClusters.Settings(scenario=cell.scenario))
        rule = Frugal(_usual(place)) if cell.name == FRUGAL else CLUSTER_RULES[cell.name]
        return {"figures": judged(place, rule, cell.question.draws)}
    variant, question = VARIANTS[cell.name], cell.question
    folder = (question.keep or Path()) / f"{cell.name.replace(', ', '-').replace(' ', '-')}-{cell.seed}"
    settings = variant.settings_for(question.episodes)
    with TemporaryDirectory(prefix="ces-advised-") as first:
        if variant.advised:
            settings |= {"start_from": imitated(variant, cell.seed, Path(first))}
        run = Run.make(variant.algorithm, "gpu-clusters", cell.seed, settings, variant.env, folder)
    algorithm, env = run.algorithm, run.env
    advised = judged(env, _rule(run), question.draws)["deployed"]["mean"] if variant.advised else None
    kept = question.keep is not None and variant.env["earns"] == "count"
    if kept:
        ship(run, folder)  # keeps what it is worth before it learns, for the card
    began, curve = time.process_time(), list[float]()
    vector = algorithm.vector  # type: ignore[attr-defined]
    while algorithm.updates < algorithm.settings.updates:
        algorithm.update()
        curve.append(float(vector.score.mean()))
        if question.seconds is not None and time.process_time() - began > question.seconds:
            break
    seconds = time.process_time() - began
    if kept:
        ship(run, folder)
    return {
        "episodes": algorithm.updates * vector.slots,
        "advised": advised,
        "cpu_s": seconds,
        "curve": [fmean(part) for part in _parts(curve)],
        "figures": judged(env, _rule(run), question.draws),
    }


def imitated(variant: Variant, seed: int, folder: Path) -> str:
    """The folder with a run that has learned what the adviser does."""
    run = Run.make("imitation", "gpu-clusters", seed, {}, variant.env, folder)
    while run.algorithm.updates < run.algorithm.settings.updates:
        run.algorithm.update()
    run.save()
    return str(folder)


def _rule(run: Run) -> LearnedRule:
    env = run.env
    assert isinstance(env, GpuClusters)
    return LearnedRule(_asking(run.algorithm.solution), env.view, _usual(env))


def _parts(curve: list[float]) -> list[list[float]]:
    """About equally long ones, none empty."""
    ends = np.linspace(0, len(curve), min(POINTS, len(curve)) + 1).round().astype(int)
    return [curve[first:last] for first, last in itertools.pairwise(ends)]


def judged(env: Any, rule: ClusterRule, draws: int) -> dict[str, Any]:
    """A rule on draws 0, 1 and so on, the same as those of ``ces bench gpu-clusters``: figures that the checker has
    seen, a spread over the draws each."""
    every = []
    for number in range(draws):
        figures = by_rule(env.source.draw(np.random.default_rng(number)), rule, number, env.size)
        every.append(figures | {"decision_ms": 1000 * fmean(figures.pop("decision_s"))})
    return {name: spread(each[name] for each in every) for name in every[0]} | {
        "placed": [each["deployed"] for each in every]
    }


def _usual(env: GpuClusters) -> Usual:
    return Usual.of(map(numbered(env.source.usual).asked, env.source.usual))


def _asking(network: torch.nn.Module) -> Any:
    def ask(*shown: Numbers) -> Numbers:
        with torch.no_grad():
            found: Numbers = network(*map(torch.from_numpy, shown))[0].numpy()
        return found

    return ask


LEARNING = Experiment(Question, measure, REPORT)
