"""Whether messages over links teach the placement policy faster: imitation with the pooled and with the graph encoder.

Runs with the same seed begin as the same policy and meet the same problems; teacher, updates and data are alike. What a
policy is worth is followed by the decisions that the teacher has judged, on instances that training never draws.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean, median
from typing import Any

import numpy as np
import typer
from rich.progress import Progress

from ces_core.learned.decoder import by_cost
from ces_core.model.instance import read_instance
from ces_core.model.problem import FloatArray
from ces_experiments.common.command import Experiment
from ces_experiments.common.console import told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.learned.encoders_report import ALL, REPORT
from ces_rl.algorithms.imitation import Imitation, ImitationSettings
from ces_rl.envs.placement.env import ENCODERS, Placement, PlacementSettings
from ces_rl.envs.placement.evaluation import Scorer, Simulate, best_drawn, played, scorer_of
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import SlotSize
from ces_rl.needs import torch
from ces_rl.problems.data import TOPOLOGY_SEED
from ces_rl.problems.pool import Pool
from ces_rl.problems.source import Stored, packed
from ces_rl.problems.validation import FIRST_SEED, Validation
from ces_sim.rounds import Round

WAYS = ("best node", "best of draws")
"""How a policy is used: always the best node and no step back, or the best of some plans drawn by its scores."""
BATCH = 256
"""Decisions of a gradient step."""
CAP = ImitationSettings.regret_cap
"""The largest regret of a job, and that of one without a place; as in teaching."""
TIMES = 50
"""How often a network is timed."""

Figures = dict[str, dict[str, float]]
"""Way -> group of instances -> value."""
Run = dict[str, Any]
"""``encoder``, ``seed``, ``cpu_s`` of its updates, and ``points``, each of which has ``updates``, ``steps`` (decisions
judged so far), ``regret`` and ``solved``."""


@dataclass(frozen=True)
class Question:
    """``runs`` with each encoder, seeds from ``seed`` on, on networks of ``nodes`` with ``degree`` wires each on
    average. They learn on ``problems`` jobs, and are evaluated every ``every`` updates on ``validation`` others of
    every regime. ``neighbours``: of a node, at most, for the graph encoder. ``limit``: partial plans that the teacher
    looks at for a node. ``shares``: of the regret before learning, that are to be reached."""

    nodes: int
    degree: float
    regimes: tuple[str, ...]
    tasks: tuple[int, ...]
    updates: int
    episodes: int
    neighbours: int
    gradient_steps: int
    limit: int
    problems: int
    validation: int
    draws: int
    every: int
    runs: int
    seed: int
    shares: tuple[float, ...]

    @property
    def marks(self) -> list[int]:
        """The numbers of updates after which a run is evaluated."""
        return sorted({*range(0, self.updates, self.every), self.updates})

    @property
    def training(self) -> ImitationSettings:
        return ImitationSettings(
            updates=self.updates,
            episodes=self.episodes,
            gradient_steps=self.gradient_steps,
            limit=self.limit,
            batch_size=BATCH,
        )

    def round(self, regime: str, number: int, first_seed: int) -> Round:
        """Round ``number``, whose size is the next in turn."""
        size = self.tasks[number % len(self.tasks)]
        return Round(regime, size, number, first_seed + number, self.nodes, degree=self.degree)

    def lessons(self) -> Pool:
        """The problems that all runs learn on."""
        regimes = self.regimes
        # Regimes of the same number share the network and the job, as in all benchmarks.
        asked = (self.round(regimes[i % len(regimes)], i // len(regimes), TOPOLOGY_SEED) for i in range(self.problems))
        return packed(read_instance(each.instance()) for each in asked)

    def held_out(self) -> Validation:
        """Raises typer.BadParameter where ``search`` places none of a regime's instances."""
        found = Validation.of(
            {
                regime: [
                    (f"{regime}-{i}", read_instance(self.round(regime, i, FIRST_SEED).instance()))
                    for i in range(self.validation)
                ]
                for regime in self.regimes
            }
        )
        for regime, there in zip(self.regimes, np.isfinite(found.reference).reshape(-1, self.validation), strict=True):
            if not there.any():
                raise typer.BadParameter(f"no instance of {regime} has a place on such networks", param_hint="--regime")
        return found


