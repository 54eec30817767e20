"""One run: a world's jobs come to its regions, or to all of it as one cluster."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, cast

import numpy as np
import structlog

from ces_common.jobfile import DEFAULT_TENANT
from ces_common.messages.regions import Summary
from ces_core.model.problem import Cluster
from ces_core.solver import Solver
from ces_experiments.regions.books import Asked, Books
from ces_experiments.regions.drawn import World
from ces_experiments.regions.played import SEALED, Course, PlayedManager, PlayedWire, Tally, TimedHome
from ces_experiments.regions.told import Teller, Telling, TimelyBoard
from ces_experiments.regions.virtual_time import run_virtually
from ces_federation.asker import Asker
from ces_federation.board import Board
from ces_federation.choice import need_of, worth_asking
from ces_federation.chooser import ByPolicy, ByRule, Chooser
from ces_federation.home import STEP_S
from ces_federation.owner import Owner
from ces_federation.peers import Peer
from ces_federation.policy import SHIPPED, load_policy
from ces_sim.rounds import derived_seed
from ces_testbed.hub import blocks

ALL = "all"  # the one cluster's name
TIMED_CHOICES = 200
ANSWERED_S = 30.0


@dataclass(frozen=True)
class Way:
    """``one``: one cluster with everything, ``border``: also with the links between regions. Without ``one``, regions
    by themselves; ``telling``: how they tell each other of themselves, None if no job leaves its home; ``learned``: the
    shipped policy says whom to ask, not the rule."""

    words: str
    one: bool = False
    border: bool = False
    telling: Telling | None = None
    learned: bool = False


WAYS = {
    "central": Way("one cluster with all nodes and all links, those between regions too", one=True, border=True),
    "one-decider": Way("one cluster without links between regions: no job is split", one=True),
    "regions": Way("regions, as they are", telling=Telling()),
    "learned": Way("regions that are chosen by the shipped policy", telling=Telling(), learned=True),
    "at-once": Way("regions that know at every moment what is free in the others", telling=Telling(at_once=True)),
    "timer-2s": Way("regions that tell every 2 s, and not on change", telling=Telling(on_change=False)),
    "timer-8s": Way("regions that tell every 8 s only", telling=Telling(8.0, on_change=False)),
    "alone": Way("regions that run their own jobs only"),
}
CENTRAL, AS_IS = "central", "regions"


@dataclass(frozen=True)
class Terms:
    """``patience_s``: how long a job waits. ``wire_s``: from one region to another, one way."""

    patience_s: float
    wire_s: float


Chooses = Callable[[Mapping[str, Books]], Chooser]
"""From all regions' books to who says whom to ask."""


def play(
    world: World, way: Way, solver: Solver, terms: Terms, seed: int, chooses: Chooses | None = None
) -> dict[str, Any]:
    """Until every job has started or given up: see :func:`figures`. ``chooses``: in place of what the way says. Raises
    BadDecisionError, and PolicyError where the shipped policy cannot be asked."""
    with _hushed():
        began = time.process_time()
        found = run_virtually(_Run(world, way, solver, terms, seed, chooses or _usual(way)).play())
        return found | {"run_cpu_s": time.process_time() - began}


def _usual(way: Way) -> Chooses:
    chooser: Chooser = ByPolicy(load_policy(SHIPPED)) if way.learned else ByRule()
    return lambda _: chooser


