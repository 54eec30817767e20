"""The experiment of the EADE-DDPG paper: rules send tasks to clusters of GPU hosts, beside what is possible at all."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
import typer
from rich.progress import Progress

from ces_core.gpus.bound import upper_bound
from ces_core.gpus.frugal import Frugal
from ces_core.gpus.plan import plan
from ces_core.gpus.rules import CLUSTER_RULES, ClusterRule
from ces_core.gpus.scores import POLICIES
from ces_core.gpus.sight import Usual
from ces_core.learned.clusters import SHIPPED, learned_rule
from ces_experiments.common import cells
from ces_experiments.common.console import ContradictionError, told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.gpus.trace import nodes, tasks
from ces_sim.gpus.episode import by_node, by_rule, planned
from ces_sim.gpus.scenarios import SCENARIOS, Drawn, Source, draw, numbered

LIST = "default"
PLAN = "offline-plan"
BY_NODE = {f"node-{name}": policy for name, policy in POLICIES.items()}
FRUGAL, LEARNED = "frugal", "learned"
CONTENDERS = (*CLUSTER_RULES, FRUGAL, LEARNED, *BY_NODE)


@dataclass(frozen=True)
class Question:
    """``rounds``: of improvement for the offline plan."""

    scenarios: tuple[str, ...]
    contenders: tuple[str, ...]
    seeds: int
    seed: int
    rounds: int
    processes: int

    @staticmethod
    def of(**values: Any) -> Question:
        """Raises typer.BadParameter where the trace is too small."""
        question = Question(**values)
        for name in question.scenarios:
            try:
                _drawn(name, question.seed)
            except ValueError as error:
                raise typer.BadParameter(str(error), param_hint="--scenarios") from error
        return question


@dataclass(frozen=True)
class Cell:
    """One draw of a scenario, with all who decide on it."""

    scenario: str
    seed: int
    contenders: tuple[str, ...]
    rounds: int


def measure(question: Question, progress: Progress) -> Found:
    """By scenario: the bound, the offline plan and every contender, all on the same draws."""
    work = [
        Cell(name, question.seed + more, question.contenders, question.rounds)
        for name in question.scenarios
        for more in range(question.seeds)
    ]
    step = told(progress, len(work))
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for cell, draws in zip(work, cells.each(decided, work, question.processes), strict=True):
        step(f"{cell.scenario} {cell.seed}")
        found[cell.scenario].append(draws)
    scenarios = {
        name: {
            "bound": spread(each["bound"] for each in draws),
            "contenders": {who: _told([each["contenders"][who] for each in draws]) for who in draws[0]["contenders"]},
        }
        for name, draws in found.items()
    }
    raw = [
        {
            "scenario": cell.scenario,
            "seed": cell.seed,
            "who": who,
            "bound": draws["bound"],
            "deployed": each["deployed"],
        }
        for cell, draws in zip(work, [each for name in question.scenarios for each in found[name]], strict=True)
        for who, each in draws["contenders"].items()
    ]
    asked = {key: value for key, value in asdict(question).items() if key != "processes"}
    return Found({"question": asked, "scenarios": scenarios}, raw={"draws.csv": raw})


def decided(cell: Cell) -> dict[str, Any]:
    """What everybody came to. Raises ContradictionError where the checker objects, or somebody is above the bound."""
    drawn = _drawn(cell.scenario, cell.seed)
    bound = upper_bound(drawn.nodes, drawn.tasks)
    found = {}
    try:
        for who in cell.contenders:
            if who in BY_NODE:
                found[who] = by_node(drawn, BY_NODE[who], cell.seed)
            else:
                found[who] = by_rule(drawn, _rule(who, cell.scenario), cell.seed)
        best = plan(drawn.nodes, drawn.tasks, bound, np.random.default_rng(cell.seed), cell.rounds)
        found[PLAN] = planned(drawn, best)
    except ValueError as error:
        raise ContradictionError(f"{cell.scenario}, seed {cell.seed}: {error}") from error
    for who, figures in found.items():
        if figures["deployed"] > bound.most:
            raise ContradictionError(
                f"{cell.scenario}, seed {cell.seed}: {who} placed {figures['deployed']}, the bound is {bound.most}"
            )
        if seconds := figures.pop("decision_s", None):
            figures["decision_ms"] = 1000 * fmean(seconds)
    return {"bound": bound.most, "contenders": found}


@functools.cache
def _rule(who: str, scenario: str) -> ClusterRule:
    """What was learned on D1 decides where nothing was learned on the scenario itself."""
    if who in CLUSTER_RULES:
        return CLUSTER_RULES[who]
    seen = Source.of(SCENARIOS[scenario], nodes(), tasks(LIST)).usual
    usual = map(numbered(seen).asked, seen)
    if who == FRUGAL:
        return Frugal(Usual.of(usual))
    return learned_rule(SHIPPED.get(scenario, SHIPPED["D1"]), usual)


@functools.lru_cache(maxsize=1)
def _drawn(scenario: str, seed: int) -> Drawn:
    return draw(SCENARIOS[scenario], nodes(), tasks(LIST), np.random.default_rng(seed))


def _told(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: spread(run[name] for run in runs) for name in runs[0]}
