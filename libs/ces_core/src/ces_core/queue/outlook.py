"""The outlook: who uses each node and link until when, now and in the future, as far as jobs state run times.

A moment is a pair that sorts by time. ``(0, seconds)`` is a known time; ``(1, seconds)`` is the unknown end of a job
that started at ``seconds`` and states no run time: after all known times, oldest job first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ces_core.model.problem import Cluster, FloatArray
from ces_core.model.topology import IntArray
from ces_core.queue.jobs import RunningJob, kept_by
from ces_core.queue.ledger import CARD, LINK, TOLERANCE, Cell

if TYPE_CHECKING:
    from ces_core.queue.ledger import Ledger

Moment = tuple[int, float]
ALWAYS: Moment = (0, -math.inf)
NEVER: Moment = (2, 0.0)


def at(seconds: float) -> Moment:
    return 0, seconds


def seconds_of(moment: Moment) -> float | None:
    """The moment's time; None if unknown."""
    return moment[1] if moment[0] == 0 else None


def end_of(started_s: float, expected_s: float | None) -> Moment:
    """When a job ends that starts at this time."""
    return (1, started_s) if expected_s is None else (0, started_s + expected_s)


def end_after(begin: Moment, expected_s: float | None) -> Moment:
    """When a job ends that starts at a future moment."""
    return NEVER if begin[0] or expected_s is None else (0, begin[1] + expected_s)


@dataclass(frozen=True)
class Holder:
    """A holder of capacity: ``places`` are indices into the outlook's flat arrays, ``amounts`` what it holds there."""

    begin: Moment
    end: Moment
    places: IntArray
    amounts: FloatArray

    def less(self, places: IntArray, amounts: FloatArray) -> Holder:
        """The holder without ``places``, which must be among its own."""
        left = dict(zip(self.places.tolist(), self.amounts.tolist(), strict=True))
        for place, amount in zip(places.tolist(), amounts.tolist(), strict=True):
            left[place] -= amount
        return replace(self, amounts=np.array(list(left.values()), dtype=np.float64))


class Outlook:
    """Who holds what, and until when. Flat arrays list the resources of all nodes, row by row, then the links, then
    what is known of cards."""

    def __init__(self, ledger: Ledger, running: Iterable[RunningJob], now_s: float) -> None:
        self._cluster = ledger.base
        self._nodes = ledger.base.node_used.shape[1]
        self.cards = cards = ledger.base.cards
        self._cards = 0 if cards is None else len(cards.node)
        self._base = flat(ledger.base.node_used, ledger.base.link_used, None if cards is None else cards.used)
        self._capacity = flat(
            ledger.base.node_capacity, ledger.base.link_capacity, None if cards is None else cards.capacity
        )
        self._running: dict[str, Holder] = {}
        self._reserved: dict[str, Holder] = {}
        self.now = at(now_s)
        for job in running:
            self.start(job, ledger.held(job.name))

    @property
    def reserved(self) -> Sequence[str]:
        """Names of jobs with a reservation."""
        return list(self._reserved)

    def start(self, job: RunningJob, cells: Mapping[Cell, float]) -> None:
        """Record that the job holds this from now on. A job past its stated end may end at any moment, or not."""
        end = max(end_of(job.started_s, job.expected_s), self.soon)
        self._running[job.name] = Holder(ALWAYS, end, *self._flat(cells))

    def reserve(self, name: str, begin: Moment, expected_s: float | None, cells: Mapping[Cell, float]) -> None:
        """Reserve capacity for the job from ``begin`` on."""
        self._reserved[name] = Holder(begin, end_after(begin, expected_s), *self._flat(cells))

    def without(self, given: Mapping[str, Mapping[Cell, float]]) -> Outlook:
        """The outlook as if these running jobs had given this up."""
        other = copy(self)
        other._running, other._reserved = dict(self._running), dict(self._reserved)
        for name, cells in given.items():
            other._running[name] = other._running[name].less(*self._flat(cells))
        return other

    def after(self, ended: Iterable[str]) -> Outlook:
        """The outlook as if these running jobs had ended. Of one that was told to give something up only that is gone:
        nobody knows when it will go on."""
        other = copy(self)
        gone = frozenset(ended)
        other._running = {name: holder for name, holder in self._running.items() if name not in gone}
        other._reserved = dict(self._reserved)
        return other

    def give_up(self, name: str, cells: Mapping[Cell, float]) -> None:
        """Record that the running job gives this up as soon as it is told to, and keeps the rest."""
        places, amounts = self._flat(cells)
        rest = self._running[name].less(places, amounts)
        if rest.amounts.any():
            self._running[kept_by(name)] = replace(rest, end=(1, self.now[1]))  # nobody knows when it will go on
        self._running[name] = Holder(ALWAYS, self.soon, places, amounts)

    @property
    def soon(self) -> Moment:
        """The moment after which every job that may end at any moment is gone."""
        return at(math.nextafter(self.now[1], math.inf))

    def forget(self, name: str) -> None:
        """Drop the job's reservation."""
        self._reserved.pop(name, None)

    def moments(self) -> list[Moment]:
        """Now, and every moment at which something is released, in order."""
        ends = {holder.end for holder in (*self._running.values(), *self._reserved.values())}
        return [self.now, *sorted(end for end in ends if self.now < end < NEVER)]

    def use(self, begin: Moment, end: Moment) -> FloatArray:
        """Flat: the most that others use of each node and link at any moment from ``begin`` until before ``end``. A
        reservation with an unknown start may need its capacity at any time."""
        most = self._use_at(begin)
        for holder in self._reserved.values():  # between these, use only falls
            if begin < holder.begin and (holder.begin < end or seconds_of(holder.begin) is None):
                most = np.maximum(most, self._use_at(holder.begin))
        return most

    def course(self) -> Iterator[tuple[Moment, FloatArray]]:
        """``use`` at each moment, in order; each array is valid only until the next."""
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
        """Whether this capacity is free from ``begin`` to ``end``."""
        places, amounts = self._flat(cells)
        used = self.use(begin, end)[places]
        return bool((used + amounts <= self._capacity[places] * (1 + TOLERANCE)).all())

    def cluster(self, use: FloatArray) -> Cluster:
        """The cluster with this use."""
        nodes, links = self._cluster.node_used.size, len(self._cluster.link_used)
        cards = use[nodes + links :].reshape(-1, self._cards) if self._cards else None
        return self._cluster.with_used(use[:nodes].reshape(-1, self._nodes), use[nodes : nodes + links], cards)

    def waits_for(self, begin: Moment, cells: Mapping[Cell, float]) -> tuple[str, ...]:
        """Running jobs that hold some of these cells now and will have ended by ``begin``."""
        places, _ = self._flat(cells)
        return tuple(
            name
            for name, holder in self._running.items()
            if self.now < begin and holder.end <= begin and np.isin(holder.places, places).any()
        )

    def ending(self) -> Mapping[Moment, tuple[str, ...]]:
        """Moment -> running jobs that end then."""
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
        cards = links + len(self._cluster.link_used)
        places = [
            links + i
            if resource == LINK
            else resource * self._nodes + i
            if resource >= 0
            else cards + (CARD - resource) * self._cards + i
            for resource, i in cells
        ]
        return np.array(places, dtype=np.int64), np.array(list(cells.values()), dtype=np.float64)


def flat(nodes: FloatArray, links: FloatArray, cards: FloatArray | None = None) -> FloatArray:
    return np.concatenate([nodes.ravel(), links, *([] if cards is None else [cards.ravel()])])