class _Run:
    def __init__(self, world: World, way: Way, solver: Solver, terms: Terms, seed: int, chooses: Chooses) -> None:
        self._world, self._way, self._solver, self._terms, self._chooses = world, way, solver, terms, chooses
        self._rng = np.random.default_rng(derived_seed(seed, 3))
        self._asked, self._tally = Asked(), Tally()
        self._jobs = {job.timed.name: job for job in world.jobs}
        self._courses = {
            name: Course(
                job.home, job.timed.arrival_s, sum(task.cpu for task in job.timed.tasks) * job.timed.duration_s
            )
            for name, job in self._jobs.items()
        }
        self._left = len(self._jobs)
        self._tellers: dict[str, Teller] = {}
        self._choice_us: float | None = None

    async def play(self) -> dict[str, Any]:
        loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        clusters = self._clusters()
        block = dict(zip(clusters, blocks(len(clusters)), strict=True))
        books = {name: Books(cluster, self._solver, self._asked) for name, cluster in clusters.items()}

        def summary(name: str) -> Summary:
            totals = books[name].totals()
            return Summary(**totals.model_dump(), region=name, block=block[name], accepts=[DEFAULT_TENANT])

        def changed(name: str) -> None:
            if name in self._tellers:
                self._tellers[name].note(loop.time(), summary(name))

        managers = {
            name: PlayedManager(
                name, books[name], self._jobs, self._courses, self._tally, self._over, partial(changed, name)
            )
            for name in clusters
        }
        for job in self._world.jobs:
            home = managers[ALL if self._way.one else job.home]
            loop.call_at(job.timed.arrival_s, home.submit, job, self._terms.patience_s)
        working = []
        if self._way.telling is not None:
            self._tellers = {
                name: Teller(self._way.telling, self._rng.uniform(0, self._way.telling.every_s), summary(name))
                for name in clusters
            }
            wire_s = 0.0 if self._way.telling.at_once else self._terms.wire_s
            boards = {name: TimelyBoard(name, block[name], self._tellers, wire_s) for name in clusters}
            working = [asyncio.create_task(each) for each in self._federation(managers, boards, self._chooses(books))]
        until = await _first(self._settled(), working)
        if working:
            self._choice_us = self._timed_choices(boards, until)
        return figures(self._courses, self._asked, self._tally) | self._told(summary, until)

    async def _settled(self) -> float:
        """When every job had started or given up; some time later, when what was said about them is answered."""
        await self._done.wait()
        until = asyncio.get_running_loop().time()
        await asyncio.sleep(ANSWERED_S)
        return until

    def _clusters(self) -> Mapping[str, Cluster]:
        if not self._way.one:
            return self._world.regions
        return {ALL: self._world.whole if self._way.border else self._world.parts}

    def _federation(
        self, managers: Mapping[str, PlayedManager], boards: Mapping[str, TimelyBoard], chooser: Chooser
    ) -> Iterator[Any]:
        clock = asyncio.get_running_loop().time
        wires: dict[str, PlayedWire] = {}
        peer = Peer.model_validate(
            {"token": 32 * "x", "accept": [DEFAULT_TENANT], "tenants": {DEFAULT_TENANT: DEFAULT_TENANT}}
        )
        for name, manager in managers.items():
            wire = PlayedWire(name, wires, self._terms.wire_s, self._tally)
            Owner(manager, {other: peer for other in managers if other != name}, clock).serve(wire)
            asker = Asker(wire, [other for other in managers if other != name], clock)
            home = TimedHome(manager, asker, boards[name], clock, self._tally, chooser)
            yield _offering(home, manager.waits, self._rng.uniform(0, STEP_S))

    def _over(self) -> None:
        self._left -= 1
        if not self._left:
            self._done.set()

    def _timed_choices(self, boards: Mapping[str, TimelyBoard], now: float) -> float:
        """Microseconds to filter and rank the regions for a job, by what is known at the end."""
        jobs = self._world.jobs[:TIMED_CHOICES]
        board = next(iter(boards.values()))
        board.usable(now)  # what was told last is taken in
        began = time.process_time()
        for job in jobs:
            worth_asking(need_of(job.file), Board.usable(board, now))
        return (time.process_time() - began) / len(jobs) * 1e6

    def _told(self, summary: Any, until: float) -> dict[str, Any]:
        """Of each region and second: what it tells the others, and how often it asks them about its jobs."""
        if not self._tellers:
            return {}
        others = len(self._tellers) - 1
        away = [course for course in self._courses.values() if course.region not in (None, course.home)]
        told = sum(teller.times(until) for teller in self._tellers.values()) * others
        about = len(summary(next(iter(self._tellers))).encode()) + SEALED
        asked_s = sum(covered(spans) for spans in _by_pair(away, until).values())
        region_s = len(self._tellers) * until
        return {
            "choice_us": self._choice_us,
            "summaries_per_s": told / region_s,
            "summary_bytes_per_s": told * about / region_s,
            "following_per_s": 2 * asked_s / STEP_S / region_s,
        }


