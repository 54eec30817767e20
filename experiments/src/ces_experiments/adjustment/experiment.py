"""The same days for every way: windows that keep the deadline, moves, and whether they were worth it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.progress import Progress

from ces_core.adjustment.terms import TaskFacts
from ces_experiments.common import cells
from ces_experiments.common.console import told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_sim.adjustment.course import Course, run
from ces_sim.adjustment.oracle import at_most
from ces_sim.adjustment.town import DAY_S, RATE, WINDOW_S, day
from ces_sim.adjustment.ways import LeastDisturbance, SolvingAnew, Way

BUDGET_SHARE = 0.02
"""Of the requests of an hour, those that may fall into moves."""
COOLDOWN_S = 60.0
HORIZON_S = 300.0
LEAST, BLIND, LAVISH = "least disturbance", "not looking ahead", "without a budget"
ANEW, ALONE = "solving anew", "rates and paths only"
HOUR_S = 3600.0


@dataclass(frozen=True)
class Question:
    seeds: int
    seed: int
    speed: float
    restart_s: float
    processes: int


@dataclass(frozen=True)
class Cell:
    """One day by one way."""

    question: Question
    way: str
    seed: int


def ways(facts: Mapping[str, TaskFacts]) -> dict[str, Callable[[], Way]]:
    """By name."""
    budget = BUDGET_SHARE * RATE * HOUR_S
    return {
        LEAST: lambda: LeastDisturbance(facts, DAY_S, budget, COOLDOWN_S, horizon_s=HORIZON_S),
        BLIND: lambda: LeastDisturbance(facts, DAY_S, budget, COOLDOWN_S),
        LAVISH: lambda: LeastDisturbance(facts, DAY_S, math.inf, COOLDOWN_S, horizon_s=HORIZON_S),
        ANEW: lambda: SolvingAnew(facts),
        ALONE: lambda: LeastDisturbance(facts, DAY_S, budget, COOLDOWN_S, most_moves=0),
    }


def measure(question: Question, progress: Progress) -> Found:
    """By way, over the days; the first day of each in full."""
    names = list(ways({}))
    work = [Cell(question, name, question.seed + more) for more in range(question.seeds) for name in names]
    step = told(progress, len(work))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    rows: list[dict[str, Any]] = []
    for cell, (figures, moves) in zip(work, cells.each(lived, work, question.processes), strict=True):
        step(f"day {cell.seed}, {cell.way}")
        found[cell.way].append(figures)
        rows += [{"way": cell.way, "seed": cell.seed} | row for row in moves]
    asked = {key: value for key, value in asdict(question).items() if key != "processes"}
    results: dict[str, Any] = {"question": asked, "ways": {name: _told(each) for name, each in found.items()}}
    pairs = list(zip(found[LEAST], found[ANEW], strict=True))
    days = range(question.seed, question.seed + question.seeds)
    results["at_most"] = [asdict(at_most(day(seed, question.speed))) for seed in days]
    results["share_of_moves"] = spread(one["moves"] / other["moves"] for one, other in pairs if other["moves"])
    return Found(results, raw={"moves.csv": rows})


def lived(cell: Cell) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The day's figures, and every time at which tasks moved."""
    facts = {name: TaskFacts(cell.question.restart_s) for name in ("track", "render", "record")}
    course = run(ways(facts)[cell.way](), day(cell.seed, cell.question.speed), facts)
    return _figures(course), [
        {
            "second": record.at_s, "why": "; ".join(record.why), "requests": round(record.requests, 1),
            "moves": "; ".join(f"{move.task}: {move.src} -> {move.dst}" for move in record.moves),
            "windows_kept": record.kept, "windows_lost": record.lost, "gained_s": round(record.gained, 2),
            "paid": record.paid,
        }
        for record in course.records
    ]  # fmt: skip


def _figures(course: Course) -> dict[str, Any]:
    windows = round(HOUR_S / WINDOW_S)
    return {
        "kept": float(np.mean(course.kept)),
        "standing": course.standing / len(course.kept),
        "moves": course.moves,
        "requests": sum(record.requests for record in course.records),
        "useless": course.useless,
        "returns": len(course.returns()),
        "oscillations": course.oscillations,
        "answers": course.answers,
        "in_place": course.in_place,
        "kept_by_hour": np.array(course.kept, dtype=np.float64).reshape(-1, windows).mean(axis=1).tolist(),
        "moved_at_s": [record.at_s for record in course.records for _ in record.moves],
    }


COUNTED = ("kept", "standing", "moves", "requests", "useless", "returns", "oscillations", "answers", "in_place")


def _told(days: list[dict[str, Any]]) -> dict[str, Any]:
    first = {key: days[0][key] for key in ("kept_by_hour", "moved_at_s")}
    return {key: spread(day[key] for day in days) for key in COUNTED} | {"first_day": first}
