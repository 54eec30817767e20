"""Who holds what until when: the use of every node and link, now and at moments to come, as far as jobs have said.

A moment is a pair that compares as time does. ``(0, seconds)`` is a time; ``(1, seconds)`` is the end, at nobody knows
what time, of a job that says no duration and started at ``seconds``: after all known times, and the oldest first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ces_core.ledger import LINK, TOLERANCE, Cell
from ces_core.multi.jobs import RunningJob, kept_by
from ces_core.problem import Cluster, FloatArray
from ces_core.topology import IntArray

if TYPE_CHECKING:
    from ces_core.ledger import Ledger

Moment = tuple[int, float]
ALWAYS: Moment = (0, -math.inf)
NEVER: Moment = (2, 0.0)


def at(seconds: float) -> Moment:
    return 0, seconds


def seconds_of(moment: Moment) -> float | None:
    """None where nobody knows."""
    return moment[1] if moment[0] == 0 else None


def end_of(started_s: float, expected_s: float | None) -> Moment:
    """When a job ends that starts then."""
    return (1, started_s) if expected_s is None else (0, started_s + expected_s)


def end_after(begin: Moment, expected_s: float | None) -> Moment:
    """When a job ends that starts at a moment to come."""
    return NEVER if begin[0] or expected_s is None else (0, begin[1] + expected_s)


@dataclass(frozen=True)
class Holder:
    """``places`` and ``amounts``: what is held, by index into flat arrays (see Outlook)."""

    begin: Moment
    end: Moment
    places: IntArray
    amounts: FloatArray

    def less(self, places: IntArray, amounts: FloatArray) -> Holder:
        """``places``: some of those that it holds."""
        left = dict(zip(self.places.tolist(), self.amounts.tolist(), strict=True))
        for place, amount in zip(places.tolist(), amounts.tolist(), strict=True):
            left[place] -= amount
        return replace(self, amounts=np.array(list(left.values()), dtype=np.float64))


class Outlook:
    """Flat arrays have the resources of all nodes, row by row, then the links."""

    def __init__(self, ledger: Ledger, running: Iterable[RunningJob], now_s: float) -> None:
        self._cluster = ledger.base
        self._nodes = ledger.base.node_used.shape[1]
        self._base = flat(ledger.base.node_used, ledger.base.link_used)
        self._capacity = flat(ledger.base.node_capacity, ledger.base.link_capacity)
        self._running: dict[str, Holder] = {}
        self._reserved: dict[str, Holder] = {}
        self.now = at(now_s)
        for job in running:
            self.start(job, ledger.held(job.name))

    @property
    def reserved(self) -> Sequence[str]:
        """Names of those that room is kept for."""
        return list(self._reserved)

    def start(self, job: RunningJob, cells: Mapping[Cell, float]) -> None:
        """The job holds this from now on. One that should have ended may end any moment, and does not have to."""
        end = max(end_of(job.started_s, job.expected_s), self.soon)
        self._running[job.name] = Holder(ALWAYS, end, *self._flat(cells))

    def reserve(self, name: str, begin: Moment, expected_s: float | None, cells: Mapping[Cell, float]) -> None:
        """Room is kept for the job from ``begin`` on."""
        self._reserved[name] = Holder(begin, end_after(begin, expected_s), *self._flat(cells))

    def without(self, given: Mapping[str, Mapping[Cell, float]]) -> Outlook:
        """As it would be had these running jobs given this up."""
        other = copy(self)
        other._running, other._reserved = dict(self._running), dict(self._reserved)
        for name, cells in given.items():
            other._running[name] = other._running[name].less(*self._flat(cells))
        return other

    def give_up(self, name: str, cells: Mapping[Cell, float]) -> None:
        """The running job gives this up as soon as it has been told, and keeps the rest."""
        places, amounts = self._flat(cells)
        rest = self._running[name].less(places, amounts)
        if rest.amounts.any():
            self._running[kept_by(name)] = replace(rest, end=(1, self.now[1]))  # nobody knows when it will go on
        self._running[name] = Holder(ALWAYS, self.soon, places, amounts)

    @property
    def soon(self) -> Moment:
        """When those are gone that may go any moment."""
        return at(math.nextafter(self.now[1], math.inf))

    def forget(self, name: str) -> None:
        """No more room is kept for the job."""
        self._reserved.pop(name, None)

    def moments(self) -> list[Moment]:
        """Now, and whenever something is given back, in order."""
        ends = {holder.end for holder in (*self._running.values(), *self._reserved.values())}
        return [self.now, *sorted(end for end in ends if self.now < end < NEVER)]

    def use(self, begin: Moment, end: Moment) -> FloatArray:
        """Flat: the most that others use of each node and link at any moment from ``begin`` to before ``end``. Room
        that is kept from a moment on which nobody knows may be needed any time."""
        most = self._use_at(begin)
        for holder in self._reserved.values():  # between these, use only falls
            if begin < holder.begin and (holder.begin < end or seconds_of(holder.begin) is None):
                most = np.maximum(most, self._use_at(holder.begin))
        return most

    def course(self) -> Iterator[tuple[Moment, FloatArray]]:
        """``use`` of each moment alone, moment by moment; each array is good until the next."""
        use = self._use_at(ALWAYS)
        ending = sorted(self._running.values(), key=lambda holder: holder.end)
        unknown = [each for each in self._reserved.values() if seconds_of(each.begin) is None]
        needed = [(each.begin, self._use_at(each.begin)) for each in unknown]
        gone = 0
        for moment in self.moments():
            while gone < len(ending) and ending[gone].end <= moment:
                np.subtract.at(use, ending[gone].places, ending[gone].amounts)
                gone += 1
            most = use.copy()
            for each in self._reserved.values():
                if each.begin <= moment < each.end:
                    np.add.at(most, each.places, each.amounts)
            for begin, later in needed:
                if moment < begin:
                    np.maximum(most, later, out=most)
            yield moment, most

    def holds(self, begin: Moment, end: Moment, cells: Mapping[Cell, float]) -> bool:
        """Whether this has room beside all others from ``begin`` to ``end``."""
        places, amounts = self._flat(cells)
        used = self.use(begin, end)[places]
        return bool((used + amounts <= self._capacity[places] * (1 + TOLERANCE)).all())

    def cluster(self, use: FloatArray) -> Cluster:
        """The cluster with this in use."""
        nodes = self._cluster.node_used.size
        return self._cluster.with_used(use[:nodes].reshape(-1, self._nodes), use[nodes:])

    def waits_for(self, begin: Moment, cells: Mapping[Cell, float]) -> tuple[str, ...]:
        """The running jobs that hold some of these cells now and will have ended by ``begin``."""
        places, _ = self._flat(cells)
        return tuple(
            name
            for name, holder in self._running.items()
            if self.now < begin and holder.end <= begin and np.isin(holder.places, places).any()
        )

    def ending(self) -> Mapping[Moment, tuple[str, ...]]:
        """Moment -> the running jobs that end then."""
        found: dict[Moment, tuple[str, ...]] = {}
        for name, holder in self._running.items():
            found[holder.end] = (*found.get(holder.end, ()), name)
        return found

    def _use_at(self, moment: Moment) -> FloatArray:
        held = [each for each in self._running.values() if moment < each.end]
        held += [each for each in self._reserved.values() if each.begin <= moment < each.end]
        if not held:
            return self._base.copy()
        places = np.concatenate([each.places for each in held])
        amounts = np.concatenate([each.amounts for each in held])
        return self._base + np.bincount(places, amounts, len(self._base))

    def _flat(self, cells: Mapping[Cell, float]) -> tuple[IntArray, FloatArray]:
        links = self._cluster.node_used.size
        places = [links + i if resource == LINK else resource * self._nodes + i for resource, i in cells]
        return np.array(places, dtype=np.int64), np.array(list(cells.values()), dtype=np.float64)


def flat(nodes: FloatArray, links: FloatArray) -> FloatArray:
    return np.concatenate([nodes.ravel(), links])
