"""The same jobs in regions and on one cluster of the same size, again and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from rich.progress import Progress

from ces_core.network.cache import paths_of
from ces_core.registry import get_solver
from ces_core.warm_up import warm_up
from ces_experiments.common.cells import each
from ces_experiments.common.console import told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.regions.drawn import Homes, Shape, World, draw
from ces_experiments.regions.run import CENTRAL, WAYS, Terms, play
from ces_sim.rounds import derived_seed

COMPARED = ("accepted", "work", "wait_s")
"""Of each way, the difference to ``central`` with the same jobs."""


@dataclass(frozen=True)
class Question:
    """``jobs`` and ``nodes``: of each region. ``wire_s``: from one region to another, one way. ``one_up_to``: up to
    how many regions are also run as one cluster; beyond, each decision of such a large cluster takes long."""

    regions: tuple[int, ...]
    homes: tuple[Homes, ...]
    loads: tuple[float, ...]
    ways: tuple[str, ...]
    one_up_to: int
    jobs: int
    nodes: int
    tasks: tuple[int, ...]
    duration_s: float
    patience_s: float
    wire_s: float
    regime: str
    solver: str
    seeds: int
    seed: int
    processes: int

    @staticmethod
    def of(*, wire_ms: float, **values: Any) -> Question:
        return Question(wire_s=wire_ms / 1e3, **values)

    def shapes(self) -> list[Shape]:
        return [
            Shape(regions, self.nodes, self.jobs, load, homes, self.regime, self.tasks, self.duration_s)
            for regions in self.regions
            for load in self.loads
            for homes in self.homes
        ]

    def ways_of(self, shape: Shape) -> list[str]:
        return [way for way in self.ways if not WAYS[way].one or shape.regions <= self.one_up_to]


@dataclass(frozen=True)
class Cell:
    shape: Shape
    seed: int
    way: str
    solver: str
    terms: Terms


@lru_cache(maxsize=1)
def _drawn(shape: Shape, seed: int) -> World:
    """The same for all ways, which come one after the other."""
    world = draw(shape, seed)
    for cluster in (world.whole, world.parts, *world.regions.values()):
        paths_of(cluster.topology).warm()
    return world


def played(cell: Cell) -> dict[str, Any]:
    """Raises BadDecisionError."""
    solver = get_solver(cell.solver)
    warm_up(solver)
    return play(_drawn(cell.shape, cell.seed), WAYS[cell.way], solver, cell.terms, cell.seed)


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """After each seed: by shape and way, spreads over the seeds so far, and what each way differs from the one cluster
    by. Raises BadDecisionError."""
    terms = Terms(question.patience_s, question.wire_s)
    work = [
        Cell(shape, derived_seed(question.seed, number), way, question.solver, terms)
        for number in range(question.seeds)
        for shape in question.shapes()
        for way in question.ways_of(shape)
    ]
    step = told(progress, len(work))
    runs: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    raw = []
    for cell, found in zip(work, each(played, work, question.processes), strict=True):
        name = name_of(cell.shape)
        step(f"{name}, {cell.way}")
        runs[name][cell.way].append(found)
        raw.append({"shape": name, "seed": cell.seed, "way": cell.way} | found)
        done, rest = divmod(len(raw), len(work) // question.seeds)
        if not rest:
            asked = asdict(question) | {"seeds": done}
            yield Found({"question": asked, "shapes": _told(question, runs)}, raw={"runs.csv": raw})


def _told(question: Question, runs: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> dict[str, Any]:
    return {
        name_of(shape): {
            "regions": shape.regions,
            "ways": {way: spreads(each) for way, each in runs[name_of(shape)].items()},
            "beside": {way: beside(runs[name_of(shape)], way) for way in question.ways_of(shape)},
        }
        for shape in question.shapes()
    }


def name_of(shape: Shape) -> str:
    return f"{shape.regions} regions, load {shape.load:g}, {shape.homes} homes"


def spreads(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each figure that any of the runs has."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: spread(run[name] for run in runs if run.get(name) is not None) for name in names}


def beside(runs: Mapping[str, Sequence[Mapping[str, Any]]], way: str) -> dict[str, Any]:
    """What a way has more than the one cluster, seed by seed; nothing where that was not asked for."""
    if CENTRAL not in runs or way == CENTRAL:
        return {}
    pairs = list(zip(runs[way], runs[CENTRAL], strict=True))
    return {what: spread(one[what] - other[what] for one, other in pairs) for what in COMPARED}
