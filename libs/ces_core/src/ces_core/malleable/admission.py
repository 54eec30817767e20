"""Who is admitted, and the minimum shares of all: jobs in the order of their deadlines, each on what is left.

As ElasticFlow (ASPLOS 2023) admits: only if every job under way and the new one are on time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.malleable.free import FreeSteps
from ces_core.malleable.model import MalleableJob, Running, by_deadline
from ces_core.malleable.share import Plan, plan


@dataclass
class Shares:
    """``plans``: each job's, by name. ``free``: what they leave. ``late``: names of jobs that miss their deadlines."""

    plans: dict[str, Plan]
    free: FreeSteps
    late: list[str]

    def replace(self, name: str, new: Plan) -> None:
        """Give a job another plan, and book the difference."""
        self.free.book(self.plans[name].given_back())
        self.free.book(new.pieces())
        self.plans[name] = new

    @property
    def free_now(self) -> int:
        return self.free.free[0]


def minimum_shares(running: Sequence[Running], now_s: float, capacity: int, slot_s: float) -> Shares:
    """The plans of all with the least that meets each deadline, the earliest deadline first. ``capacity``: GPUs."""
    free = FreeSteps.flat(now_s, capacity)
    shares = Shares({}, free, [])
    for each in by_deadline(running):
        found = plan(each.left, each.profile, each.job.deadline_s, free, slot_s)
        free.book(found.pieces())
        shares.plans[each.job.name] = found
        if not found.on_time:
            shares.late.append(each.job.name)
    return shares


def newcomer(job: MalleableJob) -> Running:
    """As it arrives: with all its work left."""
    return Running(job, job.work)


def admit(
    running: Sequence[Running], arrived: Sequence[MalleableJob], now_s: float, capacity: int, slot_s: float
) -> tuple[list[Running], list[MalleableJob]]:
    """Who of the arrived is let in, asked one by one in their order, and who is refused. A job of best effort, which has
    no deadline, is never refused, and one that is late already keeps nobody out who does not make it later."""
    inside, refused = list(running), []
    late = set(minimum_shares(inside, now_s, capacity, slot_s).late)
    let_in = []
    for job in arrived:
        asked = [*inside, newcomer(job)]
        found = minimum_shares(asked, now_s, capacity, slot_s)
        if job.deadline_s == float("inf") or not set(found.late) - late:
            inside = asked
            let_in.append(asked[-1])
            late = set(found.late)
        else:
            refused.append(job)
    return let_in, refused
