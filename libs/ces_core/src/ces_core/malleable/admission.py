"""Who is admitted, and the minimum shares of all: jobs in the order of their deadlines, each on what is left.

As ElasticFlow (ASPLOS 2023) admits: only if every job under way and the new one are on time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.malleable.free import FreeSteps
from ces_core.malleable.model import MalleableJob, Pieces, Running, by_deadline
from ces_core.malleable.share import Plan, plan, slot_end

TOLERANCE_S = 1e-6
"""Seconds that rounding may cost."""


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


def minimum_shares(
    running: Sequence[Running], now_s: float, capacity: int, slot_s: float, booked: Pieces = ()
) -> Shares:
    """The plans of all with the least that meets each deadline, the earliest deadline first. ``capacity``: GPUs;
    ``booked``: what of them others have for a time."""
    free = FreeSteps.flat(now_s, capacity)
    free.book(booked)
    kept = {each.name: _kept_by(each, now_s, slot_s) for each in running if each.stays}
    for begin, end, size in kept.values():
        free.book([(begin, end, size)])
    shares = Shares({}, free, [])
    for each in by_deadline(running):
        if each.stays:
            begin, end, size = kept[each.name]
            free.book([(begin, end, -size)])
        found = plan(each.left, each.profile, each.job.deadline_s, free, slot_s, stays=each.stays)
        free.book(found.pieces())
        shares.plans[each.job.name] = found
        if not found.on_time:
            shares.late.append(each.job.name)
    return shares


def _kept_by(each: Running, now_s: float, slot_s: float) -> tuple[float, float, int]:
    """What a job that stays has at least, and until when."""
    least = each.profile.sizes[0]
    return now_s, slot_end(now_s, now_s + each.left / each.profile.rate(least), slot_s), least


def shares_of(running: Sequence[Running], now_s: float, capacity: int, slot_s: float, booked: Pieces = ()) -> Shares:
    """The minimum shares, or what was promised where that makes fewer late: a share that has become smaller may be in
    the way of others for longer, so that a new plan of all can fail where the old one holds."""
    shares = minimum_shares(running, now_s, capacity, slot_s, booked)
    if shares.late and any(each.promise for each in running):
        kept = promised_shares(running, now_s, capacity, slot_s, booked)
        return kept if len(kept.late) < len(shares.late) else shares
    return shares


def promised_shares(
    running: Sequence[Running], now_s: float, capacity: int, slot_s: float, booked: Pieces = ()
) -> Shares:
    """Everybody as promised, and on what that leaves the minimum shares of those to whom nothing was."""
    free = FreeSteps.flat(now_s, capacity)
    free.book(booked)
    shares = Shares({}, free, [])
    ordered = by_deadline(running)
    for each in sorted(ordered, key=lambda each: not each.promise):
        found = kept_plan(each, now_s) if each.promise else None
        if found is None or any(free.least(begin, end) < size for begin, end, size in found.pieces()):
            found = plan(each.left, each.profile, each.job.deadline_s, free, slot_s, stays=each.stays)
        free.book(found.pieces())
        shares.plans[each.name] = found
        if not found.on_time:
            shares.late.append(each.name)
    return shares


def kept_plan(each: Running, now_s: float) -> Plan | None:
    """What is left of its promise; None if that is too little for what is left of its work."""
    steps, at, left = [], now_s, each.left
    for begin, end, size in each.promise:
        if end <= now_s:
            continue
        if begin > at:
            steps.append((at, 0))
        at = max(begin, now_s)
        steps.append((at, size))
        done_s = at + left / each.profile.rate(size)
        if done_s <= end + TOLERANCE_S:
            return Plan(tuple(steps), done_s, end, done_s <= each.job.deadline_s + TOLERANCE_S)
        left -= (end - at) * each.profile.rate(size)
        at = end
    return None


def newcomer(job: MalleableJob) -> Running:
    """As it arrives: with all its work left."""
    return Running(job, job.work)


def admit(
    running: Sequence[Running],
    arrived: Sequence[MalleableJob],
    now_s: float,
    capacity: int,
    slot_s: float,
    booked: Pieces = (),
) -> tuple[list[Running], list[MalleableJob]]:
    """Who of the arrived is let in, asked one by one in their order, and who is refused. A job of best effort, which
    has no deadline, is never refused, and one that is late already keeps nobody out."""
    inside, refused = list(running), []
    late = set(shares_of(inside, now_s, capacity, slot_s, booked).late)
    let_in = []
    for job in arrived:
        asked = [*inside, newcomer(job)]
        found = shares_of(asked, now_s, capacity, slot_s, booked)
        if job.deadline_s == float("inf") or not set(found.late) - late:
            inside = asked
            let_in.append(asked[-1])
            late = set(found.late)
        else:
            refused.append(job)
    return let_in, refused


def earliest_end_s(job: MalleableJob, beside: Shares, now_s: float, slot_s: float) -> float:
    """When a job that has not begun would be done at the earliest on what these shares leave."""
    return plan(job.work, job.profile, now_s, beside.free, slot_s).done_s
