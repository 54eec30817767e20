"""What a cycle decides on."""

from cluster_state import job

from ces_scheduler.cycle_input import queued


def test_only_jobs_that_hold_nothing_wait() -> None:
    waits, leaving = job("waits"), job("leaving", ["a"], state="queued")
    assert queued([leaving, job("r", ["a"]), waits]) == [waits]