async def _offering(home: TimedHome, waits: asyncio.Event, first_s: float) -> None:
    """As the service does, which looks each second; where nothing waits, there is nothing to see."""
    clock = asyncio.get_running_loop().time
    try:
        while True:
            await waits.wait()
            await asyncio.sleep((first_s - clock()) % STEP_S)
            while waits.is_set():
                await home.look()
    finally:
        await home.close()


async def _first(done: Coroutine[Any, Any, float], working: Sequence[asyncio.Task[None]]) -> float:
    """What it comes to. Raises what a task raises that works meanwhile and should not end."""
    waiting = asyncio.create_task(done)
    ended, _ = await asyncio.wait([cast(asyncio.Task[Any], waiting), *working], return_when=asyncio.FIRST_COMPLETED)
    for task in working:
        task.cancel()
    await asyncio.gather(*working, return_exceptions=True)
    for task in ended - {waiting}:
        task.result()
    return waiting.result()


def _by_pair(away: Iterable[Course], until: float) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Home and region -> when jobs of the one ran in the other."""
    found = defaultdict(list)
    for course in away:
        if course.region is not None and course.started_s is not None and course.ended_s is not None:
            found[course.home, course.region].append((course.started_s, min(course.ended_s, until)))
    return found


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of them lasts."""
    total, end = 0.0, 0.0
    for begins, ends in sorted(spans):
        total += max(0.0, ends - max(begins, end))
        end = max(end, ends)
    return total


def figures(courses: Mapping[str, Course], asked: Asked, tally: Tally) -> dict[str, Any]:
    """``accepted``: share of the jobs that started, and ``work`` of all the work asked for; of those ``wait_s``,
    ``satisfaction`` and ``elsewhere``, the share that ran outside their home. ``asks``: of the solver, for each job;
    ``decision_ms`` of CPU each, ``solver_ms`` for each job. Where jobs were placed elsewhere, for each of them:
    ``offers`` with which a region was asked at all, ``bids``, ``messages`` and ``bytes`` of bids, holds, commits and
    releases; ``refused``: share of the holds; ``overtaken``: for each, those that found room at home before it was
    decided; ``latency_s``: from the offer that succeeded to the answered commit."""
    started = [course for course in courses.values() if course.started_s is not None]
    cpu_ms = [cpu_s * 1e3 for cpu_s in asked.cpu_s]
    away = [course for course in started if course.region not in (ALL, course.home)]
    found: dict[str, Any] = {
        "accepted": len(started) / len(courses),
        "work": sum(course.work for course in started) / sum(course.work for course in courses.values()),
        "wait_s": fmean(course.started_s - course.arrival_s for course in started if course.started_s is not None),
        "satisfaction": fmean(course.satisfaction for course in started),
        "elsewhere": len(away) / len(started),
        "asks": (len(cpu_ms) + asked.screened) / len(courses),
        "decision_ms": fmean(cpu_ms),
        "decision_p99_ms": float(np.percentile(cpu_ms, 99)),
        "solver_ms": sum(cpu_ms) / len(courses),
    }
    placed = [took_s for outcome, took_s in tally.offers if outcome == "placed"]
    if placed:
        found |= {
            "offers": sum(outcome != "no-region" for outcome, _ in tally.offers) / len(placed),
            "refused": tally.holds["refused"] / tally.holds.total(),
            "overtaken": sum(outcome == "not-decided" for outcome, _ in tally.offers) / len(placed),
            "bids": tally.messages["bid"] / len(placed),
            "messages": tally.messages.total() / len(placed),
            "bytes": tally.sizes.total() / len(placed),
            "latency_s": fmean(placed),
            "latency_p99_s": float(np.percentile(placed, 99)),
        }
    return found


@contextmanager
def _hushed() -> Iterator[None]:
    """The federation's log says what becomes of every job, which here is counted."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    try:
        yield
    finally:
        structlog.configure(**before)
