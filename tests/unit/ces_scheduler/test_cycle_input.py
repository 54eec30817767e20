"""What a cycle decides on."""

from cluster_state import job

from ces_scheduler.cycle_input import is_queued


def test_only_jobs_that_hold_nothing_wait() -> None:
    waits, leaving = job("waits"), job("leaving", ["a"], state="queued")
    assert [each for each in (leaving, job("r", ["a"]), waits) if is_queued(each)] == [waits]
