"""The decision on one running job: new rates, new paths, other CPU, one move, two, three, or nothing.

Each step includes the former ones but CPU, and replaces what they found only where it is worth more by the least gain,
its moves paid: so nothing moves where a change of rates does as well. Where no limit is broken, the first of them must
be worth that much more than the plan that runs. Hence every adjustment under unchanged conditions raises the objective
by the least gain or ends a broken limit, and none can lead back to where the job was: there is no oscillation.

With an outlook, what an assignment is worth in conditions that may come is added; a plan that breaks a limit is worth
nothing now, but that much later, and moves have to make up for that, too: what soon ends by itself is waited for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ces_core.adjustment.adjustment import Adjustment, Certificate, Decision, Move, Step
from ces_core.adjustment.disturbance import Disturbance
from ces_core.adjustment.moves import MOST_ROWS, Moves
from ces_core.adjustment.outlook import Outlook, check_outlook
from ces_core.adjustment.running import BrokenLimit, RunningPlan, broken_limits, plain
from ces_core.adjustment.terms import TaskFacts, Terms, check_facts
from ces_core.adjustment.valuation import Looked, Valuation
from ces_core.exact.goal_leaves import GoalPlan
from ces_core.exact.goal_tables import Reference
from ces_core.model.errors import ProblemError
from ces_core.model.objective import evaluate
from ces_core.model.other_tasks import with_tasks
from ces_core.model.path import Path
from ces_core.model.plan import Plan
from ces_core.model.problem import BoolArray, FloatArray, Problem
from ces_core.model.reason import FormatQuantity
from ces_core.model.service import Service
from ces_core.model.topology import IntArray
from ces_core.network.path_table import PathTable
from ces_core.search.goals.domains import all_paths, domains, places

CPU_LEVELS = 5
"""Equally spaced amounts of a task's range that are tried."""
MOST_CPU = 128
"""Combinations of amounts of CPU; where there are more, one task at a time."""
MOST_PAIRS = 40_000
"""Pairs of nodes, times flows, that are weighed; among more nodes only the nearest are looked at."""
FAR = 1e6
"""Hops to a node that cannot be reached."""


NOTHING_FORESEEN = Outlook()


def adjust(
    problem: Problem,
    plan: Plan,
    facts: Mapping[str, TaskFacts],
    terms: Terms,
    outlook: Outlook = NOTHING_FORESEEN,
    format_quantity: FormatQuantity = plain,
) -> Decision:
    """What to change of the job that runs by ``plan``. ``problem``: the cluster and the job's wishes as they are now,
    with the use of all other jobs. ``facts``: by task; what is left out has its defaults. ``outlook``: what may come;
    ``terms.remaining_s`` is then how long the present conditions are expected to last. ``format_quantity``: for texts.

    Raises ProblemError, naming the field, for a job without goals and for what does not belong together.
    """
    if not problem.has_goals:
        raise ProblemError("job", "has no goals to be adjusted for: name chains, limits or weights of the objective")
    check_facts(problem, facts, terms)
    check_outlook(problem, outlook)
    return _Adjuster(problem, plan, facts, terms, outlook, format_quantity).decision()


@dataclass(frozen=True)
class _Found:
    step: Step
    problem: Problem
    plan: GoalPlan
    charge: float
    """What its moves cost, less what it is worth later."""

    @property
    def worth(self) -> float:
        return self.plan.value - self.charge


