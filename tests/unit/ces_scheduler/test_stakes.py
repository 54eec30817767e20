"""Resizes for the sake of deadlines, each on its own."""

from __future__ import annotations

import time

import pytest
from cluster_state import view_of
from malleable_records import LINKS, NAMES, malleable, places

from ces_core.queue.parameters import Parameters
from ces_core.registry import get_solver
from ces_scheduler.cycle_run import tenants_of
from ces_scheduler.deadline_shares import JobShare
from ces_scheduler.job_speeds import speed_of
from ces_scheduler.offer import offer_of
from ces_scheduler.sizing import Candidate, Sizing
from ces_scheduler.solver_calls import SolverCalls
from ces_scheduler.stakes import for_deadline


@pytest.mark.parametrize(("ran_s", "size"), [(5.0, None), (60.0, 2)])
def test_to_less_than_it_needs_a_job_grows_no_more_often_than_others(ran_s: float, size: int | None) -> None:
    """One place is free, and nobody is there who could give it the others."""
    job = malleable("m", ["d"], ran_s=ran_s, work=600.0, due_s=300.0)
    full = malleable("full", [*NAMES[:3], *NAMES[:3]], spec=None, size=None)
    offer = offer_of(view_of(places(), LINKS, [job, full]))
    taker = Candidate(job, ran_s, 30.0, speed_of(job, []), 600.0, share=JobShare(4, 4, 0.0))
    calls = SolverCalls(get_solver("greedy"), {"m": 1}, time.perf_counter)
    step = for_deadline(taker, [], offer, Sizing(calls, Parameters(), tenants_of(offer)), 60.0)
    assert (None if step is None else step.resize.record.size) == size
