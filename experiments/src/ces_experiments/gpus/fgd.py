"""FGD's experiment: how much of all GPUs is allocated, and how much of the rest is of no use, as more is asked for."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from rich.progress import Progress

from ces_core.gpus.checker import Placed, faults
from ces_core.gpus.model import CARD
from ces_core.gpus.scores import POLICIES
from ces_experiments.common import cells
from ces_experiments.common.console import ContradictionError, told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.gpus.published import ALLOCATED, AT, FEWEST, TOLERANCE
from ces_experiments.gpus.trace import nodes, tasks
from ces_sim.gpus.replay import replay

LOAD = AT[-1] / 100


@dataclass(frozen=True)
class Question:
    lists: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: int
    seed: int
    processes: int


@dataclass(frozen=True)
class Cell:
    """One policy on one list, in one order of tasks and nodes."""

    name: str
    policy: str
    seed: int


def measure(question: Question, progress: Progress) -> Found:
    """By list and policy: shares at each load, and what the authors' simulator came to."""
    work = [
        Cell(name, policy, question.seed + more)
        for name in question.lists
        for policy in question.policies
        for more in range(question.seeds)
    ]
    step = told(progress, len(work))
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for cell, figures in zip(work, cells.each(simulated, work, question.processes), strict=True):
        step(f"{cell.name} {cell.policy}")
        found[cell.name, cell.policy].append(figures)
    lists = {name: {policy: _told(found[name, policy]) for policy in question.policies} for name in question.lists}
    for name, policies in lists.items():
        for policy, each in policies.items():
            known = ALLOCATED.get(name, {}).get(policy)
            each["published"] = dict(zip(map(str, AT), known, strict=True)) if known else None
    missed = [text for name in question.lists for text in misses(name, lists[name])] if question.seeds >= FEWEST else []
    failure = f"further from the published figures than {TOLERANCE} points: {'; '.join(missed)}" if missed else None
    asked = {key: value for key, value in asdict(question).items() if key != "processes"}
    return Found({"question": asked, "lists": lists}, failure=failure)


def simulated(cell: Cell) -> dict[str, Any]:
    """In percent: ``allocated`` and ``fragmented`` of all GPUs, ``useless`` of what is free, each the mean of the
    moments at which the load, rounded, is that or, where none is, nearest. Raises ContradictionError where the checker
    objects."""
    cluster, capacity = nodes(), CARD * sum(node.cards for node in nodes())
    began, placed = time.perf_counter(), []
    seen: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for arrival in replay(cluster, tasks(cell.name), POLICIES[cell.policy], LOAD, cell.seed):
        useless = arrival.fragmented / arrival.idle if arrival.idle else 0.0
        shares = arrival.allocated / capacity, arrival.fragmented / capacity, useless
        seen[round(100 * arrival.arrived / capacity)].append(shares)
        if arrival.placed is not None:
            placed.append(Placed(arrival.task, *arrival.placed))
    seconds = time.perf_counter() - began
    if wrong := faults(cluster, placed):
        raise ContradictionError(f"{cell}: {'; '.join(wrong[:3])}")
    nearest = {load: min(seen, key=lambda there: abs(there - load)) for load in AT}
    at = {load: [100 * fmean(column) for column in zip(*seen[nearest[load]], strict=True)] for load in AT}
    names = ("allocated", "fragmented", "useless")
    return {name: {load: figures[i] for load, figures in at.items()} for i, name in enumerate(names)} | {
        "placed": len(placed), "seconds": seconds,
    }  # fmt: skip


def _told(runs: list[dict[str, Any]]) -> dict[str, Any]:
    shares = {
        name: {str(load): spread(run[name][load] for run in runs) for load in AT}
        for name in ("allocated", "fragmented", "useless")
    }
    return shares | {name: spread(run[name] for run in runs) for name in ("placed", "seconds")}


def misses(name: str, policies: dict[str, Any]) -> list[str]:
    """Means that are further away than allowed, in words."""
    return [
        f"{name} {policy} at {load} %: {found['allocated'][load]['mean']:.2f} for {known:.2f}"
        for policy, found in policies.items()
        for load, known in (found["published"] or {}).items()
        if abs(found["allocated"][load]["mean"] - known) > TOLERANCE
    ]
