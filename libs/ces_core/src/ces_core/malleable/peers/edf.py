"""Earliest deadline first: each job as large as was measured and is free, useful or not, in the order of deadlines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.malleable.model import Running, by_deadline
from ces_core.malleable.policy import Decision, Moment


@dataclass(frozen=True)
class EarliestDeadlineFirst:
    """``admission``: refuse who would make anybody late, asked one by one."""

    admission: bool = False

    def __call__(self, moment: Moment) -> Decision:
        inside, refused = list(moment.active), set[str]()
        if self.admission and moment.arrived:
            inside = moment.under_way
            late = late_jobs(inside, moment.now_s, moment.capacity)
            for each in (each for each in moment.active if each.name in moment.arrived):
                found = late_jobs([*inside, each], moment.now_s, moment.capacity)
                if found - late:
                    refused.add(each.name)
                else:
                    inside, late = [*inside, each], found
        return Decision(_sizes(by_deadline(inside), moment.capacity), frozenset(refused))


def _sizes(ordered: Sequence[Running], capacity: int) -> dict[str, int]:
    sizes = {}
    for each in ordered:
        if size := each.job.speeds.fitting(capacity):
            sizes[each.name] = size
            capacity -= size
    return sizes


def late_jobs(active: Sequence[Running], now_s: float, capacity: int) -> set[str]:
    """Names of those that miss their deadlines if nobody comes and resizes cost nothing: from end to end, everybody as
    large as then fits."""
    waiting = {each.name: each for each in by_deadline(active)}
    left = {name: each.left for name, each in waiting.items()}
    late = set()
    while waiting:
        sizes = _sizes(list(waiting.values()), capacity)
        rates = {name: waiting[name].job.speeds.rate(size) for name, size in sizes.items()}
        step = min(left[name] / rate for name, rate in rates.items())
        now_s += step
        for name, rate in rates.items():
            left[name] -= step * rate
            if left[name] <= 1e-9 * waiting[name].job.work:
                if now_s > waiting[name].job.deadline_s + 1e-6:
                    late.add(name)
                del waiting[name]
    return late
