"""What a cycle decides on."""

from cluster_state import job, view_of
from malleable_records import LINKS, START, malleable, places

from ces_core.queue.parameters import Parameters
from ces_core.registry import get_solver
from ces_scheduler.cycle_input import cycle_input, is_queued
from ces_scheduler.cycle_run import Placing, run_cycle
from ces_scheduler.offer import offer_of
from ces_scheduler.sizing import at_size


def test_only_jobs_that_hold_nothing_wait() -> None:
    waits, leaving = job("waits"), job("leaving", ["a"], state="queued")
    assert [each for each in (leaving, job("r", ["a"]), waits) if is_queued(each)] == [waits]


def test_a_job_that_needs_another_size_by_now_is_another_problem() -> None:
    """First it needs nine workers, for which there is no room, and then two."""
    waits, offer, parameters = malleable("w", [], 9), offer_of(view_of(places(), LINKS)), Parameters()
    placing, last = Placing(get_solver("greedy"), parameters), None
    for size in (9, 2):
        given = cycle_input([at_size(waits, size)], offer, [], START, parameters, last)
        run = run_cycle(1, given, placing)
        last = run.last
        assert [len(each.problem.tasks) for each in given.state.waiting] == [size]
    assert given.state.changed == {"w"}
    assert run.starts["w"].assignments.keys() >= {"w-0", "w-1"}
