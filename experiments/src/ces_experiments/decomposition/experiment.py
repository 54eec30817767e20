"""Random graphs divided by several ways, and their parts placed on random clusters: the same for every way."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.progress import Progress

from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.comparison import metis
from ces_core.decomposition.graph import (
    Edge,
    Graph,
    IndivisibleError,
    Integers,
    Parts,
    Vertex,
    division,
    even_limits,
    parts_of,
)
from ces_core.decomposition.packing import at_random
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.parts import Flow, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.registry import get_solver
from ces_experiments.common import cells
from ces_experiments.common.console import ContradictionError, told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import share, spread

WIDEST = 25.0
"""Of an instance's units of bandwidth, what the busiest edge may take at most."""


@dataclass(frozen=True)
class Question:
    vertices: tuple[int, ...]
    parts: tuple[int, ...]
    seeds: int
    seed: int
    regime: str
    nodes: int
    demand: float
    draws: int
    solver: str
    processes: int


@dataclass(frozen=True)
class Cell:
    """One graph on one cluster, with one number of parts."""

    question: Question
    vertices: int
    parts: int
    seed: int


def measure(question: Question, progress: Progress) -> Found:
    """By size and number of parts: cuts of several ways, and the composites of their places, paired by seed."""
    sizes = [(size, parts) for size in question.vertices for parts in question.parts if parts <= size]
    work = [Cell(question, *each, question.seed + more) for each in sizes for more in range(question.seeds)]
    step = told(progress, len(work))
    found: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    rows: list[dict[str, Any]] = []
    for cell, figures in zip(work, cells.each(divided, work, question.processes), strict=True):
        step(f"{cell.vertices} vertices, {cell.parts} parts")
        found[cell.vertices, cell.parts].append(figures)
        rows.append({"vertices": cell.vertices, "parts": cell.parts, "seed": cell.seed} | figures)
    asked = {key: value for key, value in asdict(question).items() if key != "processes"}
    told_of = {f"{size} vertices, {parts} parts": _told(each) for (size, parts), each in found.items()}
    return Found({"question": asked, "sizes": told_of}, raw={"graphs.csv": rows})


def divided(cell: Cell) -> dict[str, float | None]:
    """Cuts, and composites of places; None where there is none: METIS is not installed or no answer of it keeps to
    capacities, or parts have no place. Of random divisions the means. Raises ContradictionError where clusters break a
    capacity or leave a vertex out."""
    graph = random_graph(cell.vertices, cell.seed)
    asked = division(graph, even_limits(graph, cell.parts))
    cluster = read_instance(random_instance(cell.question.regime, cell.seed, nodes=cell.question.nodes)).cluster
    part = clusters(asked, cell.parts, seed=cell.seed)
    if wrong := asked.broken(part):
        raise ContradictionError(f"{cell}: {'; '.join(wrong)}")
    rng = np.random.default_rng(cell.seed)
    drawn = []
    for _ in range(cell.question.draws):
        try:
            drawn.append(at_random(asked, cell.parts, rng))
        except IndivisibleError:  # dealing them out is not always possible where capacities are tight
            continue
    theirs = metis(asked, cell.parts, seed=cell.seed) if find_spec("pymetis") else None
    valid = theirs is not None and not asked.broken(theirs) and int(theirs.max()) + 1 == cell.parts

    def place(each: Integers) -> float | None:
        return placed(cluster, parts_of(graph, each), cell.question)

    places = [found for each in drawn if (found := place(each)) is not None]
    return {
        "cut": asked.cut(part),
        "cut_metis": asked.cut(theirs) if valid and theirs is not None else None,
        "cut_random": float(np.mean([asked.cut(each) for each in drawn])) if drawn else None,
        "placed": place(part),
        "placed_random": float(np.mean(places)) if places else None,
        "placed_unsplit": place(np.zeros(cell.vertices, np.int64)),
    }


def random_graph(size: int, seed: int) -> Graph:
    """A tree with half as many edges more; CPU U[100, 1000], traffic U[1, 100]."""
    rng = np.random.default_rng(seed)
    vertices = tuple(Vertex(f"v{i}", float(rng.integers(100, 1001))) for i in range(size))
    pairs = {(int(rng.integers(i)), i) for i in range(1, size)}
    for _ in range(size // 2):
        a, b = sorted(rng.choice(size, 2, replace=False).tolist())
        pairs.add((a, b))
    traffic = {pair: float(rng.integers(1, 101)) for pair in sorted(pairs)}
    return Graph("random", vertices, tuple(Edge(a, b, rate / 2, rate) for (a, b), rate in traffic.items()))


def placed(cluster: Cluster, parts: Parts, question: Question) -> float | None:
    """The composite of the place that the solver finds; None if there is none. The graph is scaled to the cluster."""
    graph = parts.graph
    free = float((cluster.node_capacity[0] - cluster.node_used[0]).sum())
    cpu = question.demand * free / sum(vertex.cpu for vertex in graph.vertices)
    width = WIDEST / max(edge.max for edge in graph.edges)
    tasks = [Task(f"p{i}", parts.amount(i, "cpu") * cpu) for i in range(len(parts.members))]
    flows = [Flow(f"p{flow.src}", f"p{flow.dst}", flow.min * width, flow.max * width) for flow in parts.flows]
    result = get_solver(question.solver).solve(Problem.make(cluster, tasks, flows), seed=0)
    return None if result.metrics is None else float(result.metrics.composite)


def _told(runs: list[dict[str, Any]]) -> dict[str, Any]:
    def paired(one: str, other: str) -> list[tuple[float, float]]:
        return [(run[one], run[other]) for run in runs if run[one] is not None and run[other] is not None]

    return {
        "to_metis": spread(a / b for a, b in paired("cut", "cut_metis") if b),
        "to_random": spread(a / b for a, b in paired("cut", "cut_random") if b),
        "over_random": spread(a - b for a, b in paired("placed", "placed_random")),
        "over_unsplit": spread(a - b for a, b in paired("placed", "placed_unsplit")),
        "composite": spread(run["placed"] for run in runs if run["placed"] is not None),
        **{name: share(sum(run[name] is not None for run in runs), len(runs)) for name in PLACED},
    }


PLACED = ("placed", "placed_random", "placed_unsplit")