class _Adjuster:
    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        facts: Mapping[str, TaskFacts],
        terms: Terms,
        outlook: Outlook,
        format_quantity: FormatQuantity,
    ) -> None:
        self.problem, self.facts, self.terms, self.outlook = problem, facts, terms, outlook
        self.routes: PathTable = all_paths(problem)
        self.running = RunningPlan.of(problem, plan, self.routes)
        self.broken: tuple[BrokenLimit, ...] = broken_limits(Service(problem), self.running, format_quantity)
        self.now = None if self.broken else self._objective()
        self.disturbance = Disturbance.of(problem, self.running, self.routes, facts)
        self.budget = terms.budget if self.broken else max(0.0, terms.budget - terms.reserve)
        self.price = self.disturbance.price(terms.remaining_s)
        self.later = float(outlook.worth(np.array([self.running.assignment]))[0])
        self.best: _Found | None = None
        self.bound = -math.inf

    def _objective(self) -> float:
        paths = self.running.known_paths or ()
        return evaluate(self.problem, self.running.assignment, paths, self.running.bandwidth).objective

    def _above(self, moves: int) -> float:
        """What a step with so many moves has to be worth."""
        if self.best is not None:
            return self.best.worth + self.terms.least_gain
        if self.now is not None:
            return self.now + self.later + self.terms.least_gain
        return self.later + self.terms.least_gain if moves and self.outlook.ahead else -math.inf

    def decision(self) -> Decision:
        self._in_place()
        self._other_cpu()
        asked = 0 if self.terms.cooling and not self.broken else self.terms.most_moves
        complete = not self.problem.flows or not self.routes.truncated(places(self.problem))
        proven = 0 if complete else -1
        if asked:
            near, everywhere = self._domain()
            valuation = Valuation(self.problem, self.routes, near, self._reference())
            for moves in range(1, min(asked, len(self.problem.tasks)) + 1):
                looked_at_all = self._move(valuation, near, moves) and everywhere
                proven = moves if looked_at_all and proven == moves - 1 else proven
            proven = asked if proven == len(self.problem.tasks) else proven
        found = None if self.best is None else self._adjustment(self.best)
        return Decision(self.broken, self.now, found, Certificate(asked, proven, self.bound), self.later)

    def _in_place(self) -> None:
        """Other rates, then other paths, with every task on its node."""
        domain = self._only_here() & domains(self.problem)
        kept = self.running.known_paths
        if kept is not None:
            looked = self._here(self.problem, domain, self._reference(), kept)
            self._take("rates", self.problem, looked)
        looked = self._here(self.problem, domain, self._reference())
        self._take("paths", self.problem, looked)
        self.bound = looked.bound  # that of rates alone lies below

    def _other_cpu(self) -> None:
        """Other amounts of CPU where tasks are, with any paths and rates."""
        for amounts in self._amounts():
            problem = _with_cpu(self.problem, amounts)
            domain = self._only_here() & domains(problem)
            self._take("cpu", problem, self._here(problem, domain, Reference.none(problem)))

    def _amounts(self) -> list[dict[str, float]]:
        """Task -> CPU: all combinations of levels if they are few, else one task at a time; what differs from now."""
        now = {task.name: task.cpu for task in self.problem.tasks}
        levels: dict[str, list[float]] = {}
        for name, fact in sorted(self.facts.items()):
            if fact.cpu is not None and fact.cpu[1] > fact.cpu[0]:
                steps = np.linspace(fact.cpu[0], fact.cpu[1], CPU_LEVELS).tolist()
                levels[name] = sorted({*steps, now[name]})
        if math.prod(len(each) for each in levels.values()) <= MOST_CPU:
            every = [dict(zip(levels, amounts, strict=True)) for amounts in product(*levels.values())]
        else:
            every = [{name: amount} for name, amounts in levels.items() for amount in amounts]
        changed = [{name: cpu for name, cpu in amounts.items() if cpu != now[name]} for amounts in every]
        return [amounts for amounts in changed if amounts]

    def _here(
        self, problem: Problem, domain: BoolArray, reference: Reference, kept: tuple[Path, ...] | None = None
    ) -> Looked:
        valuation = Valuation(problem, self.routes, domain, reference, kept)
        return valuation.best(np.array([self.running.assignment]), np.array([-self.later]), self._above(0))

    def _move(self, valuation: Valuation, near: BoolArray, moves: int) -> bool:
        """Looks at assignments with this many moves; False where some of them were left out."""
        every = Moves.of(self.running.assignment, near)
        some = every
        if every.count(moves) > MOST_ROWS:
            some = every.narrowed(moves, self._promise(valuation, every))
        chunks = list(some.assignments(moves))
        if chunks:
            rows = np.concatenate(chunks)
            looked = valuation.best(rows, self._charges(rows), self._above(moves))
            self._take("moves", self.problem, looked)
            if some.complete:
                self.bound = max(self.bound, looked.bound)
        return some.complete

    def _promise(self, valuation: Valuation, every: Moves) -> FloatArray:
        """(T, N): of each move alone."""
        promise = np.full(valuation.domain.shape, -np.inf)
        for t, nodes in enumerate(every.nodes):
            rows = np.tile(np.array(self.running.assignment, dtype=np.int64), (len(nodes), 1))
            rows[:, t] = nodes
            promise[t, nodes] = valuation.promise(rows) - self._charges(rows)
        return promise

    def _charges(self, rows: IntArray) -> FloatArray:
        """(M,): of the moves to these assignments, in units of the objective, less what they are worth later; infinite
        beyond the budget."""
        requests = sum(self.disturbance.table[t, rows[:, t]] for t in range(rows.shape[1]))
        return np.where(requests <= self.budget, requests * self.price - self.outlook.worth(rows), np.inf)

    def _take(self, step: Step, problem: Problem, looked: Looked) -> None:
        if looked.plan is not None:
            self.best = _Found(step, problem, looked.plan, looked.cost)

    def _reference(self) -> Reference:
        """Where the bound is tight: at the plan that was found last, else at the running one."""
        if self.best is not None:
            plan = self.best.plan
            return Reference.at(self.best.problem, plan.assignment, plan.paths, plan.bandwidth)
        if self.running.known_paths is None:
            return Reference.none(self.problem)
        return Reference.at(self.problem, self.running.assignment, self.running.known_paths, self.running.bandwidth)

    def _only_here(self) -> BoolArray:
        here = np.zeros(self.problem.allowed.shape, dtype=np.bool_)
        here[np.arange(len(here)), list(self.running.assignment)] = True
        return here

    def _domain(self) -> tuple[BoolArray, bool]:
        """(T, N): where tasks are or may go within the budget, and whether that is everywhere: among very many nodes,
        those with the fewest hops to where the job is."""
        domain = domains(self.problem) & (self.disturbance.table <= self.budget)
        most = int(math.sqrt(MOST_PAIRS / max(1, len(self.problem.flows))))
        used = np.flatnonzero(domain.any(axis=0))
        if len(used) <= most:
            return domain, True
        ends = [n for pair in self.problem.flow_ends(self.running.assignment) for n in pair]
        hops = np.zeros(domain.shape[1])
        for n in {*self.running.assignment, *ends}:
            row = np.array(self.routes.hops_from(n), dtype=np.float64)
            hops += np.where(row < 0, FAR, row)
        near = np.zeros(domain.shape[1], dtype=np.bool_)
        near[used[np.argsort(hops[used], kind="stable")[:most]]] = True
        return domain & (near[None, :] | self._only_here()), False

    def _adjustment(self, found: _Found) -> Adjustment:
        names, tasks = self.problem.cluster.topology.nodes, self.problem.tasks
        moves = tuple(
            Move(tasks[t].name, names[old], names[new], float(seconds[new]), float(requests[new]))
            for t, (old, new, seconds, requests) in enumerate(
                zip(
                    self.running.assignment,
                    found.plan.assignment,
                    self.disturbance.seconds,
                    self.disturbance.table,
                    strict=True,
                )
            )
            if old != new
        )
        cost = sum(move.requests for move in moves) * self.price
        changed = zip(tasks, found.problem.tasks, strict=True)
        return Adjustment(
            step=found.step,
            plan=Plan.of(found.problem, found.plan.assignment, found.plan.paths, found.plan.bandwidth),
            objective=found.plan.value,
            moves=moves,
            cpu={after.name: after.cpu for before, after in changed if after.cpu != before.cpu},
            cost=cost,
            later=cost - found.charge,
        )


def _with_cpu(problem: Problem, amounts: Mapping[str, float]) -> Problem:
    """The same job with other amounts of CPU."""
    return with_tasks(problem, (replace(task, cpu=amounts.get(task.name, task.cpu)) for task in problem.tasks))
