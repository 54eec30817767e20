"""Resizes for the sake of deadlines: a job that would be late at its size grows, and others shrink for it. Pure but for
the solver."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ces_scheduler.offer import Cells, Offer
from ces_scheduler.sizing import Candidate, Resize, Sizing, at_size


@dataclass(frozen=True)
class Step:
    """A resize for the sake of a deadline. ``owed``: what the job that is at stake is to have of nodes and links."""

    resize: Resize
    owed: Cells


def at_stake(candidates: Iterable[Candidate], now_s: float) -> list[Candidate]:
    """The jobs that need more workers now and would be late with those that they have, the earliest deadline first."""
    found = []
    for each in candidates:
        if each.share is None or each.share.least <= each.size or each.record.deadline_at is None or each.left is None:
            continue
        if now_s + each.left / each.speed.rate(each.size) > each.record.deadline_at.timestamp():
            found.append(each)
    return sorted(found, key=lambda each: (_due_s(each), each.record.id))


def for_deadline(
    taker: Candidate, others: Iterable[Candidate], offer: Offer, sizing: Sizing, least_s: float
) -> Step | None:
    """The job grows into what is free, to what it needs at least if that is possible; else another job shrinks for it:
    of those that are no more urgent and have workers to spare, first one without a deadline, then the one with the
    latest. Where it takes several of them, one after the other. To less than it needs it grows only ``least_s`` after
    its last resize: each one is a restart."""
    assert taker.share is not None
    left = offer.without(taker.record.id)
    needed_s = taker.needed_s(taker.claimed)
    grown = sizing.largest(taker.record, taker.claimed, left, needed_s)
    if grown is not None and _size(grown) >= taker.share.least:
        return Step(grown, grown.decision.cells)
    wanted = [size for size in taker.claimed if size <= taker.share.least]
    reached = taker.size if grown is None else _size(grown)
    found = _giver(taker, [size for size in wanted if size > reached], _givers(taker, others), left, sizing)
    if found is None and grown is not None and taker.ran_s >= least_s:
        return Step(grown, grown.decision.cells)
    return found


def _givers(taker: Candidate, others: Iterable[Candidate]) -> list[Candidate]:
    able = [
        each
        for each in others
        if each.record.id != taker.record.id
        and each.size > each.least
        and not each.ends_first
        and each.record.priority <= taker.record.priority
    ]
    return sorted(able, key=lambda each: (-_due_s(each), each.record.priority, each.least - each.size, each.record.id))


def _giver(
    taker: Candidate, wanted: Sequence[int], givers: Sequence[Candidate], left: Offer, sizing: Sizing
) -> Step | None:
    """The first of the givers, at the size that lets the taker have one of the sizes wanted once the others needed for
    it have shrunk, too."""
    first: Resize | None = None
    for each in givers if wanted else ():
        without = left.without(each.record.id)
        floor = at_size(each.record, each.least)
        placed = sizing.place(floor, without)
        if placed is None:
            continue
        left = without.less({each.record.id: placed.cells})
        grown = sizing.largest(taker.record, wanted, left, taker.needed_s(wanted) + each.cost_s)
        if grown is None:
            first = first or Resize(floor, placed)
            continue
        owed = grown.decision.cells
        if first is not None:
            return Step(first, owed)
        beside = without.less({taker.record.id: owed})
        return Step(sizing.largest(each.record, each.smaller(), beside) or Resize(floor, placed), owed)
    return None


def _due_s(each: Candidate) -> float:
    return math.inf if each.record.deadline_at is None else each.record.deadline_at.timestamp()


def _size(resize: Resize) -> int:
    assert resize.record.size is not None
    return resize.record.size
