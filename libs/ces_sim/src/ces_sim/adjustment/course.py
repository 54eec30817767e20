"""A day of one way: which windows keep the deadline, which moves there were, and whether each was worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ces_core.adjustment.adjustment import Move
from ces_core.adjustment.decision import adjust
from ces_core.adjustment.running import RunningPlan, broken_limits
from ces_core.adjustment.terms import TaskFacts, Terms
from ces_core.exact.solver import EXACT
from ces_core.model.objective import evaluate
from ces_core.model.plan import Plan
from ces_core.model.problem import Problem
from ces_core.model.service import Service
from ces_core.search.goals.domains import all_paths
from ces_sim.adjustment.town import WINDOW_S, Conditions, problem, stateful
from ces_sim.adjustment.ways import Way

MISSED_RUNNING = 3
"""Windows in a row without the deadline that call for an answer."""
SOON_S = 600.0
"""A task that is back on a node within this time counts as returned."""


@dataclass
class MoveRecord:
    """Moves of one time, and what they led to until the next ones. ``kept``: windows that keep the deadline and would
    not without them; ``lost``: windows that would have kept it. ``gained``: seconds times the difference of the
    objective, which counts as 0 while the deadline is missed or the task stands still."""

    at_s: float
    conditions: Conditions
    moves: tuple[Move, ...]
    why: tuple[str, ...]
    kept: int = 0
    lost: int = 0
    gained: float = 0.0

    @property
    def requests(self) -> float:
        """That fell into them."""
        return sum(move.requests for move in self.moves)

    @property
    def paid(self) -> bool:
        """Whether the job was worth more with them than without."""
        return self.gained > 0


@dataclass
class Course:
    """``kept``: by window, whether the deadline was kept; ``standing``: windows that missed it only because a task with
    state stood still; ``answers``: how often the way was
    asked; ``in_place``: how often it changed something without a move."""

    kept: list[bool] = field(default_factory=list)
    records: list[MoveRecord] = field(default_factory=list)
    standing: int = 0
    answers: int = 0
    in_place: int = 0

    @property
    def moves(self) -> int:
        """Tasks that moved."""
        return sum(len(record.moves) for record in self.records)

    @property
    def useless(self) -> int:
        """Tasks whose move did not pay."""
        return sum(len(record.moves) for record in self.records if not record.paid)

    def returns(self) -> list[tuple[MoveRecord, MoveRecord]]:
        """Pairs of times at which a task left a node and was back on it within SOON_S."""
        found, left = [], dict[tuple[str, str], MoveRecord]()
        for record in self.records:
            for move in record.moves:
                first = left.get((move.task, move.dst))
                if first is not None and record.at_s - first.at_s <= SOON_S:
                    found.append((first, record))
            left |= {(move.task, move.src): record for move in record.moves}
        return found

    @property
    def oscillations(self) -> int:
        """Returns while everything is as it was when the task left: nothing had called for them."""
        return sum(first.conditions == later.conditions for first, later in self.returns())


def run(way: Way, day: Sequence[Conditions], facts: Mapping[str, TaskFacts]) -> Course:
    """The day by one way, from the best plan of its first window. Raises ValueError where there is none."""
    plan = EXACT.solve(problem(day[0])).plan
    if plan is None:
        raise ValueError("the job has no place at the beginning of the day")
    course, live = Course(), _Judged(plan)
    since: _Since | None = None
    before, missed, still_until_s = day[0], 0, 0.0
    for w, now in enumerate(day):
        now_s = w * WINDOW_S
        why = now.news(before)
        if missed and missed % MISSED_RUNNING == 0:
            why = (*why, "deadline missed")
        change = way.answer(now, live.plan, now_s) if why else None
        course.answers += bool(why)
        if change is not None and change.moves:
            if since is not None:
                way.judged(since.record.at_s, since.record.paid)
            since = _Since(MoveRecord(now_s, now, change.moves, why), live.plan, facts)
            course.records.append(since.record)
            if stateful(problem(now), [move.task for move in change.moves]):
                still_until_s = now_s + max(move.seconds for move in change.moves)
        if change is not None:
            course.in_place += not change.moves
            live = _Judged(change.plan)
        objective = live.objective(now)
        still = min(1.0, max(0.0, still_until_s - now_s) / WINDOW_S)
        if since is not None:
            since.compare(now, objective, still)
        kept = objective is not None and not still
        course.kept.append(kept)
        course.standing += objective is not None and not kept
        missed, before = 0 if kept else missed + 1, now
    return course


class _Judged:
    """A plan, and what it is worth; worked out once for each change of conditions."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._at: Conditions | None = None
        self._objective: float | None = None

    def objective(self, now: Conditions) -> float | None:
        """None where it breaks a limit."""
        if now != self._at:
            self._at, self._objective = now, objective_of(problem(now), self.plan)
        return self._objective


class _Since:
    """What a record's moves led to: the job that moved against the job that did not, whose rates and paths are set
    anew whenever conditions change."""

    def __init__(self, record: MoveRecord, without: Plan, facts: Mapping[str, TaskFacts]) -> None:
        self.record, self.facts = record, facts
        self.without = _Judged(without)
        self.at: Conditions | None = None

    def compare(self, now: Conditions, objective: float | None, still: float) -> None:
        """One more window: what the job that moved is worth in it, None where it breaks a limit, and the share of it
        for which a task stands still."""
        if now != self.at:
            self.at = now
            decision = adjust(problem(now), self.without.plan, self.facts, Terms(WINDOW_S, most_moves=0))
            if decision.adjustment is not None:
                self.without = _Judged(decision.adjustment.plan)
        otherwise = self.without.objective(now)
        kept = objective is not None and not still
        self.record.kept += kept and otherwise is None
        self.record.lost += not kept and otherwise is not None
        self.record.gained += ((1.0 - still) * (objective or 0.0) - (otherwise or 0.0)) * WINDOW_S


def objective_of(problem: Problem, plan: Plan) -> float | None:
    """What the plan is worth; None where it breaks a limit."""
    running = RunningPlan.of(problem, plan, all_paths(problem))
    paths = running.known_paths
    if paths is None or broken_limits(Service(problem), running):
        return None
    return evaluate(problem, running.assignment, paths, running.bandwidth).objective
