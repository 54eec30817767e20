"""A town of cells with a small machine each, a larger one further away, and one that joins at noon; and a job that
shows its user something back within milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ces_core.model.instance import read_instance
from ces_core.model.problem import Problem
from ces_sim.adjustment.tracks import Grid, cells_of_track

GRID = Grid(3, 2, 1000.0)
DAY_S = 86_400.0
WINDOW_S = 10.0
WINDOWS = round(DAY_S / WINDOW_S)
RATE = 30.0
"""Requests a second of the job, on average over the day."""
SWING = 0.4
"""By this share the rate is higher in the afternoon and lower at night; it changes in steps of half an hour."""
DEADLINE_MS = 36.0
SLOW_EVERY_S, SLOW_S, SLOW_MS = 2400.0, (300.0, 1800.0), (5.0, 25.0)
"""How often a wire becomes slower on average, for how long, and by how much."""
BUSY_EVERY_S, BUSY_CPU = 1800.0, 4.0
"""How often other work on a cell's machine changes on average, and to how many of its six cores at most."""


@dataclass(frozen=True)
class Conditions:
    """What a window is like. ``slow``: wires with their additional delay; ``busy``: cores in other use, by cell;
    ``joined``: whether the machine of noon is there; ``rate``: requests a second."""

    cell: int
    slow: tuple[tuple[int, float], ...]
    busy: tuple[float, ...]
    joined: bool
    rate: float

    def news(self, before: Conditions) -> tuple[str, ...]:
        """What about it is known at once. A rate is not: it shows by deadlines that are missed."""
        changes = {
            "user moved": self.cell != before.cell,
            "link changed": self.slow != before.slow,
            "node changed": self.busy != before.busy,
            "node joined": self.joined != before.joined,
        }
        return tuple(what for what, so in changes.items() if so)


def day(seed: int, speed: float) -> list[Conditions]:
    """The conditions of every window of a day. ``speed`` of the user: times walking."""
    rng = np.random.default_rng([seed, 2_026])
    cells = cells_of_track(GRID, rng, WINDOWS, WINDOW_S, speed)
    wires = len(GRID.neighbours())
    slow: dict[int, tuple[int, float]] = {}  # wire -> window of its end, ms
    busy = [0.0] * GRID.cells
    found = []
    for w, cell in enumerate(cells):
        slow = {wire: until for wire, until in slow.items() if until[0] > w}
        if rng.random() < WINDOW_S / SLOW_EVERY_S:
            slow[int(rng.integers(wires))] = w + round(rng.uniform(*SLOW_S) / WINDOW_S), float(rng.uniform(*SLOW_MS))
        if rng.random() < WINDOW_S / BUSY_EVERY_S:
            busy[int(rng.integers(GRID.cells))] = float(rng.uniform(0, BUSY_CPU))
        extra = tuple((wire, ms) for wire, (_, ms) in sorted(slow.items()))
        half_hour = int(w * WINDOW_S / 1800)
        rate = RATE * (1 + SWING * math.sin(2 * math.pi * (half_hour - 16) / 48))
        found.append(Conditions(cell, extra, tuple(busy), w >= WINDOWS // 2, round(rate, 3)))
    return found


@lru_cache(maxsize=64)
def problem(conditions: Conditions) -> Problem:
    """The job, and the town without it."""
    return read_instance(instance(conditions))


def instance(conditions: Conditions) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = [
        {"name": f"cell{n}", "cpu": 6, "memory": 16, "cpu_used": used, "speed": {"vision": 1.0, "plain": 1.0}}
        for n, used in enumerate(conditions.busy)
    ]
    nodes.append({"name": "centre", "cpu": 64, "memory": 256, "cpu_used": 20, "speed": {"vision": 3.0, "plain": 1.5}})
    slow = dict(conditions.slow)
    links = []
    for wire, (a, b) in enumerate(GRID.neighbours()):
        links += _wire(f"cell{a}", f"cell{b}", 300, 3.0 + slow.get(wire, 0.0))
    for middle in (1, 4):
        links += _wire(f"cell{middle}", "centre", 1000, 8.0)
    if conditions.joined:
        nodes.append({"name": "new", "cpu": 16, "memory": 64, "speed": {"vision": 4.0, "plain": 2.0}})
        links += _wire("cell1", "new", 1000, 1.0)
    return {"nodes": nodes, "links": links, "job": _job(f"@cell{conditions.cell}", conditions.rate)}


def _wire(a: str, b: str, bandwidth: float, delay_ms: float) -> list[dict[str, Any]]:
    return [{"src": src, "dst": dst, "bandwidth": bandwidth, "delay_ms": delay_ms} for src, dst in ((a, b), (b, a))]


def _job(user: str, rate: float) -> dict[str, Any]:
    def task(name: str, cpu: float, ms: float, kind: str, rate: float, state: float) -> dict[str, Any]:
        work = {"per_request": ms, "class": kind}
        return {"name": name, "cpu": cpu, "memory": 1, "work": work, "rate": rate, "state": state}

    loop = {
        "tasks": ["track", "render"],
        "flows": [[user, "track"], ["track", "render"], ["render", user]],
    }
    return {
        "name": "glasses",
        "tasks": [
            task("track", 1, 4.0, "plain", rate, 2e6),
            task("render", 2, 16.0, "vision", rate, 2e7),
            task("record", 1, 5.0, "plain", 2.0, 0.0),
        ],
        "flows": [
            {"src": user, "dst": "track", "min": 10, "max": 40, "message": 20_000},
            {"src": "track", "dst": "render", "min": 10, "max": 60, "message": 20_000},
            {"src": "render", "dst": user, "min": 20, "max": 100, "message": 60_000},
            {"src": "render", "dst": "record", "min": 1, "max": 20, "message": 100_000},
        ],
        "chains": [
            loop | {"name": "loop", "deadline_ms": DEADLINE_MS, "hard": True},
            loop | {"name": "comfort", "deadline_ms": 60.0},
        ],
        "objective": {"balance": 0.25, "bandwidth": 0.25, "time": 0.5},
    }


def stateful(problem: Problem, moved: Sequence[str]) -> bool:
    """Whether one of these tasks has state: it stands still while it moves. Others are begun before they end."""
    return any(task.name in moved and task.profile is not None and task.profile.state > 0 for task in problem.tasks)
