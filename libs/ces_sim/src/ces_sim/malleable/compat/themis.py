"""Themis in the public simulator: in every slot, the jobs whose shares the fairest finish times ask for.

Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, as the simulator has it: sizes are those
asked for, a job's age is that at the last event, and an isolated job's speed counts as its share alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ces_core.malleable.peers.themis import Claim, fair_shares
from ces_sim.malleable.compat.events import Events
from ces_sim.malleable.compat.state import Tally
from ces_sim.malleable.traces import TracedJob


@dataclass(eq=False)
class _Sharing:
    job: TracedJob
    left: float
    left_s: float
    isolated: float = 0.0
    last_left: float = 0.0
    last_share: float = 0.0
    end: float = 0.0


def run(jobs: Sequence[TracedJob], capacity: int, slot: int) -> Tally:
    """Simulate a trace on ``capacity`` GPUs, decided again every ``slot`` seconds."""
    arrivals = Events((float(job.arrived_s), job) for job in jobs)
    now = seen = arrivals.first_time
    active: list[_Sharing] = []
    ending: list[_Sharing] = []
    tally = Tally.new()
    while len(arrivals) or active:
        for each in ending:
            active.remove(each)
            (tally.on_time if each.end <= each.job.deadline_s else tally.late).append(each.job.name)
        arrived = arrivals.take(now)
        seen = now if ending or arrived else seen
        active += [
            _Sharing(job, float(job.iterations), float(job.duration_s)) for job in (arrived.arrivals if arrived else ())
        ]
        active, runs = _choose(active, seen, capacity)
        arrivals.merge(now, slot)
        if arrivals.first_time - now < slot:
            last = arrivals.take(arrivals.first_time)
            arrivals.look(now + slot).arrivals.extend(last.arrivals if last else ())
        ending = [each for each in runs if _work(each, now, slot)]
        now += slot
    return tally


def _choose(active: list[_Sharing], seen: float, capacity: int) -> tuple[list[_Sharing], list[_Sharing]]:
    """All, with the largest share first, and those of them that run."""
    if not active:
        return active, []
    claims = []
    for each in active:
        share = min(1.0, math.ceil(capacity / len(active)) / each.job.gpus)
        if each.last_share:
            each.isolated += (each.last_left - each.left) / each.last_share
        each.last_left, each.last_share = each.left, share
        alone = each.isolated + each.left / share
        busy = each.left / each.job.speeds[each.job.gpus]
        claims.append(Claim(seen - each.job.arrived_s, busy, alone, each.job.gpus))
    if sum(claim.gpus for claim in claims) <= capacity:
        return active, list(active)
    shares = dict(zip(map(id, active), fair_shares(claims, capacity), strict=True))
    ordered = sorted(active, key=lambda each: -shares[id(each)])
    free, runs = capacity, []
    for each in ordered:
        if each.job.gpus <= free:
            runs.append(each)
            free -= each.job.gpus
    return ordered, runs


def _work(each: _Sharing, now: float, slot: int) -> bool:
    """Work for a slot, by the clock and by iterations: whichever is done first ends the job."""
    end = now + each.left_s
    each.left_s = max(0.0, each.left_s - slot)
    each.left -= slot * each.job.speeds[each.job.gpus]
    if each.left <= 0:
        each.left_s = 0.0
        end = now + slot
    each.end = end
    return end <= now + slot
