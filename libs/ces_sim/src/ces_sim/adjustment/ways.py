"""Ways to answer what happens to a running job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ces_core.adjustment.adjustment import Move
from ces_core.adjustment.decision import adjust
from ces_core.adjustment.disturbance import Disturbance
from ces_core.adjustment.ledger import Ledger
from ces_core.adjustment.running import RunningPlan
from ces_core.adjustment.terms import TaskFacts, Terms
from ces_core.exact.solver import EXACT
from ces_core.model.plan import Plan
from ces_core.model.problem import Problem
from ces_core.search.goals.domains import all_paths

MOST_INTERVALS = 20
"""The latest times between changes, of which the mean tells how long a gain will last."""
PAYS_TIMES = 2.0
"""How many times its cost a move is to gain, as a resize is: it is not known when the next change comes."""
FOR_LIMITS = 0.5
"""Of the budget, what only a broken limit may use."""


@dataclass(frozen=True)
class Change:
    """``ended``: the limits that it was to mend, if any."""

    plan: Plan
    moves: tuple[Move, ...] = ()
    ended: bool = False


class Way(Protocol):
    """Answers what happened at ``now_s``, once for each time; None: all stays."""

    def answer(self, problem: Problem, plan: Plan, now_s: float) -> Change | None: ...

    def judged(self, at_s: float, paid: bool) -> None:
        """Whether the moves of that time were worth it."""


@dataclass
class LeastDisturbance:
    """By :func:`ces_core.adjustment.decision.adjust`. ``budget``: requests an hour, half of them for broken limits
    alone; ``until_s``: when the job ends. A gain lasts until the next change, as far as the latest ones tell."""

    facts: Mapping[str, TaskFacts]
    until_s: float
    budget: float
    cooldown_s: float
    most_moves: int = 3
    ledger: Ledger = field(default_factory=Ledger)
    intervals: list[float] = field(default_factory=list)
    last_s: float = 0.0

    def answer(self, problem: Problem, plan: Plan, now_s: float) -> Change | None:
        if now_s > self.last_s:
            self.intervals = [*self.intervals, now_s - self.last_s][-MOST_INTERVALS:]
        self.last_s = now_s
        lasts = float(np.mean(self.intervals)) if self.intervals else self.until_s
        terms = Terms(
            remaining_s=min(self.until_s - now_s, lasts) / PAYS_TIMES,
            budget=self.ledger.left(now_s, self.budget),
            reserve=FOR_LIMITS * self.budget,
            cooling=not self.intervals or self.ledger.cooling(now_s, self.cooldown_s),
            most_moves=self.most_moves,
        )
        decision = adjust(problem, plan, self.facts, terms)
        if decision.adjustment is None:
            return None
        if decision.adjustment.moves:
            self.ledger = self.ledger.moved(now_s, decision.adjustment.disturbance)
        return Change(decision.adjustment.plan, decision.adjustment.moves, bool(decision.broken))

    def judged(self, at_s: float, paid: bool) -> None:
        self.ledger = self.ledger.judged(at_s, paid)


@dataclass(frozen=True)
class SolvingAnew:
    """The best plan there is, by ``exact``, whatever has to move for it."""

    facts: Mapping[str, TaskFacts]

    def answer(self, problem: Problem, plan: Plan, now_s: float) -> Change | None:
        best = EXACT.solve(problem).plan
        return None if best is None or best == plan else Change(best, moves_between(problem, plan, best, self.facts))

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
