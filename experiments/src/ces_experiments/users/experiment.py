"""Users come one after the other, and each way of placing their applications fills the city in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.progress import Progress

from ces_core.registry import get_solver
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.users.city import City, Room, User, city
from ces_experiments.users.rules import IN_TIME, RULES, by_rule, instance, plan_of

BETWEEN = 25
"""A point of the curve for so many users."""


@dataclass(frozen=True)
class Question:
    """``users`` of each city, of which there is one for each seed; ``solver``: the one that is compared with rules."""

    users: int
    seeds: int
    seed: int
    solver: str
    time_limit_s: float | None


@dataclass(frozen=True)
class Outcome:
    """Of one user: whether the application was placed, what a request takes of its deadline, and whether that is in
    time."""

    placed: bool
    part: float

    @property
    def in_time(self) -> bool:
        return self.placed and self.part <= 1.0


def measure(question: Question, progress: Progress) -> Found:
    """By way. A user who is turned away does not get answers in time. Raises BadDecisionError."""
    ways = (question.solver, *RULES, IN_TIME)
    outcomes: dict[str, list[list[Outcome]]] = {way: [] for way in ways}
    step = counted(progress, "users", len(ways) * question.seeds * question.users)
    for seed in range(question.seed, question.seed + question.seeds):
        drawn = city(seed, question.users)
        _warm(question, drawn)
        for way in ways:
            outcomes[way].append([])
            room = Room.of(drawn)
            for user in drawn.users:
                outcomes[way][-1].append(_come(question, way, drawn, room, user, seed))
                step()
    rows = [
        {"way": way, "seed": question.seed + i, "user": n} | asdict(each)
        for way, cities in outcomes.items()
        for i, come in enumerate(cities)
        for n, each in enumerate(come)
    ]
    told = {way: _told(cities, outcomes[question.solver]) for way, cities in outcomes.items()}
    return Found({"question": asdict(question), "ways": told}, raw={"users.csv": rows})


def _warm(question: Question, drawn: City) -> None:
    """Paths are known, and code compiled, before the solvers' time counts."""
    asked = instance(drawn, Room.of(drawn), drawn.users[0], hard=True)
    plan_of(get_solver(question.solver), asked, 0, question.time_limit_s)


def _come(question: Question, way: str, drawn: City, room: Room, user: User, seed: int) -> Outcome:
    solver, limit = get_solver(question.solver), question.time_limit_s
    asked = instance(drawn, room, user, hard=True)
    if way == question.solver:
        plan, took = plan_of(solver, asked, seed, limit)
    else:
        plan, took = by_rule(way, solver, drawn, room, user, seed, limit)
    if plan is None:
        return Outcome(False, 0.0)
    room.take(plan, asked["job"]["tasks"])
    return Outcome(True, took / user.deadline_ms)


def _told(cities: list[list[Outcome]], compared: list[list[Outcome]]) -> Mapping[str, Any]:
    """``less``: how many more of each city's users the solver serves in time."""
    shares = [_share(come) for come in cities]
    counts = range(BETWEEN, len(cities[0]) + 1, BETWEEN)
    return {
        "in_time": spread(shares),
        "less": spread(_share(mine) - share for mine, share in zip(compared, shares, strict=True)),
        "placed": spread(float(np.mean([each.placed for each in come])) for come in cities),
        "late": spread(float(np.mean([each.placed and not each.in_time for each in come])) for come in cities),
        "part": spread(each.part for come in cities for each in come if each.in_time),
        "after": {str(n): spread(float(sum(each.in_time for each in come[:n])) for come in cities) for n in counts},
    }


def _share(come: list[Outcome]) -> float:
    return float(np.mean([each.in_time for each in come]))
