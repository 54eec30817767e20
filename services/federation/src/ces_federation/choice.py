"""Which regions are asked for a bid, and whose is taken. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ces_common.jobfile import ANY_REGION, JobFile
from ces_common.messages.regions import BidAnswer, Room, Summary
from ces_common.resources import Resources

MOST_ASKED = 3


@dataclass(frozen=True, slots=True)
class Need:
    """``whole``: of all tasks; ``largest``: of each resource, the most that one task asks for."""

    tenant: str
    regions: Sequence[str]
    whole: Room
    largest: Room


def need_of(file: JobFile) -> Need:
    """Of a malleable job at its smallest size."""
    asked = [(group.replicas, group.resources) for group in smallest(file).tasks]
    return Need(
        tenant=file.tenant,
        regions=file.regions,
        whole=Room(
            cpu=sum(count * one.cpu for count, one in asked),
            memory=sum(count * one.memory for count, one in asked),
            gpu=sum(count * _whole_cards(one) for count, one in asked),
        ),
        largest=Room(
            cpu=max(one.cpu for _, one in asked),
            memory=max(one.memory for _, one in asked),
            gpu=max(_whole_cards(one) for _, one in asked),
        ),
    )


def smallest(file: JobFile) -> JobFile:
    """As it is written; a malleable job at its smallest size."""
    return file if file.elastic is None else file.at_size(file.elastic.smallest)


def _whole_cards(asked: Resources) -> int:
    """Sums of whole cards tell nothing of shares: there, only a bid does."""
    return asked.gpu if isinstance(asked.gpu, int) else 0


def worth_asking(need: Need, summaries: Mapping[str, Summary]) -> list[str]:
    """At most three of those that are able, the shortest queue first, then the most that would stay free."""
    fits = able(need, summaries)
    return sorted(fits, key=lambda name: (fits[name].queued, -_left(need, fits[name]), name))[:MOST_ASKED]


def able(need: Need, summaries: Mapping[str, Summary]) -> dict[str, Summary]:
    """The regions that may have room by what they told. Sums cannot show that there is room, only that there is
    none."""
    return {name: each for name, each in summaries.items() if names(need, name) and shortfall(need, each) is None}


def names(need: Need, region: str) -> bool:
    return ANY_REGION in need.regions or region in need.regions


def shortfall(need: Need, summary: Summary) -> str | None:
    """Why it need not be asked; without amounts, which change all the time."""
    if need.tenant not in summary.accepts:
        return f"it accepts no jobs of tenant {need.tenant}"
    if not summary.free.holds(need.whole):
        return "it has less free than the job asks for"
    if not summary.largest.holds(need.largest):
        return "none of its nodes has free what one task asks for"
    return None


def _left(need: Need, summary: Summary) -> float:
    return (summary.free.cpu - need.whole.cpu) / max(summary.total.cpu, 1)


def in_order(bids: Mapping[str, BidAnswer]) -> list[str]:
    """Those with room, the best first; of equal ones, as they were asked."""
    return sorted((name for name, bid in bids.items() if bid.feasible), key=lambda name: -bids[name].composite)


class Backoff:
    """When a job is offered again that no region has taken: after ``first_s``, twice that and so on, up to ``most_s``.
    ``now``: steady."""

    KEPT_S = 60.0

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s, self._most_s = first_s, most_s
        self._waits: dict[str, tuple[float, float]] = {}  # job -> when again, and how long it waits after that

    def refused(self, job: str, now: float) -> None:
        wait_s = self._waits.get(job, (0.0, self._first_s))[1]
        self._waits[job] = (now + wait_s, min(2 * wait_s, self._most_s))

    def waiting(self, now: float) -> list[str]:
        """Those that are not offered yet. Jobs that could have been for a minute, and were not, are forgotten."""
        self._waits = {job: wait for job, wait in self._waits.items() if now - wait[0] < self.KEPT_S}
        return [job for job, (again, _) in self._waits.items() if again > now]
