"""Offers of jobs as simulated regions make them: what a home is told of the others at that moment, and what each of
them would bid, had it been asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ces_common.jobfile import JobFile
from ces_common.messages.regions import Summary
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.registry import get_solver
from ces_core.solver import Solver
from ces_experiments.regions.books import Books
from ces_experiments.regions.drawn import Homes, Shape, World, draw
from ces_experiments.regions.run import AS_IS, WAYS, Terms, play
from ces_federation.choice import Need, able, worth_asking
from ces_federation.chooser import ByRule, Chosen
from ces_federation.sight import REGION, about_job, about_region
from ces_sim.arrivals import TimedJob
from ces_sim.rounds import derived_seed

MOST_OFFERS = 3
"""Of one job that are kept: later ones are much alike."""
TERMS = Terms(patience_s=600.0, wire_s=0.02)
TASKS = (1, 2, 3, 4, 5, 6, 7, 8)
HOMES: tuple[Homes, ...] = ("even", "uneven")


@dataclass(frozen=True)
class Offers:
    """N offers to R regions. ``regions`` (N, R, features), ``job`` (N, features); ``allowed`` (N, R): those that the
    rule does not refuse; ``rank`` (N, R): in which order the rule asks, R for those that it does not; ``worth``
    (N, R): the composite of each region's bid, NaN where it has no place."""

    regions: NDArray[np.float32]
    job: NDArray[np.float32]
    allowed: BoolArray
    rank: NDArray[np.int64]
    worth: FloatArray

    def __len__(self) -> int:
        return len(self.job)

    @staticmethod
    def together(parts: Sequence[Offers]) -> Offers:
        return Offers(
            np.concatenate([part.regions for part in parts]),
            np.concatenate([part.job for part in parts]),
            np.concatenate([part.allowed for part in parts]),
            np.concatenate([part.rank for part in parts]),
            np.concatenate([part.worth for part in parts]),
        )


@dataclass
class Recorder:
    """A :class:`ces_federation.chooser.Chooser` that follows the rule, and has every region look at the job that the
    rule does not refuse. Offers without a choice are left out. ``names``: of all regions; a home's own column is
    refused always."""

    books: Mapping[str, Books]
    jobs: Mapping[str, TimedJob]
    names: Sequence[str]
    rows: list[Offers] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)
    _rule: ByRule = field(default_factory=ByRule)

    def choose(self, file: JobFile, need: Need, heard: Mapping[str, Summary]) -> Chosen:
        fits = able(need, heard)
        if len(fits) > 1 and self._seen[file.name] < MOST_OFFERS:
            self._seen[file.name] += 1
            self.rows.append(self._row(file, need, heard, fits))
        return self._rule.choose(file, need, heard)

    def _row(self, file: JobFile, need: Need, heard: Mapping[str, Summary], fits: Mapping[str, Summary]) -> Offers:
        count = len(self.names)
        regions = np.zeros((1, count, len(REGION)), np.float32)
        allowed, worth = np.zeros((1, count), np.bool_), np.full((1, count), np.nan)
        rank, asked = np.full((1, count), count, np.int64), worth_asking(need, heard)
        for column, name in enumerate(self.names):
            if name not in heard:  # the home
                continue
            regions[0, column] = about_region(need, file, heard[name])
            if name not in fits:
                continue
            allowed[0, column] = True
            found = self.books[name].look(self.jobs[file.name])
            if found is not None:
                worth[0, column] = found.composite
            if name in asked:
                rank[0, column] = asked.index(name)
        return Offers(regions, np.array([about_job(file)], np.float32), allowed, rank, worth)


def recorded(world: World, solver: Solver, seed: int) -> Offers | None:
    """Of one run; None where nobody had a choice. Raises BadDecisionError."""
    kept: list[Recorder] = []

    def chooses(books: Mapping[str, Books]) -> Recorder:
        kept.append(Recorder(books, {job.timed.name: job.timed for job in world.jobs}, list(world.regions)))
        return kept[0]

    play(world, WAYS[AS_IS], solver, TERMS, seed, chooses)
    return Offers.together(kept[0].rows) if kept[0].rows else None


def simulated(shape: Shape, solver: str, seeds: Iterable[int]) -> Offers:
    """Of a run for each seed, homes even and uneven in turn. Raises ValueError where none had a choice."""
    found = []
    for number, seed in enumerate(seeds):
        homes = HOMES[number % len(HOMES)]
        world = draw(replace(shape, homes=homes), seed)
        part = recorded(world, get_solver(solver), derived_seed(seed, 4))
        found += [] if part is None else [part]
    if not found:
        raise ValueError("no job had a choice between two regions: raise the load or the number of jobs")
    return Offers.together(found)