def compare(question: Question, progress: Progress) -> Iterator[Found]:
    """One seed after the other with both encoders, each first in turn; yields all that is known after each. In one
    thread, but for the teacher."""
    torch.set_num_threads(1)
    step = told(progress, 1 + len(ENCODERS) * question.runs * (question.updates + 1))
    lessons, validation = question.lessons(), question.held_out()
    rule = figures(validation, worth(by_cost, validation, PlacementSimulation, question.draws))
    step("problems and held-out instances")
    runs: list[Run] = []
    networks: dict[str, dict[str, float]] = {}
    for number, seed in enumerate(range(question.seed, question.seed + question.runs)):
        for encoder in ENCODERS if number % 2 == 0 else ENCODERS[::-1]:
            env = Placement(PlacementSettings(encoder=encoder, neighbours=question.neighbours))
            env.source, env.validation = Stored(lessons), validation
            run = Imitation(env, question.training, seed)
            runs.append(follow(run, question, partial(step, f"{encoder}, seed {seed}")))
            networks[encoder] = network(run)
        results = {"question": asdict(question), "rule": rule, "networks": networks, "runs": runs}
        yield Found(results | summarise(question, runs), raw={"points.csv": list(rows_of(runs))})


def follow(run: Imitation, question: Question, step: Callable[[], None]) -> Run:
    """What the policy is worth before the first update, at every mark, and after the last."""
    env = run.env
    assert isinstance(env, Placement)
    points, cpu_s = [], 0.0
    for mark in question.marks:
        while run.updates < mark:
            began = time.process_time()
            run.update()
            cpu_s += time.process_time() - began
            step()
        found = worth(scorer_of(run.solution), env.validation, env.simulation, question.draws)
        points.append({"updates": mark, "steps": run.steps, **figures(env.validation, found)})
    step()
    return {"encoder": env.settings.encoder, "seed": run.seed, "cpu_s": cpu_s, "points": points}


def worth(scorer: Scorer, validation: Validation, simulate: Simulate, draws: int) -> dict[str, FloatArray]:
    """Way -> (instances,) the composites that it comes to."""
    node, drawn = WAYS
    return {
        node: played(scorer, validation, simulate),
        drawn: best_drawn(scorer, validation, draws, simulate),
    }


def figures(validation: Validation, composites: Mapping[str, FloatArray]) -> dict[str, Figures]:
    """``regret``: how far below ``search`` on average, at most ``CAP`` for a job and that for one without a place;
    ``solved``: the share that has one. Of the instances that ``search`` places, each group's and all."""
    there = np.isfinite(validation.reference)
    group_of = np.repeat(np.arange(len(validation.groups)), [count for _, count in validation.groups])
    groups = {ALL: there} | {name: there & (group_of == i) for i, (name, _) in enumerate(validation.groups)}
    lost = {
        way: np.where(np.isfinite(found), np.minimum(validation.reference - found, CAP), CAP)
        for way, found in composites.items()
    }
    return {
        "regret": {way: {name: float(lost[way][rows].mean()) for name, rows in groups.items()} for way in composites},
        "solved": {
            way: {name: float(np.isfinite(found[rows]).mean()) for name, rows in groups.items()}
            for way, found in composites.items()
        },
    }


def network(run: Imitation) -> dict[str, float]:
    """How large it is, and the median of what one decision takes it, in ms: torch, without what makes observations."""
    env, policy = run.env, run.solution
    assert isinstance(env, Placement)
    simulation = env.simulation(1, SlotSize.of(env.validation.pool))
    simulation.start(env.validation.pool, np.zeros(1, dtype=np.int64))
    scorer, observation, taken = scorer_of(policy), simulation.observed(np.zeros(1, dtype=np.int64)), []
    for _ in range(TIMES):
        began = time.perf_counter()
        scorer(*observation)
        taken.append((time.perf_counter() - began) * 1e3)
    return {"parameters": sum(each.numel() for each in policy.parameters()), "asked_ms": median(taken)}


