"""What the service's solver makes of a mixed load, with and without what is left over of cards, beside FGD itself."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np
from rich.progress import Progress

from ces_core.gpus.checker import Placed as Held
from ces_core.gpus.checker import faults
from ces_core.gpus.choice import Chooser
from ces_core.gpus.fragmentation import typical
from ces_core.gpus.left_over import left_over
from ces_core.gpus.model import CARD, Asked, Fleet, GpuNode, GpuTask
from ces_core.gpus.scores import Policy, share_of
from ces_core.model.cards import CardValue
from ces_core.model.parts import Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.registry import get_solver
from ces_experiments.common import cells
from ces_experiments.common.console import ContradictionError, told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.gpus.trace import nodes, tasks
from ces_sim.gpus.mixed import Placed, Seen, mixed, visits

WARM_UP = 2.0
"""Mean stays that do not count: the cluster fills."""
WHOLE_ONES = 4
"""As in the service: for every four tasks that run, one more counts that asks for any whole card."""
NOTHING = "composite alone"
WEIGHTS = (0.002, 0.02, 0.1)
BY_CARD = "composite alone, card by FGD"
PEERS = {"fgd": Policy.FGD, "best-fit": Policy.BEST_FIT}
CONTENDERS = (NOTHING, BY_CARD, *(f"weight {weight:g}" for weight in WEIGHTS), *PEERS)


@dataclass(frozen=True)
class Question:
    lists: tuple[str, ...]
    loads: tuple[float, ...]
    hosts: int
    stays: float
    solver: str
    seeds: int
    seed: int
    processes: int


@dataclass(frozen=True)
class Cell:
    name: str
    load: float
    who: str
    seed: int
    hosts: int
    stays: float
    solver: str


class BySolver:
    """As the scheduler asks its solver about a job of one task: of each node it is told what its cards can hold of the
    task, and with a ``weight`` what is left over. The share goes on the fullest card, or on FGD's."""

    def __init__(self, there: Sequence[GpuNode], solver: str, weight: float = 0.0, card: Policy = Policy.BEST_FIT):
        self._solver, self._weight, self._card = get_solver(solver), weight, card
        self._there = there
        self.seconds: list[float] = []

    @cached_property
    def _cluster(self) -> Cluster:
        return Cluster.make([Node(each.name, each.cpu, each.memory, each.cards) for each in self._there], [])

    def choose(self, fleet: Fleet, task: GpuTask, asked: Asked, running: Sequence[Asked]) -> Placed | None:
        began = time.perf_counter()
        found = self._choose(fleet, task, asked, running)
        self.seconds.append(time.perf_counter() - began)
        return found

    def _choose(self, fleet: Fleet, task: GpuTask, asked: Asked, running: Sequence[Asked]) -> Placed | None:
        problem = self._problem(fleet, task, asked)
        if self._weight and asked.gpus and problem.homes.any():
            problem = replace(problem, card_value=self._value(fleet, asked, running, problem))
        plan = self._solver.solve(problem).plan
        if plan is None:
            return None
        node = problem.cluster.topology.node_index[plan.assignments["task"]]
        if asked.gpus and asked.milli < CARD:
            usual = typical([*running, asked])
            return node, (share_of(self._card, fleet, usual, asked, node),)
        free = np.flatnonzero(fleet.milli[node] == CARD)
        return node, tuple(int(card) for card in free[: asked.gpus])

    def _problem(self, fleet: Fleet, task: GpuTask, asked: Asked) -> Problem:
        cluster = self._cluster
        capacity = cluster.node_capacity
        milli = asked.milli or CARD
        room = (fleet.milli // milli).sum(axis=1) * milli / CARD
        used = np.array([capacity[0] - fleet.cpu, capacity[1] - fleet.memory, capacity[2] - room])
        allowed = None
        if asked.models:
            allowed = tuple(
                each.name for each, model in zip(self._there, fleet.model, strict=True) if asked.models & model
            )
        wanted = Task("task", asked.cpu, asked.memory, task.total / CARD, allowed)
        return Problem.make(cluster.with_used(used, cluster.link_used), [wanted])

    def _value(self, fleet: Fleet, asked: Asked, running: Sequence[Asked], problem: Problem) -> CardValue:
        known = [each for each in (*running, asked) if each.gpus]
        usual = typical([*known, *[Asked(0, 0, 1, CARD, 0, 0)] * max(1, len(known) // WHOLE_ONES)])
        homes = np.flatnonzero(problem.homes[0])
        part = Fleet(*(np.ascontiguousarray(each[homes]) for each in fleet))
        step = asked._replace(gpus=1, cpu=asked.cpu // asked.gpus, models=0)
        change = np.zeros((len(fleet.cpu), asked.gpus + 1))
        change[homes] = self._weight * left_over(part, usual, step, asked.gpus)
        return CardValue(change, CARD / asked.milli)


class ByPolicy:
    """A policy of :mod:`ces_core.gpus.scores` that knows the trace beforehand."""

    def __init__(self, policy: Policy, trace: Sequence[GpuTask], rng: np.random.Generator):
        self._policy, self._rng = policy, rng
        self._trace = trace
        self.seconds: list[float] = []

    def choose(self, fleet: Fleet, task: GpuTask, asked: Asked, running: Sequence[Asked]) -> Placed | None:
        usual = typical([*running, asked])
        return Chooser(self._policy, fleet, usual, self._rng).choose(asked)


def measure(question: Question, progress: Progress) -> Found:
    """By list, load and contender: what was placed, and how much more than by the composite alone, pair by pair."""
    names = [
        (name, load, who, question.seed + more)
        for name in question.lists
        for load in question.loads
        for who in CONTENDERS
        for more in range(question.seeds)
    ]
    work = [Cell(*each, question.hosts, question.stays, question.solver) for each in names]
    step = told(progress, len(work))
    found: dict[tuple[str, float], dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for cell, figures in zip(work, cells.each(simulated, work, question.processes), strict=True):
        step(f"{cell.name} {cell.load:g} {cell.who}")
        found[cell.name, cell.load][cell.who].append(figures)
    loads = [
        {"list": name, "load": load, "contenders": {who: _told(runs, each[NOTHING]) for who, runs in each.items()}}
        for (name, load), each in found.items()
    ]
    asked = {key: value for key, value in asdict(question).items() if key != "processes"}
    return Found({"question": asked, "loads": loads})


def simulated(cell: Cell) -> dict[str, float]:
    """Shares of 1: ``milli`` of what was asked for, and of tasks, those with ``whole`` cards and with a ``part`` of
    one. Raises ContradictionError where the checker objects."""
    rng = np.random.default_rng(cell.seed)
    there = [nodes()[place] for place in sorted(rng.choice(len(nodes()), cell.hosts, replace=False))]
    coming = visits(tasks(cell.name), CARD * sum(node.cards for node in there), cell.load, cell.stays, rng)
    decider = decider_of(cell, there, tasks(cell.name))
    seen = list(mixed(there, coming, decider))
    if wrong := _faults(there, seen):
        raise ContradictionError(f"{cell}: {'; '.join(wrong[:3])}")
    counted = [each for each in seen if each.visit.at >= WARM_UP]
    kinds = {
        "whole": [each for each in counted if each.visit.task.gpus and each.visit.task.milli == CARD],
        "part": [each for each in counted if each.visit.task.gpus and each.visit.task.milli < CARD],
        "no_gpu": [each for each in counted if not each.visit.task.gpus],
    }
    placed = {kind: fmean(each.placed is not None for each in some) if some else 1.0 for kind, some in kinds.items()}
    asked = sum(each.visit.task.total for each in counted)
    return placed | {
        "milli": sum(each.visit.task.total for each in counted if each.placed is not None) / asked,
        "free": fmean(each.free for each in counted),
        "imbalance": fmean(each.imbalance for each in counted),
        "ms": 1000 * float(np.median(decider.seconds)) if decider.seconds else 0.0,
        "visits": len(counted),
    }


def decider_of(cell: Cell, there: Sequence[GpuNode], trace: Sequence[GpuTask]) -> BySolver | ByPolicy:
    if cell.who in PEERS:
        return ByPolicy(PEERS[cell.who], trace, np.random.default_rng(cell.seed))
    if cell.who == BY_CARD:
        return BySolver(there, cell.solver, card=Policy.FGD)
    return BySolver(there, cell.solver, 0.0 if cell.who == NOTHING else float(cell.who.removeprefix("weight ")))


def _faults(there: Sequence[GpuNode], seen: Sequence[Seen]) -> list[str]:
    """What the checker has against those that are there at once, after each tenth of the visits."""
    found: list[str] = []
    for last in range(len(seen) - 1, 0, -max(1, len(seen) // 10)):
        now = seen[last].visit.at
        held = [
            Held(each.visit.task, *each.placed)
            for each in seen[: last + 1]
            if each.placed is not None and each.visit.at + each.visit.stays > now
        ]
        found += faults(there, held)
    return found


def _told(runs: Sequence[dict[str, float]], before: Sequence[dict[str, float]]) -> dict[str, Any]:
    own = {name: spread(run[name] for run in runs) for name in runs[0]}
    names = ("milli", "whole", "part", "free", "imbalance")
    gains = {name: spread(run[name] - other[name] for run, other in zip(runs, before, strict=True)) for name in names}
    return own | {"gain": gains}
