"""Ways to answer what happens to a running job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from ces_core.adjustment.adjustment import Move
from ces_core.adjustment.decision import adjust
from ces_core.adjustment.disturbance import Disturbance
from ces_core.adjustment.forecast import Track
from ces_core.adjustment.ledger import Ledger
from ces_core.adjustment.outlook import Ahead, Outlook, foreseen
from ces_core.adjustment.running import RunningPlan
from ces_core.adjustment.terms import TaskFacts, Terms
from ces_core.adjustment.valuation import Valuation
from ces_core.exact.solver import EXACT
from ces_core.model.plan import Plan
from ces_core.model.problem import Problem
from ces_core.search.goals.domains import all_paths
from ces_sim.adjustment.town import Conditions, problem

MOST_INTERVALS = 20
"""The latest times between changes, of which the mean tells how long a gain will last."""
PAYS_TIMES = 2.0
"""How many times its cost a move is to gain, as a resize is: it is not known when the next change comes."""
FOR_LIMITS = 0.5
"""Of the budget, what only a broken limit may use."""


@dataclass(frozen=True)
class Change:
    plan: Plan
    moves: tuple[Move, ...] = ()


class Way(Protocol):
    """Answers what happened at ``now_s``, once for each time; None: all stays."""

    def answer(self, now: Conditions, plan: Plan, now_s: float) -> Change | None: ...

    def judged(self, at_s: float, paid: bool) -> None:
        """Whether the moves of that time were worth it."""


@dataclass
class LeastDisturbance:
    """By :func:`ces_core.adjustment.decision.adjust`. ``budget``: requests an hour, half of them for broken limits
    alone; ``until_s``: when the job ends; ``horizon_s``: how far it looks ahead on its user's track. With 0 it does
    not, and takes a gain to last until the next change, as far as the latest ones tell."""

    facts: Mapping[str, TaskFacts]
    until_s: float
    budget: float
    cooldown_s: float
    most_moves: int = 3
    horizon_s: float = 0.0
    ledger: Ledger = field(default_factory=Ledger)
    track: Track = field(default_factory=Track)
    intervals: list[float] = field(default_factory=list)
    last_s: float = 0.0
    last_cell: int | None = None

    def answer(self, now: Conditions, plan: Plan, now_s: float) -> Change | None:
        self._learn(now, now_s)
        lasts_s, outlook = self._ahead(now, now_s)
        terms = Terms(
            remaining_s=lasts_s / PAYS_TIMES,
            budget=self.ledger.left(now_s, self.budget),
            reserve=FOR_LIMITS * self.budget if math.isfinite(self.budget) else 0.0,
            cooling=not self.intervals or self.ledger.cooling(now_s, self.cooldown_s),
            most_moves=self.most_moves,
        )
        decision = adjust(problem(now), plan, self.facts, terms, outlook)
        if decision.adjustment is None:
            return None
        if decision.adjustment.moves:
            self.ledger = self.ledger.moved(now_s, decision.adjustment.disturbance)
        return Change(decision.adjustment.plan, decision.adjustment.moves)

    def judged(self, at_s: float, paid: bool) -> None:
        self.ledger = self.ledger.judged(at_s, paid)

    def _learn(self, now: Conditions, now_s: float) -> None:
        if now_s > self.last_s:
            self.intervals = [*self.intervals, now_s - self.last_s][-MOST_INTERVALS:]
        if self.last_cell is not None:
            self.track = self.track.seen(str(self.last_cell), now_s - self.last_s, str(now.cell))
        self.last_s, self.last_cell = now_s, now.cell

    def _ahead(self, now: Conditions, now_s: float) -> tuple[float, Outlook]:
        """For how many seconds things are expected to be as they are now, and what else may come: the same with the
        user in other cells."""
        left_s = self.until_s - now_s
        if not self.horizon_s:
            return min(left_s, float(np.mean(self.intervals)) if self.intervals else left_s), Outlook()
        expected = self.track.expected_s(str(now.cell), min(self.horizon_s, left_s))
        here_s = expected.pop(str(now.cell))
        others = ((replace(now, cell=int(cell)), seconds) for cell, seconds in expected.items())
        return here_s, Outlook(tuple(Ahead(_foreseen(then), seconds / here_s) for then, seconds in others))


@lru_cache(maxsize=64)
def _foreseen(then: Conditions) -> Valuation:
    return foreseen(problem(then))


@dataclass(frozen=True)
class SolvingAnew:
    """The best plan there is, by ``exact``, whatever has to move for it."""

    facts: Mapping[str, TaskFacts]

    def answer(self, now: Conditions, plan: Plan, now_s: float) -> Change | None:
        best = EXACT.solve(problem(now)).plan
        moves = () if best is None else moves_between(problem(now), plan, best, self.facts)
        return None if best is None or best == plan else Change(best, moves)

    def judged(self, at_s: float, paid: bool) -> None:
        """It keeps no account."""


def moves_between(problem: Problem, old: Plan, new: Plan, facts: Mapping[str, TaskFacts]) -> tuple[Move, ...]:
    """What the moves from one plan to another disturb."""
    routes = all_paths(problem)
    disturbance = Disturbance.of(problem, RunningPlan.of(problem, old, routes), routes, facts)
    index = problem.cluster.topology.node_index
    moves = []
    for t, task in enumerate(problem.tasks):
        src, dst = old.assignments[task.name], new.assignments[task.name]
        if src != dst:
            seconds = float(disturbance.seconds[t, index[dst]])
            moves.append(Move(task.name, src, dst, seconds, seconds * float(disturbance.requests[t])))
    return tuple(moves)