def rows_of(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Every point of every run, for a file."""
    for run in runs:
        for point in run["points"]:
            for way, groups in point["regret"].items():
                for group, regret in groups.items():
                    yield {
                        "encoder": run["encoder"], "seed": run["seed"], "updates": point["updates"],
                        "decisions": point["steps"], "way": way, "instances": group, "regret": regret,
                        "solved": point["solved"][way][group],
                    }  # fmt: skip


def summarise(question: Question, runs: Sequence[Run]) -> dict[str, Any]:
    """``curves``: encoder -> way -> group -> for every mark spreads over the seeds of ``steps``, ``regret`` and
    ``solved``; ``differences``: way -> group -> how far the graph encoder's regret lies above the other's, seed by
    seed, after the last update and as a mean over the run; ``reached``: what each share of the regret before learning
    is, and the decisions that it took. Pure."""
    base, other = ({run["seed"]: run["points"] for run in runs if run["encoder"] == each} for each in ENCODERS)
    groups = list(runs[0]["points"][0]["regret"][WAYS[0]])
    ends: dict[str, Callable[[Any, str, str], float]] = {"last": last, "over": over_run}
    return {
        "curves": {
            encoder: {way: {group: _curve(points.values(), way, group) for group in groups} for way in WAYS}
            for encoder, points in zip(ENCODERS, (base, other), strict=True)
        },
        "differences": {
            way: {
                group: {
                    name: _paired([(end(base[seed], way, group), end(other[seed], way, group)) for seed in base])
                    for name, end in ends.items()
                }
                for group in groups
            }
            for way in WAYS
        },
        "reached": {
            way: {
                f"{share:g}": _reached(list(base.values()), list(other.values()), way, share)
                for share in question.shares
            }
            for way in WAYS
        },
    }


def _curve(runs: Any, way: str, group: str) -> list[dict[str, Any]]:
    return [
        {"steps": spread(point["steps"] for point in at)}
        | {what: spread(point[what][way][group] for point in at) for what in ("regret", "solved")}
        for at in zip(*runs, strict=True)
    ]


def _paired(values: Sequence[tuple[float, float]]) -> dict[str, Any]:
    return {
        "gain": spread(other - base for base, other in values),
        "less": sum(other < base for base, other in values),
    }


def _reached(base: Sequence[Any], other: Sequence[Any], way: str, share: float) -> dict[str, Any]:
    regret = share * fmean(points[0]["regret"][way][ALL] for points in (*base, *other))
    decisions = [[decisions_to(points, way, regret) for points in runs] for runs in (base, other)]
    both = [(one, two) for one, two in zip(*decisions, strict=True) if one is not None and two is not None]
    return {
        "regret": regret,
        "decisions": {
            encoder: spread(each for each in found if each is not None)
            for encoder, found in zip(ENCODERS, decisions, strict=True)
        },
        **_paired(both),
    }


def last(points: Sequence[Mapping[str, Any]], way: str, group: str) -> float:
    """The regret after the last update."""
    return float(points[-1]["regret"][way][group])


def over_run(points: Sequence[Mapping[str, Any]], way: str, group: str) -> float:
    """The mean of the regret over the decisions of a run, between marks as if on a straight line."""
    steps = [point["steps"] for point in points]
    area = np.trapezoid([point["regret"][way][group] for point in points], steps)
    return float(area / (steps[-1] - steps[0]))


def decisions_to(points: Sequence[Mapping[str, Any]], way: str, regret: float) -> float | None:
    """How many had been judged when the regret on all instances first was this low, between marks as if on a straight
    line; None where it never was."""
    before: tuple[float, float] | None = None
    for point in points:
        steps, now = float(point["steps"]), float(point["regret"][way][ALL])
        if now <= regret:
            if before is None:
                return steps
            return before[0] + (steps - before[0]) * (before[1] - regret) / (before[1] - now)
        before = steps, now
    return None


ENCODERS_COMPARED = Experiment(Question, compare, REPORT)
